//! Computes the grid and block sizes of launches and checks device limits.

use super::{DeviceError, DeviceLimits, MOST_BLOCKS, block_of};
use crate::lower::LowerError;
use crate::nest::{
    Buffer, BufferId, Launch, Launches, LoopKind, LoopNest, Memory, Node, Uses, for_each_loop,
};

pub(in crate::lower) fn run(nest: &mut LoopNest, limits: &DeviceLimits) -> Result<(), LowerError> {
    let all = |nodes: &[Node]| {
        let launch = |node: &Node| launch(nest, std::slice::from_ref(node), limits);
        nodes.iter().map(launch).collect::<Result<Vec<Launch>, DeviceError>>()
    };
    let launches =
        all(&nest.prepare).and_then(|prepare| Ok(Launches { prepare, body: all(&nest.body)? }));
    nest.launches = Some(launches.map_err(LowerError::Device)?);
    Ok(())
}

/// The launch of a tree. A tree without bound loops runs on one thread, which is always correct;
/// schedules choose which loops to bind.
fn launch(nest: &LoopNest, tree: &[Node], limits: &DeviceLimits) -> Result<Launch, DeviceError> {
    let (mut grid, mut too_many) = ([1; 3], None);
    for_each_loop(tree, &mut |l| {
        if let LoopKind::Block(dim) = l.kind {
            let (place, blocks) = (dim.place(), l.extent);
            grid[place] = blocks.max(grid[place]);
            if blocks > MOST_BLOCKS[place] {
                let (name, most) = (nest.var_name(l.var).to_owned(), MOST_BLOCKS[place]);
                too_many = Some(DeviceError::Blocks { name, blocks, most });
            }
        }
    });
    if let Some(error) = too_many {
        return Err(error);
    }
    let block = block_of(tree);
    let mut launch = Launch { grid, block, shared_bytes: 0 };
    if launch.threads() > limits.threads {
        return Err(DeviceError::Threads { block, most: limits.threads });
    }
    let mentioned: Vec<BufferId> = Uses::mentioned(tree).into_iter().collect();
    let of = |memory: Memory| -> Vec<&Buffer> {
        let buffers = mentioned.iter().map(|id| nest.buffer(*id));
        buffers.filter(|buffer| buffer.memory == Some(memory)).collect()
    };
    let (largest, bytes) = total(&of(Memory::Shared), |buffer| buffer.bytes());
    let most = limits.shared_bytes;
    if bytes > most {
        return Err(DeviceError::Shared { largest, bytes, most });
    }
    launch.shared_bytes = bytes;
    let (largest, bytes) = total(&of(Memory::Stack), Buffer::thread_bytes);
    let most = limits.private_bytes;
    if bytes > most {
        return Err(DeviceError::Private { largest, bytes, most });
    }
    Ok(launch)
}

/// The name of the largest buffer, and the total bytes, each buffer aligned to 16.
fn total(buffers: &[&Buffer], bytes: impl Fn(&Buffer) -> i64) -> (String, i64) {
    let largest = buffers.iter().max_by_key(|buffer| bytes(buffer));
    let name = largest.map_or_else(String::new, |buffer| buffer.name.clone());
    let padded = |buffer: &&Buffer| bytes(buffer).saturating_add(15) / 16 * 16;
    (name, buffers.iter().map(padded).fold(0, i64::saturating_add))
}
