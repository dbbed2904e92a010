//! LLVM's AArch64 code in a C harness, run by an emulator.

use std::process::Command;

use tensorwright_codegen_c::POOL;
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::{CodegenOptions, compile};
use tensorwright_schedule::interface::Function;

use super::batch::{Toolchain, Translated};
use super::failure::Suspect;
use super::pair::Pair;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: [&str; 3] = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"];

/// The cross compiler and the emulator.
pub(crate) struct Aarch64 {
    target: Processor,
}

impl Aarch64 {
    /// Checks that both are installed.
    pub(crate) fn new() -> Result<Self, String> {
        for program in [COMPILER, EMULATOR[0]] {
            Command::new(program).arg("--version").output().map_err(|error| {
                format!(
                    "{program}: {error}; on Debian, install gcc-aarch64-linux-gnu, \
                     libc6-dev-arm64-cross and qemu-user"
                )
            })?;
        }
        let target = Processor::named("neon").map_err(|error| error.to_string())?;
        Ok(Self { target })
    }
}

impl Toolchain for Aarch64 {
    fn suspect(&self) -> Suspect {
        Suspect::Aarch64
    }

    fn translate(&self, pair: &Pair, _number: usize) -> Result<Translated, String> {
        let compiled = compile(&pair.nest, &self.target, &CodegenOptions::default())
            .map_err(|error| error.to_string())?;
        let name = &pair.interface.symbol;
        let [kernel, prepare] =
            [Function::Compute, Function::Prepare].map(|one| pair.interface.function(one));
        let (alone, three) =
            (compiled.interface.workspace.bytes(1), compiled.interface.workspace.bytes(3));
        let code = format!(
            "#include <stdint.h>\n{POOL}int32_t {kernel}(void *const *, void *, tw_pool *);\n\
             int32_t {prepare}(void *const *, void *, tw_pool *);\n\
             static int64_t {name}_workspace_bytes(int32_t workers) {{\n    \
             return workers == 1 ? {alone} : {three};\n}}\n"
        );
        Ok(Translated { code, object: Some(compiled.object) })
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(COMPILER);
        command.args(["-std=c99", "-O0", "-w"]);
        command
    }

    fn runner(&self) -> &[&'static str] {
        &EMULATOR
    }
}
