//! Runs CUDA C++ on the CPU: blocks in order, threads as fibres.
//!
//! The system's compiler compiles it with `cuda_fibres.h`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use tensorwright_codegen_c::CUDA_FIBRES;
use tensorwright_lang::program::TensorId;
use tensorwright_schedule::interface::DeviceProgram;
use tensorwright_schedule::nest::Owner;

use super::{Case, compile, scratch};

/// A program compiled with fibres.
pub(crate) struct Fibres<'a> {
    case: &'a Case,
    directory: std::path::PathBuf,
}

/// The end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A status; the outputs were compared if it is zero.
    Status(i32),
    /// Outputs that differ from the reference.
    Wrong,
    /// An error message.
    Failed(String),
}

impl<'a> Fibres<'a> {
    /// Compiles the program of a case.
    pub(crate) fn new(test: &str, case: &'a Case, program: &DeviceProgram) -> Self {
        let directory = scratch(test);
        let mut main = String::from("#include \"cuda_fibres.h\"\n#include \"kernel.cu\"\n");
        main += "int main(int, char **argv) {\n    const uint64_t seed = strtoull(argv[1], nullptr, 10);\n";
        main += "    FILE *in = fopen(\"in\", \"rb\"), *out = fopen(\"out\", \"wb\");\n";
        let mut input = Vec::new();
        for (number, parameter) in program.interface.parameters.iter().enumerate() {
            let bytes = parameter.bytes();
            writeln!(main, "    fibres::Memory p{number}({bytes});").unwrap();
            if parameter.owner == Owner::Input {
                input.extend(case.input(parameter.id));
                writeln!(
                    main,
                    "    if (fread(p{number}.data(), 1, {bytes}, in) != {bytes}) return 4;"
                )
                .unwrap();
            }
        }
        writeln!(main, "    fibres::Memory workspace({});", program.workspace_bytes + 1).unwrap();
        main += "    int32_t status = 0;\n";
        for launch in &program.launches {
            let argument = |position: &usize| format!("fibres::Argument{{p{position}.data()}}");
            let mut arguments: Vec<String> = launch.parameters.iter().map(argument).collect();
            arguments.push("fibres::Argument{workspace.data()}".to_owned());
            arguments.push("&status".to_owned());
            let place = |[x, y, z]: [u64; 3]| format!("{{{x}, {y}, {z}}}");
            writeln!(
                main,
                "    fibres::launch({}, {}, seed, [&] {{ {}({}); }});",
                place(launch.grid),
                place(launch.block.map(u64::from)),
                launch.kernel,
                arguments.join(", ")
            )
            .unwrap();
        }
        main += "    fwrite(&status, 1, sizeof status, out);\n";
        for (number, parameter) in program.interface.parameters.iter().enumerate() {
            if parameter.owner == Owner::Output {
                writeln!(main, "    fwrite(p{number}.data(), 1, {}, out);", parameter.bytes())
                    .unwrap();
            }
        }
        main += "    fclose(out);\n    return 0;\n}\n";
        let files = [
            ("main.cpp", main.as_bytes()),
            ("kernel.cu", program.source.as_bytes()),
            ("cuda_fibres.h", CUDA_FIBRES.as_bytes()),
            ("in", input.as_slice()),
        ];
        for (name, bytes) in files {
            std::fs::write(directory.join(name), bytes).unwrap();
        }
        let flags = [
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-function",
            "-Wno-unused-parameter",
            "-Wno-maybe-uninitialized",
            "-o",
            "run",
        ];
        compile("g++", &directory, &["main.cpp".into()], &flags);
        Self { case, directory }
    }

    /// Runs it with threads in the order of a seed.
    pub(crate) fn run(&self, seed: u64) -> End {
        let output = Command::new(self.directory.join("run"))
            .arg(seed.to_string())
            .current_dir(&self.directory)
            .output()
            .unwrap();
        if !output.status.success() {
            return End::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let bytes = std::fs::read(self.directory.join("out")).unwrap();
        let (status, mut rest) = bytes.split_at(4);
        let status = i32::from_ne_bytes(status.try_into().unwrap());
        let mut outputs: BTreeMap<TensorId, Vec<u8>> = BTreeMap::new();
        for parameter in &self.case.interface.parameters {
            if parameter.owner == Owner::Output {
                let (one, more) = rest.split_at(parameter.bytes() as usize);
                outputs.insert(parameter.id, one.to_vec());
                rest = more;
            }
        }
        if status == 0 && self.case.mismatch(&outputs).is_some() {
            return End::Wrong;
        }
        End::Status(status)
    }
}
