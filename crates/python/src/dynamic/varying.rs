//! Detection of dynamic sizes.

use tensorwright_package::buckets::round_up;

use crate::definition::{Definition, Dynamic, Sizes};
use crate::kernels::Kernels;

/// A size with this many different values is cut into pieces.
const CUT_FROM: usize = 5;

/// A size with this many different values is rounded up, which needs copies.
const ROUND_FROM: usize = 17;

/// The dynamic sizes, by how they are handled.
#[derive(Debug, Default)]
pub(super) struct Varying {
    pub(super) cut: Vec<String>,
    rounded: Vec<String>,
}

impl Varying {
    pub(super) fn of(definition: &Definition, kernels: &Kernels, sizes: &Sizes) -> Self {
        let mut varying = Self::default();
        let choices = &definition.choices;
        if choices.dynamic == Dynamic::Never || choices.target.gpu().is_some() {
            return varying;
        }
        for (name, values) in kernels.count(sizes) {
            if !definition.signature.sizes.contains(&name) {
                continue;
            }
            let is_named = match &choices.dynamic {
                Dynamic::Never => false,
                Dynamic::All => true,
                Dynamic::Found(named) => named.contains(&name),
            };
            if is_named || values >= CUT_FROM {
                varying.cut.push(name.clone());
            }
            if is_named || values >= ROUND_FROM {
                varying.rounded.push(name);
            }
        }
        varying
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cut.is_empty() && self.rounded.is_empty()
    }

    /// The kernel sizes for these sizes: dynamic sizes rounded up, except the cut one.
    pub(super) fn rounded_up(&self, sizes: &Sizes, cut: Option<&str>) -> Sizes {
        let mut kernel = sizes.clone();
        for name in self.rounded.iter().filter(|name| cut != Some(name.as_str())) {
            kernel.insert(name.clone(), round_up(sizes[name]));
        }
        kernel
    }
}
