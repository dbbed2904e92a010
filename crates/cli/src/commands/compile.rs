//! `tensorwright compile`

use std::io::Write;
use std::path::{Path, PathBuf};

use tensorwright::{Code, Diagnostic, Diagnostics, Dialect, LoweredProgram, Source};
use tensorwright_package::cc::Compiler;
use tensorwright_package::system;

use crate::args::{CompileArgs, Emit, Format};
use crate::cuda::Kernels;
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Compiles a definition and writes the requested form.
pub(crate) fn run(args: &CompileArgs) -> Outcome {
    let format = args.format.format;
    if let Some(path) = &args.output {
        hides_nothing(path, args.emit).in_format(format)?;
    }
    let written = match text(args).in_format(format)? {
        Some(text) => match &args.output {
            None => return Ok(write!(crate::terminal::out(), "{text}")?),
            Some(path) => {
                files::write_bytes(path, text.as_bytes()).in_format(format)?;
                WrittenFiles { files: vec![path.clone()], advice: None }
            }
        },
        None => binary(args).in_format(format)?,
    };
    written.show(format)
}

/// The written files, and how to use them.
struct WrittenFiles {
    files: Vec<PathBuf>,
    advice: Option<String>,
}

impl WrittenFiles {
    fn show(&self, format: Format) -> Outcome {
        if format == Format::Json {
            let files: Vec<String> = self.files.iter().map(|f| f.display().to_string()).collect();
            let value = serde_json::json!({ "files": files, "advice": self.advice });
            return Ok(report::json(&value)?);
        }
        let mut out = crate::terminal::out();
        for file in &self.files {
            writeln!(out, "wrote {}", file.display())?;
        }
        if let Some(advice) = &self.advice {
            writeln!(out, "{advice}")?;
        }
        Ok(())
    }
}

/// The requested text; `None` if the form is binary.
fn text(args: &CompileArgs) -> Result<Option<String>, Diagnostics> {
    let lowered = || lowered(args);
    Ok(Some(match args.emit {
        Emit::Loops => lowered()?.loops(),
        Emit::Passes => {
            let steps = lowered()?.loops_after_each_pass();
            let step = |(name, loops): &(String, String)| format!("# {name}\n{loops}\n");
            steps.iter().map(step).collect()
        }
        Emit::C => lowered()?.c_source()?,
        Emit::Header => lowered()?.c_header()?,
        Emit::Opencl => for_device(&lowered()?, Dialect::OpenCl)?,
        Emit::Cuda => for_device(&lowered()?, Dialect::Cuda)?,
        Emit::Hip => for_device(&lowered()?, Dialect::Hip)?,
        Emit::Ptx => Kernels::of(&lowered()?)?.ptx(),
        Emit::Sass => Kernels::of(&lowered()?)?.sass()?,
        Emit::Llvm => lowered()?.llvm_ir()?,
        Emit::Asm => lowered()?.assembly()?,
        Emit::Object | Emit::Shared | Emit::Rust | Emit::Cubin => return Ok(None),
    }))
}

/// The loops for the sizes of the command line: one kernel for all values of those that vary.
fn lowered(args: &CompileArgs) -> Result<LoweredProgram, Diagnostics> {
    let Some(sizes) = crate::sizes::varying(&args.program.sizes)? else {
        let program = super::program(&args.program)?;
        return super::kernel(&program, &args.kernel)?.lower();
    };
    let module = files::module_with(&args.program.file)?;
    let program = super::chosen(&module, &args.program)?.bind_sized(sizes)?.with_changing_inputs();
    let goal = super::goal(&args.kernel.target)?;
    let builder = program.compile().target(goal.target.clone()).threads(goal.threads());
    let mut builder = builder.precision(goal.precision);
    if let Some(path) = &args.kernel.schedule {
        builder = builder.schedule_source(files::schedule(path)?)?;
    }
    builder.lower()
}

/// The device kernels, after a comment with their launch parameters.
fn for_device(lowered: &LoweredProgram, dialect: Dialect) -> Result<String, Diagnostics> {
    let program = lowered.device_program(dialect)?;
    let mut text = String::new();
    for launch in &program.launches {
        let (grid, block) = (join(&launch.grid), join(&launch.block));
        let of = |position: &usize| program.interface.parameters.get(*position);
        let mut arguments: Vec<&str> =
            launch.parameters.iter().filter_map(of).map(|of| of.name.as_str()).collect();
        arguments.extend(["workspace", "status"]);
        let line = format!(
            "// {}({}): {grid} blocks of {block} threads, {} bytes shared\n",
            launch.kernel,
            arguments.join(", "),
            launch.shared_bytes
        );
        text.push_str(&line);
    }
    Ok(format!("{text}// workspace: {} bytes\n{}", program.workspace_bytes, program.source))
}

/// Extents for display.
fn join(extents: &[impl ToString; 3]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
}

/// Writes an object, a shared library or a Rust module, with its companion files.
fn binary(args: &CompileArgs) -> Result<WrittenFiles, Diagnostics> {
    let path = args.output.as_deref().ok_or_else(|| output_needed(args.emit))?;
    let lowered = lowered(args)?;
    if args.emit == Emit::Cubin {
        files::write_bytes(path, Kernels::of(&lowered)?.cubin())?;
        return Ok(WrittenFiles { files: vec![path.to_owned()], advice: None });
    }
    let written = lowered.object()?;
    let header = path.with_extension("h");
    match args.emit {
        Emit::Rust => {
            let object = path.with_extension("o");
            files::write_bytes(path, lowered.rust_module()?.as_bytes())?;
            files::write_bytes(&object, &written)?;
            let advice = format!(
                "use it as a module and link the object: \
                 `rustc main.rs -C link-arg={o}`, or in build.rs \
                 `println!(\"cargo::rustc-link-arg={o}\")`",
                o = object.display()
            );
            Ok(WrittenFiles { files: vec![path.to_owned(), object], advice: Some(advice) })
        }
        Emit::Shared => {
            files::write_bytes(path, &shared(&args.cc, &lowered.c_wrapper()?, &written)?)?;
            files::write_bytes(&header, lowered.c_header()?.as_bytes())?;
            Ok(WrittenFiles { files: vec![path.to_owned(), header], advice: None })
        }
        _ => {
            let wrapper = sibling(path, "_call.c");
            files::write_bytes(path, &written)?;
            files::write_bytes(&header, lowered.c_header()?.as_bytes())?;
            files::write_bytes(&wrapper, lowered.c_wrapper()?.as_bytes())?;
            let advice = format!(
                "link {} with -lm; compile {} along for `{}_call` and the other functions with \
                 typed parameters",
                path.display(),
                wrapper.display(),
                lowered.symbol()
            );
            Ok(WrittenFiles { files: vec![path.to_owned(), header, wrapper], advice: Some(advice) })
        }
    }
}

/// Rejects names that compilers and linkers would mistake for system files.
fn hides_nothing(path: &Path, emit: Emit) -> Result<(), Diagnostics> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_header = path.extension().is_some_and(|end| end == "h");
    let library = stem.strip_prefix("lib").filter(|_| emit == Emit::Shared);
    let hidden = match library {
        Some(name) if system::is_library(name) => format!("-l{name}"),
        _ if system::is_header(stem)
            && (is_header || matches!(emit, Emit::Object | Emit::Shared)) =>
        {
            format!("{stem}.h")
        }
        _ => return Ok(()),
    };
    let other = path
        .with_file_name(format!("{stem}_kernel"))
        .with_extension(path.extension().unwrap_or_default());
    let message = format!("{} would hide `{hidden}` of the system", path.display());
    let help = format!("write another file: `-o {}`", other.display());
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
    Err(Diagnostics::new(Source::new("--output", ""), vec![diagnostic]))
}

/// A shared library of an object and its C wrapper.
fn shared(cc: &Path, wrapper: &str, object: &[u8]) -> Result<Vec<u8>, Diagnostics> {
    let cc = Compiler::new(cc)?;
    cc.file("call.c", wrapper.as_bytes())?;
    cc.file("kernel.o", object)?;
    cc.run(&["-shared", "-fPIC", "-O2", "-std=c99", "call.c", "kernel.o", "-lm"], "library.so")
}

/// The path of a companion file: the same name with another ending.
fn sibling(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

fn output_needed(emit: Emit) -> Diagnostics {
    let (what, example) = match emit {
        Emit::Shared => ("a shared library", "-o libkernel.so"),
        Emit::Rust => ("a Rust module with its object", "-o kernel.rs"),
        Emit::Cubin => ("machine code of NVIDIA's", "-o kernel.cubin"),
        _ => ("an object file", "-o kernel.o"),
    };
    let message = format!("{what} cannot be written to standard output");
    let diagnostic = Diagnostic::without_place(Code::OutputFileNeeded, message)
        .help(format!("say where to write it: `{example}`"));
    Diagnostics::new(Source::new("--output", ""), vec![diagnostic])
}
