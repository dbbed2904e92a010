//! [`Samples`]: what was measured, as a file: a line about the machine, then one line per schedule.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::features::Features;
use super::super::{Describer, Kind, Machine};
use crate::dag::Dag;
use crate::levels::Levels;
use crate::state::{Layout, State};

/// What was measured.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Samples {
    /// The machine.
    pub machine: String,
    /// What code was made for.
    pub target: String,
    /// What one of each kind takes by the analytical model.
    pub prices: Vec<f64>,
    /// The schedules.
    pub list: Vec<Sample>,
}

/// A schedule that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// The program.
    pub program: String,
    /// The threads.
    pub threads: usize,
    /// What it took.
    pub seconds: f64,
    /// Features of its stages.
    pub features: Vec<Vec<f32>>,
    /// Amounts of its stages.
    pub amounts: Vec<Vec<f64>>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    machine: String,
    target: String,
    features: Vec<String>,
    kinds: Vec<String>,
    prices: Vec<f64>,
}

/// Why a file has no samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplesError {
    /// The line, from 1.
    pub line: usize,
    what: String,
}

impl fmt::Display for SamplesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let help = "`tensorwright cost-model measure` makes samples for this version";
        write!(f, "line {} is no sample of a cost model: {}\n  help: {help}", self.line, self.what)
    }
}

impl std::error::Error for SamplesError {}

impl Sample {
    /// A state of a program that took so many seconds.
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

    /// Whether all numbers can be learned from.
    fn fault(&self) -> Option<&'static str> {
        let (features, kinds) = (Features::names().len(), Kind::ALL.len());
        match () {
            () if !(self.seconds > 0.0 && self.seconds.is_finite()) => Some("its time is no time"),
            () if self.features.len() != self.amounts.len() => {
                Some("there are features or amounts of other stages")
            }
            () if self.features.iter().any(|of| of.len() != features)
                || self.amounts.iter().any(|of| of.len() != kinds) =>
            {
                Some("it has other features or kinds of costs")
            }
            () if !self.features.iter().flatten().all(|value| value.is_finite())
                || !self.amounts.iter().flatten().all(|amount| *amount >= 0.0) =>
            {
                Some("a number is no number")
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
    /// No samples of a machine.
    #[must_use]
    pub fn new(name: &str, target: &str, machine: &Machine) -> Self {
        let prices = Kind::prices(machine);
        let (machine, target) = (name.to_owned(), target.to_owned());
        Self { machine, target, prices, list: Vec::new() }
    }

    /// The first line of a file.
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

    /// Reads a file. A last line without an end, as a writer leaves it that was interrupted, is left out.
    ///
    /// # Errors
    /// The first line that is none of such a file, or of another version.
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
            return Err(wrong(1, "it is about other features or kinds of costs"));
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

    /// The programs, in order of their first sample, with the numbers of their samples. What ran on another number of
    /// threads counts as another program: only times of one can be compared.
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
