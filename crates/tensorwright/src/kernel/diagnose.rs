//! Conversion of lower-level errors to diagnostics.

use tensorwright_codegen_llvm::error::Error as CodegenError;
use tensorwright_device::DeviceError;
use tensorwright_machine::TargetError;
use tensorwright_runtime::{AllocError, PoolError};
use tensorwright_schedule::interface::CheckedRead;
use tensorwright_schedule::lower::DeviceError as Unfit;
use tensorwright_schedule::primitives::{Primitive, Tail};
use tensorwright_schedule::{LowerError, Schedule, ScheduleError};

use super::engine::CallError;
use crate::{Code, Diagnostic, Diagnostics, Program, Source, Span};

/// The syntax of a schedule line.
const SYNTAX: &str =
    "a step is a stage, a colon and a primitive with its arguments, such as `C: split m 8`";

/// An error that converts to a diagnostic.
pub(super) trait Diagnose {
    /// The diagnostic.
    fn diagnostic(&self) -> Diagnostic;

    /// The diagnostic with its source.
    fn diagnose(&self, source: &Source) -> Diagnostics {
        Diagnostics::new(source.clone(), vec![self.diagnostic()])
    }
}

impl Diagnose for ScheduleError {
    fn diagnostic(&self) -> Diagnostic {
        let code = match self.step {
            Some(_) => Code::ScheduleRefused,
            None => Code::ScheduleSyntax,
        };
        let diagnostic = at(code, self.span, self.refusal.message.clone());
        let diagnostic = match self.step {
            Some(_) => diagnostic.here("this step is refused"),
            None => diagnostic.here("this cannot be read"),
        };
        match &self.refusal.help {
            Some(help) => diagnostic.help(help.clone()),
            None if self.step.is_none() => diagnostic.help(SYNTAX),
            None => diagnostic,
        }
    }
}

/// A nest that cannot be lowered, and the schedule that made it.
impl Diagnose for (LowerError, &Schedule) {
    fn diagnostic(&self) -> Diagnostic {
        let (error, schedule) = self;
        let is_culprit = |primitive: &Primitive| match error {
            LowerError::TooLarge => matches!(primitive, Primitive::Unroll(_)),
            LowerError::TooManyTails => {
                matches!(primitive, Primitive::Split(split) if split.tail == Tail::Peel)
            }
            LowerError::NotInnermost { vectorized, .. } => {
                matches!(primitive, Primitive::Vectorize(v) if v.target == *vectorized)
            }
            LowerError::Device(Unfit::Tensor { .. }) => {
                matches!(primitive, Primitive::Tensorize(_))
            }
            LowerError::Device(_) => matches!(primitive, Primitive::Bind(_)),
            LowerError::Overflow | LowerError::Unfinished => false,
        };
        let culprit = schedule.steps.iter().rev().find(|step| is_culprit(&step.primitive));
        let span = culprit.map(|step| step.span).unwrap_or_default();
        let help = match error {
            LowerError::TooLarge => "unroll fewer loops, or loops of fewer iterations",
            LowerError::TooManyTails => "split fewer loops with the tail `peel`",
            LowerError::NotInnermost { .. } => "vectorize innermost loops",
            LowerError::Device(error) => error.help(),
            LowerError::Overflow => "use smaller factors or sizes",
            LowerError::Unfinished => {
                "please report this with the program, its sizes and its schedule"
            }
        };
        at(Code::ScheduleNotLowered, span, error.to_string()).help(help)
    }
}

impl Diagnose for TargetError {
    fn diagnostic(&self) -> Diagnostic {
        self.diagnostic()
    }
}

impl Diagnose for CodegenError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            CodegenError::Target(message) => {
                Diagnostic::without_place(Code::UnknownTarget, message.clone())
            }
            _ => Diagnostic::without_place(Code::KernelFailed, self.to_string())
                .help("please report this with the program, its sizes and its schedule"),
        }
    }
}

impl Diagnose for DeviceError {
    fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            DeviceError::Late { .. } => Code::DeadlineExceeded,
            DeviceError::Overrun { .. } => Code::WrongResult,
            _ => Code::KernelFailed,
        };
        Diagnostic::without_place(code, self.to_string()).help(self.help())
    }
}

impl Diagnose for CallError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            CallError::Kernel(error) => error.diagnostic(),
            CallError::Alloc(error) => error.diagnostic(),
            CallError::Device(error) => error.diagnostic(),
        }
    }
}

impl Diagnose for AllocError {
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic::without_place(Code::TooLarge, self.to_string()).help("use smaller sizes")
    }
}

impl Diagnose for PoolError {
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic::without_place(Code::KernelFailed, self.to_string())
            .help("ask for as many threads as the machine has cores")
    }
}

/// An out-of-bounds read, where the reference would take too long for more details.
pub(super) fn out_of_bounds(program: &Program, read: CheckedRead) -> Diagnostics {
    let source = &program.ir().source;
    let text = source.slice(read.place);
    let message = match program.ir().tensors.get(read.buffer.0 as usize) {
        Some(tensor) => {
            format!("`{text}` is out of bounds of `{}`, a `{}`", tensor.name, tensor.type_text())
        }
        None => format!("`{text}` is out of bounds"),
    };
    let diagnostic = Diagnostic::new(Code::IndexOutOfBounds, read.place, message)
        .here("a subscript from data is out of bounds")
        .note("the subscript is computed from data, so it is checked when the program runs")
        .help("`run --reference` finds the element, but is slow");
    Diagnostics::new(source.clone(), vec![diagnostic])
}

/// A diagnostic at a location of a schedule; a step that was not read from text has an empty span.
fn at(code: Code, span: tensorwright_schedule::schedule::ByteRange, message: String) -> Diagnostic {
    if span.start == span.end && span.end == 0 {
        return Diagnostic::without_place(code, message);
    }
    // A schedule has at most a megabyte.
    Diagnostic::new(code, Span::new(span.start as u32, span.end as u32), message)
}
