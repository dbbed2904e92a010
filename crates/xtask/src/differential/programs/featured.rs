//! Generated programs with a rare feature.

use tensorwright_testkit::{Rng, Scale, generate_at};

use super::Example;

/// The most programs to draw; about one in eight has the feature.
const MOST: usize = 200;

/// A random program with a feature.
pub(super) fn draw(rng: &mut Rng, feature: &str) -> Example {
    let mut generated = generate_at(Scale::Tileable, rng.next_u64());
    for _ in 0..MOST {
        if generated.features.contains(&feature) {
            break;
        }
        generated = generate_at(Scale::Tileable, rng.next_u64());
    }
    Example { text: generated.text, def: generated.def, sizes: generated.sizes }
}
