//! [`VectorIsa`]: vector instruction sets of CPUs.

/// A vector instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorIsa {
    /// x86-64's baseline: 16 vectors of 16 bytes, no fused multiply-add.
    Sse,
    /// AVX2 and FMA: 16 vectors of 32 bytes.
    Avx2,
    /// AVX-512 with F, BW, DQ and VL: 32 vectors of 64 bytes.
    Avx512,
    /// AArch64's baseline: 32 vectors of 16 bytes.
    Neon,
}

impl VectorIsa {
    /// The widest one that the features of an x86-64 CPU allow.
    #[must_use]
    pub fn of_x86(has: impl Fn(&str) -> bool) -> Self {
        let all = |names: &[&str]| names.iter().all(|name| has(name));
        if all(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]) {
            VectorIsa::Avx512
        } else if all(&["avx2", "fma"]) {
            VectorIsa::Avx2
        } else {
            VectorIsa::Sse
        }
    }

    /// The widest one that the features of a CPU allow. All AArch64 CPUs have the feature `neon`.
    #[must_use]
    pub fn of_features(has: impl Fn(&str) -> bool) -> Self {
        if has("neon") { VectorIsa::Neon } else { Self::of_x86(has) }
    }

    /// Whether it is one of x86-64.
    #[must_use]
    pub fn is_x86(self) -> bool {
        self != VectorIsa::Neon
    }

    /// Whether a CPU with `self` can run code for `other`.
    #[must_use]
    pub fn runs(self, other: VectorIsa) -> bool {
        self.is_x86() == other.is_x86() && self >= other
    }

    /// The bytes of a vector register.
    #[must_use]
    pub fn vector_bytes(self) -> i64 {
        match self {
            VectorIsa::Sse | VectorIsa::Neon => 16,
            VectorIsa::Avx2 => 32,
            VectorIsa::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    #[must_use]
    pub fn vector_registers(self) -> i64 {
        match self {
            VectorIsa::Sse | VectorIsa::Avx2 => 16,
            VectorIsa::Avx512 | VectorIsa::Neon => 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VectorIsa::{self, Avx2, Avx512, Neon, Sse};

    #[test]
    fn a_wider_machine_runs_narrower_code_of_its_family() {
        assert!(Avx512.runs(Sse) && Avx512.runs(Avx2) && Neon.runs(Neon));
        assert!(!Sse.runs(Avx2) && !Avx512.runs(Neon) && !Neon.runs(Sse));
    }

    #[test]
    fn features_decide_the_vector_width() {
        let isa = |features: &str| VectorIsa::of_x86(|name| features.split(' ').any(|f| f == name));
        assert_eq!(isa("avx2"), Sse);
        assert_eq!(isa("avx2 fma avx512f"), Avx2);
        assert_eq!(isa("avx512f avx512bw avx512dq avx512vl"), Avx512);
    }
}
