//! CUDA C++, and the parts of it that HIP shares.
//!
//! A system C++ compiler also accepts the text, with a header that emulates blocks and threads
//! ([`CUDA_FIBRES`](super::CUDA_FIBRES)).

use tensorwright_schedule::nest::Dim;

use super::wmma::Wmma;
use super::{DeviceSyntax, Syntax, TensorSyntax};

/// The differences between languages that are otherwise CUDA C++.
pub(super) trait LikeCuda: std::fmt::Debug + Sync {
    /// The first lines of the text.
    fn types(&self) -> String;

    /// The attribute of a kernel for its block size.
    fn threads(&self, threads: u64) -> String;

    /// Reserved words beyond those of CUDA C++.
    fn own_words(&self) -> &'static str;

    /// The syntax of tensor operations, if supported.
    fn own_tensors(&self) -> Option<&'static dyn TensorSyntax> {
        None
    }
}

/// CUDA C++.
#[derive(Debug)]
pub(super) struct Cuda;

impl LikeCuda for Cuda {
    fn types(&self) -> String {
        definitions("__CUDACC_RTC__", TYPES, &[])
    }

    fn threads(&self, threads: u64) -> String {
        format!("__launch_bounds__({threads})")
    }

    fn own_words(&self) -> &'static str {
        "nvcuda tw_a tw_b"
    }

    fn own_tensors(&self) -> Option<&'static dyn TensorSyntax> {
        Some(&Wmma)
    }
}

impl<Language: LikeCuda> Syntax for Language {
    fn function(&self) -> &'static str {
        "static __device__ inline"
    }

    fn math(&self, name: &str, is_single: bool) -> String {
        if is_single { format!("{name}f") } else { name.to_owned() }
    }

    fn to_bits(&self, bits: &str, value: &str) -> String {
        format!("{bits} = __float_as_uint({value});")
    }

    fn to_float(&self, value: &str, bits: &str) -> String {
        format!("{value} = __uint_as_float({bits});")
    }
}

impl<Language: LikeCuda> DeviceSyntax for Language {
    fn as_syntax(&self) -> &dyn Syntax {
        self
    }

    fn preamble(&self, text: &str) -> String {
        let tensors = if text.contains("wmma::") { TENSORS } else { "" };
        format!("{}{tensors}", self.types())
    }

    fn kernel(&self, name: &str, [x, y, z]: [u32; 3]) -> String {
        let threads = self.threads(u64::from(x) * u64::from(y) * u64::from(z));
        format!("extern \"C\" __global__ void {threads} {name}")
    }

    fn global(&self) -> &'static str {
        ""
    }

    fn shared(&self) -> &'static str {
        "__shared__ "
    }

    fn restrict(&self) -> &'static str {
        "__restrict__ "
    }

    fn byte(&self) -> &'static str {
        "unsigned char"
    }

    fn block(&self, dim: Dim) -> String {
        format!("blockIdx.{}", dim.name())
    }

    fn thread(&self, dim: Dim) -> String {
        format!("threadIdx.{}", dim.name())
    }

    fn barrier(&self) -> &'static str {
        "__syncthreads();"
    }

    fn tensors(&self) -> Option<&'static dyn TensorSyntax> {
        self.own_tensors()
    }

    fn reserved(&self) -> String {
        format!("{WORDS} {}", self.own_words())
    }
}

const WORDS: &str =
    "threadIdx blockIdx blockDim gridDim warpSize dim3 uint uchar ushort ulong half";

/// The emulation of threads by fibres has its own tensor operations.
const TENSORS: &str = "\
#if !defined(CUDA_FIBRES_H)
#include <mma.h>
#endif
";

const TYPES: &str = "\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
";

/// The definitions of `stdint.h` and `math.h`, written out if a macro indicates a run-time
/// compiler, which has neither header.
pub(super) fn definitions(at_run_time: &str, types: &str, headers: &[&str]) -> String {
    let headers = headers.iter().chain(&["math.h", "stdint.h"]);
    let headers: String = headers.map(|header| format!("#include <{header}>\n")).collect();
    format!("#if defined({at_run_time})\n{types}{LIMITS}#else\n{headers}#endif\n")
}

const LIMITS: &str = "\
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
#define INFINITY __uint_as_float(0x7f800000u)
#define NAN __uint_as_float(0x7fc00000u)
";
