//! Export and import.

use crate::support;
use std::path::Path;

use crate::support::{Scratch, begin, key, measured, program, synthetic};
use serde_json::json;
use tensorwright_records::transfer::{Imported, MAX_LINE, read_lines, write_csv, write_lines};
use tensorwright_records::{
    AnyStore, Collection, Declared, Origin, RunEnd, RunFilter, RunInfo, Store, Trial, TrialId,
};

support::on_every_database! {
    a_round_trip_is_exact,
    lines_of_earlier_versions_are_imported,
    bad_lines_are_reported_and_the_others_imported,
    bad_lines_without_end_are_counted,
    every_cut_of_an_export_is_imported_as_far_as_it_goes,
    csv_has_a_line_per_trial,
    fields_of_csv_are_quoted_where_they_have_to_be,
}

fn export(store: &dyn Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_lines(store, &RunFilter::default(), &mut bytes, Path::new("out")).unwrap();
    bytes
}

fn import(store: &mut dyn Store, bytes: &[u8]) -> Imported {
    read_lines(store, &mut &bytes[..], Path::new("in")).unwrap()
}

/// A store with every kind of record.
fn filled(scratch: &Scratch) -> AnyStore {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let info = RunInfo { meta: json!({"a": [1, 0.1]}), seed: u64::MAX, ..RunInfo::new("ga", 0) };
    let run = store.begin_run(&key, &program, &info).unwrap();
    let origins = ["", "default", "record", "near", "ranked", "start", "planted", "opevo"];
    for (number, origin) in (0..20).zip(origins.into_iter().cycle()) {
        let algorithm = if number % 3 == 0 { "" } else { "C: winograd m n by 4" };
        let measured = measured(number, 0.1 + number as f64 / 3.0);
        let (origin, algorithm) = (Origin::from(origin), algorithm.to_owned());
        store.insert(&run, &Trial { origin, algorithm, ..measured }).unwrap();
    }
    store.collect(Collection { keep: 10, dry_run: false }).unwrap();
    let trial = TrialId { run: run.clone(), number: 4 };
    let best =
        Declared { trial, seconds: 1.0 / 3.0, against: json!([1]), declared: 7, replaces: None };
    store.declare_best(&key, &best).unwrap();
    store.end_run(&run, &RunEnd { ended: 9, status: "finished".into() }).unwrap();
    store.apply(&synthetic::run(3)[..200]).unwrap();
    store
}

fn a_round_trip_is_exact(scratch: &Scratch) {
    let exported = export(&*filled(scratch));
    let elsewhere = scratch.another();
    let mut other = elsewhere.store();
    let first = import(&mut *other, &exported);
    let lines = exported.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!((first.added, first.known, first.bad), (lines, 0, 0));
    let again = export(&*other);
    assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(exported.clone()).unwrap());
    let second = import(&mut *other, &exported);
    assert_eq!((second.added, second.known, second.bad), (0, lines, 0), "twice is once");
}

/// From before trials had an algorithm, and before they had an origin.
fn lines_of_earlier_versions_are_imported(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    let kept = Trial { origin: Origin::Ranked, algorithm: "x".into(), ..measured(0, 0.5) };
    store.insert(&run, &kept).unwrap();
    let exported = String::from_utf8(export(&*store)).unwrap();
    let is_new = |field: &&str| exported.contains(field);
    let fields = ["\"algorithm\":\"x\",", "\"origin\":\"ranked\","];
    assert!(fields.iter().all(is_new), "{exported}");
    let mut earlier = exported.clone();
    let mut wanted = kept;
    for field in fields {
        earlier = earlier.replace(field, "");
        wanted = match field.contains("origin") {
            true => Trial { origin: Origin::Unknown, ..wanted },
            false => Trial { algorithm: String::new(), ..wanted },
        };
        let elsewhere = scratch.another();
        let mut other = elsewhere.store();
        assert_eq!(import(&mut *other, earlier.as_bytes()).bad, 0);
        assert_eq!(other.trials(&run, None, 10).unwrap(), [wanted.clone()]);
        assert_eq!(import(&mut *other, earlier.as_bytes()).known, 3, "twice is once");
    }
}

fn bad_lines_are_reported_and_the_others_imported(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    let good = |number| {
        json!({"trial": {"run": run, "trial": serde_json::to_value(measured(number, 1.0)).unwrap()}})
            .to_string()
    };
    let (first, last) = (good(0), good(1));
    let mut text = Vec::new();
    let deep = "[".repeat(100_000);
    let long = format!("\"{}\"", "x".repeat(MAX_LINE));
    let zero = good(5).replace("\"seconds\":1.0", "\"seconds\":0.0");
    let nobody = good(6).replace(run.as_str(), "nobody");
    let negative = good(7).replace("\"number\":7", "\"number\":-7");
    let lines: [&[u8]; 12] = [
        first.as_bytes(),
        b"not json",
        b"",
        b"{\"surprise\": 1}",
        deep.as_bytes(),
        b"\xff\xfe\x00",
        long.as_bytes(),
        zero.as_bytes(),
        nobody.as_bytes(),
        negative.as_bytes(),
        b"{\"trial\": {\"run\": \"x\"}}",
        last.as_bytes(),
    ];
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(&good(2).as_bytes()[..40]);
    let imported = import(&mut *store, &text);
    let bad: Vec<u64> = imported.bad_lines.iter().map(|bad| bad.line).collect();
    assert_eq!(bad, [2, 4, 5, 6, 7, 8, 9, 10, 11, 13]);
    assert_eq!((imported.added, imported.bad), (2, 10));
    let reason =
        |line| imported.bad_lines.iter().find(|bad| bad.line == line).unwrap().reason.clone();
    assert_eq!(reason(7), format!("is longer than {MAX_LINE} bytes"));
    assert_eq!(reason(8), "seconds is not a time from 1e-10 to 1e7 seconds");
    assert_eq!(reason(9), "there is no run nobody");
    assert_eq!(store.trials(&run, None, 10).unwrap(), [measured(0, 1.0), measured(1, 1.0)]);
}

fn bad_lines_without_end_are_counted(scratch: &Scratch) {
    let imported = import(&mut *scratch.store(), &b"x\n".repeat(20_000));
    assert_eq!((imported.bad, imported.bad_lines.len()), (20_000, 100));
}

fn every_cut_of_an_export_is_imported_as_far_as_it_goes(scratch: &Scratch) {
    let exported = export(&*filled(scratch));
    for end in (0..exported.len()).step_by(exported.len() / 40) {
        let elsewhere = scratch.another();
        let imported = import(&mut *elsewhere.store(), &exported[..end]);
        let lines = exported[..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert!(imported.bad <= 1);
        assert!(imported.added >= lines);
    }
}

fn csv_has_a_line_per_trial(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let meta = json!({ "algorithms": [
        { "name": "other", "parameters": [{ "name": "k", "values": [1] }] },
        { "name": "", "parameters": [
            { "name": "C.m", "values": ["1", "2"] },
            { "name": "unroll", "values": [1, 2, 3, 4, 5, 6, 7, 16] },
            { "name": "order" },
        ] },
    ] });
    let info = RunInfo { meta, ..RunInfo::new("random", 1) };
    let run = store.begin_run(&key(&program), &program, &info).unwrap();
    store.insert(&run, &measured(0, 0.5)).unwrap();
    store.insert(&run, &Trial::new(1, vec![], "x")).unwrap();
    let mut bytes = Vec::new();
    let filter = RunFilter::default();
    assert_eq!(write_csv(&*store, &filter, &mut bytes, Path::new("out")).unwrap(), 2);
    let text = String::from_utf8(bytes).unwrap();
    let head = text.lines().next().unwrap();
    assert!(
        head.starts_with("def,sizes,program,")
            && head.ends_with(",algorithm,point,values,schedule")
    );
    let first = format!(
        "gemm,M=64 N=64,gemm-64,gemm,A Processor [avx2 fma],1,0.1.0 llvm-19,exact,{run},random,1,0,\
         random,measured,0.5,0.55,0.02,9,,false,,0,,0 7 300,C.m=1; unroll=16; order=#300,\"C: split m 2 -> m.0 m.1\nC: \
         vectorize n\n\"\n"
    );
    assert!(text[head.len() + 1..].starts_with(&first), "{text}");
    assert!(text.ends_with(",device-lost,,,,,,,the device went away,0,,,,x\n"), "{text}");
}

fn fields_of_csv_are_quoted_where_they_have_to_be(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    for (number, schedule) in ["plain", "a \"b\", c", "two\nlines"].into_iter().enumerate() {
        store.insert(&run, &Trial::new(number as u64, vec![], schedule)).unwrap();
    }
    let mut bytes = Vec::new();
    write_csv(&*store, &RunFilter::default(), &mut bytes, Path::new("out")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for last in [",plain\n", ",\"a \"\"b\"\", c\"\n", ",\"two\nlines\"\n"] {
        assert!(text.contains(last), "{last}: {text}");
    }
}
