//! HIP (AMD): CUDA C++ with other headers and launch attributes.
//!
//! Clang only knows `__launch_bounds__` from AMD's headers, which define it as the attribute used
//! here.

use super::cuda::{LikeCuda, definitions};

/// HIP.
#[derive(Debug)]
pub(super) struct Hip;

impl LikeCuda for Hip {
    fn types(&self) -> String {
        definitions("__HIPCC_RTC__", TYPES, &["hip/hip_runtime.h"])
    }

    fn threads(&self, threads: u64) -> String {
        format!("__attribute__((amdgpu_flat_work_group_size({threads}, {threads})))")
    }

    fn own_words(&self) -> &'static str {
        "hipThreadIdx_x hipThreadIdx_y hipThreadIdx_z hipBlockIdx_x hipBlockIdx_y hipBlockIdx_z"
    }
}

/// Some versions of AMD's run-time compiler define these types in various ways: the macros take
/// precedence.
const TYPES: &str = "\
#define int8_t signed char
#define uint8_t unsigned char
#define int16_t short
#define uint16_t unsigned short
#define int32_t int
#define uint32_t unsigned int
#define int64_t long long
#define uint64_t unsigned long long
#undef INT64_C
#undef UINT64_C
#undef INFINITY
#undef NAN
";
