//! Tests of index arithmetic on data at the limits of their types.
//!
//! The results match the reference, and no read is out of bounds.
#![allow(unsafe_code, reason = "compiled kernels are called")]

#[path = "../../../../tests/exact/data.rs"]
mod data;

use crate::support::{Case, run_loaded, run_sanitized};
use tensorwright_reference::run;

#[test]
fn data_at_the_ends_of_their_types() {
    let mut cases = Vec::new();
    for program in data::programs(false, 150) {
        for (number, (_, nest)) in data::nests(&program).into_iter().enumerate() {
            let mut case = Case::new(&format!("{}_{number}", program.name), &program, nest);
            case.inputs = data::inputs(&program, number);
            cases.push(case);
        }
    }
    run_sanitized("exact", &cases);
}

#[test]
fn checks_fail_where_the_reference_says() {
    for program in data::programs(true, 1) {
        for (schedule, nest) in data::nests(&program).into_iter().take(1) {
            let mut case = Case::new(&program.name, &program, nest);
            for turn in [1, 2, 3, 5, 8] {
                case.inputs = data::inputs(&program, turn);
                let status = run_loaded("exact_checks", &case);
                let expected = i32::from(run(&program, &case.inputs).is_err());
                assert_eq!(status, expected, "{} turn {turn}\n{schedule}", program.name);
            }
        }
    }
}
