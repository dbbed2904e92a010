//! [`LaunchPlan`]: the launches of a device program, as serializable data.
//!
//! The arguments of every kernel, in order: a pointer to global memory for each of its
//! [parameters](LaunchPlan::parameters), a pointer to the
//! [workspace](DeviceProgram::workspace_bytes), and a pointer to a status, one 32-bit integer. The
//! status is zero before the first launch; a kernel stores the number of the [checked
//! read](super::Interface::checked) that failed, counted from one.

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
    /// The function that it is a part of.
    pub function: Function,
    /// The number of blocks in directions x, y and z.
    pub grid: [u64; 3],
    /// The number of threads of a block, in directions x, y and z.
    pub block: [u32; 3],
    /// The bytes of shared memory of a block. Kernels declare it themselves.
    pub shared_bytes: u64,
    /// The positions of its buffers in [`Interface::parameters`], in order.
    pub parameters: Vec<usize>,
}

/// A device program: its source text and its launches, in order on one queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceProgram {
    /// The source text of all kernels.
    pub source: String,
    /// The parameters of a call.
    pub interface: Interface,
    /// The launches: first those of the preparation, then those of the computation.
    pub launches: Vec<LaunchPlan>,
    /// The size of the workspace in global memory. The source text contains the offsets of its
    /// buffers.
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

    /// Sets the parameters, as positions in the interface.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl IntoIterator<Item = usize>) -> Self {
        self.parameters = parameters.into_iter().collect();
        self
    }

    /// Sets the size of shared memory.
    #[must_use]
    pub fn with_shared_bytes(mut self, bytes: u64) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Sets the function that it is a part of.
    #[must_use]
    pub fn of_function(mut self, function: Function) -> Self {
        self.function = function;
        self
    }

    /// The launches of a nest with their nodes; empty if it was not lowered for a device.
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
