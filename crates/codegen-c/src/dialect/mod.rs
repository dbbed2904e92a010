//! C dialects for CPUs and devices, one file each.
//!
//! Statements, index arithmetic and values are the same in all dialects. A dialect defines how
//! functions are qualified and called; a device dialect also defines the syntax of memory spaces,
//! blocks and threads.

mod c99;
mod cuda;
mod hip;
mod opencl;
mod wmma;

pub(crate) use c99::C99;

use cuda::Cuda;
use hip::Hip;
use opencl::OpenCl;
use tensorwright_lang::dtype::DType;
use tensorwright_schedule::nest::Dim;

/// The syntax of a C dialect.
pub(crate) trait Syntax: std::fmt::Debug {
    /// The qualifiers of a function that kernels call.
    fn function(&self) -> &'static str;

    /// A function of `math.h`, given its name without suffix.
    fn math(&self, name: &str, is_single: bool) -> String;

    /// The built-in `min` and `max` of integers, if the language has them.
    fn integer_extremes(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// A statement that sets a `uint32_t` to the bits of a `float`.
    fn to_bits(&self, bits: &str, value: &str) -> String;

    /// A statement that sets a `float` to the value of the bits of a `uint32_t`.
    fn to_float(&self, value: &str, bits: &str) -> String;
}

/// The syntax of a C dialect for a device.
pub(crate) trait DeviceSyntax: Syntax {
    /// The syntax that it shares with CPU dialects.
    fn as_syntax(&self) -> &dyn Syntax;

    /// The first lines of the text.
    fn preamble(&self, text: &str) -> String;

    /// The start of a kernel, up to its parameters, for a block size.
    fn kernel(&self, name: &str, block: [u32; 3]) -> String;

    /// The qualifier of global memory.
    fn global(&self) -> &'static str;

    /// The qualifier of shared memory.
    fn shared(&self) -> &'static str;

    /// The qualifier of a pointer without aliases.
    fn restrict(&self) -> &'static str;

    /// The type of the bytes of the workspace.
    fn byte(&self) -> &'static str;

    /// The block index.
    fn block(&self, dim: Dim) -> String;

    /// The thread index in its block.
    fn thread(&self, dim: Dim) -> String;

    /// The barrier of a block.
    fn barrier(&self) -> &'static str;

    /// The syntax of tensor operations; without it, their loops are plain ones.
    fn tensors(&self) -> Option<&'static dyn TensorSyntax> {
        None
    }

    /// Reserved words beyond those of C.
    fn reserved(&self) -> String;
}

/// The syntax of tensor operations.
pub(crate) trait TensorSyntax: std::fmt::Debug {
    /// The declaration of `count` accumulator tiles in registers, for factors of a type.
    fn fragment(&self, name: &str, count: i64, factors: DType) -> String;

    /// The qualifier of shared memory from which tiles are loaded.
    fn shared(&self) -> &'static str;

    /// Fills a tile in registers with a value.
    fn fill(&self, fragment: &str, value: &str) -> Vec<String>;

    /// Adds the product of two tiles in memory to a tile in registers.
    fn multiply_add(&self, fragment: &str, dtype: DType, a: &Tile, b: &Tile) -> Vec<String>;

    /// Stores a tile in registers to memory.
    fn write(&self, fragment: &str, tile: &Tile) -> Vec<String>;
}

/// A tile in memory.
#[derive(Debug)]
pub(crate) struct Tile {
    /// A pointer to its first element.
    pub(crate) start: String,
    /// The distance between its rows, or its columns, in elements.
    pub(crate) leading: i64,
    /// Whether rows are contiguous; otherwise columns are.
    pub(crate) is_row_major: bool,
}

/// A header that compiles CUDA C++ for CPUs and runs threads as fibres: for tests.
pub const CUDA_FIBRES: &str = include_str!("cuda_fibres.h");

/// The C dialect of a device program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++, NVIDIA's.
    Cuda,
    /// HIP, AMD's.
    Hip,
}

impl Dialect {
    /// All dialects for devices.
    pub const ALL: [Dialect; 3] = [Dialect::OpenCl, Dialect::Cuda, Dialect::Hip];

    pub(crate) fn syntax(self) -> &'static dyn DeviceSyntax {
        match self {
            Dialect::OpenCl => &OpenCl,
            Dialect::Cuda => &Cuda,
            Dialect::Hip => &Hip,
        }
    }
}
