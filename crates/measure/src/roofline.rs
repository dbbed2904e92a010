//! [`Roofline`]: the bound on a program's speed on a machine.

use serde::{Deserialize, Serialize};
use tensorwright::Program;

/// The peaks of the machine, the work of the program, and the shortest possible time.
///
/// The nearer roof decides: arithmetic at the peak of fused multiply-adds, or moving every element
/// once at the bandwidth of a buffer as large as the program's data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// The best seen FMA rate of all threads together, in GFLOP/s.
    pub peak_gflops: f64,
    /// The best seen bandwidth of all threads together to where the data is, in GB/s.
    pub peak_gbps: f64,
    /// The floating-point operations of a call.
    pub flops: f64,
    /// The bytes that a call must move.
    pub bytes: f64,
    /// The best possible time of a call.
    pub seconds: f64,
}

/// The roof that is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Roof {
    /// Arithmetic.
    Compute,
    /// Memory.
    Memory,
}

impl Roofline {
    pub(crate) fn new(program: &Program, peak_gflops: f64, peak_gbps: f64) -> Self {
        let analysis = program.analysis();
        let (flops, bytes) = (analysis.flops as f64, analysis.min_bytes as f64);
        let mut roofline = Self { peak_gflops, peak_gbps, flops, bytes, seconds: 0.0 };
        roofline.settle();
        roofline
    }

    /// The roof that is nearer.
    #[must_use]
    pub fn bound(&self) -> Roof {
        let (compute, memory) = (self.flops / self.peak_gflops, self.bytes / self.peak_gbps);
        if compute >= memory { Roof::Compute } else { Roof::Memory }
    }

    /// The share of the roof that a time reaches; `None` for a program without work.
    #[must_use]
    pub fn share(&self, seconds: f64) -> Option<f64> {
        Some(self.seconds / seconds).filter(|share| share.is_finite() && *share > 0.0)
    }

    /// The rate of the nearer roof: GFLOP/s or GB/s.
    pub(crate) fn peak(&self) -> f64 {
        match self.bound() {
            Roof::Compute => self.peak_gflops,
            Roof::Memory => self.peak_gbps,
        }
    }

    /// Updates the peak with a rate of a probe of the nearer roof.
    pub(crate) fn saw(&mut self, rate: f64) {
        let peak = match self.bound() {
            Roof::Compute => &mut self.peak_gflops,
            Roof::Memory => &mut self.peak_gbps,
        };
        if rate.is_finite() && rate > *peak {
            *peak = rate;
            self.settle();
        }
    }

    fn settle(&mut self) {
        let nanoseconds = (self.flops / self.peak_gflops).max(self.bytes / self.peak_gbps);
        self.seconds = if nanoseconds.is_finite() { nanoseconds * 1e-9 } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_roof_decides_and_follows_the_best_rate() {
        let mut roofline =
            Roofline { peak_gflops: 100.0, peak_gbps: 10.0, flops: 2e9, bytes: 1e7, seconds: 0.0 };
        roofline.settle();
        assert_eq!(roofline.bound(), Roof::Compute);
        assert!((roofline.seconds - 0.02).abs() < 1e-12);
        assert_eq!(roofline.share(0.04), Some(0.5));
        roofline.saw(80.0);
        assert_eq!(roofline.peak(), 100.0);
        roofline.saw(200.0);
        assert!((roofline.seconds - 0.01).abs() < 1e-12);
        assert_eq!(Roofline { seconds: 0.0, ..roofline }.share(1.0), None);
    }
}
