//! Arrays in NumPy's format.

use tensorwright_lang::dtype::DType;
use tensorwright_reference::npy;
use tensorwright_reference::random::random;
use tensorwright_testkit::damage;

use super::{Input, Reached, Target};

pub(super) const TARGET: Target = Target {
    name: "npy",
    reads: ".npy files",
    extension: "npy",
    seconds: 1.0,
    corpus,
    mutate: |bytes, _, rng| damage(bytes, rng),
    run,
};

/// Small arrays of every type.
fn corpus() -> Vec<Vec<u8>> {
    let shapes: [&[i64]; 4] = [&[], &[1], &[3, 5], &[2, 3, 4]];
    let arrays = DType::ALL.iter().flat_map(|dtype| shapes.map(|shape| (*dtype, shape)));
    let encoded =
        arrays.filter_map(|(dtype, shape)| npy::encode(&random(dtype, shape, "X", 1).ok()?).ok());
    encoded.collect()
}

fn run(input: &mut Input) -> Reached {
    match npy::decode(&input.bytes) {
        Err(error) => {
            std::hint::black_box(error.to_string());
            Reached::Refused
        }
        Ok(buffer) => match npy::encode(&buffer) {
            Ok(again) => {
                std::hint::black_box(again);
                Reached::Used
            }
            Err(_) => Reached::Read,
        },
    }
}
