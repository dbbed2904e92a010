//! [`SpaceOptions`]: which schedules a search space contains.

use tensorwright_space::parameter::Splits;

/// Options of a schedule space.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceOptions {
    /// The allowed loop splits.
    pub splits: Splits,
    /// The number of nested loops that a spatial loop is split into.
    pub spatial_levels: usize,
    /// The number of nested loops that a reduction loop is split into.
    pub reduce_levels: usize,
    /// The free parameters, by name or prefix; all others are fixed at the starting point. `None`:
    /// all are free.
    pub only: Option<Vec<String>>,
}

/// Named sets of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Everything.
    #[default]
    Full,
    /// Divisible splits only (the pruning of FlexTensor, section 4.2).
    Divisible,
    /// The tiling space of the G-BFS paper: four levels for spatial loops, two for reductions.
    Gbfs,
    /// Tiling only, with divisible splits in three and two levels: small enough to measure
    /// exhaustively.
    Tiles,
}

impl Preset {
    /// All presets with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("full", Self::Full),
        ("divisible", Self::Divisible),
        ("gbfs", Self::Gbfs),
        ("tiles", Self::Tiles),
    ];

    /// Finds a preset by name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(found, _)| *found == name).map(|(_, preset)| *preset)
    }

    /// The options of this preset.
    #[must_use]
    pub fn options(self) -> SpaceOptions {
        let full = SpaceOptions::default();
        let tiles = Some(vec!["tile".to_owned()]);
        match self {
            Self::Full => full,
            Self::Divisible => SpaceOptions { splits: Splits::Divisible, ..full },
            Self::Gbfs => SpaceOptions {
                splits: Splits::Divisible,
                spatial_levels: 4,
                reduce_levels: 2,
                only: tiles,
            },
            Self::Tiles => SpaceOptions { splits: Splits::Divisible, only: tiles, ..full },
        }
    }
}

impl Default for SpaceOptions {
    fn default() -> Self {
        Self { splits: Splits::Covering, spatial_levels: 3, reduce_levels: 2, only: None }
    }
}

impl SpaceOptions {
    /// Whether a parameter is free. Names match with and without the stage prefix.
    #[must_use]
    pub(crate) fn is_free(&self, name: &str) -> bool {
        let Some(only) = &self.only else { return true };
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        only.iter().any(|wanted| {
            let begins = |name: &str| {
                name.strip_prefix(wanted.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            begins(name) || begins(bare)
        })
    }
}
