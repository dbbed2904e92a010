//! Tests of index arithmetic on data at the limits of their types.
//!
//! The results match the reference, and no read is out of bounds.
#![allow(unsafe_code, reason = "tests call generated code")]

#[path = "../../../../tests/exact/data.rs"]
mod data;

use crate::support;
use crate::support::{call, load};
use tensorwright_reference::run;

#[test]
fn data_at_the_ends_of_their_types() {
    let mut failures = Vec::new();
    for program in data::programs(false, 150) {
        for (schedule, nest) in data::nests(&program) {
            for target in support::targets() {
                let loaded = load(&nest, target);
                for turn in 0..4 {
                    let inputs = data::inputs(&program, turn);
                    let expected = run(&program, &inputs).unwrap();
                    let ran = call(&program, &loaded, &inputs, false);
                    let wrong = expected.outputs[0].mismatch(&ran.outputs["Z"]);
                    if ran.status != 0 || wrong.is_some() {
                        let what = wrong.map_or("a status".to_owned(), |wrong| wrong.to_string());
                        let name = &program.name;
                        failures.push(format!(
                            "{name}, {target}, turn {turn}: {what}\n{schedule}{nest}"
                        ));
                        break;
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn checks_fail_where_the_reference_says() {
    for program in data::programs(true, 1) {
        for (schedule, nest) in data::nests(&program) {
            let loaded = load(&nest, "native");
            let mut inside = 0;
            for turn in 0..400 {
                let inputs = data::inputs(&program, turn);
                let ran = call(&program, &loaded, &inputs, false);
                let at = || format!("{} turn {turn}\n{schedule}{nest}", program.name);
                match run(&program, &inputs) {
                    Ok(expected) => {
                        inside += 1;
                        assert_eq!(ran.status, 0, "{}", at());
                        assert_eq!(
                            expected.outputs[0].mismatch(&ran.outputs["Z"]),
                            None,
                            "{}",
                            at()
                        );
                    }
                    Err(_) => assert_eq!(ran.status, 1, "{}", at()),
                }
            }
            assert!(inside > 0, "{}", program.name);
        }
    }
}
