//! Generated programs that use the whole language.

use tensorwright_testkit::{Rng, Scale, generate_at};

use super::Example;

/// A random one.
pub(super) fn draw(rng: &mut Rng) -> Example {
    let generated = generate_at(Scale::Tileable, rng.next_u64());
    Example { text: generated.text, def: generated.def, sizes: generated.sizes }
}
