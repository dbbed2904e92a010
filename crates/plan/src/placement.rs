//! [`Placement`]: where a stage is computed.

use crate::levels::Level;
use crate::stages::StageId;

/// Where a stage is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Inlined into its readers.
    Inline,
    /// At the root level.
    Root,
    /// Inside a loop of a reader, for what is read there.
    At(LoopRef),
    /// In the loops of a stage that does not depend on it, or only in place (sibling fusion).
    With(LoopRef),
}

impl Placement {
    /// The loop that it refers to.
    #[must_use]
    pub fn host(self) -> Option<LoopRef> {
        match self {
            Self::Inline | Self::Root => None,
            Self::At(host) | Self::With(host) => Some(host),
        }
    }
}

/// The innermost loop of a level of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopRef {
    /// The stage whose loop it is.
    pub stage: StageId,
    /// The level.
    pub level: Level,
}
