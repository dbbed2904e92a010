//! A tensor compiler and autotuner: write the mathematics of an operator or image pipeline, get
//! fast code.
//!
//! A text of one or more `def`s is [parsed and checked](Module::parse), one of them is
//! [bound to sizes](Def::bind), and the resulting [`Program`] can be [explained](Program::explain),
//! [compiled](Program::compile) to a fast [`Kernel`], and
//! [run on the reference interpreter](Program::run_reference).
//!
//! ```
//! use tensorwright::{Buffer, Inputs, Module};
//!
//! let module = Module::parse(
//!     "matmul.tc",
//!     "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
//! )?;
//! let program = module.def("matmul")?.bind([("M", 2), ("K", 3), ("N", 1)])?;
//!
//! let inputs = Inputs::from([
//!     ("A".to_owned(), Buffer::from_f32(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?),
//!     ("B".to_owned(), Buffer::from_f32(&[3, 1], vec![1.0, 0.0, -1.0])?),
//! ]);
//! let kernel = program.compile().build()?;
//! let outputs = kernel.run(&inputs)?;
//! assert_eq!(outputs.get("C").and_then(Buffer::as_f32), Some(&[-2.0, -2.0][..]));
//!
//! // The reference is slow, and says how far from it a correct kernel may be.
//! let reference = program.run_reference(&inputs)?;
//! let c = reference.output("C").ok_or("no output C")?;
//! assert_eq!(outputs.get("C").and_then(|kernel| c.mismatch(kernel)), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [schedule](schedule::schedule) determines how the loops run: the default one, or a
//! [given](KernelBuilder::schedule_text) one. A schedule can make a kernel fast or slow, never
//! wrong.
//!
//! Invalid texts return [`Diagnostics`]: every problem with a code, its location, and advice.
//! `Display` shows the source lines.
//!
//! ```
//! let error = tensorwright::Module::parse(
//!     "pool.tc",
//!     "def pool(float(H,W) in) -> (out) { out(i,j) max=! in(2*i + kh, 2*j + kw) }",
//! )
//! .unwrap_err();
//! assert!(error.to_string().contains("where kh in 0:2"));
//! ```

mod explain;
mod kernel;
mod module;
mod program;

pub use explain::{
    AccessExplanation, AxisExplanation, Explanation, InBounds, StageExplanation, TensorExplanation,
};
pub use kernel::{
    Against, Arguments, Call, CompileTimes, Expected, Frozen, Kernel, KernelBuilder,
    LoweredProgram, NotLowered, Oracle, Outputs, Place, SizedBuilder, SizedCall, SizedKernel,
    SizedProgram, Verification, allow_for_rewriting, compilations,
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
    Buffer, BufferElement, BufferError, Mismatch, Output, Run, Summary, Value, npy, summarize,
};

pub use tensorwright_codegen_c::Dialect;
pub use tensorwright_codegen_llvm::CodegenOptions;
pub use tensorwright_codegen_llvm::{ObjectCache, Processor, llvm_version};
pub use tensorwright_device::{
    DEFAULT_DEADLINE, StreamHandle, deadline, set_deadline, set_interrupt, target,
};
pub use tensorwright_machine::{Cpu, Goal, Gpu, Target, TargetError, VectorIsa};
pub use tensorwright_runtime::{View, ViewMut};
pub use tensorwright_schedule::Schedule;

/// Runtime support and measurements.
pub use tensorwright_runtime as runtime;

/// Schedules and loop nests, for tools.
pub use tensorwright_schedule as schedule;

/// The compiler's program representation, for tools.
pub use tensorwright_lang::program as ir;

/// The examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the guide's Rust chapter as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../guide/src/rust.md")]
struct Guide;
