//! Buckets: kernels for some values of a size that together cover a range.
//!
//! | file | concern |
//! | --- | --- |
//! | `choose.rs` | which values have kernels |
//! | `variation.rs`, `vanish.rs` | whether a size may vary, and how: the proof |
//! | `cover.rs` | with which kernels each value is computed |
//! | `cost.rs` | what kernels and copies cost |
//! | `layout.rs` | how a tensor lies in memory along the size; slices in and out |
//! | `prices.rs` | what kernels cost, from those that were measured |
//! | `kernel.rs` | [`BucketedKernel`], all of it in this process |

mod choose;
mod cost;
mod cover;
mod kernel;
mod layout;
mod prices;
mod vanish;
mod variation;

pub use choose::choose;
pub use cost::{costs, measured_cycles};
pub use cover::{Costs, Run, covers};
pub use kernel::{BucketedKernel, Results};
pub use layout::Layout;
pub use variation::{Kind, Padding, Refusal, Variation};

use std::collections::BTreeMap;

use tensorwright::ir::{self, TensorId};
use tensorwright::{Code, Def, Diagnostic, Diagnostics, Program};
use tensorwright_tuner::SizeRange;

use self::variation::Varying;

/// A size that cannot be dynamic may have at most this many values, each with its own kernel.
const MOST_EXACT: i64 = 32;

/// How a range of a size is computed.
#[derive(Debug, Clone)]
pub enum Ranged {
    /// By kernels of some values.
    Covered(Buckets),
    /// By one kernel per value.
    Each(Vec<(i64, Program)>),
}

/// Values of a size with their programs, whose kernels cover a range.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Buckets {
    /// The covered values.
    pub range: SizeRange,
    /// The buckets with their programs, in ascending order.
    pub list: Vec<(i64, Program)>,
    /// The kind of variation.
    pub variation: Variation,
}

impl Ranged {
    /// Plans the computation of a definition for every value of one of its sizes.
    ///
    /// # Errors
    /// Sizes that do not bind, and a size that cannot be dynamic over a long range.
    pub fn of(
        def: &Def<'_>,
        fixed: &BTreeMap<String, i64>,
        name: &str,
        range: &SizeRange,
    ) -> Result<Self, Diagnostics> {
        let bind = |value: i64| {
            let varying = std::iter::once((name.to_owned(), value));
            def.bind(fixed.clone().into_iter().chain(varying))
        };
        let values = choose(range);
        let mut list = Vec::new();
        for value in &values {
            list.push((*value, bind(*value)?));
        }
        let variation = match list.as_slice() {
            [_] => return Ok(Self::Each(list)),
            list => vary(list, range, &bind)?,
        };
        match variation {
            Ok(variation) => {
                let buckets = Buckets { range: range.clone(), list, variation };
                Ok(Self::Covered(buckets.without_varying_constants()))
            }
            Err(_) if range.last - range.first < MOST_EXACT => {
                let each = (range.first..=range.last).map(|value| Ok((value, bind(value)?)));
                Ok(Self::Each(each.collect::<Result<_, Diagnostics>>()?))
            }
            Err(refusal) => Err(refused(name, &refusal, &list)),
        }
    }

    /// The values with kernels, in ascending order, with their programs.
    #[must_use]
    pub fn list(&self) -> &[(i64, Program)] {
        match self {
            Self::Covered(buckets) => &buckets.list,
            Self::Each(list) => list,
        }
    }
}

/// The variation of a size between two values, from their programs.
///
/// # Errors
/// Why a kernel of one value cannot compute the other.
pub fn variation(
    (program, value): (&ir::Program, i64),
    (other, other_value): (&ir::Program, i64),
) -> Result<Variation, Refusal> {
    let varying = Varying::between((program, value), (other, other_value))?;
    varying.confirm(other, other_value)?;
    varying.settle()
}

/// Compares the programs of all values.
fn vary(
    list: &[(i64, Program)],
    range: &SizeRange,
    bind: &impl Fn(i64) -> Result<Program, Diagnostics>,
) -> Result<Result<Variation, Refusal>, Diagnostics> {
    let (Some((low, first)), Some((high, last))) = (list.first(), list.last()) else {
        return Ok(Err(Refusal { reason: "the range is empty".to_owned(), ..Refusal::default() }));
    };
    let varying = match Varying::between((last.ir(), *high), (first.ir(), *low)) {
        Ok(varying) => varying,
        Err(refusal) => return Ok(Err(refusal)),
    };
    for value in range.first..=range.last {
        if let Err(refusal) = varying.confirm(bind(value)?.ir(), value) {
            return Ok(Err(refusal));
        }
    }
    Ok(varying.settle())
}

fn refused(name: &str, refusal: &Refusal, list: &[(i64, Program)]) -> Diagnostics {
    let diagnostic = Diagnostic::new(
        Code::VaryingSize,
        refusal.span,
        format!("`{name}` cannot be a range: {}", refusal.reason),
    )
    .here("here")
    .note(format!(
        "some values of a range have kernels, which compute the others on slices or padded inputs; that \
         must not change the result (a range of at most {MOST_EXACT} values has a kernel for each)"
    ))
    .help(format!(
        "give `{name}` a number or a shorter range; or compile for the largest size, pass the actual length \
         as a scalar `len`, and mask the sum: `i < len ? ... : 0`"
    ));
    let source = list.first().map(|(_, program)| program.ir().source.clone());
    Diagnostics::new(source.unwrap_or_else(|| tensorwright::Source::new("", "")), vec![diagnostic])
}

impl Buckets {
    /// Clears `const` of inputs with the dynamic size: they are sliced in every call, so nothing
    /// can be prepared.
    fn without_varying_constants(mut self) -> Self {
        let varies = |(_, program): &(i64, Program)| {
            let inputs = program.inputs().iter().zip(&self.variation.dimensions);
            inputs.into_iter().any(|(tensor, dimension)| tensor.is_const && dimension.is_some())
        };
        if self.list.iter().any(varies) {
            for (_, program) in &mut self.list {
                *program = program.with_changing_inputs();
            }
        }
        self
    }

    /// The buckets.
    #[must_use]
    pub fn values(&self) -> Vec<i64> {
        self.list.iter().map(|(value, _)| *value).collect()
    }

    /// The layout of a tensor along the size.
    #[must_use]
    pub fn layout(&self, id: TensorId) -> Layout {
        let dimension = self.variation.dimensions.get(id.0 as usize).copied().flatten();
        let tensor = self.list.first().and_then(|(_, p)| p.ir().tensors.get(id.0 as usize));
        tensor.map_or(Layout::EMPTY, |tensor| Layout::of(tensor, dimension))
    }

    /// The layouts of inputs and then outputs along the size.
    #[must_use]
    pub fn layouts(&self) -> Vec<Layout> {
        let Some((_, program)) = self.list.first() else { return Vec::new() };
        let ir = program.ir();
        ir.input_ids().chain(ir.outputs.iter().copied()).map(|id| self.layout(id)).collect()
    }
}
