//! [`Levels`]: the loop levels of a target, outermost first.
//!
//! A root stage has loops of every level; a stage inside a loop of level `l` has those after `l`.
//! On a CPU the levels are parallel tiles, cache tiles and vectors; on a GPU they are blocks,
//! threads and serial loops (sections 4.1 to 4.3). The search knows nothing else about a target.

use tensorwright_machine::{Cpu, Goal, Gpu};

/// A loop level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// The kind of its loops.
    pub kind: LevelKind,
    /// The maximum allocation per iteration in bytes.
    pub bytes: i64,
    /// Candidate tile extents along the last dimension, which is contiguous.
    pub inner: Vec<i64>,
    /// Candidate tile extents along the second last dimension.
    pub outer: Vec<i64>,
    /// Whether a tile may also span its whole region, without a loop.
    pub is_optional: bool,
    /// The minimum and maximum iterations of all loops of the level, for a root stage: blocks have
    /// a limited number of threads.
    pub iterations: (i64, i64),
    /// Whether stages inside another one are distributed over its iterations of this level, so that
    /// they have no tiles of their own: the threads of a block.
    pub is_shared: bool,
}

/// The kind of loops of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelKind {
    /// Parallel iterations.
    Parallel,
    /// Sequential tiles.
    Tiles,
    /// The last level: one tile is one block of straight-line code.
    Body,
}

/// The levels of a target, outermost first, and its limits of parallelism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// The levels.
    pub list: Vec<Level>,
    /// The minimum iterations of parallel loops of a parallel stage (4.3: at least twice the number
    /// of multiprocessors; 4.6: states that leave too many idle).
    pub least_parallel: i64,
    /// The minimum number of elements of a parallel stage.
    pub worth_sharing: i64,
}

impl Levels {
    /// The levels of a CPU: parallel tiles, cache tiles, vectors.
    ///
    /// ```
    /// use tensorwright_pipeline::Levels;
    /// use tensorwright_machine::{Cpu, Goal};
    ///
    /// let levels = Levels::of_cpu(&Goal::new(Cpu::avx2()).with_workers(2));
    /// let names: Vec<&str> = levels.list.iter().map(|level| level.name).collect();
    /// assert_eq!(names, ["parallel", "cache", "vector"]);
    /// ```
    #[must_use]
    pub fn of_cpu(goal: &Goal<Cpu>) -> Self {
        let caches = goal.target.caches();
        let lanes = goal.target.lanes(4);
        let level = |name, kind, bytes, inner: &[i64], outer: &[i64], is_optional| Level {
            name,
            kind,
            bytes,
            inner: inner.to_vec(),
            outer: outer.to_vec(),
            is_optional,
            iterations: (1, i64::MAX),
            is_shared: false,
        };
        let tiles = [64, 128, 256, 512, 1024];
        let rows = [1, 2, 4, 8, 16, 32, 64, 128];
        let vectors = [lanes, 2 * lanes, 4 * lanes];
        let list = vec![
            level("parallel", LevelKind::Parallel, caches.l2, &tiles, &rows, true),
            level("cache", LevelKind::Tiles, caches.l1, &[], &[1, 4, 8], true),
            level("vector", LevelKind::Body, goal.target.vector_bytes(), &vectors, &[1], false),
        ];
        Self { list, least_parallel: goal.workers, worth_sharing: 1 << 16 }
    }

    /// The levels of a GPU (4.1 to 4.3): blocks, which share memory between their stages; threads,
    /// which hold data in registers; and serial loops of a thread.
    ///
    /// ```
    /// use tensorwright_pipeline::Levels;
    /// use tensorwright_machine::{Goal, Target};
    ///
    /// let target = Target::named("cuda:sm_80")?;
    /// let gpu = target.gpu().ok_or("a GPU")?;
    /// let levels = Levels::of_gpu(&Goal::new(gpu.clone()));
    /// let names: Vec<&str> = levels.list.iter().map(|level| level.name).collect();
    /// assert_eq!(names, ["block", "thread", "serial"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_gpu(goal: &Goal<Gpu>) -> Self {
        /// The maximum bytes of results that a thread holds in registers.
        const REGISTERS: i64 = 64;
        let gpu = &goal.target;
        let level = |name, kind, bytes, inner: &[i64], outer: &[i64]| Level {
            name,
            kind,
            bytes,
            inner: inner.to_vec(),
            outer: outer.to_vec(),
            is_optional: false,
            iterations: (1, i64::MAX),
            is_shared: false,
        };
        let (columns, rows) = ([16, 32, 64, 128, 256], [1, 2, 4, 8, 16, 32]);
        // Pruning allows 50 % more, for caches, which are less strict.
        let shared = gpu.declared_shared() * 2 / 3;
        let threads = level("thread", LevelKind::Parallel, REGISTERS, &[1, 2, 4], &[1, 2, 4, 8]);
        let iterations = (gpu.warp.min(gpu.threads_per_block), gpu.threads_per_block);
        let list = vec![
            level("block", LevelKind::Parallel, shared, &columns, &rows),
            Level { iterations, is_shared: true, ..threads },
            level("serial", LevelKind::Body, 4, &[1], &[1]),
        ];
        // Section 4.3: at least two blocks per multiprocessor.
        Self { list, least_parallel: gpu.units.saturating_mul(2), worth_sharing: 1 << 14 }
    }

    /// The number of levels.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether other stages may be computed inside loops of a level: not inside straight-line code.
    #[must_use]
    pub fn is_host(&self, level: usize) -> bool {
        self.list.get(level).is_some_and(|level| level.kind != LevelKind::Body)
    }
}
