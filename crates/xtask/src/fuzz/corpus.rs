//! The corpus of a target: inputs for mutation.

use tensorwright_testkit::{Rng, generate};

use super::FuzzOptions;
use super::targets::{Input, Target};

/// The inputs for mutation.
pub(crate) struct Corpus {
    target: &'static Target,
    texts: Vec<Vec<u8>>,
}

impl Corpus {
    /// The corpus of a run's target.
    pub(crate) fn load(options: &FuzzOptions) -> Self {
        Self { target: options.target, texts: (options.target.corpus)() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The input of an index.
    pub(crate) fn input(&self, options: &FuzzOptions, index: u64) -> Input {
        let mut rng = Rng::of(options.seed, index);
        let is_generated = self.target.name == "texts" && rng.percent(50);
        let (text, sizes) = if is_generated {
            let program = generate(rng.next_u64());
            (program.text.into_bytes(), program.sizes)
        } else {
            (rng.pick(&self.texts).clone(), Vec::new())
        };
        // Some stay unchanged: valid inputs must be accepted too.
        let keep = rng.percent(5);
        let mut bytes =
            if keep { text } else { (self.target.mutate)(&text, &self.texts, &mut rng) };
        bytes.truncate(options.max_bytes);
        Input { bytes, sizes, rng }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::targets::{Reached, TARGETS};

    #[test]
    fn an_input_is_a_function_of_seed_and_index() {
        let options = FuzzOptions::parse(&[]).unwrap();
        let (one, two) = (Corpus::load(&options), Corpus::load(&options));
        for index in 0..200 {
            assert_eq!(one.input(&options, index).bytes, two.input(&options, index).bytes);
        }
    }

    #[test]
    fn every_target_uses_what_is_valid_and_survives_what_is_not() {
        for target in TARGETS {
            let options = FuzzOptions { target, ..FuzzOptions::parse(&[]).unwrap() };
            let corpus = Corpus::load(&options);
            assert!(corpus.len() > 0, "{}", target.name);
            let mut used = 0;
            for index in 0..60 {
                used +=
                    usize::from((target.run)(&mut corpus.input(&options, index)) == Reached::Used);
            }
            for bytes in corpus.texts.iter().take(5).cloned() {
                let mut input = Input { bytes, sizes: Vec::new(), rng: Rng::new(0) };
                used += usize::from((target.run)(&mut input) == Reached::Used);
            }
            assert!(used > 0, "nothing gets through {}", target.name);
        }
    }
}
