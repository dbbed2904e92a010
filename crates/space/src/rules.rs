//! [`Rules`]: the legality and features of points.

use std::fmt::Debug;

use crate::parameter::Parameter;
use crate::point::Point;

/// Why a point is illegal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The rule: `registers`, `unroll`, `cache`.
    pub rule: &'static str,
    /// The reason in words.
    pub reason: String,
}

/// The rules of a space, evaluated without building anything.
pub trait Rules: Debug + Send + Sync {
    /// Whether a point is worth building; cheap, since searches call this often.
    ///
    /// # Errors
    /// The first rule that rejects the point.
    fn check(&self, parameters: &[Parameter], point: &Point) -> Result<(), Rejection>;

    /// All legal points in numeric order, if the rules are a list of them.
    fn legal_points(&self) -> Option<&[Point]> {
        None
    }

    /// The parameters that the violated rule depends on, if rules judge some parameters separately
    /// from others: changing only the other parameters leaves the point illegal. Empty for a legal
    /// point.
    fn to_blame(&self, parameters: &[Parameter], point: &Point) -> Vec<usize> {
        match self.check(parameters, point) {
            Ok(()) => Vec::new(),
            Err(_) => (0..parameters.len()).collect(),
        }
    }

    /// Additional features of a point for cost prediction, a constant number of them.
    fn features(&self, _parameters: &[Parameter], _point: &Point) -> Vec<f32> {
        Vec::new()
    }
}

/// Rules that allow every point.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRules;

impl Rules for NoRules {
    fn check(&self, _: &[Parameter], _: &Point) -> Result<(), Rejection> {
        Ok(())
    }
}
