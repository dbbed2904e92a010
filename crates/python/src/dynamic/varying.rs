//! Detection of sizes that vary.

use crate::definition::{Choices, Definition, Dynamic, Sizes};
use crate::kernels::Kernels;

/// A size of this many different values varies. Fewer are often those of the layers of a model,
/// for which kernels of their own are faster.
const MANY: usize = 5;

/// The sizes that vary: those that the user names, and those of which calls had many values.
pub(super) fn varying(definition: &Definition, kernels: &Kernels, sizes: &Sizes) -> Vec<String> {
    let choices = &definition.choices;
    if choices.dynamic == Dynamic::Never || choices.target.gpu().is_some() {
        return Vec::new();
    }
    let seen = kernels.count(sizes).into_iter();
    seen.filter(|(name, values)| {
        let is_size = definition.signature.sizes.contains(name);
        is_size && (is_named(choices, name) || *values >= MANY)
    })
    .map(|(name, _)| name)
    .collect()
}

/// Whether the user says that a size varies.
pub(super) fn is_named(choices: &Choices, name: &String) -> bool {
    match &choices.dynamic {
        Dynamic::Never => false,
        Dynamic::All => true,
        Dynamic::Found(named) => named.contains(name),
    }
}
