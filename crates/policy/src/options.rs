//! [`SpaceOptions`]: what a space of schedules covers.

use tensorwright_space::parameter::Splits;

/// What a space of schedules covers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceOptions {
    /// Which splits of loops there are.
    pub splits: Splits,
    /// Into how many nested loops a loop over results is split.
    pub spatial_levels: usize,
    /// Into how many nested loops a loop over terms of a reduction is split.
    pub reduce_levels: usize,
    /// The parameters that are free, by name or by what their name begins with; all others are fixed at
    /// the value of the starting point. `None`: all are free.
    pub only: Option<Vec<String>>,
}

/// Named options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Everything.
    #[default]
    Full,
    /// Splits that divide only, as FlexTensor section 4.2 prunes.
    Divisible,
    /// The tiling space of the G-BFS paper: four levels for results, two for reductions.
    Gbfs,
    /// Tiling alone, three levels and two, splits that divide: small enough to be measured whole.
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

    /// The preset of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(found, _)| *found == name).map(|(_, preset)| *preset)
    }

    /// What it stands for.
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
    /// Whether a parameter is free. A name counts with and without the stage before it.
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
