//! Compiles emitted texts that are kept as snapshots with compilers of others.
//!
//! Every snapshot of an emitter is a text in a known dialect or listed in [`NO_CODE`]; elsewhere, a
//! snapshot counts if it looks like one. Each text is read once: C, OpenCL C and HIP by clang, C
//! headers as C++ too, CUDA C++ by NVRTC, Rust by rustc.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tensorwright_device::DeviceError;
use tensorwright_device::cuda::Nvrtc;

const CLANG: &str = "clang-19";

/// An architecture with all instructions that kernels use.
const ARCHITECTURE: &str = "sm_80";

/// Folders of emitters. A snapshot in them without a known dialect is an error.
const EMITTERS: [&str; 4] =
    ["crates/codegen-c", "crates/codegen-llvm", "crates/package", "crates/cli/tests/it/package"];

/// Snapshots of emitters that are no code, by the end of their names. Diagnostics need no entry.
const NO_CODE: [&str; 3] = [
    // Launches as data.
    "gemm_launches",
    // Reasons.
    "what_cannot_vary_is_refused_with_the_reason",
    // The output of a program.
    "wrong_calls_return_codes_with_texts",
];

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"];

/// Kernels have parameters for the workspace and the status, used or not.
const KERNEL_WARNINGS: [&str; 1] = ["-Wno-unused-parameter"];

/// The part of AMD's headers that kernels need.
const HIP_HEADER: &str = include_str!("../../codegen-c/tests/it/support/hip_runtime.h");

/// The lines of a compiler's messages that are shown.
const LINES: usize = 12;

/// The language of an emitted text, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dialect {
    C,
    Header,
    OpenCl,
    Hip,
    Cuda,
    Rust,
}

impl Dialect {
    /// The dialect of a text, if it is one of ours.
    fn of(text: &str) -> Option<Self> {
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        if has("__kernel ") {
            Some(Self::OpenCl)
        } else if text.contains("__global__ ") {
            Some(if has("#include <hip/") { Self::Hip } else { Self::Cuda })
        } else if has("use std::") {
            Some(Self::Rust)
        } else if has("#include <") {
            let is_guarded = text.starts_with("#ifndef ") && text.trim_end().ends_with("#endif");
            Some(if is_guarded { Self::Header } else { Self::C })
        } else {
            None
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::C => "C text",
            Self::Header => "C header",
            Self::OpenCl => "OpenCL C text",
            Self::Hip => "HIP text",
            Self::Cuda => "CUDA text",
            Self::Rust => "Rust text",
        }
    }

    const fn compiler(self) -> &'static str {
        match self {
            Self::C | Self::Header | Self::OpenCl | Self::Hip => CLANG,
            Self::Cuda => "NVRTC",
            Self::Rust => "rustc",
        }
    }
}

/// Compiles the snapshots below a folder, by default this workspace.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let root = match arguments {
        [] => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        [folder] => PathBuf::from(folder),
        _ => return Err("validate takes one folder".to_owned()),
    };
    let report = validate(&root)?;
    print!("{report}");
    for problem in &report.problems {
        eprintln!("{problem}");
    }
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Which texts were compiled, and what compilers rejected.
#[derive(Debug, Default)]
struct Report {
    compiled: BTreeMap<Dialect, usize>,
    /// Texts without a compiler on this machine.
    skipped: usize,
    problems: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut compilers: Vec<(&str, Vec<String>)> = Vec::new();
        for (dialect, count) in &self.compiled {
            let plural = if *count == 1 { "" } else { "s" };
            let text = format!("{count} {}{plural}", dialect.name());
            match compilers.last_mut() {
                Some((compiler, texts)) if *compiler == dialect.compiler() => texts.push(text),
                _ => compilers.push((dialect.compiler(), vec![text])),
            }
        }
        for (compiler, texts) in compilers {
            writeln!(f, "{compiler}: {}", texts.join(", "))?;
        }
        if self.skipped > 0 {
            writeln!(f, "NVRTC is not installed: {} CUDA texts skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Compiles each snapshot below a folder once.
fn validate(root: &Path) -> Result<Report, String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let (mut compilers, mut report) = (Compilers::new()?, Report::default());
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let snapshot = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let Some((_, text)) =
            snapshot.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"))
        else {
            report.problems.push(format!("{name}: is no snapshot"));
            continue;
        };
        let Some(dialect) = Dialect::of(text) else {
            if is_emitted(&name, text) {
                report.problems.push(format!(
                    "{name}: a text in an unknown dialect; add it to `Dialect`, or to `NO_CODE` if it is no code"
                ));
            }
            continue;
        };
        match compilers.compile(dialect, text) {
            Ok(true) => *report.compiled.entry(dialect).or_default() += 1,
            Ok(false) => report.skipped += 1,
            Err(messages) => {
                let (compiler, kind) = (dialect.compiler(), dialect.name());
                report
                    .problems
                    .push(format!("{name}: {compiler} rejects this {kind}:\n{messages}"));
            }
        }
    }
    if report.compiled.is_empty() && report.skipped == 0 && report.problems.is_empty() {
        report.problems.push(format!("{}: has no emitted text", root.display()));
    }
    Ok(report)
}

/// Whether a snapshot is of an emitter, and is neither a diagnostic nor listed.
fn is_emitted(name: &str, text: &str) -> bool {
    let is_listed = NO_CODE.iter().any(|end| name.ends_with(&format!("{end}.snap")));
    EMITTERS.iter().any(|folder| Path::new(name).starts_with(folder))
        && !text.starts_with("[E")
        && !is_listed
}

/// The first lines of a compiler's messages.
fn first_lines(messages: &str) -> String {
    let messages = messages.trim_end();
    let shown: Vec<&str> = messages.lines().take(LINES).collect();
    let left = messages.lines().count() - shown.len();
    let rest = if left == 0 { String::new() } else { format!("\n... {left} more lines") };
    shown.join("\n") + &rest
}

/// Adds the snapshots in a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "snap") {
            files.push(path);
        }
    }
    Ok(())
}

/// The compilers of this machine.
struct Compilers {
    nvrtc: Result<Nvrtc, DeviceError>,
    scratch: tempfile::TempDir,
}

impl Compilers {
    fn new() -> Result<Self, String> {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self { nvrtc: Nvrtc::find(), scratch })
    }

    /// Whether the compiler of the dialect is installed and accepts the text.
    fn compile(&mut self, dialect: Dialect, text: &str) -> Result<bool, String> {
        let (c, cpp) = (["-x", "c", "-std=c99", "-Wpedantic"], ["-x", "c++", "-std=c++11"]);
        match dialect {
            Dialect::C => self.clang(&c, "text.c", text)?,
            Dialect::Header => {
                self.clang(&c, "text.h", text)?;
                self.clang(&cpp, "text.h", text)?;
            }
            Dialect::OpenCl => {
                // The version for which drivers compile it.
                let language = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header"];
                self.clang(&[&language[..], &KERNEL_WARNINGS].concat(), "text.cl", text)?;
            }
            Dialect::Hip => {
                self.write("hip/hip_runtime.h", HIP_HEADER)?;
                let language = ["-x", "hip", "-std=c++17", "-nogpulib", "-nogpuinc", "-I."];
                let device = ["--cuda-device-only", "--offload-arch=gfx90a"];
                let arguments = [&language[..], &device, &KERNEL_WARNINGS].concat();
                self.clang(&arguments, "text.hip", text)?;
            }
            Dialect::Cuda => return self.nvrtc(text),
            Dialect::Rust => {
                let arguments =
                    ["--edition=2024", "--crate-type=lib", "--emit=metadata", "-Dwarnings"];
                self.program("rustc", &arguments, "text.rs", text)?;
            }
        }
        Ok(true)
    }

    fn clang(&self, arguments: &[&str], file: &str, text: &str) -> Result<(), String> {
        self.program(CLANG, &[&WARNINGS[..], arguments].concat(), file, text)
    }

    fn program(
        &self,
        name: &str,
        arguments: &[&str],
        file: &str,
        text: &str,
    ) -> Result<(), String> {
        self.write(file, text)?;
        let mut command = Command::new(name);
        command.args(arguments).arg(file).current_dir(self.scratch.path()).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{name}: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(first_lines(&String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Whether NVRTC is installed and accepts the text. It must be if `TENSORWRIGHT_NEEDS_DEVICES`
    /// is set, as in CI.
    fn nvrtc(&self, text: &str) -> Result<bool, String> {
        match &self.nvrtc {
            Ok(compiler) => match compiler.compile(text, ARCHITECTURE) {
                Ok(_) => Ok(true),
                Err(DeviceError::Build { log, .. }) => Err(first_lines(log.text())),
                Err(error) => Err(error.to_string()),
            },
            Err(error) if std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_some() => {
                Err(error.to_string())
            }
            Err(_) => Ok(false),
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.scratch.path().join(file);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{file}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: &str = "#include <stdint.h>\nint32_t f(int32_t a) { return a + 1; }\n";
    const HEADER: &str =
        "#ifndef F_H\n#define F_H\n#include <stdint.h>\nint32_t f(void);\n#endif\n";
    const OPENCL: &str = "__kernel void f(__global float *a) { a[get_global_id(0)] = 1.0f; }\n";
    const HIP: &str = "#include <hip/hip_runtime.h>\nextern \"C\" __global__ void f(float *a) { a[threadIdx.x] = 1.0f; }\n";
    const CUDA: &str = "extern \"C\" __global__ void f(float *a) { a[threadIdx.x] = 1.0f; }\n";
    const RUST: &str = "use std::fmt;\npub fn f(a: fmt::Error) -> fmt::Error { a }\n";

    /// The report about snapshots with these names and texts, of the C emitter or another crate.
    fn report(krate: &str, texts: &[(&str, &str)]) -> Report {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates").join(krate).join("tests/it/snapshots");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in texts {
            let snapshot = format!("---\nsource: a.rs\nexpression: a\n---\n{text}");
            fs::write(folder.join(format!("{name}.snap")), snapshot).unwrap();
        }
        validate(root.path()).unwrap()
    }

    #[test]
    fn each_dialect_is_compiled_by_its_compiler() {
        let texts = [("a", C), ("b", HEADER), ("c", OPENCL), ("d", HIP), ("e", RUST), ("f", C)];
        let made = report("codegen-c", &texts);
        assert_eq!(made.problems, [""; 0]);
        let said =
            "clang-19: 2 C texts, 1 C header, 1 OpenCL C text, 1 HIP text\nrustc: 1 Rust text\n";
        assert_eq!(made.to_string(), said);
        let made = report("codegen-c", &[("a", CUDA)]);
        match made.skipped {
            0 => assert_eq!(made.to_string(), "NVRTC: 1 CUDA text\n"),
            _ => assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{made}"),
        }
    }

    #[test]
    fn broken_texts_are_refused_with_the_messages_of_the_compiler() {
        let broken =
            |text: &str| text.replace("1.0f", "b").replace("a + 1", "b").replace("{ a }", "{ b }");
        let header = HEADER.replace("int32_t f", "int33_t f");
        let texts = [C, OPENCL, HIP, RUST].map(broken);
        for text in texts.iter().chain([&header]) {
            let made = report("grad", &[("broken", text)]);
            let [problem] = &made.problems[..] else { panic!("{text}: {made:?}") };
            let place = "crates/grad/tests/it/snapshots/broken.snap: ";
            assert!(problem.starts_with(place) && problem.contains("error"), "{problem}");
            assert!(
                problem.contains("`b`") || problem.contains("'b'") || problem.contains("int33_t"),
                "{problem}"
            );
        }
        let made = report("codegen-c", &[("broken", &broken(CUDA))]);
        assert!(made.skipped == 1 || made.problems[0].contains("\"b\" is undefined"), "{made:?}");
        // C++ reserves more words.
        let made = report("codegen-c", &[("words", &HEADER.replace("(void)", "(int class)"))]);
        assert!(made.problems[0].contains("rejects this C header"), "{made:?}");
    }

    #[test]
    fn texts_of_emitters_in_unknown_dialects_are_refused() {
        let wgsl = "@compute @workgroup_size(64)\nfn main() {}\n";
        let made = report("codegen-c", &[("gemm_wgsl", wgsl), ("good", C)]);
        let [problem] = &made.problems[..] else { panic!("{made:?}") };
        assert!(problem.contains("gemm_wgsl.snap: a text in an unknown dialect"), "{problem}");
        // What emitters say is no text of theirs, and neither are the snapshots of other crates.
        let others =
            [("it__gemm_launches", "[\n]\n"), ("refused", "[E1003] Error: no\n"), ("good", C)];
        assert_eq!(report("codegen-c", &others).problems, [""; 0]);
        assert_eq!(report("grad", &[("a", wgsl), ("good", C)]).problems, [""; 0]);
    }

    #[test]
    fn nothing_to_read_is_an_error() {
        assert!(report("grad", &[("a", "text")]).problems[0].ends_with("has no emitted text"));
    }
}
