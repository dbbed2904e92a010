//! Links LLVM 19.
//!
//! By default, this is the shared library of the system. With `TENSORWRIGHT_LLVM=static`, the
//! required parts are linked in, together with the C++ library they were built with, so the result
//! can be loaded next to other users of LLVM and on machines without LLVM. The Python package does
//! this.
//!
//! `llvm-sys` could do either, but chooses by Cargo features, which every dependent crate would
//! have to forward.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The LLVM components in use, as `llvm-config` names them.
const COMPONENTS: [&str; 5] = ["core", "passes", "orcjit", "x86", "aarch64"];

/// The dependencies of the static libraries. `llvm-config` names more (Z3, libxml2), of which
/// nothing remains once unused parts are dropped.
const BESIDE: [&str; 3] = ["z", "zstd", "stdc++"];

const PREFIX: &str = "LLVM_SYS_191_PREFIX";
const KIND: &str = "TENSORWRIGHT_LLVM";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PREFIX}");
    println!("cargo::rerun-if-env-changed={KIND}");
    match link() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            ExitCode::FAILURE
        }
    }
}

fn link() -> Result<(), String> {
    let is_static = match std::env::var(KIND).as_deref() {
        Err(_) | Ok("" | "shared") => false,
        Ok("static") => true,
        Ok(other) => return Err(format!("{KIND} is `shared` or `static`, not `{other}`")),
    };
    println!("cargo::rustc-link-search=native={}", llvm_config(&["--libdir"])?.trim());
    let (flag, kind) =
        if is_static { ("--link-static", "static") } else { ("--link-shared", "dylib") };
    let libraries = llvm_config(&[&[flag, "--libs"], &COMPONENTS[..]].concat())?;
    for name in libraries.split_whitespace().filter_map(|word| word.strip_prefix("-l")) {
        println!("cargo::rustc-link-lib={kind}={name}");
    }
    if is_static {
        for name in BESIDE {
            println!("cargo::rustc-link-search=native={}", folder_of(name)?);
            println!("cargo::rustc-link-lib=static={name}");
        }
    }
    Ok(())
}

fn llvm_config(arguments: &[&str]) -> Result<String, String> {
    let program = match std::env::var_os(PREFIX) {
        Some(prefix) => PathBuf::from(prefix).join("bin/llvm-config"),
        None => PathBuf::from("llvm-config-19"),
    };
    let advice = "install LLVM 19 (Debian: apt-get install llvm-19-dev)";
    output(Command::new(&program).args(arguments))
        .map_err(|problem| format!("{}: {problem}; {advice}", program.display()))
}

/// The C compiler for the target, with its options: `CC_aarch64_unknown_linux_gnu`, as in other
/// build scripts, or `cc`.
fn compiler() -> Command {
    let target = std::env::var("TARGET").unwrap_or_default().replace('-', "_");
    let variable = format!("CC_{target}");
    println!("cargo::rerun-if-env-changed={variable}");
    let line = std::env::var(variable).unwrap_or_else(|_| "cc".to_owned());
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// The folder in which the C compiler finds a static library.
fn folder_of(library: &str) -> Result<String, String> {
    let file = format!("lib{library}.a");
    let path = output(compiler().arg(format!("-print-file-name={file}")))?;
    let path = PathBuf::from(path.trim());
    match path.parent().filter(|folder| folder.is_absolute()) {
        Some(folder) => Ok(folder.display().to_string()),
        None => Err(format!("{file} is missing (Debian: apt-get install zlib1g-dev libzstd-dev)")),
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
