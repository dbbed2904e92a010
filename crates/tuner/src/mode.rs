//! [`Mode`]: how much a run measures before it chooses a schedule.

use std::fmt;
use std::str::FromStr;

/// How much a run measures before it chooses a schedule: the modes of Anderson et al. 2021, section
/// 6.
///
/// ```
/// use tensorwright_tuner::Mode;
///
/// assert_eq!("top5".parse(), Ok(Mode::Top5));
/// let wrong = "best".parse::<Mode>().unwrap_err();
/// assert_eq!(wrong.to_string(), "there is no mode `best`\n  help: the modes are one-shot, top5, autotune");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The cost model chooses: the best schedule of a search over pipelines for several stages, the
    /// default schedule for one stage. It is compared with the reference and timed, but its time
    /// decides nothing, unless an earlier run has declared a best.
    OneShot,
    /// The five schedules that the cost model ranks best are measured, and the fastest wins. They
    /// come from a search over pipelines or, for one stage, from the search space.
    Top5,
    /// Searches measure as many candidates as the budget allows, including those of a search over
    /// pipelines.
    #[default]
    Autotune,
}

impl Mode {
    /// All modes, with names and one-line summaries.
    pub const ALL: [(&'static str, Self, &'static str); 3] = [
        ("one-shot", Self::OneShot, "the model chooses; nothing is measured to decide"),
        ("top5", Self::Top5, "the five best by the model are measured"),
        ("autotune", Self::Autotune, "searches measure until the budget is used"),
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode, _)| *mode == self).map_or("", |(name, _, _)| name)
    }

    /// A one-line summary.
    #[must_use]
    pub fn summary(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode, _)| *mode == self).map_or("", |(_, _, summary)| summary)
    }

    /// How many schedules the model may choose for measuring; `None` if only the budget limits
    /// them.
    pub(crate) fn most_chosen(self) -> Option<usize> {
        match self {
            Self::Top5 => Some(5),
            Self::OneShot | Self::Autotune => None,
        }
    }

    /// The most trials of the mode, at most `allowed`. `Top5` also measures the default schedule.
    pub(crate) fn most_trials(self, allowed: Option<u64>) -> Option<u64> {
        let own = match self {
            Self::OneShot => Some(1),
            Self::Top5 => Some(6),
            Self::Autotune => None,
        };
        own.map(|own| allowed.map_or(own, |allowed| allowed.min(own))).or(allowed)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Mode::ALL.iter().map(|(name, _, _)| *name).collect();
        write!(f, "there is no mode `{}`\n  help: the modes are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let found = Self::ALL.iter().find(|(known, _, _)| *known == name);
        found.map(|(_, mode, _)| *mode).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}
