//! Replays the defect cases that the tuner writes.

use std::process::Command;

use tensorwright::{Module, Precision, Program};
use tensorwright_measure::WorkerCommand;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_tuner::Tuner;

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("kept.tc", text).unwrap();
    module.defs().next().unwrap().bind(sizes.iter().copied()).unwrap()
}

/// Replays a case that the tuner wrote; returns success and the output.
fn replay(tuner: &Tuner, schedule: &str, outcome: &Outcome) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.case");
    std::fs::write(&file, tuner.case(schedule, outcome)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["differential", "--emitters", "llvm", "--replay"]).arg(&file);
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn tuner(program: &Program) -> Tuner {
    // Nothing is measured.
    Tuner::new(program, WorkerCommand::new("no-worker")).unwrap()
}

const DENSE: &str = "def dense(float(M,K) A, const float(K,N) W, float(N) b) -> (C) {
    C(m,n) = b(n)
    C(m,n) += A(m,k) * W(k,n)
}";

#[test]
fn kept_cases_replay() {
    let sizes = [("M", 7), ("N", 40), ("K", 9)];
    let gather = "def gather(float(N) x, int32(M) at) -> (y) { y(i) = x(at(i)) }";
    let guarded = "def blur(float(H,W) in) -> (out) {
        out(i,j) +=! (i + u < H && j + v < W ? in(i+u,j+v) : 0.0) where i in 0:H, j in 0:W, u in 0:3, v in 0:3
    }";
    let conv = "def conv(float(C,H,W) I, const float(O,C,KH,KW) F) -> (R) {
        R(o,h,w) +=! I(c,h+kh,w+kw) * F(o,c,kh,kw)
    }";
    let conv_sizes = [("C", 4), ("H", 18), ("W", 18), ("O", 4), ("KH", 3), ("KW", 3)];
    let wrong = Outcome::WrongResult { reason: "C(0,0) is 1\n--- program\nand\tnot 2".to_owned() };
    let crashed =
        Outcome::Crashed { reason: "SIGSEGV".to_owned(), stderr: "--- schedule\n".to_owned() };
    let failed = Outcome::BuildFailed { reason: "LLVM said no".to_owned() };
    let late = Outcome::TimedOut { phase: Phase::Build, limit: 2.5 };
    for (program, precision, outcome) in [
        (program(DENSE, &sizes), Precision::Exact, wrong),
        (program(gather, &[("N", 5), ("M", 33)]), Precision::Exact, crashed),
        (program(guarded, &[("H", 6), ("W", 20)]), Precision::Exact, failed),
        (program(conv, &conv_sizes), Precision::Fast, late),
    ] {
        let lowered = program.compile().threads(2).precision(precision).lower().unwrap();
        let tuner = tuner(&program).threads(2).seed(11).precision(precision);
        let (well, said) = replay(&tuner, &lowered.schedule().to_string(), &outcome);
        assert!(well && said.contains("differential: 0 problems"), "{}: {said}", program.name());
    }
}

#[test]
fn a_defect_that_is_still_there_is_found_again() {
    let axes: Vec<String> = "abcdefghij".chars().map(String::from).collect();
    let (list, dims) = (axes.join(","), vec!["N"; axes.len()].join(","));
    let program = program(
        &format!("def copy(float({dims}) A) -> (B) {{ B({list}) = A({list}) }}"),
        &[("N", 3)],
    );
    // Accepted step by step, but not lowered: nested tails.
    let tails: String = axes.iter().map(|axis| format!("B: split {axis} 2 [peel]\n")).collect();
    let outcome = Outcome::BuildFailed { reason: "refused".to_owned() };
    for (schedule, words) in
        [("B: split nowhere 4\n", "nowhere"), (tails.as_str(), "cannot be lowered")]
    {
        let (well, said) = replay(&tuner(&program), schedule, &outcome);
        assert!(!well && said.contains(words), "{schedule}: {said}");
        assert!(said.contains("differential: 1 problems"), "{schedule}: {said}");
    }
}
