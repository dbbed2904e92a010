//! [`ScheduleSpace`]: the search space of schedules of a program.

use std::sync::Arc;

use num_bigint::BigUint;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_schedule::{Schedule, ScheduleState, canonical};
use tensorwright_space::{Parameter, Point, Rejection, Rng, Rules, SearchSpace};

use crate::sketch::{Sketch, Values};
use crate::targets::policy;
use crate::{SpaceOptions, alternatives};

/// Spaces up to this size are enumerated.
const COUNTED: u64 = 1 << 21;

/// The number of samples drawn from larger spaces.
const DRAWN: u32 = 20_000;

/// The search space of schedules of a program for a goal.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_policy::{Preset, ScheduleSpace};
/// use tensorwright_space::Rng;
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let module = Module::parse("gemm.tc", text)?;
/// let program = module.bind("gemm", [("M", 1024), ("N", 1024), ("K", 1024)])?;
///
/// let goal = Goal::new(Cpu::avx512()).into();
///
/// // The tiling space of the G-BFS paper has exactly as many points as it says.
/// let tiles = ScheduleSpace::new(&program, &goal, &Preset::Gbfs.options())?;
/// assert_eq!(tiles.search_space().size(), 899_756u32.into());
///
/// let space = ScheduleSpace::new(&program, &goal, &Preset::Full.options())?;
/// let point = space.search_space().sample_legal(&mut Rng::new(1)).ok_or("no legal point")?;
/// let schedule = space.decode(&point).map_err(|refused| refused.reason)?;
/// assert!(schedule.to_string().contains("C: split"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScheduleSpace {
    inner: Arc<Inner>,
    search: Arc<SearchSpace>,
}

/// What the public type and its rules share.
#[derive(Debug)]
struct Inner {
    sketch: Box<dyn Sketch>,
    /// The value of every parameter that is not free, and where searches start.
    base: Point,
    /// Whether each parameter is free.
    free: Vec<bool>,
}

/// The number of points left after a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruning {
    /// The rule.
    pub rule: &'static str,
    /// The remaining points: exact if the space was enumerated.
    pub left: Count,
}

/// A number of points.
#[derive(Debug, Clone, PartialEq)]
pub enum Count {
    /// An exact count.
    Exact(BigUint),
    /// The legal fraction of uniform samples, with its standard error.
    Share {
        /// The fraction.
        share: f64,
        /// Its standard error.
        error: f64,
    },
}

impl ScheduleSpace {
    /// The [`algorithm`](Self::algorithm) of a program without rewritings.
    pub const AS_WRITTEN: &'static str = "as written";

    /// The space of a program without rewritings.
    ///
    /// # Errors
    /// An unsupported kind of target.
    pub fn new(
        program: &Program,
        goal: &Goal,
        options: &SpaceOptions,
    ) -> Result<Self, TargetError> {
        Self::of(ScheduleState::new(canonical(program)), goal, options)
    }

    /// One space per algorithm worth trying, most promising first: the program as written and its
    /// [rewritings](crate::alternatives).
    ///
    /// # Errors
    /// An unsupported kind of target.
    pub fn alternatives(
        program: &Program,
        goal: &Goal,
        options: &SpaceOptions,
    ) -> Result<Vec<Self>, TargetError> {
        // Tiling-only spaces reproduce the papers: the program as written.
        if options.only.is_some() {
            return Ok(vec![Self::new(program, goal, options)?]);
        }
        let drafts = alternatives(program, goal.precision).into_iter();
        drafts.map(|draft| Self::of(draft, goal, options)).collect()
    }

    /// The space of a draft, which may contain rewritings only.
    ///
    /// # Errors
    /// An unsupported kind of target.
    pub fn of(
        begun: ScheduleState,
        goal: &Goal,
        options: &SpaceOptions,
    ) -> Result<Self, TargetError> {
        let sketch = policy(goal)?.sketch(begun, options);
        let all = sketch.parameters().iter();
        let free: Vec<bool> = all.clone().map(|p| options.is_free(p.name())).collect();
        let is_free = all.zip(&free).filter(|(_, free)| **free);
        let parameters: Vec<Parameter> = is_free.map(|(parameter, _)| parameter.clone()).collect();
        let inner = Arc::new(Inner { base: sketch.start(&free), sketch, free });
        let rules: Arc<dyn Rules> = Arc::new(Legality(Arc::clone(&inner)));
        Ok(Self { inner, search: Arc::new(SearchSpace::with_rules(parameters, rules)) })
    }

    /// The search space for strategies.
    #[must_use]
    pub fn search_space(&self) -> &Arc<SearchSpace> {
        &self.search
    }

    /// All parameters with whether they are free and the text of their starting value.
    pub fn all_parameters(&self) -> impl Iterator<Item = (&Parameter, bool, String)> {
        let inner = &self.inner;
        let ranks = inner.base.ranks().iter();
        let all = inner.sketch.parameters().iter().zip(&inner.free).zip(ranks);
        all.map(|((parameter, free), rank)| (parameter, *free, parameter.text(*rank)))
    }

    /// The starting point of a search: the point nearest to the default schedule.
    #[must_use]
    pub fn start(&self) -> Point {
        self.inner.narrow(&self.inner.base)
    }

    /// The most promising points by the cost model, best first. Primitives may still refuse one.
    #[must_use]
    pub fn ranked(&self, count: usize) -> Vec<Point> {
        let points = self.inner.sketch.ranked(self.inner.values(&self.inner.base), count);
        points.iter().map(|point| self.inner.narrow(point)).collect()
    }

    /// The estimated cycles of a point; infinite if a rule forbids it.
    #[must_use]
    pub fn estimate(&self, point: &Point) -> f64 {
        self.inner.sketch.estimate(self.inner.values(&self.inner.expand(point)))
    }

    /// The terms of the estimate, summed over all stages, with names: for fitting and explaining
    /// the model.
    #[must_use]
    pub fn estimate_terms(&self, point: &Point) -> Vec<(&'static str, f64)> {
        self.inner.sketch.estimate_terms(self.inner.values(&self.inner.expand(point)))
    }

    /// Whether some stage has reduction loops that the space tiles.
    #[must_use]
    pub fn has_sums(&self) -> bool {
        self.inner.sketch.has_sums()
    }

    /// The indices of parameters without effect at a point, with reasons. Every other choice of a
    /// point that [decodes](Self::decode) is visible in its schedule.
    #[must_use]
    pub fn idle(&self, point: &Point) -> Vec<(usize, &'static str)> {
        let idle = self.inner.sketch.idle(self.inner.values(&self.inner.expand(point)));
        let places = idle.into_iter().filter_map(|(parameter, reason)| {
            Some((*self.inner.free_places(&[parameter]).first()?, reason))
        });
        places.collect()
    }

    /// The schedule of a point.
    ///
    /// # Errors
    /// The rule that the point violates, or the primitive that is refused.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        self.search.check(point)?;
        self.inner.sketch.decode(self.inner.values(&self.inner.expand(point)))
    }

    /// The rewritings applied before all other steps, as text; `as written` if there are none.
    #[must_use]
    pub fn algorithm(&self) -> String {
        let steps = self.inner.sketch.begun().steps.iter();
        let steps: Vec<String> = steps.map(ToString::to_string).collect();
        if steps.is_empty() { Self::AS_WRITTEN.to_owned() } else { steps.join("; ") }
    }

    /// The number of points left after each rule, in order.
    #[must_use]
    pub fn prunings(&self, seed: u64) -> Vec<Pruning> {
        let size = self.search.size();
        let counted = size <= COUNTED.into();
        let rules = self.inner.sketch.rules();
        let mut left = vec![0u32; rules.len()];
        let mut count = |point: &Point| {
            let point = self.inner.expand(point);
            let refused = self.inner.sketch.refusal(self.inner.values(&point));
            let passed = refused.map_or(left.len(), |(rule, _)| rule);
            left[..passed].iter_mut().for_each(|left| *left += 1);
        };
        if counted {
            self.search.points().for_each(|point| count(&point));
        } else {
            let mut rng = Rng::new(seed);
            (0..DRAWN).for_each(|_| count(&self.search.sample(&mut rng)));
        }
        let pruning = rules.into_iter().zip(left).map(|(rule, left)| {
            let share = f64::from(left) / f64::from(DRAWN);
            let error = (share * (1.0 - share) / f64::from(DRAWN)).sqrt();
            let left =
                if counted { Count::Exact(left.into()) } else { Count::Share { share, error } };
            Pruning { rule, left }
        });
        pruning.collect()
    }
}

impl Inner {
    fn values<'a>(&'a self, point: &'a Point) -> Values<'a> {
        Values { ranks: point.ranks(), free: &self.free }
    }

    /// Extracts the values of the free parameters.
    fn narrow(&self, point: &Point) -> Point {
        let ranks = point.ranks().iter().zip(&self.free);
        Point::new(ranks.filter(|(_, free)| **free).map(|(rank, _)| *rank).collect::<Box<[u32]>>())
    }

    /// The indices of parameters among the free ones.
    fn free_places(&self, parameters: &[usize]) -> Vec<usize> {
        let free = self.free.iter().enumerate().filter(|(_, free)| **free);
        let numbered = free.enumerate().filter(|(_, (at, _))| parameters.contains(at));
        numbered.map(|(place, _)| place).collect()
    }

    /// Completes the values of the free parameters with the fixed ones.
    fn expand(&self, point: &Point) -> Point {
        let mut free = point.ranks().iter();
        let ranks = self.base.ranks().iter().zip(&self.free);
        let rank = |(base, is_free): (&u32, &bool)| {
            if *is_free { free.next().copied().unwrap_or(*base) } else { *base }
        };
        Point::new(ranks.map(rank).collect::<Box<[u32]>>())
    }
}

/// The rules of a space of schedules.
#[derive(Debug)]
struct Legality(Arc<Inner>);

impl Rules for Legality {
    fn check(&self, _: &[Parameter], point: &Point) -> Result<(), Rejection> {
        match self.0.sketch.refusal(self.0.values(&self.0.expand(point))) {
            Some((_, refused)) => Err(refused),
            None => Ok(()),
        }
    }

    fn to_blame(&self, _: &[Parameter], point: &Point) -> Vec<usize> {
        self.0.free_places(&self.0.sketch.to_blame(self.0.values(&self.0.expand(point))))
    }

    fn features(&self, _: &[Parameter], point: &Point) -> Vec<f32> {
        self.0.sketch.features(self.0.values(&self.0.expand(point)))
    }
}
