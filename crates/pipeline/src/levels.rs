//! [`Levels`]: the kinds of loops that a target has, outermost first.
//!
//! A stage on its own has loops of every level; one that is computed inside a loop of level `l` of another has those after
//! `l`. On a processor these are tiles that workers share, tiles for the cache, and vectors; on a graphics processor
//! blocks, threads and serial loops (sections 4.1 to 4.3). The search knows nothing else of a target.

use tensorwright_machine::{Cpu, Goal, Gpu};

/// One kind of loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// What people call it.
    pub name: &'static str,
    /// What its loops are for.
    pub kind: LevelKind,
    /// The bytes that one iteration may allocate.
    pub bytes: i64,
    /// Extents of a tile along the last dimension; elements are next to each other there.
    pub inner: Vec<i64>,
    /// Extents of a tile along the last but one.
    pub outer: Vec<i64>,
    /// Whether a tile may also be all of what is around it, so that there is no loop.
    pub is_optional: bool,
    /// The fewest and the most iterations of all loops of the level, for a stage that is computed on its own: blocks have a
    /// limited number of threads.
    pub iterations: (i64, i64),
    /// Whether stages that are computed inside of another take turns on the iterations that it has of this level, so that
    /// there are no tiles to choose: the threads of a block.
    pub is_shared: bool,
}

/// What loops of a level are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelKind {
    /// Iterations run at the same time.
    Parallel,
    /// Tiles one after another.
    Tiles,
    /// The last level: one tile is one block of straight code.
    Body,
}

/// The levels of a target, outermost first, and what it takes to keep it busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// The levels.
    pub list: Vec<Level>,
    /// The fewest iterations of parallel loops of a stage that is worth sharing (4.3: at least twice the number of
    /// multiprocessors; 4.6: states that leave too many idle).
    pub least_parallel: i64,
    /// How many elements a stage has that is worth sharing.
    pub worth_sharing: i64,
}

impl Levels {
    /// The levels of a processor: parallel tiles, cache tiles, vectors.
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

    /// The levels of a graphics processor (4.1 to 4.3): blocks, whose stages share memory; threads, which hold what they need
    /// in registers; and what a thread does one after another.
    ///
    /// ```
    /// use tensorwright_pipeline::Levels;
    /// use tensorwright_machine::{Goal, Target};
    ///
    /// let target = Target::named("cuda:sm_80")?;
    /// let gpu = target.gpu().ok_or("a graphics processor")?;
    /// let levels = Levels::of_gpu(&Goal::new(gpu.clone()));
    /// let names: Vec<&str> = levels.list.iter().map(|level| level.name).collect();
    /// assert_eq!(names, ["block", "thread", "serial"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_gpu(goal: &Goal<Gpu>) -> Self {
        /// The bytes of results that a thread holds in registers.
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
        // Pruning allows half as much again, for caches that are not as strict.
        let shared = gpu.declared_shared() * 2 / 3;
        let threads = level("thread", LevelKind::Parallel, REGISTERS, &[1, 2, 4], &[1, 2, 4, 8]);
        let iterations = (gpu.warp.min(gpu.threads_per_block), gpu.threads_per_block);
        let list = vec![
            level("block", LevelKind::Parallel, shared, &columns, &rows),
            Level { iterations, is_shared: true, ..threads },
            level("serial", LevelKind::Body, 4, &[1], &[1]),
        ];
        // Section 4.3: at least two blocks for each multiprocessor.
        Self { list, least_parallel: gpu.units.saturating_mul(2), worth_sharing: 1 << 14 }
    }

    /// The number of levels.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether other stages may be computed inside loops of a level: not inside straight code.
    #[must_use]
    pub fn is_host(&self, level: usize) -> bool {
        self.list.get(level).is_some_and(|level| level.kind != LevelKind::Body)
    }
}
