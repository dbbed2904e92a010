//! Builds and runs a copy of the example project with Cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a layer gives whose inputs are 0.5 and whose weights are the number of the output.
const EXPECTED: &str =
    "1: [0.0, 31.0, 63.0, 95.0]\n3: [0.0, 31.0, 63.0, 95.0]\n32: [0.0, 31.0, 63.0, 95.0]\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs Cargo on a project, with a target directory that is kept: its dependencies are large.
fn cargo(command: &str, project: &Path) -> Output {
    let cargo = std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-build");
    Command::new(cargo)
        .args([command, "--offline", "--locked", "--quiet", "--manifest-path"])
        .arg(project.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        // Cargo's variables for this test do not apply to that project.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(project)
        .output()
        .unwrap()
}

/// A copy of the example with another manifest of kernels.
fn copy(name: &str, change: impl Fn(&str, String) -> String) -> PathBuf {
    let from = root().join("examples/rust-build");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(to.join("src")).unwrap();
    for file in ["Cargo.toml", "Cargo.lock", "build.rs", "kernels.toml", "layer.tc", "src/main.rs"]
    {
        let text = std::fs::read_to_string(from.join(file)).unwrap();
        let crates = root().join("crates").display().to_string();
        let text = change(file, text.replace("../../crates", &crates));
        std::fs::write(to.join(file), text).unwrap();
    }
    to
}

#[test]
fn the_example_builds_and_runs_and_mistakes_are_shown_with_their_places() {
    let output = cargo("run", &copy("example", |_, text| text));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), EXPECTED);

    let wrong = copy("wrong", |file, text| match file {
        "layer.tc" => text.replace("bias(o)\n", "bais(o)\n"),
        _ => text,
    });
    let output = cargo("build", &wrong);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("layer.tc:3:") && errors.contains("bais"), "{errors}");
}
