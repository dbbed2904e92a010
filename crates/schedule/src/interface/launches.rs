//! [`LaunchPlan`]: how a program is launched on a device, as data that can be sent to another process.
//!
//! The arguments of every kernel, in order: a pointer to global memory for each of its
//! [parameters](LaunchPlan::parameters), a pointer to the [workspace](DeviceProgram::workspace_bytes), and a pointer to a
//! status, one 32-bit integer. The status is zero before the first launch; a kernel stores the number of a
//! [checked read](super::Interface::checked) that failed, counted from one.

use serde::{Deserialize, Serialize};

use super::{Function, Interface};
use crate::LoweredNest;
use crate::nest::{BufferId, Launch, Node, Uses};

/// One kernel launch of a program on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchPlan {
    /// The name of the function in the source text.
    pub kernel: String,
    /// What it is a part of.
    pub function: Function,
    /// The blocks in the directions x, y and z.
    pub grid: [u64; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// The bytes that the threads of a block share. Kernels declare them themselves.
    pub shared_bytes: u64,
    /// The positions in [`Interface::parameters`] of the buffers that it is given, in order.
    pub parameters: Vec<usize>,
}

/// A program for a device: its text, and how that is launched, in order on one queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceProgram {
    /// The source text of all kernels.
    pub source: String,
    /// What a caller passes and gets.
    pub interface: Interface,
    /// The launches: those that prepare, then those that compute.
    pub launches: Vec<LaunchPlan>,
    /// The bytes of global memory that a call works in; where buffers lie in it is in the text.
    pub workspace_bytes: u64,
}

impl DeviceProgram {
    /// A program of a text.
    #[must_use]
    pub fn new(source: String, interface: Interface, launches: Vec<LaunchPlan>) -> Self {
        let workspace_bytes = interface.workspace.bytes(1).max(0).unsigned_abs();
        Self { source, interface, launches, workspace_bytes }
    }
}

impl LaunchPlan {
    /// A launch of a kernel that computes, without shared memory.
    #[must_use]
    pub fn new(kernel: impl Into<String>, grid: [u64; 3], block: [u32; 3]) -> Self {
        Self {
            kernel: kernel.into(),
            function: Function::Compute,
            grid,
            block,
            shared_bytes: 0,
            parameters: Vec::new(),
        }
    }

    /// With these parameters of the interface.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl IntoIterator<Item = usize>) -> Self {
        self.parameters = parameters.into_iter().collect();
        self
    }

    /// With so much shared memory.
    #[must_use]
    pub fn with_shared_bytes(mut self, bytes: u64) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// As a part of another function than the one that computes.
    #[must_use]
    pub fn of_function(mut self, function: Function) -> Self {
        self.function = function;
        self
    }

    /// The launches of a nest, with what they run; none if it was not lowered for a device.
    #[must_use]
    pub fn of<'a>(
        lowered: &'a LoweredNest,
        interface: &Interface,
    ) -> Vec<(Self, &'a Node, &'a Launch)> {
        let nest = lowered.as_nest();
        let Some(launches) = &nest.launches else { return Vec::new() };
        let parts = [
            (Function::Prepare, &nest.prepare, &launches.prepare),
            (Function::Compute, &nest.body, &launches.body),
        ];
        let mut plans = Vec::new();
        for (function, nodes, launches) in parts {
            for (number, (node, launch)) in nodes.iter().zip(launches).enumerate() {
                let used = Uses::of(std::slice::from_ref(node)).buffers;
                let position = |id: &BufferId| interface.position(*id);
                let mut parameters: Vec<usize> = used.iter().filter_map(position).collect();
                parameters.sort_unstable();
                let plan = Self {
                    kernel: format!("{}_{}", interface.prefix(function), number + 1),
                    function,
                    grid: launch.grid.map(|blocks| blocks.max(1).unsigned_abs()),
                    block: launch.block.map(|threads| u32::try_from(threads).unwrap_or(1)),
                    shared_bytes: launch.shared_bytes.max(0).unsigned_abs(),
                    parameters,
                };
                plans.push((plan, node, launch));
            }
        }
        plans
    }
}
