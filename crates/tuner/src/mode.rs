//! [`Mode`]: how much a run measures before it chooses.

use std::fmt;
use std::str::FromStr;

/// How much a run measures before it chooses: the modes of Anderson et al. 2021, section 6.
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
    /// The model chooses: for several stages the best schedule of a search over pipelines, for one stage the schedule
    /// of a program of which nothing was measured. It is compared with the reference and timed, but the time decides
    /// nothing, unless an earlier run has declared a best.
    OneShot,
    /// The five best schedules by the model are measured, and the fastest wins: of a search over pipelines, or, for one
    /// stage, of the cost model of its search space.
    Top5,
    /// Searches measure as many candidates as the budget allows, those of a search over pipelines among them.
    #[default]
    Autotune,
}

impl Mode {
    /// All modes with their names and what they do, in a line.
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

    /// What it does, in a line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode, _)| *mode == self).map_or("", |(_, _, summary)| summary)
    }

    /// How many schedules the model may choose for measuring; `None` if that is up to the budget.
    pub(crate) fn most_chosen(self) -> Option<usize> {
        match self {
            Self::Top5 => Some(5),
            Self::OneShot | Self::Autotune => None,
        }
    }

    /// How many trials there are if all goes well and so many are allowed; the default schedule is one of five and one.
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

/// A name that no mode has.
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
