//! Checks a program against a device's limits before any driver call.

use std::fmt::Display;

use crate::{Description, DeviceError, DeviceProgram, LaunchPlan};

impl Description {
    /// Checks that a program is consistent and within the device's limits.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] and [`DeviceError::Mismatch`].
    pub fn check(&self, program: &DeviceProgram) -> Result<(), DeviceError> {
        for parameter in &program.interface.parameters {
            let bytes = parameter.bytes().unsigned_abs();
            self.at_most(bytes, self.limits.allocation, "bytes", || {
                format!("tensor `{}`", parameter.name)
            })?;
        }
        self.at_most(program.workspace_bytes, self.limits.allocation, "bytes", || {
            "the workspace".to_owned()
        })?;
        program.launches.iter().try_for_each(|launch| self.check_launch(program, launch))
    }

    fn check_launch(
        &self,
        program: &DeviceProgram,
        launch: &LaunchPlan,
    ) -> Result<(), DeviceError> {
        let kernel = &launch.kernel;
        let there = program.interface.parameters.len();
        if let Some(position) = launch.parameters.iter().find(|position| **position >= there) {
            let reason =
                format!("kernel `{kernel}` takes parameter {position}, but there are {there}");
            return Err(self.mismatch(reason));
        }
        if launch.block.contains(&0) || launch.grid.contains(&0) {
            let (grid, block) = (shape(&launch.grid), shape(&launch.block));
            let reason = format!("kernel `{kernel}` has {grid} blocks of {block} threads: nothing");
            return Err(self.mismatch(reason));
        }
        let axes = ["x", "y", "z"].into_iter().enumerate();
        for (axis, name) in axes {
            let (block, grid) = (u64::from(launch.block[axis]), launch.grid[axis]);
            let what = |of: &str| format!("the {of} of kernel `{kernel}` in {name}");
            self.at_most(block, self.limits.block[axis], "threads", || what("block"))?;
            self.at_most(grid, self.limits.grid[axis], "blocks", || what("grid"))?;
            // Thread indices are computed with as many bits as sizes have.
            let threads = grid.saturating_mul(block);
            self.at_most(threads, i64::MAX as u64, "threads", || what("grid"))?;
        }
        let block = || format!("the block of kernel `{kernel}`");
        let most = self.gpu.threads_per_block.unsigned_abs();
        self.at_most(threads(launch), most, "threads", block)?;
        let shared = || format!("the shared memory of kernel `{kernel}`");
        let most = self.gpu.shared_per_block.unsigned_abs();
        self.at_most(launch.shared_bytes, most, "bytes", shared)
    }

    /// Checks that a compiled kernel matches its launch: the number of arguments, if known, the
    /// limit of threads per block, and shared memory.
    pub(crate) fn check_compiled(
        &self,
        launch: &LaunchPlan,
        takes: Option<u64>,
        most_threads: u64,
        shared: u64,
    ) -> Result<(), DeviceError> {
        let name = &launch.kernel;
        let passed = launch.parameters.len() as u64 + 2;
        if let Some(takes) = takes.filter(|takes| *takes != passed) {
            let reason = format!("kernel `{name}` takes {takes} arguments and is passed {passed}");
            return Err(self.mismatch(reason));
        }
        self.at_most(threads(launch), most_threads, "threads", || {
            format!("the block of kernel `{name}`, as it was compiled,")
        })?;
        let most = self.gpu.shared_per_block.unsigned_abs();
        self.at_most(shared, most, "bytes", || {
            format!("the shared memory of kernel `{name}`, as it was compiled,")
        })
    }

    /// Refuses amounts above a limit.
    fn at_most(
        &self,
        asked: u64,
        most: u64,
        unit: &str,
        what: impl FnOnce() -> String,
    ) -> Result<(), DeviceError> {
        if asked <= most {
            return Ok(());
        }
        let amount = |count: u64| format!("{count} {unit}");
        let (device, what) = (self.name().to_owned(), what());
        Err(DeviceError::Limit { device, what, asked: amount(asked), most: amount(most) })
    }

    pub(crate) fn mismatch(&self, reason: impl Into<String>) -> DeviceError {
        DeviceError::Mismatch { device: self.name().to_owned(), reason: reason.into() }
    }
}

/// The threads of a block, saturating.
fn threads(launch: &LaunchPlan) -> u64 {
    launch.block.iter().fold(1, |product: u64, extent| product.saturating_mul(u64::from(*extent)))
}

fn shape<T: Display>(extents: &[T; 3]) -> String {
    let [x, y, z] = extents;
    format!("{x}x{y}x{z}")
}
