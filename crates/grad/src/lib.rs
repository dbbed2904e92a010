//! Reverse-mode automatic differentiation of definitions, source to source.
//!
//! ```
//! use tensorwright_lang::Module;
//!
//! let module = Module::parse(
//!     "matmul.tc",
//!     "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
//! )?;
//! let gradient = tensorwright_grad::grad(&module, "matmul", &["A"])?;
//! assert_eq!(gradient.source(), "\
//! ## The gradient of `matmul` with respect to A.
//! def matmul_grad(float(K, N) B, float(M, N) d_C) -> (d_A) {
//!   d_A(m, k) +=! d_C(m, n) * B(k, n)
//! }
//! ");
//! # Ok::<(), tensorwright_lang::diagnostic::Diagnostics>(())
//! ```
//!
//! [`grad`] lists the passes in order: inlining of calls (`flatten`), symbolic ranges (`ranges`),
//! one name per value (`versions`), the reverse walk over the statements (`reverse`), and the
//! assembly of a definition (`assemble`) that recomputes the forward values it needs or takes saved
//! ones (`saved`). `derivative` and `rules` differentiate one statement; `transpose` turns reads
//! into writes.
//!
//! Nothing here does I/O or reads a clock.

mod assemble;
mod bounds;
mod build;
mod cse;
mod derivative;
mod emit;
mod flatten;
mod gradient;
mod helpers;
mod inverse;
mod poly;
mod product;
mod ranges;
mod recompute;
mod recurrence;
mod reverse;
mod rules;
mod saved;
mod scope;
mod shift;
mod substitute;
mod transpose;
mod tree;
mod versions;
mod wrt;

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::Diagnostics;

pub use gradient::{Forward, Gradient, Input, Output, Training};

use assemble::SavePolicy;
use flatten::Flat;
use helpers::Order;
use versions::Versions;
use wrt::WrtParams;

/// The gradient of a definition with respect to the named parameters, or to all differentiable ones
/// if none is named.
///
/// # Errors
/// If there is no such definition or parameter, if no result depends differentiably on a named
/// parameter, or if a construct cannot be differentiated.
pub fn grad(module: &Module, def: &str, wrt: &[&str]) -> Result<Gradient, Diagnostics> {
    let prepared = prepare(module, def, wrt, Order::Any)?;
    prepared.assemble(module, SavePolicy::RecomputeAll)
}

/// A forward pass and a gradient for training: the forward pass also returns the values that are
/// cheaper to save than to recompute.
///
/// ```
/// use tensorwright_lang::Module;
///
/// let module = Module::parse(
///     "normed.tc",
///     "def normed(float(N,D) x) -> (y) {
///        square(n) +=! x(n,d) * x(n,d)
///        y(n,d) = x(n,d) / sqrt(square(n))
///      }",
/// )?;
/// let training = tensorwright_grad::training(&module, "normed", &[])?;
/// let forward = training.forward().expect("the sums are worth keeping");
/// assert!(forward.source().contains("def normed_saving(float(N, D) x) -> (y, square) {"));
/// assert!(training.gradient().source().contains("float(N) square"));
/// # Ok::<(), tensorwright_lang::diagnostic::Diagnostics>(())
/// ```
///
/// # Errors
/// Those of [`grad`].
pub fn training(module: &Module, def: &str, wrt: &[&str]) -> Result<Training, Diagnostics> {
    let prepared = prepare(module, def, wrt, Order::First)?;
    let kept = prepared.assemble(module, SavePolicy::SaveWorthwhile).ok().map(|gradient| {
        let forward = saved::forward(module, &prepared.flat.def, &prepared.versions, &gradient);
        Training { forward, gradient }
    });
    // Checked here, so that a defect of this crate cannot return invalid text.
    let is_valid = |forward: &Forward| Module::parse("forward", &forward.source).is_ok();
    match kept.filter(|training| training.forward.as_ref().is_none_or(is_valid)) {
        Some(training) => Ok(training),
        None => Ok(Training {
            forward: None,
            gradient: prepared.assemble(module, SavePolicy::RecomputeAll)?,
        }),
    }
}

/// The normalized forward pass and the parameters to differentiate with respect to.
struct ForwardPass {
    flat: Flat,
    versions: Versions,
    wrt: WrtParams,
}

fn prepare(
    module: &Module,
    def: &str,
    wrt: &[&str],
    order: Order,
) -> Result<ForwardPass, Diagnostics> {
    let mut flat = flatten::flatten(module, def)?;
    let refused = |diagnostic| Diagnostics::new(module.source().clone(), vec![diagnostic]);
    let wrt = wrt::parameters(&flat.def, wrt).map_err(refused)?;
    let steps = ranges::infer(&mut flat);
    let mut versions = versions::number(&flat, steps).map_err(refused)?;
    helpers::add_helpers(&mut versions, order);
    inverse::add_inverses(&mut versions);
    Ok(ForwardPass { flat, versions, wrt })
}

impl ForwardPass {
    fn assemble(&self, module: &Module, keep: SavePolicy) -> Result<Gradient, Diagnostics> {
        assemble::assemble(module, &self.flat.def, self.versions.clone(), &self.wrt, keep)
            .map_err(|list| Diagnostics::new(module.source().clone(), list))
    }
}
