//! Source texts: from bytes to bound programs, gradients and diagnostics.

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::Diagnostics;
use tensorwright_testkit::{Rng, generate, mutate};

use super::{Input, Reached, Target, files};

pub(super) const TARGET: Target = Target {
    name: "texts",
    reads: "programs, by the whole front end",
    extension: "tc",
    seconds: 1.0,
    corpus,
    mutate,
    run,
};

/// Folders with programs, from the workspace root.
const FOLDERS: [&str; 2] = ["examples/kernels", "tests/diagnostics"];

/// The number of generated programs for splicing.
const GENERATED: u64 = 200;

/// The examples, the tests of diagnostics and generated programs.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let generated = (0..GENERATED).map(|seed| generate(seed).text.into_bytes());
    files(&FOLDERS, "tc").into_iter().chain(generated).collect()
}

/// Checks a text, and binds each definition to small sizes: those in `known`, or random ones.
fn run(input: &mut Input) -> Reached {
    let Input { bytes, sizes: known, rng } = input;
    let module = match Module::parse_bytes("fuzz.tc", bytes) {
        Ok(module) => module,
        Err(diagnostics) => {
            render(&diagnostics, rng);
            return Reached::Refused;
        }
    };
    let mut reached = Reached::Read;
    render(&module.warnings(), rng);
    for def in module.defs() {
        let names = def.sizes().into_iter().chain(def.integer_scalars());
        differentiate(&module, def.name(), rng);
        let sizes: Vec<(&str, i64)> = names.map(|name| (name, choose(name, known, rng))).collect();
        match def.bind(sizes) {
            Ok(program) => {
                std::hint::black_box(program);
                reached = Reached::Used;
            }
            Err(diagnostics) => {
                render(&diagnostics, rng);
            }
        }
    }
    reached
}

/// The gradients of some definitions.
fn differentiate(module: &Module, def: &str, rng: &mut Rng) {
    if rng.percent(30) {
        match tensorwright_grad::grad(module, def, &[]) {
            // Every differentiable definition can be trained.
            Ok(_) => assert!(tensorwright_grad::training(module, def, &[]).is_ok(), "{def}"),
            Err(diagnostics) => render(&diagnostics, rng),
        }
    }
}

/// Renders diagnostics. Rendering is slow, so only some are rendered.
fn render(diagnostics: &Diagnostics, rng: &mut Rng) {
    if rng.percent(20) {
        std::hint::black_box(diagnostics.render(rng.percent(50)));
    }
}

/// Mostly the fitting size, sometimes one that is too small, too large or absurd.
fn choose(name: &str, known: &[(String, i64)], rng: &mut Rng) -> i64 {
    match known.iter().find(|(known, _)| known == name) {
        Some((_, value)) if rng.percent(97) => *value,
        _ if rng.percent(3) => *rng.pick(&[0, -1, 1 << 31, i64::MAX, i64::MIN]),
        _ => rng.range(1, 9),
    }
}
