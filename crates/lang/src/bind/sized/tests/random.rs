//! Random programs, with all sizes varying.

use super::agree::{compare, varies};
use crate::Module;
use crate::program::SizeValue;

#[test]
fn random_programs_agree_with_the_concrete_ones() {
    let (mut bound, mut refused, mut accepted, mut needlessly) = (0, 0, 0, 0);
    for seed in 0..150 {
        let program = tensorwright_testkit::generate(seed);
        let module = Module::parse("t.tc", &program.text).unwrap();
        let scalars = module.def(&program.def).unwrap().integer_scalars();
        let given = program.sizes.iter().map(|(name, value)| {
            let known = scalars.contains(&name.as_str());
            let value =
                if known { SizeValue::Known(*value) } else { varies(1, 2 * value + 3, *value) };
            (name.clone(), value)
        });
        let given: Vec<(String, SizeValue)> = given.collect();
        match compare(&module, &program.def, &given) {
            Ok(tally) => {
                bound += 1;
                accepted += tally.accepted;
                needlessly += tally.needlessly;
            }
            // Quotients by sizes, and products with them.
            Err(error) => {
                assert!(error.contains("has to be a number"), "{seed}: {error}");
                refused += 1;
            }
        }
    }
    insta::assert_snapshot!(
        format!("{bound} bound, {refused} not; {accepted} sizes, {needlessly} refused needlessly"),
        @"143 bound, 7 not; 1314 sizes, 50 refused needlessly"
    );
}
