//! The command line, as used by people and scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
    command.args(args).current_dir(root()).env("NO_COLOR", "1").env("TENSORWRIGHT_THREADS", "1");
    command
}

fn tensorwright(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// The standard output of a command that succeeds.
fn stdout(args: &[&str]) -> String {
    let output = tensorwright(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// A directory that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tensorwright-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CONV: &str = "B=1,IP=3,H=8,W=9,OP=4,KH=3,KW=3,s=2,p=1";

#[test]
fn explain_tells_ranges_and_reasons_of_a_strided_padded_convolution() {
    let text = stdout(&[
        "explain",
        "examples/kernels/conv2d.tc",
        "--def",
        "conv2d_padded",
        "--size",
        CONV,
    ]);
    insta::assert_snapshot!("explain_conv2d_padded", text);
}

#[test]
fn explain_tells_where_shapes_come_from_over_several_statements() {
    let sizes = "B=3,M=5,N=4";
    let target = ["--target", "avx512", "--untuned"];
    let args = ["explain", "examples/kernels/mlp.tc", "--def", "MLP1", "--size", sizes];
    let text = stdout(&[&args[..], &target[..]].concat());
    insta::assert_snapshot!("explain_mlp1", text);
}

#[test]
fn explain_tells_where_values_are_scattered() {
    let (file, sizes) = ("examples/kernels/histogram.tc", "H=6,W=8,bins=16");
    let text = stdout(&["explain", file, "--def", "equalize", "--size", sizes]);
    insta::assert_snapshot!("explain_equalize", text);
}

#[test]
fn explain_as_text_can_be_explained_again() {
    let scratch = Scratch::new("text");
    let file = scratch.file("conv.tc");
    let args = ["examples/kernels/conv2d.tc", "--def", "conv2d_padded", "--size", CONV];
    let text = stdout(&[&["explain"][..], &args[..], &["--text"][..]].concat());
    std::fs::write(&file, &text).unwrap();
    let first = json(&[&["explain"][..], &args[..], &["--format", "json"][..]].concat());
    let second = json(&["explain", &file, "--format", "json"]);
    assert_eq!(first["hash"], second["hash"]);
    assert_eq!(first["analysis"], second["analysis"]);
}

#[test]
fn explain_as_json_has_what_a_tool_needs() {
    let value = json(&[
        "explain",
        "examples/kernels/gemm.tc",
        "--def",
        "gemm",
        "--size",
        "M=128,N=64,K=32",
        "--format",
        "json",
    ]);
    assert_eq!(value["outputs"][0]["shape"], serde_json::json!([128, 64]));
    assert_eq!(value["analysis"]["flops"], 2 * 128 * 64 * 32);
    let axes = value["stages"][0]["axes"].as_array().unwrap();
    let names: Vec<&str> = axes.iter().map(|axis| axis["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "n", "k"]);
    assert_eq!(axes[2]["kind"], "reduce");
    assert_eq!(axes[2]["hi"], 32);
}

#[test]
fn check_speaks_json_to_editors() {
    let output = tensorwright(&[
        "check",
        "--format",
        "json",
        "examples/kernels/gemm.tc",
        "tests/diagnostics/E0601_max_pooling_without_where.tc",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["ok"], false);
    let first = &value["diagnostics"][0];
    assert_eq!(first["code"], "E0601");
    assert_eq!(first["severity"], "error");
    assert!(first["labels"][0]["start"]["line"].as_u64().unwrap() > 0);
    assert!(first["fix"]["replacement"].as_str().unwrap().contains("where"));
}

#[test]
fn run_reads_and_writes_numpy_files_and_repeats_itself() {
    let scratch = Scratch::new("run");
    let (a, c) = (scratch.file("a.npy"), scratch.file("c.npy"));
    let golden = "examples/golden/gemm/gemm";
    let run = |output: &str| {
        json(&[
            "run",
            "examples/kernels/gemm.tc",
            "--def",
            "gemm",
            "--input",
            &format!("A={golden}.A.npy"),
            "--input",
            &format!("B={golden}.B.npy"),
            "--output",
            &format!("C={output}"),
            "--format",
            "json",
        ])
    };
    let (first, second) = (run(&a), run(&c));
    assert_eq!(first["outputs"], second["outputs"]);
    assert_eq!(first["outputs"][0]["shape"], serde_json::json!([4, 5]));
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&c).unwrap());
}

#[test]
fn run_depends_on_the_seed_alone() {
    let checksum = |seed: &str| {
        let value = json(&[
            "run",
            "examples/kernels/gather.tc",
            "--def",
            "gather",
            "--size",
            "N=9,A=4,B=5",
            "--seed",
            seed,
            "--format",
            "json",
        ]);
        value["outputs"][0]["checksum"].as_str().unwrap().to_owned()
    };
    assert_eq!(checksum("3"), checksum("3"));
    assert_ne!(checksum("3"), checksum("4"));
}

const GEMM: [&str; 5] = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=33,N=40,K=17"];

fn gemm<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command][..], &GEMM[..], more].concat()
}

#[test]
fn run_says_what_a_large_program_is_compared_with() {
    let file = "examples/kernels/gemm.tc";
    let sizes = "M=400,N=401,K=402";
    let args = ["run", file, "--def", "gemm", "--size", sizes, "--untuned", "--verify"];
    let text = stdout(&args);
    let verified = text.lines().find(|line| line.starts_with("verified: ")).unwrap();
    let expected = "the reference interpreter on 4,096 sampled elements, and element-wise bounds on all 160,400";
    assert_eq!(verified, format!("verified: agrees with {expected}"));
    let json = json(&[args.as_slice(), &["--format", "json"]].concat());
    assert_eq!((&json["verified"], &json["verified_against"]), (&true.into(), &expected.into()));
}

#[test]
fn run_tells_the_engine_and_verifies() {
    let compiled = json(&gemm("run", &["--verify", "--format", "json"]));
    assert_eq!(compiled["engine"], "compiled");
    assert_eq!(compiled["verified"], true);
    assert_eq!(compiled["threads"], 1);
    let reference = json(&gemm("run", &["--reference", "--format", "json"]));
    assert_eq!(reference["engine"], "reference");
    assert_eq!(reference["verified"], serde_json::Value::Null);
    assert!(reference["outputs"][0]["tolerance"].as_f64().unwrap() > 0.0);
    assert!(stdout(&gemm("run", &["--verify"])).contains("agrees with the reference interpreter"));
}

#[test]
fn run_measures_and_says_of_what_the_share_is() {
    let value = json(&gemm("run", &["--time", "--format", "json"]));
    for field in ["median_ns", "gflops", "gbps", "share_of_peak", "peak_gflops", "peak_gbps"] {
        assert!(value[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert!(value["spread"].as_f64().unwrap() >= 0.0);
    assert!(["compute", "memory"].contains(&value["bound"].as_str().unwrap()));
    let text = stdout(&gemm("run", &["--time", "--threads", "2"]));
    assert!(text.contains("GFLOP/s") && text.contains("-bound: "), "{text}");
}

#[test]
fn the_default_schedule_can_be_given_back() {
    let scratch = Scratch::new("schedule");
    let file = scratch.file("gemm.sched");
    let schedule = stdout(&gemm("schedule", &[]));
    std::fs::write(&file, &schedule).unwrap();
    assert_eq!(stdout(&gemm("schedule", &["--schedule", &file])), schedule);
    let with = stdout(&gemm("compile", &["--emit", "loops", "--schedule", &file]));
    assert_eq!(with, stdout(&gemm("compile", &["--emit", "loops"])));
}

#[test]
fn the_machine_is_described() {
    let value = json(&["machine", "--format", "json"]);
    assert!(value["physical_cores"].as_u64().unwrap() >= 1);
    assert!(value["caches"]["l1d"].as_u64().unwrap() > 0);
    for field in ["fma_f32_gflops", "fma_f32_gflops_all_threads", "read_gbps", "copy_gbps"] {
        assert!(value["measured"][field].as_f64().unwrap() > 0.0, "{field}");
    }
}

#[test]
fn a_machine_without_runtimes_says_what_to_install_and_is_well() {
    let output = command(&["machine"]).env("OCL_ICD_VENDORS", "/nowhere").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |word: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(word));
        (lines.next().unwrap_or_else(|| panic!("{text}")).to_owned(), lines.count())
    };
    let (opencl, more) = line("opencl");
    assert!(more == 0 && opencl.contains("none: ") && opencl.contains("apt-get install"), "{text}");
    assert!(output.stderr.is_empty());
}

#[test]
fn list_names_definitions_and_their_sizes() {
    let text = stdout(&["list", "examples/kernels/gemm.tc"]);
    assert!(text.contains("gemm(float(M,K) A, float(K,N) B) -> (float(_,_) C)"), "{text}");
    let value = json(&["list", "examples/kernels/conv2d.tc", "--format", "json"]);
    let defs = value["defs"].as_array().unwrap();
    let padded = defs.iter().find(|def| def["name"] == "conv2d_padded").unwrap();
    assert_eq!(padded["integer_scalars"], serde_json::json!(["s", "p"]));
}

#[test]
fn help_teaches_by_examples_and_every_shell_has_completions() {
    for command in
        ["check", "explain", "run", "compile", "schedule", "list", "lsp", "machine", "completions"]
    {
        let help = stdout(&[command, "--help"]);
        assert!(help.contains("Example"), "{command} --help has no example");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout(&["completions", shell]).contains("explain"), "{shell}");
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_exits_with_two_and_says_why() {
    for (args, expected) in [
        (&["explain", "x.tc", "--size", "M=ten"][..], "is not a whole number"),
        (&["explain", "x.tc", "--size", "M"][..], "such as M=128"),
        (&["run", "x.tc", "--input", "A"][..], "such as A=a.npy"),
        (&["chekc"][..], "check"),
    ] {
        let output = tensorwright(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(expected), "{args:?}: {errors}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tensorwright"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn endless_and_missing_files_are_errors() {
    for file in ["/dev/zero", "no/such/file.tc", "."] {
        let output = tensorwright(&["check", file]);
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(file), "{file}");
    }
}

#[test]
fn a_gradient_is_written_and_runs_like_any_definition() {
    let scratch = Scratch::new("grad");
    let file = scratch.file("conv2d_grad.tc");
    let conv = ["grad", "examples/kernels/conv2d.tc", "--def", "conv2d_padded"];
    let printed = stdout(&conv);
    assert!(
        printed.starts_with("# The gradient of `conv2d_padded` with respect to in and weight.\n")
    );
    assert_eq!(stdout(&[&conv[..], &["-o", &file][..]].concat()), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    assert_eq!(stdout(&["check", &file]), format!("{file}: ok, 1 definition\n"));
    let sizes = format!("{CONV},out_h=4,out_w=5");
    let run = stdout(&["run", &file, "--size", &sizes, "--untuned", "--verify"]);
    assert!(run.contains("float(1, 3, 8, 9) d_in"), "{run}");

    let value = json(&[&conv[..], &["--wrt", "weight", "--format", "json"][..]].concat());
    assert_eq!(value["def"], "conv2d_padded_grad");
    assert_eq!(value["outputs"][0]["gradient_of"], "weight");
}

#[test]
fn the_version_says_what_a_report_of_a_problem_needs() {
    let text = stdout(&["--version"]);
    assert_eq!(text, stdout(&["-V"]));
    let lines: Vec<&str> = text.lines().collect();
    let [first, llvm, targets] = lines[..] else { panic!("{text}") };
    let version = format!("tensorwright {}", env!("CARGO_PKG_VERSION"));
    // A commit follows if the build knows it.
    let commit = first.strip_prefix(&version).unwrap().trim_matches([' ', '(', ')']);
    assert!(commit.is_empty() || commit.len() == 12, "{first}");
    assert!(llvm.starts_with("LLVM 19."), "{llvm}");
    assert!(targets.starts_with("targets: native, sse, avx2, avx512, neon, opencl:N"), "{targets}");
}
