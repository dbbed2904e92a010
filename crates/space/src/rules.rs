//! [`Rules`]: which points of a space are legal, and what a model should know of them.

use std::fmt::Debug;

use crate::parameter::Parameter;
use crate::point::Point;

/// Why a point is illegal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The rule: `registers`, `unroll`, `cache`.
    pub rule: &'static str,
    /// Why, for a person.
    pub reason: String,
}

/// What a space knows of its points beyond their parameters, without building anything.
pub trait Rules: Debug + Send + Sync {
    /// Whether a point of the space of these parameters is worth building; cheap, since searches ask often.
    ///
    /// # Errors
    /// The first rule that refuses the point.
    fn check(&self, parameters: &[Parameter], point: &Point) -> Result<(), Rejection>;

    /// All legal points in the order of their numbers, if the rules are a list of them.
    fn legal_points(&self) -> Option<&[Point]> {
        None
    }

    /// The parameters that the rule that refuses a point looks at, if rules judge some parameters
    /// apart from the others: changing these alone makes it legal or leaves it illegal. A legal point
    /// has none.
    fn to_blame(&self, parameters: &[Parameter], point: &Point) -> Vec<usize> {
        match self.check(parameters, point) {
            Ok(()) => Vec::new(),
            Err(_) => (0..parameters.len()).collect(),
        }
    }

    /// Numbers about a point that help a model to predict its cost, beyond its parameters; always
    /// as many.
    fn features(&self, _parameters: &[Parameter], _point: &Point) -> Vec<f32> {
        Vec::new()
    }
}

/// The rules of a space in which everything is legal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRules;

impl Rules for NoRules {
    fn check(&self, _: &[Parameter], _: &Point) -> Result<(), Rejection> {
        Ok(())
    }
}
