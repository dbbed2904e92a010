//! Compiles emitted C and runs it, in this or another process.
#![allow(unsafe_code, reason = "compiled kernels are called")]

pub(crate) mod fibres;
pub(crate) mod kernels;
pub(crate) mod sized;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tensorwright_codegen_c::{EmitOptions, Requirement, emit, emit_with};
use tensorwright_device::cuda::Nvrtc;
use tensorwright_lang::Module;
use tensorwright_lang::program::{Program, TensorId};
use tensorwright_reference::{Buffer, random_inputs, run};
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::{Interface, LoweredNest, canonical, lower};

/// The flags with which all emitted code compiles.
pub(crate) const STRICT: [&str; 6] =
    ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The flags that detect undefined behavior and invalid accesses.
pub(crate) const SANITIZE: [&str; 3] =
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"];

/// Runs a compiler; panics with its messages if it fails.
pub(crate) fn compile(compiler: &str, directory: &Path, sources: &[PathBuf], flags: &[&str]) {
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(flags).args(sources);
    if compiler != "rustc" && !flags.contains(&"-c") {
        command.arg("-lm");
    }
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {flags:?} {sources:?}:\n{messages}");
}

/// NVIDIA's compiler, if installed; required if `TENSORWRIGHT_NEEDS_DEVICES` is set.
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::find() {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

/// An empty directory for the files of a test.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The baseline CPU of this machine's architecture.
pub(crate) fn plain_processor() -> Requirement {
    Requirement::new("plain", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH), [])
}

/// The program of a text with one definition.
pub(crate) fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap_or_else(|errors| panic!("{errors}"));
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The nest of a program, lowered without a schedule.
pub(crate) fn plain(program: &Program) -> LoweredNest {
    lower(canonical(program)).unwrap()
}

/// A nest with inputs and expected outputs.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) nest: LoweredNest,
    pub(crate) interface: Interface,
    pub(crate) inputs: BTreeMap<String, Buffer>,
}

impl Case {
    /// A nest that computes a program, under a unique name, with random inputs.
    pub(crate) fn new(name: &str, program: &Program, nest: LoweredNest) -> Self {
        let nest = nest.named(name);
        let interface = Interface::of(&nest);
        let inputs = random_inputs(program, 7).unwrap();
        Self { name: name.to_owned(), program: program.clone(), nest, interface, inputs }
    }

    /// The bytes of an input.
    fn input(&self, id: TensorId) -> Vec<u8> {
        self.inputs[&self.program.tensor(id).name].to_bytes()
    }

    /// Compares the bytes of the outputs, in the order of the nest's parameters, with the
    /// reference.
    fn compare(&self, outputs: &BTreeMap<TensorId, Vec<u8>>) {
        if let Some(mismatch) = self.mismatch(outputs) {
            panic!("{}: {mismatch}", self.name);
        }
    }

    /// The differences from the reference.
    fn mismatch(&self, outputs: &BTreeMap<TensorId, Vec<u8>>) -> Option<String> {
        let reference = run(&self.program, &self.inputs).unwrap();
        for (id, expected) in self.program.outputs.iter().zip(&reference.outputs) {
            let tensor = self.program.tensor(*id);
            let bytes = &outputs[id];
            let actual = Buffer::from_bytes(tensor.dtype, &tensor.shape, bytes).unwrap();
            let growth = self.nest.as_nest().rounding_growth;
            if let Some(mismatch) = expected.mismatch_within(&actual, growth) {
                return Some(format!("{}: {mismatch}", tensor.name));
            }
        }
        None
    }
}

/// Runs cases in one process, with sanitizers, and compares their outputs with the reference. Every
/// kernel runs without a pool and with a pool of three workers.
pub(crate) fn run_sanitized(test: &str, cases: &[Case]) {
    let directory = scratch(test);
    let mut main = String::from(include_str!("harness.c"));
    main += "\nint main(void) {\n";
    let mut declarations = String::new();
    for case in cases {
        let name = &case.interface.symbol;
        let kernel = case.interface.function(Function::Compute);
        let source = emit_with(&case.nest, EmitOptions::poisoned());
        let source = source.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        std::fs::write(directory.join(format!("{name}.c")), source.code).unwrap();
        let (mut input, mut bytes, mut is_input) = (Vec::new(), Vec::new(), Vec::new());
        for parameter in &case.interface.parameters {
            bytes.push(parameter.bytes().to_string());
            is_input.push(u8::from(parameter.owner == Owner::Input).to_string());
            if parameter.owner == Owner::Input {
                input.extend(case.input(parameter.id));
            }
        }
        std::fs::write(directory.join(format!("{name}.in")), input).unwrap();
        writeln!(declarations, "int32_t {kernel}(void *const *, void *, tw_pool *);").unwrap();
        writeln!(declarations, "int64_t {name}_workspace_bytes(int32_t);").unwrap();
        let prepare = match case.interface.has_prepare {
            false => "NULL".to_owned(),
            true => {
                let declaration = "(void *const *, void *, tw_pool *);";
                let prepare = case.interface.function(Function::Prepare);
                writeln!(declarations, "int32_t {prepare}{declaration}").unwrap();
                prepare
            }
        };
        writeln!(
            main,
            "    {{\n        const int64_t bytes[] = {{{}}};\n        \
             const int is_input[] = {{{}}};\n        \
             run_case(\"{name}\", {kernel}, {prepare}, {name}_workspace_bytes, {}, bytes, is_input);\n    }}",
            bytes.join(", "),
            is_input.join(", "),
            bytes.len()
        )
        .unwrap();
    }
    main += "    return 0;\n}\n";
    let main = main.replace("/* DECLARATIONS */", &declarations);
    std::fs::write(directory.join("main.c"), main).unwrap();
    let names = cases.iter().map(|case| case.interface.symbol.as_str());
    build_harness(&directory, names, "-O1");

    let output = Command::new(directory.join("harness")).current_dir(&directory).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    for (case, variant) in cases.iter().flat_map(|case| [(case, "serial"), (case, "pool")]) {
        let name = &case.interface.symbol;
        let bytes = std::fs::read(directory.join(format!("{name}.{variant}"))).unwrap();
        let mut rest = bytes.as_slice();
        let mut outputs = BTreeMap::new();
        for parameter in &case.interface.parameters {
            if parameter.owner == Owner::Output {
                let (one, more) = rest.split_at(parameter.bytes() as usize);
                outputs.insert(parameter.id, one.to_vec());
                rest = more;
            }
        }
        case.compare(&outputs);
    }
}

/// Compiles every file and `main.c` separately, two at a time, and links them.
fn build_harness<'n>(
    directory: &Path,
    names: impl Iterator<Item = &'n str>,
    optimization: &'static str,
) {
    let names: Vec<&str> = names.chain(["main"]).collect();
    let flags: Vec<&str> = STRICT.into_iter().chain(SANITIZE).chain([optimization]).collect();
    std::thread::scope(|scope| {
        for half in names.chunks(names.len().div_ceil(2)) {
            let flags = &flags;
            scope.spawn(move || {
                let sources: Vec<PathBuf> =
                    half.iter().map(|name| PathBuf::from(format!("{name}.c"))).collect();
                let flags: Vec<&str> = flags.iter().copied().chain(["-c"]).collect();
                compile("cc", directory, &sources, &flags);
            });
        }
    });
    let objects: Vec<PathBuf> =
        names.iter().map(|name| PathBuf::from(format!("{name}.o"))).collect();
    let flags: Vec<&str> = SANITIZE.into_iter().chain(["-o", "harness"]).collect();
    compile("cc", directory, &objects, &flags);
}

type Kernel = unsafe extern "C" fn(*const *mut c_void, *mut c_void, *mut c_void) -> i32;

/// Runs a case in this process, without a pool, and compares the outputs if it succeeds.
pub(crate) fn run_loaded(test: &str, case: &Case) -> i32 {
    let directory = scratch(test);
    let source = emit(&case.nest).unwrap();
    std::fs::write(directory.join("kernel.c"), source.code).unwrap();
    let flags: Vec<&str> =
        STRICT.into_iter().chain(["-shared", "-fPIC", "-o", "kernel.so"]).collect();
    compile("cc", &directory, &[PathBuf::from("kernel.c")], &flags);

    // Eight-byte elements keep every buffer aligned enough.
    let zeroed = |bytes: i64| vec![0_u64; (bytes as usize).div_ceil(8) + 8];
    let mut buffers: Vec<Vec<u64>> = Vec::new();
    for parameter in &case.interface.parameters {
        let mut memory = zeroed(parameter.bytes());
        if parameter.owner == Owner::Input {
            let bytes = case.input(parameter.id);
            for (word, chunk) in memory.iter_mut().zip(bytes.chunks(8)) {
                let mut whole = [0; 8];
                whole[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_ne_bytes(whole);
            }
        }
        buffers.push(memory);
    }
    let mut workspace = zeroed(case.interface.workspace.bytes(1));
    let pointers: Vec<*mut c_void> =
        buffers.iter_mut().map(|memory| memory.as_mut_ptr().cast()).collect();
    // SAFETY: the library is ours and runs no code when loaded; buffers and workspace are as large
    // as the nest says.
    let status = unsafe {
        let library = libloading::Library::new(directory.join("kernel.so")).unwrap();
        let kernel =
            library.get::<Kernel>(case.interface.function(Function::Compute).as_bytes()).unwrap();
        kernel(pointers.as_ptr(), workspace.as_mut_ptr().cast(), std::ptr::null_mut())
    };
    if status == 0 {
        let outputs = case.interface.parameters.iter().zip(&buffers);
        let bytes = |memory: &Vec<u64>| memory.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let outputs: BTreeMap<TensorId, Vec<u8>> =
            outputs.map(|(p, memory)| (p.id, trimmed(bytes(memory), p.bytes()))).collect();
        case.compare(&outputs);
    }
    status
}

fn trimmed(mut bytes: Vec<u8>, length: i64) -> Vec<u8> {
    bytes.truncate(length as usize);
    bytes
}
