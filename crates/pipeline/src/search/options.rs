//! [`BeamOptions`]: options of the beam search.

/// Options of the beam search, with the names of section 4. Each of the three accelerations can be
/// disabled (section 6.3).
///
/// ```
/// use tensorwright_pipeline::BeamOptions;
///
/// assert_eq!((BeamOptions::beam().width, BeamOptions::beam().passes), (32, 5));
/// assert_eq!((BeamOptions::greedy().width, BeamOptions::greedy().passes), (1, 1));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BeamOptions {
    /// The beam width.
    pub width: usize,
    /// The number of passes; later passes distinguish finer structure (section 4.5).
    pub passes: usize,
    /// Whether only representatives of similar states are evaluated (sections 3.1 and 4.4).
    pub sampling: bool,
    /// Whether decisions about cheap stages are fixed before the search (section 3.2).
    pub freezing: bool,
    /// Whether costs of groups are memoized (section 3.3).
    pub memoization: bool,
    /// The maximum recomputation factor of a stage (section 4.6).
    pub recompute: f64,
    /// The random seed.
    pub seed: u64,
}

impl BeamOptions {
    /// A beam of 32 and 5 passes.
    #[must_use]
    pub fn beam() -> Self {
        let (sampling, freezing, memoization) = (true, true, true);
        Self { width: 32, passes: 5, sampling, freezing, memoization, recompute: 3.0, seed: 0 }
    }

    /// One state and one pass.
    #[must_use]
    pub fn greedy() -> Self {
        Self { width: 1, passes: 1, ..Self::beam() }
    }

    /// With another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}
