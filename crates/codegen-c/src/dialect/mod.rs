//! Dialects of C: what differs between the texts for processors and for devices, one file each.
//!
//! Statements, index arithmetic and values are the same in all of them. A dialect says how functions are
//! qualified and called, and a dialect of a device how its memory, blocks and threads are spelled.

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

/// How a dialect of C is spelled.
pub(crate) trait Syntax: std::fmt::Debug {
    /// The qualifiers of a function that kernels call.
    fn function(&self) -> &'static str;

    /// A function of `math.h` by its name there without a suffix.
    fn math(&self, name: &str, is_single: bool) -> String;

    /// The built-in `min` and `max` of integers, if the language has them.
    fn integer_extremes(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// A statement that sets a `uint32_t` to the bits of a `float`.
    fn to_bits(&self, bits: &str, value: &str) -> String;

    /// A statement that sets a `float` to the number that the bits of a `uint32_t` stand for.
    fn to_float(&self, value: &str, bits: &str) -> String;
}

/// How a dialect of C for a device is spelled.
pub(crate) trait DeviceSyntax: Syntax {
    /// What it shares with processors.
    fn as_syntax(&self) -> &dyn Syntax;

    /// What comes before the rest of a text.
    fn preamble(&self, text: &str) -> String;

    /// The start of a kernel, up to its parameters, for blocks of so many threads.
    fn kernel(&self, name: &str, block: [u32; 3]) -> String;

    /// The qualifier of what all threads reach.
    fn global(&self) -> &'static str;

    /// The qualifier of what the threads of a block share.
    fn shared(&self) -> &'static str;

    /// The qualifier of a pointer that alone leads to what it points at.
    fn restrict(&self) -> &'static str;

    /// The type of the bytes of the workspace.
    fn byte(&self) -> &'static str;

    /// The number of the block.
    fn block(&self, dim: Dim) -> String;

    /// The number of the thread in its block.
    fn thread(&self, dim: Dim) -> String;

    /// The statement at which the threads of a block wait for each other.
    fn barrier(&self) -> &'static str;

    /// How tensor operations are spelled; without, their loops are plain ones.
    fn tensors(&self) -> Option<&'static dyn TensorSyntax> {
        None
    }

    /// Words that the language keeps for itself, beyond those of C.
    fn reserved(&self) -> String;
}

/// How tensor operations are spelled.
pub(crate) trait TensorSyntax: std::fmt::Debug {
    /// The declaration of so many tiles in registers, to which products of factors of a type are added.
    fn fragment(&self, name: &str, count: i64, factors: DType) -> String;

    /// The qualifier of what the threads of a block share and tiles are read from.
    fn shared(&self) -> &'static str;

    /// Gives all elements of a tile in registers a value.
    fn fill(&self, fragment: &str, value: &str) -> Vec<String>;

    /// Adds the products of two tiles in memory, of elements of a type, to one in registers.
    fn multiply_add(&self, fragment: &str, dtype: DType, a: &Tile, b: &Tile) -> Vec<String>;

    /// Writes a tile in registers to memory.
    fn write(&self, fragment: &str, tile: &Tile) -> Vec<String>;
}

/// A tile in memory.
#[derive(Debug)]
pub(crate) struct Tile {
    /// A pointer to its first element.
    pub(crate) start: String,
    /// How many elements its rows are apart, or its columns.
    pub(crate) leading: i64,
    /// Whether rows are contiguous; columns are if not.
    pub(crate) is_row_major: bool,
}

/// A header with which a C++ compiler for processors compiles CUDA C++, and runs it with threads as fibres: for tests.
pub const CUDA_FIBRES: &str = include_str!("cuda_fibres.h");

/// The dialect of C in which a program for a device is written.
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
