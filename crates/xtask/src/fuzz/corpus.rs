//! What is mutated: the examples, the tests of diagnostics and generated programs.

use std::path::{Path, PathBuf};

use tensorwright_testkit::{Rng, generate, mutate};

use super::Options;

/// Where programs are found, from the root of the workspace.
const FOLDERS: [&str; 3] =
    ["examples/kernels", "tests/diagnostics", "crates/lang/tests/diagnostics"];

/// How many generated programs there are to splice with.
const GENERATED: u64 = 200;

/// The texts that inputs are made of, in an order that does not depend on the file system.
pub(crate) struct Corpus {
    texts: Vec<Vec<u8>>,
}

/// One input of the front end.
pub(crate) struct Input {
    /// The text.
    pub(crate) bytes: Vec<u8>,
    /// Sizes that would fit the text before it was mutated, where they are known.
    pub(crate) sizes: Vec<(String, i64)>,
    /// The source of what the run of this input still has to choose.
    pub(crate) rng: Rng,
}

impl Corpus {
    /// Reads the files and generates the rest.
    pub(crate) fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files: Vec<PathBuf> =
            FOLDERS.iter().flat_map(|folder| programs(&root.join(folder))).collect();
        files.sort();
        let mut texts: Vec<Vec<u8>> =
            files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
        texts.extend((0..GENERATED).map(|seed| generate(seed).text.into_bytes()));
        Self { texts }
    }

    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The input of an index.
    pub(crate) fn input(&self, options: &Options, index: u64) -> Input {
        let mut rng = Rng::of(options.seed, index);
        let (text, sizes) = if rng.chance(50) {
            let program = generate(rng.next_u64());
            (program.text.into_bytes(), program.sizes)
        } else {
            (rng.pick(&self.texts).clone(), Vec::new())
        };
        // Some stay as they are: what is valid must get through as well.
        let mut bytes = if rng.chance(5) { text } else { mutate(&text, &self.texts, &mut rng) };
        bytes.truncate(options.max_bytes);
        Input { bytes, sizes, rng }
    }
}

/// The programs of a folder; none if it does not exist.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tc"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_function_of_seed_and_index() {
        let options = Options::parse(&[]).unwrap();
        let (one, two) = (Corpus::load(), Corpus::load());
        for index in 0..200 {
            assert_eq!(one.input(&options, index).bytes, two.input(&options, index).bytes);
        }
    }
}
