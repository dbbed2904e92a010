//! The machine's current peaks: arithmetic, and bandwidth for a given size.

use std::time::Duration;

use tensorwright::runtime::probe::{
    ConcurrentProbes, CopyBandwidth, FmaPeak, Probe, ReadBandwidth, sustained,
};
use tensorwright::runtime::{Machine, Pool};

use crate::problem::Result;
use crate::protocol::Reply;

/// How long each probe runs.
const DURATION: Duration = Duration::from_millis(30);

/// The largest buffer that a probe uses: beyond all caches.
const LARGEST: u64 = 256 << 20;

/// Measures the peak of all threads together, and the bandwidth to a buffer as large as the data:
/// of copying if a good part of it is written and it exceeds a core's caches, otherwise of reading.
pub(crate) fn roof(bytes: u64, written: u64, threads: u32) -> Result<Reply> {
    let pool = Pool::new(threads as usize)?;
    let share = bytes.clamp(1 << 14, LARGEST) as usize / pool.workers();
    let copies = 4 * written >= bytes && share > Machine::detect().caches.l2;
    let gflops = together(&pool, || Ok(FmaPeak::f32()))?;
    let gbps = if copies {
        // A copy reads one buffer of this size and writes another.
        together(&pool, || Ok(CopyBandwidth::new(share / 2)?))?
    } else {
        together(&pool, || Ok(ReadBandwidth::new(share)?))?
    };
    Ok(Reply::Roof { gflops, gbps, bandwidth: if copies { "copy" } else { "read" } })
}

/// The rate of one probe per thread, all at once.
fn together<P: Probe + Send>(pool: &Pool, one: impl Fn() -> Result<P>) -> Result<f64> {
    let probes = (0..pool.workers()).map(|_| one()).collect::<Result<Vec<P>>>()?;
    Ok(sustained(&mut ConcurrentProbes::new(probes, pool), DURATION))
}
