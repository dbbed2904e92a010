//! Programs of the generator in which elements are computed from each other.

use tensorwright_testkit::{Rng, Scale, generate_at};

use super::Example;

/// How many programs are looked at, of which one in eight is wanted.
const MOST: usize = 200;

/// A random one.
pub(super) fn draw(rng: &mut Rng) -> Example {
    let mut generated = generate_at(Scale::Tileable, rng.next_u64());
    for _ in 0..MOST {
        if generated.features.contains(&"recurrence") {
            break;
        }
        generated = generate_at(Scale::Tileable, rng.next_u64());
    }
    Example { text: generated.text, def: generated.def, sizes: generated.sizes }
}
