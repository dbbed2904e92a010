//! [`Samples`]: a file of measurements, one line per schedule after a header.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::features::Features;
use super::super::{Describer, Kind, Machine};
use crate::dag::Dag;
use crate::levels::Levels;
use crate::state::{Layout, State};

/// Measurements on one machine.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Samples {
    /// The machine.
    pub machine: String,
    /// The code-generation target.
    pub target: String,
    /// The prices of the analytical model, per kind.
    pub prices: Vec<f64>,
    /// The schedules.
    pub list: Vec<Sample>,
}

/// A measured schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// The program.
    pub program: String,
    /// The number of threads.
    pub threads: usize,
    /// The measured time.
    pub seconds: f64,
    /// Features of its stages.
    pub features: Vec<Vec<f32>>,
    /// Amounts of its stages.
    pub amounts: Vec<Vec<f64>>,
}

/// The header line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    machine: String,
    target: String,
    features: Vec<String>,
    kinds: Vec<String>,
    prices: Vec<f64>,
}

/// A parse error of a samples file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplesError {
    /// The line, from 1.
    pub line: usize,
    what: String,
}

impl fmt::Display for SamplesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let help = "`tensorwright cost-model measure` makes samples for this version";
        write!(f, "line {} is not a cost-model sample: {}\n  help: {help}", self.line, self.what)
    }
}

impl std::error::Error for SamplesError {}

impl Sample {
    /// A state of a program with its measured time in seconds.
    #[must_use]
    pub fn new(
        program: &str,
        (dag, levels, machine): (&Dag, &Levels, &Machine),
        state: &State,
        seconds: f64,
    ) -> Self {
        let layout = Layout::new(dag, state);
        let describer = Describer::new(dag, levels, machine.clone());
        let all: Vec<_> =
            layout.groups().flat_map(|group| describer.group(&layout, group)).collect();
        Self {
            program: program.to_owned(),
            threads: machine.workers as usize,
            seconds,
            features: all.iter().map(|of| of.features.values().to_vec()).collect(),
            amounts: all.iter().map(|of| of.amounts.all().to_vec()).collect(),
        }
    }

    /// Why the sample cannot be used for training, if so.
    fn fault(&self) -> Option<&'static str> {
        let (features, kinds) = (Features::names().len(), Kind::ALL.len());
        match () {
            () if !(self.seconds > 0.0 && self.seconds.is_finite()) => {
                Some("its time is not a positive number")
            }
            () if self.features.len() != self.amounts.len() => {
                Some("features and amounts have different numbers of stages")
            }
            () if self.features.iter().any(|of| of.len() != features)
                || self.amounts.iter().any(|of| of.len() != kinds) =>
            {
                Some("its features or cost kinds are those of another version")
            }
            () if !self.features.iter().flatten().all(|value| value.is_finite())
                || !self.amounts.iter().flatten().all(|amount| *amount >= 0.0) =>
            {
                Some("a number is negative or not finite")
            }
            () => None,
        }
    }

    /// A line of a file.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

impl Samples {
    /// An empty list of samples for a machine.
    #[must_use]
    pub fn new(name: &str, target: &str, machine: &Machine) -> Self {
        let prices = Kind::prices(machine);
        let (machine, target) = (name.to_owned(), target.to_owned());
        Self { machine, target, prices, list: Vec::new() }
    }

    /// The header line of a file.
    #[must_use]
    pub fn header(&self) -> String {
        let header = Header {
            machine: self.machine.clone(),
            target: self.target.clone(),
            features: Features::names().into_iter().map(str::to_owned).collect(),
            kinds: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            prices: self.prices.clone(),
        };
        serde_json::to_string(&header).unwrap_or_default() + "\n"
    }

    /// Parses a file. An unterminated last line, from an interrupted writer, is skipped.
    ///
    /// # Errors
    /// The first malformed line, or another format version.
    pub fn parse(text: &str) -> Result<Self, SamplesError> {
        let wrong = |line: usize, what: &str| SamplesError { line, what: what.to_owned() };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        let header: Header = serde_json::from_str(lines.next().unwrap_or_default())
            .map_err(|error| wrong(1, &error.to_string()))?;
        let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let is_priced = header.prices.len() == kinds.len()
            && header.prices.iter().all(|price| *price >= 0.0 && price.is_finite());
        if header.features != Features::names() || header.kinds != kinds || !is_priced {
            return Err(wrong(1, "its features or cost kinds are those of another version"));
        }
        let read = |(number, line): (usize, &str)| {
            let wrong = |what: &str| wrong(number + 2, what);
            let sample: Sample =
                serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            sample.fault().map_or(Ok(()), |fault| Err(wrong(fault)))?;
            Ok(sample)
        };
        let list = lines.enumerate().map(read).collect::<Result<Vec<Sample>, SamplesError>>()?;
        let Header { machine, target, prices, .. } = header;
        Ok(Self { machine, target, prices, list })
    }

    /// The programs, in order of their first sample, with the indices of their samples. Different
    /// thread counts are different programs: their times are not comparable.
    #[must_use]
    pub fn programs(&self) -> Vec<((&str, usize), Vec<usize>)> {
        let mut found: Vec<((&str, usize), Vec<usize>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (number, sample) in self.list.iter().enumerate() {
            let key = (sample.program.as_str(), sample.threads);
            let place = *places.entry(key).or_insert_with(|| {
                found.push((key, Vec::new()));
                found.len() - 1
            });
            found[place].1.push(number);
        }
        found
    }
}
