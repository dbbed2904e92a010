//! `tensorize`: turns loops into one tensor core operation of a warp.
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
//! The loops still compute the same, and CPUs run them as plain loops. `C: tensorize m.1 n.1`
//! copies a tile to memory; [`cache_write`](super::CacheWrite) of a stage whose loops are an
//! operation turns that copy into one as well.
//!
//! Products of `half` and `bfloat16` are exact in `float`. Sums are in `float` too, but tensor
//! cores round towards zero: groups of four terms and the accumulator are aligned to the largest of
//! them and truncated after its last digit, and so is the sum (Fasi, Higham, Mikaitis and Pranesh,
//! "Numerical behavior of NVIDIA tensor cores", 2021, for the V100; later ones have larger groups
//! and more digits). With `u` the unit roundoff of `float`, a group loses less than `5 * 2u` of its
//! largest number, and `n` terms `5/2 n u` of the sum of their magnitudes. The reference allows
//! `p + (n - 1) u`, where `p` is the unit roundoff of the type of a product: 2^-11 if two `half` are
//! multiplied, so up to 5,461 terms are within it. [`LoopNest::rounding_growth`] is the quotient
//! for more.
//!
//! Factors of type `float` are rounded to 11 bits before the multiplication (`tf32`), which a
//! schedule must request: `C: tensorize m.1 n.1 k.1 in tf32`. A factor then has a relative error of
//! at most `d = 2^-11`, a product of `2d + d^2`, and so has their sum relative to the sum of their
//! magnitudes; the error of the additions is extra. The sum no longer uses the numbers of the
//! program, so the schedule is not exact. (Numbers within `d` of the largest `float` overflow.)

use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Expr;

use super::find::{expect_serial, find_loop, find_store, loop_at, loop_at_mut, loops_on, store_at};
use super::{Reach, Rule};
use crate::nest::{Buffer, LoopKind, LoopNest, factors};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Turns loops into one tensor operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensorize {
    /// The loops over rows, columns and, except for copies, terms of a tile, outermost first.
    pub loops: Vec<String>,
    /// Whether factors of `float` are rounded to 11 bits.
    pub is_tf32: bool,
}

impl fmt::Display for Tensorize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = if self.is_tf32 { " in tf32" } else { "" };
        write!(f, "tensorize {}{rounded}", self.loops.join(" "))
    }
}

impl Rule for Tensorize {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn is_exact(&self) -> bool {
        !self.is_tf32
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let mut loops = vec![words.name("the name of a loop")?];
        loops.extend(words.names());
        let is_tf32 = loops.len() == 5 && loops.ends_with(&["in".to_owned(), "tf32".to_owned()]);
        loops.truncate(if is_tf32 { 3 } else { loops.len() });
        match loops.len() {
            2 | 3 => Ok(Tensorize { loops, is_tf32 }),
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
        // The check after every step decides whether they are an operation.
        if self.loops.len() == 3 {
            self.check_type(stage, nest)?;
            let growth = growth(nest, stage)?;
            nest.error_growth *= growth;
            nest.rounding_growth *= growth;
        }
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { loops: names.own_loops(&self.loops)?, ..self.clone() })
    }
}

impl Tensorize {
    /// Refuses to round factors unless the schedule requests it.
    fn check_type(&self, stage: &str, nest: &LoopNest) -> Result<(), Refusal> {
        let path = find_store(nest, stage)?;
        let Some((factor, _)) = factors(&store_at(nest, &path)?.value) else { return Ok(()) };
        let Buffer { name, dtype, .. } = nest.buffer(factor.tensor);
        match (self.is_tf32, dtype) {
            (false, DType::Float) => Err(Refusal::new(format!(
                "`{name}` holds `float`, which would be rounded to 11 bits"
            ))
            .help("`tensorize ... in tf32` allows that; matrices of `half` and of `bfloat16` are multiplied as they are")),
            (true, dtype) if dtype.is_storage_only() => Err(Refusal::new(format!(
                "`{name}` holds `{dtype}`, which is not rounded to `tf32`"
            ))
            .help("leave out `in tf32`")),
            _ => Ok(()),
        }
    }
}

/// The unit roundoff of `tf32`.
const TF32: f64 = 1.0 / 2048.0;

/// The factor by which the error of a sum of products may exceed the reference's bound.
fn growth(nest: &LoopNest, stage: &str) -> Result<f64, Refusal> {
    let path = find_store(nest, stage)?;
    let store = store_at(nest, &path)?;
    let sums = loops_on(nest, &path).into_iter().filter(|l| l.reduces(store.stage()));
    let terms = sums.map(|l| l.extent as f64).product::<f64>();
    let unit = |dtype: DType| dtype.unit_roundoff().unwrap_or(0.0);
    let is_float =
        factors(&store.value).is_some_and(|(factor, _)| nest.dtype(factor.tensor) == DType::Float);
    let of_factors = if is_float { 2.0 * TF32 + TF32 * TF32 } else { 0.0 };
    let of_product = match &store.value {
        // Two factors are multiplied in their own type, and the product is converted.
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
    let of_sum = 2.5 * terms * unit(DType::Float) * (1.0 + of_factors);
    Ok(((of_factors + of_sum) / allowed).max(1.0))
}
