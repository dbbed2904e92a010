//! [`Family`]: the programs that a kernel for sizes that vary serves.

use tensorwright::SizedProgram;

use crate::definition::Sizes;

/// The sizes of a program for a range: the names of those that vary, and the values of the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Family {
    pub(crate) varying: Vec<String>,
    pub(crate) known: Sizes,
    /// The position of the regime.
    pub(crate) regime: usize,
}

/// The program of a family.
#[derive(Debug)]
pub(crate) enum FamilyProgram {
    Bound(SizedProgram),
    /// No size can vary; with the reason.
    Fixed(String),
}
