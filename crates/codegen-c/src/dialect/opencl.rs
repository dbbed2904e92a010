//! OpenCL C 1.2.
//!
//! Names of integer types and their limits are those of C99, defined at the top of the text. Math
//! functions are overloaded and have no suffix.

use tensorwright_schedule::nest::Dim;

use super::{DeviceSyntax, Syntax};

/// OpenCL C.
#[derive(Debug)]
pub(super) struct OpenCl;

impl Syntax for OpenCl {
    fn function(&self) -> &'static str {
        "static inline"
    }

    fn math(&self, name: &str, _is_single: bool) -> String {
        name.to_owned()
    }

    // Intel's compiler for processors crashes on subscripts of private arrays that choose by `?:`.
    fn integer_extremes(&self) -> Option<[&'static str; 2]> {
        Some(["min", "max"])
    }

    fn to_bits(&self, bits: &str, value: &str) -> String {
        format!("{bits} = as_uint({value});")
    }

    fn to_float(&self, value: &str, bits: &str) -> String {
        format!("{value} = as_float({bits});")
    }
}

impl DeviceSyntax for OpenCl {
    fn as_syntax(&self) -> &dyn Syntax {
        self
    }

    fn preamble(&self, text: &str) -> String {
        let extension = match text.contains("double") {
            true => "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\n",
            false => "",
        };
        format!("{extension}{TYPES}")
    }

    fn kernel(&self, name: &str, [x, y, z]: [u32; 3]) -> String {
        format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {name}")
    }

    fn global(&self) -> &'static str {
        "__global "
    }

    fn shared(&self) -> &'static str {
        "__local "
    }

    fn restrict(&self) -> &'static str {
        "restrict "
    }

    fn byte(&self) -> &'static str {
        "uchar"
    }

    fn block(&self, dim: Dim) -> String {
        format!("get_group_id({})", dim.place())
    }

    fn thread(&self, dim: Dim) -> String {
        format!("get_local_id({})", dim.place())
    }

    fn barrier(&self) -> &'static str {
        "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    }

    fn reserved(&self) -> String {
        "kernel global local constant private generic pipe half quad complex imaginary read_only write_only \
         read_write uniform uchar ushort uint ulong bool2 image2d_t event_t sampler_t barrier mem_fence \
         get_group_id get_local_id as_uint as_float"
            .to_owned()
    }
}

const TYPES: &str = "\
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;

#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define INT8_MIN CHAR_MIN
#define INT8_MAX CHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX
";
