//! From source text to a loaded kernel that can be called: [`Module`], [`Program`], [`Kernel`].
//!
//! This is the compiler without the tuner, on which the tuner is built. Users reach it through the
//! facade, the crate `tensorwright`.

mod explain;
mod kernel;
mod module;
mod program;

pub use explain::{
    AccessExplanation, AxisExplanation, Explanation, InBounds, StageExplanation, TensorExplanation,
};
pub use kernel::{
    Against, Arguments, Call, CompileTimes, Expected, Frozen, Kernel, KernelBuilder,
    LoweredProgram, NotLowered, Oracle, Outputs, Place, Verification, allow_for_rewriting,
    compilations,
};
pub use module::{Def, Module};
pub use program::{Inputs, Program};

/// Gradients of definitions, as text.
pub use tensorwright_grad as grad;

pub use tensorwright_lang::Signature;
pub use tensorwright_lang::diagnostic::{Code, Diagnostic, Diagnostics, Fix, Label, Severity};
pub use tensorwright_lang::dtype::DType;
pub use tensorwright_lang::precision::Precision;
pub use tensorwright_lang::program::{Analysis, ProgramHash, StageAnalysis};
pub use tensorwright_lang::source::{Source, Span};
pub use tensorwright_lang::text::{is_obeyed, printable};
pub use tensorwright_reference::{
    Buffer, BufferError, Mismatch, Output, Run, Stored, Summary, Value, npy, summarize,
};

pub use tensorwright_codegen_c::Dialect;
pub use tensorwright_codegen_llvm::Options as CodegenOptions;
pub use tensorwright_codegen_llvm::{ObjectCache, Processor, llvm_version};
pub use tensorwright_device::{
    DEFAULT_DEADLINE, StreamHandle, deadline, set_deadline, set_interrupt, target,
};
pub use tensorwright_runtime::View;
pub use tensorwright_schedule::Schedule;
pub use tensorwright_target::{Cpu, Goal, Gpu, Target, TargetError, VectorIsa};

/// What kernels run on, and how they are measured.
pub use tensorwright_runtime as runtime;

/// Schedules and loop nests, for tools that look inside.
pub use tensorwright_schedule as schedule;

/// The program as the compiler sees it, for tools that look inside.
pub use tensorwright_lang::program as ir;
