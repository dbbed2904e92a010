//! What schedules need to know of a target: sizes, not instructions.

use tensorwright_lang::precision::Precision;

/// The sizes of a CPU that decide which schedules are good.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The bytes of a vector register.
    pub vector_bytes: i64,
    /// The number of vector registers.
    pub vector_registers: i64,
    /// The bytes of the first-level data cache.
    pub l1_bytes: i64,
    /// The bytes of the second-level cache of a core.
    pub l2_bytes: i64,
    /// The number of workers that run parallel loops.
    pub workers: i64,
    /// Whether algorithms are allowed that compute with other numbers than the program names.
    pub precision: Precision,
}

impl Target {
    /// x86-64 with AVX-512: 32 registers of 64 bytes.
    #[must_use]
    pub fn avx512() -> Self {
        Self::avx2().with_vectors(64, 32)
    }

    /// x86-64 with AVX2 and FMA: 16 registers of 32 bytes.
    #[must_use]
    pub fn avx2() -> Self {
        Self {
            vector_bytes: 32,
            vector_registers: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            workers: 1,
            precision: Precision::Exact,
        }
    }

    /// AArch64 with NEON: 32 registers of 16 bytes.
    #[must_use]
    pub fn neon() -> Self {
        Self::avx2().with_vectors(16, 32)
    }

    /// The lanes of a vector of elements of so many bytes; never more than rules and spaces consider.
    #[must_use]
    pub fn lanes(&self, element_bytes: i64) -> i64 {
        (self.vector_bytes / element_bytes.max(1)).clamp(1, 16)
    }

    /// With other vector registers: the bytes of one, and how many there are.
    #[must_use]
    pub fn with_vectors(self, vector_bytes: i64, vector_registers: i64) -> Self {
        Self { vector_bytes, vector_registers, ..self }
    }

    /// With other cache sizes, in bytes.
    #[must_use]
    pub fn with_caches(self, l1_bytes: i64, l2_bytes: i64) -> Self {
        Self { l1_bytes, l2_bytes, ..self }
    }

    /// With another precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// With a number of workers.
    #[must_use]
    pub fn with_workers(self, workers: i64) -> Self {
        Self { workers, ..self }
    }
}
