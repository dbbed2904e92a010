//! Dialects of C: what differs between the texts for processors and for devices, one file each.
//!
//! Statements, index arithmetic and values are the same in all of them. A dialect says how functions are
//! qualified and called, and a dialect of a device how its memory, blocks and threads are spelled.

mod c99;
mod cuda;
mod hip;
mod opencl;

pub(crate) use c99::C99;

use cuda::Cuda;
use hip::Hip;
use opencl::OpenCl;
use tensorwright_schedule::nest::Dim;

/// How a dialect of C is spelled.
pub(crate) trait Syntax: std::fmt::Debug {
    /// The qualifiers of a function that kernels call.
    fn function(&self) -> &'static str;

    /// A function of `math.h` by its name there without a suffix.
    fn math(&self, name: &str, is_single: bool) -> String;

    /// A statement that sets a `uint32_t` to the bits of a `float`.
    fn to_bits(&self, bits: &str, value: &str) -> String;

    /// A statement that sets a `float` to the number that the bits of a `uint32_t` stand for.
    fn to_float(&self, value: &str, bits: &str) -> String;
}

/// How a dialect of C for a device is spelled.
pub(crate) trait DeviceSyntax: Syntax {
    /// What it shares with processors.
    fn as_syntax(&self) -> &dyn Syntax;

    /// What comes before everything else, for a text that uses `double` or not.
    fn preamble(&self, doubles: bool) -> String;

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

    /// Words that the language keeps for itself, beyond those of C.
    fn reserved(&self) -> String;
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
