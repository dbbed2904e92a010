//! [`TensorOp`]: matrix multiplications on tiles by a warp (tensor cores).
//!
//! ```text
//! tensor for m in 0..16 {
//!   tensor for n in 0..16 {
//!     tensor for k in 0..16 { C.tile(m, n) += float(A(.., m, .., k) * B(.., k, .., n)); }
//! ```
//!
//! The loops keep their meaning: executed as plain loops, they compute the same. A device with
//! tensor cores executes all their iterations at once, in its own order, and holds the tile in
//! registers of the warp.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Read, Scalar};

use super::{Buffer, BufferId, Loop, LoopKind, LoopNest, Node, Role, Store, Var};

/// The rows, columns and terms of a tile.
pub const TILE: i64 = 16;

/// A tensor operation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TensorOp<'a> {
    /// The loop over rows of the tile.
    pub m: Var,
    /// The loop over its columns.
    pub n: Var,
    /// The store of an element.
    pub store: &'a Store,
    /// The work on the tile.
    pub work: TensorWork<'a>,
}

/// The work of a tensor operation.
#[derive(Debug, Clone)]
pub enum TensorWork<'a> {
    /// Fills the tile with a constant.
    Fill(Scalar),
    /// Adds the product of two tiles.
    MultiplyAdd {
        /// The reduction loop.
        k: Var,
        /// The factor indexed by rows and terms.
        a: &'a Read,
        /// The factor indexed by terms and columns.
        b: &'a Read,
    },
    /// Stores the tile to memory.
    Write(&'a Read),
}

/// The position of a tile in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The position of its first element.
    pub start: Index,
    /// The distance between its rows, or its columns.
    pub leading: i64,
    /// Whether rows are contiguous; otherwise columns are.
    pub is_row_major: bool,
}

impl<'a> TensorOp<'a> {
    /// The operation of a nest of loops, given the outermost one.
    ///
    /// # Errors
    /// The reason why the loops are not a tensor operation.
    pub fn of(nest: &'a LoopNest, outermost: &'a Loop) -> Result<Self, String> {
        let (loops, store) = chain(nest, outermost)?;
        if store.scatter.is_some() || store.lanes.is_some() || !store.mask.is_empty() {
            return Err("its elements are not computed one by one, everywhere".to_owned());
        }
        match loops[..] {
            [m, n] => Self::of_elements(nest, m.var, n.var, store),
            [m, n, k] => Self::of_terms(nest, m, n, k, store),
            _ => Err("a tile has rows, columns and terms".to_owned()),
        }
    }

    /// The tile in registers.
    #[must_use]
    pub fn tile(&self) -> (BufferId, &'a [Index]) {
        match self.work {
            TensorWork::Write(read) => (read.tensor, &read.subscripts),
            TensorWork::Fill(_) | TensorWork::MultiplyAdd { .. } => {
                (self.store.buffer, &self.store.subscripts)
            }
        }
    }

    fn of_elements(nest: &LoopNest, m: Var, n: Var, store: &'a Store) -> Result<Self, String> {
        let name = || &nest.buffer(store.buffer).name;
        if store.combine.is_some() {
            return Err(format!(
                "the tile is added to `{}`, and a tensor operation can only write it",
                name()
            ));
        }
        let work = match &store.value {
            Expr::Const(value) => TensorWork::Fill(*value),
            Expr::Read(read) if read.checked.is_empty() => TensorWork::Write(read),
            _ => {
                return Err(format!(
                    "`{}` is computed from the tile, and a tensor operation can only write it",
                    name()
                ));
            }
        };
        Ok(Self { m, n, store, work })
    }

    fn of_terms(
        nest: &LoopNest,
        m: &Loop,
        n: &Loop,
        k: &Loop,
        store: &'a Store,
    ) -> Result<Self, String> {
        let roles = [m.role, n.role, k.role];
        if roles != [Role::Spatial, Role::Spatial, Role::Reduce] {
            let names = [m, n, k].map(|l| nest.var_name(l.var));
            return Err(format!(
                "`{}` and `{}` have to be loops over results, and `{}` one over terms",
                names[0], names[1], names[2]
            ));
        }
        if store.combine != Some(ReductionOp::Sum) {
            return Err("it is no sum".to_owned());
        }
        if !matches!(store.init, None | Some(Expr::Const(_))) {
            return Err("its sum starts from other values than a constant".to_owned());
        }
        let (left, right) = factors(&store.value)
            .ok_or_else(|| "its terms are no products of elements of two matrices".to_owned())?;
        check_types(nest, store.buffer, left.tensor, right.tensor)?;
        let has = |subscripts: &[Index], var: Var| {
            subscripts.iter().any(|index| index.mentions(&|other| other == var))
        };
        let is_a = |read: &Read| {
            let [m, n, k] = [m, n, k].map(|l| has(&read.subscripts, l.var));
            m && k && !n
        };
        let is_b = |read: &Read| {
            let [m, n, k] = [m, n, k].map(|l| has(&read.subscripts, l.var));
            n && k && !m
        };
        let (a, b) = match (is_a(left) && is_b(right), is_a(right) && is_b(left)) {
            (true, _) => (left, right),
            (_, true) => (right, left),
            _ => {
                let [m, n, k] = [m, n, k].map(|l| nest.var_name(l.var));
                return Err(format!(
                    "one factor has to depend on `{m}` and `{k}`, and the other one on `{k}` and `{n}`"
                ));
            }
        };
        let work = TensorWork::MultiplyAdd { k: k.var, a, b };
        Ok(Self { m: m.var, n: n.var, store, work })
    }
}

/// The loops of an operation, and its store.
fn chain<'a>(nest: &LoopNest, outermost: &'a Loop) -> Result<(Vec<&'a Loop>, &'a Store), String> {
    let (mut loops, mut l) = (Vec::new(), outermost);
    loop {
        let name = nest.var_name(l.var);
        if l.kind != LoopKind::Tensor {
            return Err(format!("loop `{name}` inside of it is another one"));
        }
        if l.extent != TILE {
            return Err(format!(
                "loop `{name}` has {} iterations, and a tile has {TILE}",
                l.extent
            ));
        }
        if !l.locals.is_empty() || l.body.len() != 1 || l.peel || l.overlaps || l.slides {
            return Err(format!("loop `{name}` holds more than one statement"));
        }
        loops.push(l);
        match l.body.first() {
            Some(Node::Loop(inner)) => l = inner,
            Some(Node::Store(store)) => return Ok((loops, store)),
            Some(Node::Guard(_)) => {
                return Err(format!("a condition cuts loop `{name}`: tiles are whole"));
            }
            _ => return Err(format!("loop `{name}` holds more than one statement")),
        }
    }
}

/// The factors of a term that is computed in `float`.
pub(crate) fn factors(value: &Expr) -> Option<(&Read, &Read)> {
    fn bare(expr: &Expr) -> &Expr {
        match expr {
            Expr::Cast(DType::Float, inner) => bare(inner),
            other => other,
        }
    }
    match bare(value) {
        Expr::Arith(ArithOp::Mul, left, right) => match (bare(left), bare(right)) {
            (Expr::Read(left), Expr::Read(right)) => {
                (left.checked.is_empty() && right.checked.is_empty()).then_some((left, right))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Checks the types of a product: products are exact, and sums are in `float`. Factors of type
/// `float` are first rounded to `tf32`.
fn check_types(nest: &LoopNest, c: BufferId, a: BufferId, b: BufferId) -> Result<(), String> {
    let [c, a, b] = [c, a, b].map(|id| nest.buffer(id));
    let is_multiplied =
        |buffer: &Buffer| matches!(buffer.dtype, DType::Half | DType::BFloat16 | DType::Float);
    if let Some(wrong) = [a, b].into_iter().find(|buffer| !is_multiplied(buffer)) {
        return Err(format!(
            "`{}` holds `{}`: matrices of `half`, `bfloat16` and `float` are multiplied",
            wrong.name, wrong.dtype
        ));
    }
    if a.dtype != b.dtype {
        return Err(format!(
            "`{}` holds `{}` and `{}` holds `{}`: matrices of one type are multiplied",
            a.name, a.dtype, b.name, b.dtype
        ));
    }
    match c.dtype {
        DType::Float => Ok(()),
        dtype => Err(format!("`{}` holds `{dtype}`: products are added up in `float`", c.name)),
    }
}

impl Placed {
    /// The position of a tile of a buffer whose rows and columns are numbered by two loops. Only
    /// without a layout, so always after lowering.
    ///
    /// # Errors
    /// The reason why it cannot be accessed as a tile.
    pub fn of(
        buffer: &Buffer,
        subscripts: &[Index],
        rows: Var,
        columns: Var,
    ) -> Result<Self, String> {
        let name = &buffer.name;
        let scattered =
            || format!("neither the rows nor the columns of its tile of `{name}` are contiguous");
        let at = buffer.offset(subscripts).ok_or_else(scattered)?;
        let step = |var: Var| at.coefficient_of(var).ok_or_else(scattered);
        let (row, column) = (step(rows)?, step(columns)?);
        let (leading, is_row_major) = match (row, column) {
            (leading, 1) => (leading, true),
            (1, leading) => (leading, false),
            _ => return Err(scattered()),
        };
        let start = [(rows, row), (columns, column)]
            .into_iter()
            .try_fold(at, |at, (var, step)| at.sub(&Index::axis(var).scale(step)?));
        let start = start.ok_or_else(scattered)?;
        // Rows start at multiples of 16 bytes, tiles at multiples of 32.
        let bytes = buffer.dtype.bytes() as i64;
        let (of_row, of_tile) = (16 / bytes, 32 / bytes);
        if leading <= 0 || leading % of_row != 0 {
            return Err(format!(
                "the rows of its tile of `{name}` are {leading} elements apart, which is no multiple of {of_row}"
            ));
        }
        let parts = start.terms().iter().map(|term| term.coefficient);
        if parts.chain([start.constant_term()]).any(|part| part % of_tile != 0) {
            return Err(format!(
                "its tile of `{name}` does not begin at a multiple of {of_tile} elements"
            ));
        }
        Ok(Self { start, leading, is_row_major })
    }
}
