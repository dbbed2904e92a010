//! What is fuzzed: everything between bytes and a bound program, and the rendering of whatever
//! there is to say about them. The only file here that knows the compiler.

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::Diagnostics;
use tensorwright_testkit::Rng;

/// How far an input got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// It has errors.
    Rejected,
    /// It has none, but no def could be bound to sizes.
    Checked,
    /// A def was bound to sizes.
    Bound,
}

/// Checks a text, and binds each of its defs to small sizes: those of `known`, or random ones.
pub(crate) fn run(bytes: &[u8], known: &[(String, i64)], rng: &mut Rng) -> Reached {
    let module = match Module::parse_bytes("fuzz.tc", bytes) {
        Ok(module) => module,
        Err(diagnostics) => {
            render(&diagnostics, rng);
            return Reached::Rejected;
        }
    };
    let mut reached = Reached::Checked;
    render(&module.warnings(), rng);
    for def in module.defs() {
        let names = def.sizes().into_iter().chain(def.integer_scalars());
        let sizes: Vec<(&str, i64)> = names.map(|name| (name, choose(name, known, rng))).collect();
        match def.bind(sizes) {
            Ok(program) => {
                std::hint::black_box(program);
                reached = Reached::Bound;
            }
            Err(diagnostics) => {
                render(&diagnostics, rng);
            }
        }
    }
    reached
}

/// Draws what there is to say. Drawing takes longer than all the rest, so only some are drawn.
fn render(diagnostics: &Diagnostics, rng: &mut Rng) {
    if rng.chance(20) {
        std::hint::black_box(diagnostics.render(rng.chance(50)));
    }
}

/// Mostly the size that fits, sometimes one that is too small, too large or absurd.
fn choose(name: &str, known: &[(String, i64)], rng: &mut Rng) -> i64 {
    match known.iter().find(|(known, _)| known == name) {
        Some((_, value)) if rng.chance(97) => *value,
        _ if rng.chance(3) => *rng.pick(&[0, -1, 1 << 31, i64::MAX, i64::MIN]),
        _ => rng.range(1, 9),
    }
}
