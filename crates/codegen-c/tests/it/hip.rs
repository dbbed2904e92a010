//! Tests of HIP: CUDA's text with AMD's names, compiled but not run.
#![allow(unsafe_code, reason = "the support of other tests calls compiled kernels")]

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::kernels::{GEMM, KERNELS, TILED, case};
use crate::support::scratch;
use tensorwright_codegen_c::{Dialect, emit_device};
use tensorwright_machine::Target;
use tensorwright_schedule::interface::DeviceProgram;

/// The resources of a kernel, as clang reports them.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    /// The registers of a thread.
    registers: i64,
    /// The spilled registers.
    spilled: i64,
    /// The bytes of a thread in scratch memory.
    scratch: i64,
    /// The bytes of shared memory of a block.
    shared: i64,
}

/// Compiles a program for an architecture and returns the resources of each kernel.
fn resources(test: &str, program: &DeviceProgram, arch: &str) -> BTreeMap<String, Resources> {
    let directory = scratch(&format!("hip_{test}_{arch}"));
    std::fs::create_dir(directory.join("hip")).unwrap();
    std::fs::write(directory.join("kernel.hip"), &program.source).unwrap();
    let header = include_str!("support/hip_runtime.h");
    std::fs::write(directory.join("hip/hip_runtime.h"), header).unwrap();
    // An object would need AMD's linker; the assembly has the same contents.
    let output = Command::new("clang-19")
        .args([
            "-x",
            "hip",
            "-std=c++17",
            "-nogpulib",
            "-nogpuinc",
            "--cuda-device-only",
            "-O3",
            "-S",
        ])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function"])
        .args(["-Rpass-analysis=kernel-resource-usage", "-I.", "-o", "kernel.s", "kernel.hip"])
        .arg(format!("--offload-arch={arch}"))
        .current_dir(&directory)
        .output()
        .expect("clang-19 compiles HIP here: `.ci/run system` installs it");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}, {arch}:\n{messages}\n{}", program.source);
    let mut kernels: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    let mut name = String::new();
    for line in messages.lines().filter_map(|line| line.split_once("remark: ")) {
        let Some((what, value)) = line.1.split_once(": ") else { continue };
        let value = value.split_whitespace().next().unwrap();
        match what.trim() {
            "Function Name" => name = value.to_owned(),
            what => {
                let of = kernels.entry(name.clone()).or_default();
                of.extend(value.parse().ok().map(|value| (what.to_owned(), value)));
            }
        }
    }
    let read = |all: BTreeMap<String, i64>| Resources {
        registers: all["VGPRs"] + all.get("AGPRs").unwrap_or(&0),
        spilled: all["VGPRs Spill"] + all["SGPRs Spill"],
        scratch: all["ScratchSize [bytes/lane]"],
        shared: all["LDS Size [bytes/block]"],
    };
    kernels.into_iter().map(|(name, all)| (name, read(all))).collect()
}

/// Kernels fit: they spill no register, and their shared memory does not exceed the launch's.
#[test]
fn clang_compiles_kernels_for_amd() {
    let tiled = ("gemm", GEMM, [("M", 67), ("N", 50), ("K", 45)].as_slice(), TILED);
    let wanted = ["softmax", "gather", "scan", "histogram", "half", "gemm_vec"];
    let others = KERNELS.iter().filter(|kernel| wanted.contains(&kernel.0)).copied();
    for (name, text, sizes, steps) in others.chain([tiled]) {
        let case = case(name, text, sizes, steps);
        let program = emit_device(&case.nest, Dialect::Hip).unwrap();
        for arch in ["gfx906", "gfx90a"] {
            let Ok(Target::Gpu(gpu)) = Target::named(&format!("hip:{arch}")) else {
                panic!("{arch} is no target")
            };
            let found = resources(name, &program, arch);
            assert_eq!(found.len(), program.launches.len(), "{name}: {found:?}");
            for launch in &program.launches {
                let taken = &found[&launch.kernel];
                println!("{arch} {}: {taken:?}", launch.kernel);
                assert_eq!((taken.spilled, taken.scratch), (0, 0), "{name}, {arch}: {taken:?}");
                assert!(0 < taken.registers && taken.registers <= gpu.registers_per_thread);
                // Launches leave room to align each buffer.
                let said = launch.shared_bytes as i64;
                assert!(taken.shared <= said && said <= gpu.shared_per_block, "{name}, {arch}");
                assert_eq!(taken.shared == 0, said == 0, "{name}, {arch}");
            }
        }
    }
}

/// So tests that run the CUDA text also cover HIP.
#[test]
fn the_text_is_that_of_cuda_but_for_names() {
    for (name, text, sizes, steps) in KERNELS {
        let case = case(name, text, sizes, steps);
        let [cuda, hip] =
            [Dialect::Cuda, Dialect::Hip].map(|dialect| emit_device(&case.nest, dialect).unwrap());
        let mut spelled = cuda.source.clone();
        for launch in &cuda.launches {
            let threads: u32 = launch.block.iter().product();
            let amd = format!("__attribute__((amdgpu_flat_work_group_size({threads}, {threads})))");
            spelled =
                spelled.replace(&format!("__launch_bounds__({threads}) "), &format!("{amd} "));
        }
        let after = |text: &str| text.split_once("#endif\n").unwrap().1.to_owned();
        assert_eq!(after(&spelled), after(&hip.source), "{name}");
        assert_eq!(cuda.launches, hip.launches);
        assert!(hip.source.contains("#include <hip/hip_runtime.h>"));
    }
}
