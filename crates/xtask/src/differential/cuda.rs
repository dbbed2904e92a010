//! CUDA C++, compiled by the host compiler, with threads as fibres.

use std::fmt::Write as _;
use std::process::Command;

use tensorwright_codegen_c::{CUDA_FIBRES, Dialect, POOL, emit_device};
use tensorwright_schedule::interface::{DeviceProgram, Function};

use super::batch::{Toolchain, Translated};
use super::failure::Suspect;
use super::pair::Pair;

const COMPILER: &str = "g++";
const FLAGS: [&str; 5] = ["-std=c++17", "-O0", "-ffp-contract=fast", "-w", "-c"];

/// The C++ compiler, and a directory with the precompiled header.
pub(crate) struct Cuda {
    directory: tempfile::TempDir,
}

impl Cuda {
    /// Precompiles the header.
    pub(crate) fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let made = Self { directory };
        made.write("cuda_fibres.h", CUDA_FIBRES)?;
        made.compile(&["-x", "c++-header", "cuda_fibres.h", "-o", "cuda_fibres.h.gch"])?;
        Ok(made)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.directory.path().join(name);
        std::fs::write(path, text).map_err(|error| format!("{name}: {error}"))
    }

    fn compile(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(COMPILER);
        command.env("LC_ALL", "C").current_dir(self.directory.path()).args(FLAGS).args(arguments);
        let output = command.output().map_err(|error| format!("{COMPILER}: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).lines().take(12).collect()),
        }
    }
}

impl Toolchain for Cuda {
    fn suspect(&self) -> Suspect {
        Suspect::Cuda
    }

    fn translate(&self, pair: &Pair, number: usize) -> Result<Translated, String> {
        let device = pair.device.as_ref().ok_or("it was not lowered for a device")?;
        let program = emit_device(device, Dialect::Cuda).map_err(|error| error.to_string())?;
        let mut text = format!("#include \"cuda_fibres.h\"\n{}\n", program.source);
        for function in [Function::Prepare, Function::Compute] {
            text += &entry(&program, function, &pair.interface.function(function), number);
        }
        self.write("kernel.cpp", &text)?;
        self.compile(&["kernel.cpp", "-o", "kernel.o"])?;
        let object = std::fs::read(self.directory.path().join("kernel.o"));
        let name = &program.interface.symbol;
        let [kernel, prepare] =
            [Function::Compute, Function::Prepare].map(|one| pair.interface.function(one));
        let bytes = program.workspace_bytes;
        let code = format!(
            "#include <stdint.h>\n{POOL}int32_t {kernel}(void *const *, void *, tw_pool *);\n\
             int32_t {prepare}(void *const *, void *, tw_pool *);\n\
             static int64_t {name}_workspace_bytes(int32_t workers) {{\n    \
             return {bytes};\n}}\n"
        );
        Ok(Translated { code, object: Some(object.map_err(|error| error.to_string())?) })
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new("cc");
        // The library follows the objects that need it on the command line.
        command.args(["-std=c99", "-O0", "-w", "-Wl,--no-as-needed", "-lstdc++"]);
        command
    }

    fn runner(&self) -> &[&'static str] {
        &[]
    }
}

/// A function of the kernel's interface that runs its device launches.
fn entry(program: &DeviceProgram, function: Function, name: &str, seed: usize) -> String {
    let mut text = format!(
        "extern \"C\" int32_t {name}(void *const *buffers, void *workspace, void *) {{\n    int32_t status = 0;\n"
    );
    for launch in program.launches.iter().filter(|launch| launch.function == function) {
        let argument = |position: &usize| format!("fibres::Argument{{buffers[{position}]}}");
        let mut arguments: Vec<String> = launch.parameters.iter().map(argument).collect();
        arguments.push("fibres::Argument{workspace}".to_owned());
        arguments.push("&status".to_owned());
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "    fibres::launch({{{gx}, {gy}, {gz}}}, {{{bx}, {by}, {bz}}}, {seed}, [&] {{ {}({}); }});",
            launch.kernel,
            arguments.join(", ")
        );
    }
    text + "    return status;\n}\n"
}
