//! `layout`: changes the memory layout of a tensor.
//!
//! ```text
//! weight: layout [d0/16, d1, d2, d3, d0%16]
//! ```
//!
//! `d0`, `d1` and so on are the dimensions of the tensor. Each appears alone or as quotient and
//! remainder by the same number; memory is padded if the extent is not a multiple of it.
//!
//! A `const` input is converted once, ahead of all calls, to the prepared buffer `weight.laid`. An
//! intermediate is written and read in the layout. The caller decides the layout of other inputs
//! and of results: copy them with `cache_read ... as`.

use std::fmt;

use tensorwright_lang::program::{AxisId, Expr, Index, Read, Rewrite};

use super::Rule;
use super::find::{find_buffer, fresh_name};
use super::footprint::{is_temporary, refuse_checked, refuse_scatter};
use super::prepare::chain;
use crate::canonical::element;
use crate::nest::{
    Bound, Buffer, BufferId, Layout, LoopNest, Owner, Role, Store, Var, for_each_store,
    rewrite_nodes,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// The most elements of a tensor with a layout, including padding.
const MAX_ELEMENTS: i64 = 1 << 40;

/// A layout in schedule syntax: `[d1/16, d0, d1%16]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutText {
    /// The parts, outermost first.
    pub parts: Vec<Part>,
}

/// A part of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A whole dimension.
    Whole(u32),
    /// A dimension divided by a number, rounded down.
    Quotient(u32, i64),
    /// The remainder of that division.
    Remainder(u32, i64),
}

impl LayoutText {
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        words.symbol("[")?;
        let mut parts = Vec::new();
        loop {
            let name = words.name("a dimension `d0`, `d1`, ...")?;
            let dimension = name.strip_prefix('d').and_then(|number| number.parse::<u32>().ok());
            let dimension = dimension.filter(|number| *number < 64).ok_or_else(|| {
                Refusal::new(format!("`{name}` is no dimension"))
                    .help("the dimensions are `d0`, `d1` and so on, outermost first")
            })?;
            parts.push(if words.accept("/") {
                Part::Quotient(dimension, words.number("the divisor")?)
            } else if words.accept("%") {
                Part::Remainder(dimension, words.number("the divisor")?)
            } else {
                Part::Whole(dimension)
            });
            if !words.accept(",") {
                break;
            }
        }
        words.symbol("]")?;
        Ok(Self { parts })
    }

    /// The layout of a tensor of a shape. Memory is padded to multiples of the divisors, which may
    /// be arbitrarily large in a schedule: the size must not overflow.
    pub(super) fn layout(&self, shape: &[i64]) -> Result<Layout, Refusal> {
        for part in &self.parts {
            if let Part::Quotient(_, by @ ..=0) | Part::Remainder(_, by @ ..=0) = part {
                return Err(Refusal::new(format!("a dimension cannot be divided by {by}")));
            }
        }
        let dim = |dimension: u32| Index::axis(AxisId(dimension));
        // Divisors are positive and the coefficient is one: nothing overflows or folds.
        let index = |part: &Part| match *part {
            Part::Whole(dimension) => dim(dimension),
            Part::Quotient(dimension, by) => dim(dimension).div(by).unwrap_or_default(),
            Part::Remainder(dimension, by) => dim(dimension).rem(by),
        };
        let parts: Vec<Index> = self.parts.iter().map(index).collect();
        let layout =
            Layout::new(shape.len(), &parts).map_err(|error| Refusal::new(error.to_string()))?;
        let elements = layout.extents(shape).into_iter().try_fold(1i64, i64::checked_mul);
        match elements {
            Some(elements) if elements <= MAX_ELEMENTS => Ok(layout),
            _ => Err(Refusal::new("the layout pads the tensor to more than 2^40 elements")
                .help("divide by smaller numbers")),
        }
    }
}

impl fmt::Display for LayoutText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: &Part| match *part {
            Part::Whole(d) => format!("d{d}"),
            Part::Quotient(d, by) => format!("d{d}/{by}"),
            Part::Remainder(d, by) => format!("d{d}%{by}"),
        };
        write!(f, "[{}]", self.parts.iter().map(text).collect::<Vec<_>>().join(", "))
    }
}

/// Sets the layout of a tensor, which the step names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLayout {
    /// The layout.
    pub layout: LayoutText,
}

impl fmt::Display for SetLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layout {}", self.layout)
    }
}

impl Rule for SetLayout {
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(SetLayout { layout: LayoutText::parse(words)? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let id = find_buffer(nest, stage)?;
        refuse_checked(nest, id)?;
        let mut scattered = None;
        for_each_store(&nest.body, &mut |store| {
            scattered = scattered.or(Some(store).filter(|it| it.buffer == id && it.is_scatter()));
        });
        scattered
            .map_or(Ok(()), |store| refuse_scatter(stage, store, "stored in another order"))?;
        let buffer = nest.buffer(id);
        let layout = self.layout.layout(&buffer.shape)?;
        if buffer.layout.is_some() {
            return Err(Refusal::new(format!("`{stage}` has a layout already")));
        }
        // A prepared buffer without a layout is one that a stage computes from constants.
        if is_temporary(buffer) || buffer.owner == Owner::Prepared {
            nest.buffers[id.0 as usize].layout = Some(layout);
            return Ok(());
        }
        if buffer.owner == Owner::Input && nest.constants.contains(&id) {
            return prepare(nest, id, layout);
        }
        let (what, way_out) = match buffer.owner {
            Owner::Output => ("a result", "write it from a `cache_write` tile"),
            _ => ("not `const`", "declare it `const`, or copy it with `cache_read ... as`"),
        };
        Err(Refusal::new(format!("the layout of `{stage}` is the caller's: it is {what}"))
            .help(way_out))
    }

    fn renamed(&self, _: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(self.clone())
    }
}

/// Converts a `const` input to a layout ahead of all calls.
fn prepare(nest: &mut LoopNest, input: BufferId, layout: Layout) -> Result<(), Refusal> {
    let source = nest.buffer(input).clone();
    let name = fresh_name(nest, &format!("{}.laid", source.name));
    let shape = source.shape.clone();
    let laid =
        Buffer { name, layout: Some(layout), owner: Owner::Prepared, run_time: None, ..source };
    let laid = nest.add_buffer(laid);
    nest.parameters.push(laid);
    struct Redirect(BufferId, BufferId);
    impl Rewrite for Redirect {
        fn read(&mut self, mut read: Read) -> Option<Expr> {
            if read.tensor == self.0 {
                read.tensor = self.1;
            }
            Some(Expr::Read(read))
        }
    }
    rewrite_nodes(&mut nest.body, &mut Redirect(input, laid)).ok_or_else(Refusal::overflow)?;
    let vars: Vec<Var> = (0..shape.len()).map(|d| nest.add_var(format!("d{d}"))).collect();
    let subscripts: Vec<Index> = vars.iter().map(|var| Index::axis(*var)).collect();
    let ends = subscripts.iter().enumerate().filter_map(|(dimension, subscript)| {
        let extent = nest.buffer(input).extent(dimension);
        let index = extent.add(&Index::constant(-1))?.sub(subscript)?;
        nest.is_sized(&index).then_some(Bound { index, padding: false, term: false })
    });
    let domain = ends.collect();
    let mut store = Store::new(laid, subscripts.clone(), element(input, subscripts));
    store.domain = domain;
    let loops: Vec<(Var, i64, Role)> =
        vars.iter().zip(&shape).map(|(var, extent)| (*var, *extent, Role::Spatial)).collect();
    nest.prepare.push(chain(&loops, store));
    Ok(())
}
