//! [`ScheduleSpace`]: all schedules of a program that searches consider.

use std::sync::Arc;

use num_bigint::BigUint;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_schedule::{Draft, Schedule, canonical};
use tensorwright_space::{Parameter, Point, Rejection, Rng, Rules, SearchSpace};

use crate::sketch::{Sketch, Values};
use crate::targets::policy;
use crate::{SpaceOptions, alternatives};

/// Spaces up to this size are counted point by point.
const COUNTED: u64 = 1 << 21;

/// Of larger spaces so many points are drawn.
const DRAWN: u32 = 20_000;

/// All schedules of a program that searches consider, for a goal.
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

/// The number of points that are left after a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruning {
    /// The rule.
    pub rule: &'static str,
    /// The points that are left, exactly if the space was counted.
    pub left: Count,
}

/// A number of points.
#[derive(Debug, Clone, PartialEq)]
pub enum Count {
    /// Exactly so many.
    Exact(BigUint),
    /// The share of uniform draws that is left, and its standard error.
    Share {
        /// The share.
        share: f64,
        /// Its standard error.
        error: f64,
    },
}

impl ScheduleSpace {
    /// What [`algorithm`](Self::algorithm) says of a program that is not rewritten.
    pub const AS_WRITTEN: &'static str = "as written";

    /// The space of a program, computed as it is written.
    ///
    /// # Errors
    /// A kind of target that there is no policy for.
    pub fn new(
        program: &Program,
        goal: &Goal,
        options: &SpaceOptions,
    ) -> Result<Self, TargetError> {
        Self::of(Draft::new(canonical(program)), goal, options)
    }

    /// One space per algorithm that is worth a try for a program, the most promising first: as it is
    /// written, and as [rewritings](crate::alternatives) make it.
    ///
    /// # Errors
    /// A kind of target that there is no policy for.
    pub fn alternatives(
        program: &Program,
        goal: &Goal,
        options: &SpaceOptions,
    ) -> Result<Vec<Self>, TargetError> {
        // Spaces of tiles alone are the papers': the program as it is written.
        if options.only.is_some() {
            return Ok(vec![Self::new(program, goal, options)?]);
        }
        let drafts = alternatives(program, goal.precision).into_iter();
        drafts.map(|draft| Self::of(draft, goal, options)).collect()
    }

    /// The space of what a draft has begun: it may have rewritten stages, and nothing else.
    ///
    /// # Errors
    /// A kind of target that there is no policy for.
    pub fn of(begun: Draft, goal: &Goal, options: &SpaceOptions) -> Result<Self, TargetError> {
        let sketch = policy(goal)?.sketch(begun, options);
        let all = sketch.parameters().iter();
        let free: Vec<bool> = all.clone().map(|p| options.is_free(p.name())).collect();
        let is_free = all.zip(&free).filter(|(_, free)| **free);
        let parameters: Vec<Parameter> = is_free.map(|(parameter, _)| parameter.clone()).collect();
        let inner = Arc::new(Inner { base: sketch.start(&free), sketch, free });
        let rules: Arc<dyn Rules> = Arc::new(Legality(Arc::clone(&inner)));
        Ok(Self { inner, search: Arc::new(SearchSpace::with_rules(parameters, rules)) })
    }

    /// The space as searches see it.
    #[must_use]
    pub fn search_space(&self) -> &Arc<SearchSpace> {
        &self.search
    }

    /// All parameters, those that are fixed included, with the text of their value at the start.
    pub fn all_parameters(&self) -> impl Iterator<Item = (&Parameter, bool, String)> {
        let inner = &self.inner;
        let ranks = inner.base.ranks().iter();
        let all = inner.sketch.parameters().iter().zip(&inner.free).zip(ranks);
        all.map(|((parameter, free), rank)| (parameter, *free, parameter.text(*rank)))
    }

    /// Where a search may start: the point nearest to the default schedule.
    #[must_use]
    pub fn start(&self) -> Point {
        self.inner.narrow(&self.inner.base)
    }

    /// The most promising points by the cost model, best first. Nothing is measured. Primitives may
    /// still refuse one.
    #[must_use]
    pub fn ranked(&self, count: usize) -> Vec<Point> {
        let points = self.inner.sketch.ranked(self.inner.values(&self.inner.base), count);
        points.iter().map(|point| self.inner.narrow(point)).collect()
    }

    /// The estimated cycles of a point by the cost model; infinite for one that a rule forbids.
    #[must_use]
    pub fn estimate(&self, point: &Point) -> f64 {
        self.inner.sketch.estimate(self.inner.values(&self.inner.expand(point)))
    }

    /// What the estimate of a point is made of, summed over all stages, with names: for fitting the
    /// model and for explaining it.
    #[must_use]
    pub fn estimate_terms(&self, point: &Point) -> Vec<(&'static str, f64)> {
        self.inner.sketch.estimate_terms(self.inner.values(&self.inner.expand(point)))
    }

    /// Whether some stage sums over loops that the space tiles.
    #[must_use]
    pub fn has_sums(&self) -> bool {
        self.inner.sketch.has_sums()
    }

    /// Parameters whose value makes no difference at a point, by place, with the reason. Every other choice
    /// of a point that [decodes](Self::decode) can be found in its schedule.
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
    /// Why the point is illegal: a rule, or a primitive that is refused.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        self.search.check(point)?;
        self.inner.sketch.decode(self.inner.values(&self.inner.expand(point)))
    }

    /// The algorithm: the rewritings that the program goes through first, as text; `as written` if
    /// there are none.
    #[must_use]
    pub fn algorithm(&self) -> String {
        let steps = self.inner.sketch.begun().steps.iter();
        let steps: Vec<String> = steps.map(ToString::to_string).collect();
        if steps.is_empty() { Self::AS_WRITTEN.to_owned() } else { steps.join("; ") }
    }

    /// How many points each rule leaves, in their order.
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

    /// The values of the free parameters from those of all.
    fn narrow(&self, point: &Point) -> Point {
        let ranks = point.ranks().iter().zip(&self.free);
        Point::new(ranks.filter(|(_, free)| **free).map(|(rank, _)| *rank).collect::<Box<[u32]>>())
    }

    /// The places of parameters among the free ones.
    fn free_places(&self, parameters: &[usize]) -> Vec<usize> {
        let free = self.free.iter().enumerate().filter(|(_, free)| **free);
        let numbered = free.enumerate().filter(|(_, (at, _))| parameters.contains(at));
        numbered.map(|(place, _)| place).collect()
    }

    /// The values of all parameters from those of the free ones.
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
