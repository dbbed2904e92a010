//! [`Sizes`]: the sizes of an operator, at most one of them dynamic.

use std::collections::BTreeMap;

use tensorwright::{Def, Diagnostics, Program};
use tensorwright_tuner::{Extent, SizeRange};

use crate::buckets::Ranged;

/// A program with its bound sizes.
pub type SizedProgram = (BTreeMap<String, i64>, Program);

/// The sizes of an operator, at most one of them dynamic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// The fixed sizes.
    pub fixed: BTreeMap<String, i64>,
    /// The dynamic size.
    pub varying: Option<(String, SizeRange)>,
}

impl Sizes {
    /// Sizes from a manifest or a command line.
    ///
    /// # Errors
    /// If two sizes are ranges; the error is a sentence.
    pub fn new(extents: &BTreeMap<String, Extent>) -> Result<Self, String> {
        let mut sizes = Self { fixed: BTreeMap::new(), varying: None };
        for (name, extent) in extents {
            match (extent, &sizes.varying) {
                (Extent::Exact(value), _) => drop(sizes.fixed.insert(name.clone(), *value)),
                (Extent::Range(range), None) => sizes.varying = Some((name.clone(), range.clone())),
                (Extent::Range(_), Some((other, _))) => {
                    return Err(format!("`{other}` and `{name}` both vary, and only one size may"));
                }
            }
        }
        Ok(sizes)
    }

    /// All sizes, with a value for the dynamic one.
    #[must_use]
    pub fn at(&self, value: i64) -> BTreeMap<String, i64> {
        let mut sizes = self.fixed.clone();
        sizes.extend(self.varying.iter().map(|(name, _)| (name.clone(), value)));
        sizes
    }

    /// The programs to compile, each with its sizes.
    ///
    /// # Errors
    /// Sizes that do not bind, and a size that cannot be dynamic.
    pub fn programs(&self, def: &Def<'_>) -> Result<Vec<SizedProgram>, Diagnostics> {
        let Some((name, range)) = &self.varying else {
            return Ok(vec![(self.fixed.clone(), def.bind(self.fixed.clone())?)]);
        };
        let ranged = Ranged::of(def, &self.fixed, name, range)?;
        let one = |(value, program): &(i64, Program)| (self.at(*value), program.clone());
        Ok(ranged.list().iter().map(one).collect())
    }
}
