//! [`Landscape`]: recorded outcomes of a space's points.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tensorwright_outcome::{Outcome, Tally};
use tensorwright_space::{Parameter, Point, Rejection, Rules, SearchSpace};

use crate::LandscapeError;
use crate::cell::{Cell, Reasons};

/// The most points of a landscape.
pub(crate) const MOST_POINTS: usize = 1 << 22;

/// The most parameters of a space.
pub(crate) const MOST_PARAMETERS: usize = 256;

/// The origin of a landscape, for readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The text of the program.
    pub program: String,
    /// The definition.
    pub def: String,
    /// Its sizes.
    pub sizes: BTreeMap<String, i64>,
    /// The key of its records.
    pub key: String,
    /// The machine on which it was measured.
    pub machine: String,
    /// How it was measured.
    pub method: String,
    /// Whether it has every legal point, or a sample.
    pub complete: bool,
    /// Points near the default schedule, where a tuning run would start.
    #[serde(default)]
    pub start: Vec<Point>,
}

/// Points of a space with their outcomes.
#[derive(Debug, Clone)]
pub struct Landscape {
    origin: Provenance,
    space: Arc<SearchSpace>,
    recorded: Arc<Recorded>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) reasons: Reasons,
}

/// Makes exactly the recorded points legal.
#[derive(Debug)]
struct Recorded {
    /// Ordered by their numbers.
    points: Vec<Point>,
    places: HashMap<Point, u32>,
}

impl Rules for Recorded {
    fn check(&self, _: &[Parameter], point: &Point) -> Result<(), Rejection> {
        if self.places.contains_key(point) {
            return Ok(());
        }
        Err(Rejection { rule: "recorded", reason: "the point was not recorded".to_owned() })
    }

    fn legal_points(&self) -> Option<&[Point]> {
        Some(&self.points)
    }
}

impl Landscape {
    /// A landscape of these outcomes; the last one of a point counts.
    ///
    /// # Errors
    /// If a point is outside the space, or there are too many.
    pub fn new(
        origin: Provenance,
        parameters: Vec<Parameter>,
        outcomes: impl IntoIterator<Item = (Point, Outcome)>,
    ) -> Result<Self, LandscapeError> {
        let mut reasons = Reasons::default();
        let mut cells: BTreeMap<Point, Cell> = BTreeMap::new();
        for (point, outcome) in outcomes {
            cells.insert(point, reasons.cell(&outcome));
            if cells.len() > MOST_POINTS {
                return Err(LandscapeError::new(format!("more than {MOST_POINTS} points")));
            }
        }
        let (points, cells) = cells.into_iter().unzip();
        Self::from_parts(origin, parameters, points, cells, reasons)
    }

    /// A landscape of points in increasing order.
    pub(crate) fn from_parts(
        origin: Provenance,
        parameters: Vec<Parameter>,
        points: Vec<Point>,
        cells: Vec<Cell>,
        reasons: Reasons,
    ) -> Result<Self, LandscapeError> {
        if parameters.len() > MOST_PARAMETERS {
            return Err(LandscapeError::new(format!("more than {MOST_PARAMETERS} parameters")));
        }
        let all = SearchSpace::new(parameters);
        if let Some(outside) = points.iter().find(|point| !all.contains(point)) {
            return Err(LandscapeError::new(format!("the point {outside} is not of the space")));
        }
        let places = points.iter().cloned().zip(0..).collect();
        let recorded = Arc::new(Recorded { points, places });
        let space = SearchSpace::with_rules(all.parameters().to_vec(), recorded.clone());
        Ok(Self { origin, space: Arc::new(space), recorded, cells, reasons })
    }

    /// Its origin.
    #[must_use]
    pub fn origin(&self) -> &Provenance {
        &self.origin
    }

    /// The space; exactly the recorded points are legal.
    #[must_use]
    pub fn space(&self) -> Arc<SearchSpace> {
        self.space.clone()
    }

    /// Identifies the space: a hash of its parameters with all values.
    ///
    /// # Errors
    /// If the parameters cannot be written.
    pub fn space_hash(&self) -> Result<String, LandscapeError> {
        let text = serde_json::to_vec(self.space.parameters());
        let text = text.map_err(|error| LandscapeError::new(error.to_string()))?;
        Ok(Sha256::digest(&text)[..16].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The recorded points, ordered by their numbers.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.recorded.points
    }

    /// The outcome of a point; `None` if it was not recorded. Times are rounded to one part in ten
    /// thousand; failures keep their kind and the first line of the reason.
    #[must_use]
    pub fn outcome(&self, point: &Point) -> Option<Outcome> {
        let place = self.recorded.places.get(point)?;
        self.cells.get(*place as usize).map(|cell| cell.outcome(&self.reasons))
    }

    /// The fastest point and its seconds; `None` if none was measured.
    #[must_use]
    pub fn optimum(&self) -> Option<(&Point, f64)> {
        let all = self.points().iter().zip(&self.cells);
        let measured = all.filter_map(|(point, cell)| Some((point, cell.measured()?)));
        measured.min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The seconds of all measured points in increasing order.
    #[must_use]
    pub fn seconds(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.cells.iter().filter_map(|cell| cell.measured()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Counts of outcomes.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.cells.iter().for_each(|cell| tally.add(&cell.outcome(&self.reasons)));
        tally
    }
}

impl PartialEq for Landscape {
    fn eq(&self, other: &Self) -> bool {
        self.origin == other.origin
            && self.space.parameters() == other.space.parameters()
            && self.points() == other.points()
            && self.cells == other.cells
            && self.reasons == other.reasons
    }
}
