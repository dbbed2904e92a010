//! Peak rate of fused multiply-adds: the roofline of compute-bound kernels.
//!
//! Independent accumulators hide the latency of an FMA: four cycles at two per cycle need eight,
//! and more leave slack. All of them, and two operands, stay in registers. Multiplying by a number
//! just below one and adding a small one avoids denormals, which would be slow.
#![allow(unsafe_code, reason = "calls functions compiled for features that were detected")]

use super::{Probe, Sample, calibrate, timed};

/// The FMA rate of one core, with its widest vectors.
#[derive(Debug)]
pub struct FmaPeak {
    kernel: Kernel,
    name: &'static str,
    rounds: usize,
}

/// A loop of FMAs, and its operations per round.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    flops_per_round: usize,
    run: fn(usize),
}

impl FmaPeak {
    /// In single precision.
    #[must_use]
    pub fn f32() -> Self {
        Self::new(Kernel::f32(), "f32 FMA peak, GFLOP/s")
    }

    /// In double precision.
    #[must_use]
    pub fn f64() -> Self {
        Self::new(Kernel::f64(), "f64 FMA peak, GFLOP/s")
    }

    fn new(kernel: Kernel, name: &'static str) -> Self {
        Self { kernel, name, rounds: calibrate(1 << 40, kernel.run) }
    }
}

impl Probe for FmaPeak {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run_once(&mut self) -> Sample {
        let work = (self.rounds * self.kernel.flops_per_round) as f64;
        timed(work, || (self.kernel.run)(self.rounds))
    }
}

/// A function that runs rounds of one FMA per accumulator, for one vector type.
macro_rules! fma_loop {
    ($name:ident, $splat:path, $fma:path, $accumulators:literal, $(#[$feature:meta])*) => {
        $(#[$feature])*
        fn $name(rounds: usize) {
            let factor = $splat(black_box(0.999));
            let term = $splat(black_box(1e-3));
            let mut sums = [$splat(black_box(1.0)); $accumulators];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = $fma(*sum, factor, term);
                }
            }
            black_box(sums);
        }
    };
}

/// A [`Kernel`] of a function compiled for features that the caller has detected.
macro_rules! detected_kernel {
    ($function:path, $lanes:literal, $accumulators:literal) => {
        Kernel {
            flops_per_round: 2 * $lanes * $accumulators,
            // SAFETY: this kernel is only chosen where the features of the function were detected.
            run: |rounds| unsafe { $function(rounds) },
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::Kernel;

    fma_loop!(avx512_f32, _mm512_set1_ps, _mm512_fmadd_ps, 24, #[target_feature(enable = "avx512f")]);
    fma_loop!(avx512_f64, _mm512_set1_pd, _mm512_fmadd_pd, 24, #[target_feature(enable = "avx512f")]);
    fma_loop!(avx2_f32, _mm256_set1_ps, _mm256_fmadd_ps, 12, #[target_feature(enable = "avx,fma")]);
    fma_loop!(avx2_f64, _mm256_set1_pd, _mm256_fmadd_pd, 12, #[target_feature(enable = "avx,fma")]);

    pub(super) fn kernels() -> Vec<(Kernel, Kernel)> {
        let mut kernels = Vec::new();
        if has!("avx512f") {
            kernels
                .push((detected_kernel!(avx512_f32, 16, 24), detected_kernel!(avx512_f64, 8, 24)));
        }
        if has!("avx") && has!("fma") {
            kernels.push((detected_kernel!(avx2_f32, 8, 12), detected_kernel!(avx2_f64, 4, 12)));
        }
        kernels
    }
}

#[cfg(target_arch = "aarch64")]
mod vector {
    use std::arch::aarch64::*;
    use std::hint::black_box;

    use super::Kernel;

    #[target_feature(enable = "neon")]
    fn fma_f32(sum: float32x4_t, factor: float32x4_t, term: float32x4_t) -> float32x4_t {
        vfmaq_f32(term, sum, factor)
    }

    #[target_feature(enable = "neon")]
    fn fma_f64(sum: float64x2_t, factor: float64x2_t, term: float64x2_t) -> float64x2_t {
        vfmaq_f64(term, sum, factor)
    }

    fma_loop!(neon_f32, vdupq_n_f32, fma_f32, 24, #[target_feature(enable = "neon")]);
    fma_loop!(neon_f64, vdupq_n_f64, fma_f64, 24, #[target_feature(enable = "neon")]);

    pub(super) fn kernels() -> Vec<(Kernel, Kernel)> {
        if !std::arch::is_aarch64_feature_detected!("neon") {
            return Vec::new();
        }
        vec![(detected_kernel!(neon_f32, 4, 24), detected_kernel!(neon_f64, 2, 24))]
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod vector {
    pub(super) fn kernels() -> Vec<(super::Kernel, super::Kernel)> {
        Vec::new()
    }
}

/// Without a known vector unit: multiplications and additions that the compiler may vectorize.
mod portable {
    use std::hint::black_box;
    use std::ops::{Add, Mul};

    use super::Kernel;

    fn same<T>(value: T) -> T {
        value
    }

    fn multiply_add<T: Mul<Output = T> + Add<Output = T>>(sum: T, factor: T, term: T) -> T {
        sum * factor + term
    }

    fma_loop!(loop_f32, same::<f32>, multiply_add, 32,);
    fma_loop!(loop_f64, same::<f64>, multiply_add, 16,);

    pub(super) const KERNELS: (Kernel, Kernel) = (
        Kernel { flops_per_round: 2 * 32, run: loop_f32 },
        Kernel { flops_per_round: 2 * 16, run: loop_f64 },
    );
}

impl Kernel {
    /// The kernels that this machine can run, in single and double precision, widest vectors first.
    fn all() -> Vec<(Self, Self)> {
        let mut kernels = vector::kernels();
        kernels.push(portable::KERNELS);
        kernels
    }

    fn f32() -> Self {
        Self::all()[0].0
    }

    fn f64() -> Self {
        Self::all()[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::{FmaPeak, Kernel, Probe};

    #[test]
    fn every_kernel_of_this_machine_runs() {
        for (single, double) in Kernel::all() {
            for kernel in [single, double] {
                let sample = FmaPeak { kernel, name: "", rounds: 100 }.run_once();
                assert_eq!(sample.work, (100 * kernel.flops_per_round) as f64);
                assert!(sample.rate() > 0.0);
            }
        }
    }

    #[test]
    fn probes_are_calibrated() {
        for mut probe in [FmaPeak::f32(), FmaPeak::f64()] {
            assert!(probe.rounds > 1);
            assert!(probe.run_once().rate().is_finite());
        }
        assert!(FmaPeak::f64().name().starts_with("f64"));
    }
}
