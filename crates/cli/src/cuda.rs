//! Kernels compiled by NVIDIA's compiler (NVRTC), without a GPU.
//!
//! For `--emit ptx`, `cubin` and `sass`, and for `--model-only`.

use std::fmt::Write as _;

use tensorwright::{Code, Diagnostic, Diagnostics, Dialect, LoweredProgram};
use tensorwright_device::DeviceError;
use tensorwright_device::cuda::{Compiled, InnerLoop, Nvrtc, Resources, Sass};

/// The default architecture.
const ARCHITECTURE: &str = "sm_80";

/// Compiled kernels.
pub(crate) struct Kernels {
    compiled: Compiled,
    source: tensorwright::Source,
}

impl Kernels {
    /// Compiles the kernels of a program for the architecture of its target.
    pub(crate) fn of(lowered: &LoweredProgram) -> Result<Self, Diagnostics> {
        let source = lowered.program().ir().source.clone();
        let program = lowered.device_program(Dialect::Cuda)?;
        let architecture = lowered.target().name().strip_prefix("cuda:");
        let architecture = architecture.filter(|name| name.starts_with("sm_"));
        let compiled = Nvrtc::find().and_then(|compiler| {
            compiler.compile(&program.source, architecture.unwrap_or(ARCHITECTURE))
        });
        let compiled = compiled.map_err(|error| refused(&source, &error))?;
        Ok(Self { compiled, source })
    }

    /// PTX, after the resource use of each kernel.
    pub(crate) fn ptx(&self) -> String {
        let mut text = self.summary();
        text.push_str(&self.compiled.ptx);
        text
    }

    /// The cubin.
    pub(crate) fn cubin(&self) -> &[u8] {
        &self.compiled.cubin
    }

    /// SASS, after the resource use of each kernel and the issue cost of its inner loop.
    pub(crate) fn sass(&self) -> Result<String, Diagnostics> {
        let sass = Sass::of(&self.compiled.cubin).map_err(|error| refused(&self.source, &error))?;
        let mut text = self.summary();
        for Resources { kernel, .. } in &self.compiled.kernels {
            if let Some(inner) = sass.inner_loop(kernel) {
                text.push_str(&cost(kernel, &inner));
            }
        }
        text.push_str(sass.text());
        Ok(text)
    }

    /// The resource use of each kernel.
    pub(crate) fn resources(&self) -> &[Resources] {
        &self.compiled.kernels
    }

    /// Issue cycles per multiply-add in the inner loop with the most of them; `None` without such a
    /// loop or without a disassembler.
    pub(crate) fn issue_cycles(&self) -> Option<f64> {
        let sass = Sass::of(&self.compiled.cubin).ok()?;
        let kernels = self.compiled.kernels.iter();
        let loops = kernels.filter_map(|kernel| sass.inner_loop(&kernel.kernel));
        let longest = loops.max_by_key(|inner| inner.multiply_adds + inner.matrix_multiply_adds);
        longest.and_then(|inner| inner.cycles_per_multiply_add())
    }

    /// The resource use of each kernel, one line each.
    fn summary(&self) -> String {
        let mut text = String::new();
        for kernel in &self.compiled.kernels {
            let spills = match kernel.spills() {
                true => format!(
                    "spills {} bytes and reads back {}",
                    kernel.spill_stores, kernel.spill_loads
                ),
                false => "no spills".to_owned(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "// {} for {}: {} registers, {spills}, {} bytes shared, {} of stack",
                kernel.kernel,
                self.compiled.architecture,
                kernel.registers,
                kernel.shared_bytes,
                kernel.stack
            );
        }
        text
    }
}

/// The issue cost of a kernel's inner loop, as text.
fn cost(kernel: &str, inner: &InnerLoop) -> String {
    let per = inner.cycles_per_multiply_add();
    let per = per.map_or_else(String::new, |cycles| {
        format!(", {:.0} for 512 multiplications with additions", 512.0 * cycles)
    });
    format!(
        "// {kernel}, inner loop: {} instructions, {:.1} % multiply and add; {} cycles to issue{per}\n",
        inner.instructions,
        100.0 * inner.share(),
        inner.issue_cycles
    )
}

fn refused(source: &tensorwright::Source, error: &DeviceError) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::KernelFailed, error.to_string());
    Diagnostics::new(source.clone(), vec![diagnostic.help(error.help())])
}
