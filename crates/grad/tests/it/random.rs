//! Checks gradients of random programs against finite differences.
//!
//! A program without a gradient must be rejected with a diagnostic.

use std::collections::BTreeMap;

use crate::common::{Buffers, Case, Verdict, in_double};
use tensorwright_grad::grad;
use tensorwright_lang::Module;
use tensorwright_testkit::{Rng, generate, mutate};

const PROGRAMS: u64 = 400;

#[test]
fn gradients_of_random_programs_agree_with_finite_differences() {
    let mut failures = Vec::new();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut agreed = 0;
    for seed in 0..PROGRAMS {
        let program = generate(seed);
        let case = Case {
            text: in_double(&program.text),
            def: &program.def,
            sizes: program.sizes.into_iter().collect(),
            inputs: Buffers::new(),
            index_inputs: program.index_inputs.into_iter().collect(),
            seed,
        };
        match case.compare() {
            Ok(Verdict::Refused(reason)) => *refused.entry(reason).or_insert(0) += 1,
            Ok(Verdict::Agrees(directions)) => agreed += usize::from(directions > 0),
            Err(error) => failures.push(format!("program {seed}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{} of them\n{}", failures.len(), failures.join("\n\n"));
    assert!(agreed as u64 > PROGRAMS / 4, "only {agreed} had a gradient; refused: {refused:#?}");
}

#[test]
fn no_text_that_checks_is_too_much() {
    let mut differentiated = 0;
    for seed in 0..4 * PROGRAMS {
        let mut rng = Rng::of(seed, 2);
        let text = mutate(generate(seed % PROGRAMS).text.as_bytes(), &[], &mut rng);
        let Ok(module) = Module::parse_bytes("mutated.tc", &text) else { continue };
        for def in module.defs() {
            // The result is always a text that parses or a diagnostic.
            differentiated += usize::from(grad(&module, def.name(), &[]).is_ok());
        }
    }
    assert!(differentiated > 20, "only {differentiated} mutated programs could be differentiated");
}
