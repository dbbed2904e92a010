//! Tuning with a miscompiling compiler: reported and kept defects.

use tensorwright::{Module, Program, Schedule};
use tensorwright_measure::WorkerCommand;
use tensorwright_records::Journal;
use tensorwright_tuner::{Budget, Tuner};

fn program(value: &str) -> Program {
    let text = format!("def mm(float(M,K) A, float(K,N) B) -> (C) {{ C(m,n) +=! {value} }}");
    let sizes = [("M", 8), ("N", 8), ("K", 8)];
    Module::parse("mm.tc", &text).unwrap().def("mm").unwrap().bind(sizes).unwrap()
}

#[test]
fn candidates_that_show_mistakes_of_the_compiler_are_kept() {
    let directory =
        std::env::temp_dir().join(format!("tensorwright-defects-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let right = program("A(m,k) * B(k,n)");
    let plain = Schedule::default();
    let object = |value| program(value).compile().schedule(plain.clone()).lower()?.object();
    // Code that computes something else, and invalid code.
    let wrong = object("A(m,k) + B(k,n)").unwrap();
    let split = Schedule::parse("C: split m 4\n").unwrap();
    let worker = WorkerCommand::new(env!("CARGO_BIN_EXE_tensorwright")).arg("worker");
    let tuner = Tuner::new(&right, worker).unwrap().budget(Budget::trials(4));
    let tuner = tuner.plant(plain, wrong).plant(split, b"no object".to_vec());
    let mut journal = Journal::open(Some(&directory.join("records.sqlite3").into())).unwrap();
    let tuned = tuner.run(&mut journal, &mut |_| {}).unwrap();

    assert_eq!(tuned.defects.count, 2, "{:?}", tuned.progress.tally);
    assert_eq!(tuned.defects.folder, directory.join("records.sqlite3.cases"));
    let mut kept: Vec<String> =
        tuned.defects.files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    kept.sort_by_key(|text| !text.contains("wrong-result"));
    let case = &kept[0];
    assert!(
        case.starts_with(
            "def mm\nsizes\ninputs 0 tuned\ntarget native\nthreads 1\noutcome wrong-result: "
        ),
        "{case}"
    );
    let program = "--- program\ndef mm(float(8, 8) A, float(8, 8) B) -> (C) {\n";
    assert!(case.contains(program), "{case}");
    assert!(case.ends_with("--- schedule\n"), "{case}");
    assert!(kept[1].contains("outcome build-failed: "), "{}", kept[1]);
    assert!(kept[1].ends_with("--- schedule\nC: split m 4\n"), "{}", kept[1]);
    // The winner was compared with the reference here, and is in the records.
    assert!(journal.store().unwrap().best(&tuned.key).unwrap().is_some());
    std::fs::remove_dir_all(directory).unwrap();
}
