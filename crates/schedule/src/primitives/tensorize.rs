//! `tensorize`: loops are one operation on tiles of matrices, which a warp of a device does together.
//!
//! ```text
//! C: tensorize m.1 n.1 k.1
//! for k.0 {                                                for k.0 {
//!   for m.1 in 0..16 {                                       tensor for m.1 in 0..16 {
//!     for n.1 in 0..16 {                                       tensor for n.1 in 0..16 {
//!       for k.1 in 0..16 {                            ->         tensor for k.1 in 0..16 {
//!         C(.. + m.1, .. + n.1) +=                                 C(.. + m.1, .. + n.1) +=
//!           float(A(.., 16*k.0 + k.1) * B(..));                      float(A(.., 16*k.0 + k.1) * B(..));
//! ```
//!
//! Nothing changes about what the loops compute, and on processors they are plain loops. `C: tensorize m.1 n.1` is the copy of a
//! tile to memory; [`cache_write`](super::CacheWrite) of a stage whose loops are an operation makes that copy one as well.
//!
//! Products of `half` and `bfloat16` are exact in `float`. Sums are in `float` too, but tensor cores round towards zero: groups
//! of four terms and what they are added to are aligned to the largest of them and cut off behind its last digit, and so is
//! the sum (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021, for the V100; later ones
//! have larger groups and more digits). With `u` the unit roundoff of `float`, a group loses less than `5 * 2u` of its
//! largest number, and `n` terms `5/2 n u` of the sum of their magnitudes. The reference allows `p + (n - 1) u`, where `p`
//! is that of the type of a product: 2^-11 if two `half` are multiplied, so that up to 5,461 terms are within it.
//! [`LoopNest::error_growth`] is the quotient for more.

use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Expr;

use super::Rule;
use super::find::{expect_serial, find_loop, find_store, loop_at, loop_at_mut, loops_on, store_at};
use crate::nest::{LoopKind, LoopNest};
use crate::refusal::Refusal;
use crate::words::Words;

/// Makes loops one tensor operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensorize {
    /// The loops over rows, columns and, but for copies, terms of a tile, outermost first.
    pub loops: Vec<String>,
}

impl fmt::Display for Tensorize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensorize {}", self.loops.join(" "))
    }
}

impl Rule for Tensorize {
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let mut loops = vec![words.name("the name of a loop")?];
        loops.extend(words.names());
        match loops.len() {
            2 | 3 => Ok(Tensorize { loops }),
            count => Err(Refusal::new(format!("a tensor operation has three loops, not {count}"))
                .help("`C: tensorize m.1 n.1 k.1` multiplies tiles, `C: tensorize m.1 n.1` copies one")),
        }
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let paths = self.loops.iter().map(|name| find_loop(nest, stage, name));
        let paths = paths.collect::<Result<Vec<_>, Refusal>>()?;
        let innermost = find_store(nest, stage)?.len() - 1;
        let first = innermost.saturating_sub(self.loops.len());
        if paths.iter().enumerate().any(|(place, path)| path.len() != first + place + 1) {
            return Err(Refusal::new(format!(
                "{} are not the innermost loops of `{stage}`, in this order",
                self.loops.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ))
            .help("reorder them to the inside before"));
        }
        for path in &paths {
            let l = loop_at(nest, path)?;
            expect_serial(nest, l, "tensorize")?;
        }
        for path in &paths {
            loop_at_mut(nest, path)?.kind = LoopKind::Tensor;
        }
        // Whether they are an operation is checked after every step.
        if self.loops.len() == 3 {
            nest.error_growth *= growth(nest, stage)?;
        }
        Ok(())
    }
}

/// By how much the error of a sum of products may exceed what the reference allows.
fn growth(nest: &LoopNest, stage: &str) -> Result<f64, Refusal> {
    let path = find_store(nest, stage)?;
    let store = store_at(nest, &path)?;
    let sums = loops_on(nest, &path).into_iter().filter(|l| l.reduces(store.stage()));
    let terms = sums.map(|l| l.extent as f64).product::<f64>();
    let unit = |dtype: DType| dtype.unit_roundoff().unwrap_or(0.0);
    let of_product = match &store.value {
        // Two numbers are multiplied as what they are, and the product is converted.
        Expr::Cast(DType::Float, product) => match &**product {
            Expr::Arith(_, left, _) => match &**left {
                Expr::Read(read) => unit(nest.dtype(read.tensor)),
                _ => unit(DType::Float),
            },
            _ => unit(DType::Float),
        },
        _ => unit(DType::Float),
    };
    let allowed = of_product + (terms - 1.0) * unit(DType::Float);
    Ok((2.5 * terms * unit(DType::Float) / allowed).max(1.0))
}
