//! Objects that were kept and are not what they ought to be: the code is generated.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tensorwright::{Buffer, Inputs, Module, ObjectCache};

/// What a definition makes of 1 to 8, with the objects of a folder.
fn run(cache: &ObjectCache, text: &str) -> Vec<f32> {
    let module = Module::parse("f.tc", text).unwrap();
    let program = module.def("f").unwrap().bind([("N", 8)]).unwrap();
    let kernel = program.compile().cache(cache).build().unwrap();
    let values: Vec<f32> = (1..9u8).map(f32::from).collect();
    let inputs = Inputs::from([("A".to_owned(), Buffer::from(values))]);
    let outputs = kernel.run(&inputs).unwrap();
    outputs.get("B").unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The file of an object under the name of a key, with the hash that it has to have.
fn sealed(path: &Path, object: &[u8]) -> Vec<u8> {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let key: Vec<u8> =
        (0..32).map(|n| u8::from_str_radix(&name[2 * n..2 * n + 2], 16).unwrap()).collect();
    let mut file = Sha256::digest([&key, object].concat()).to_vec();
    file.extend(object);
    file
}

const ADDS: &str = "def f(float(N) A) -> (B) { B(i) = A(i) + 1 }";
const MULTIPLIES: &str = "def f(float(N) A) -> (B) { B(i) = A(i) * 100 }";

#[test]
fn an_object_of_other_code_is_not_run() {
    let folder = std::env::temp_dir().join(format!("swapped-objects-{}", std::process::id()));
    let cache = ObjectCache::open(&folder, 1 << 20).unwrap();
    run(&cache, ADDS);
    let adds = objects(&folder).remove(0);
    run(&cache, MULTIPLIES);
    let multiplies = objects(&folder).into_iter().find(|path| *path != adds).unwrap();
    std::fs::copy(&adds, &multiplies).unwrap();
    assert_eq!(run(&cache, MULTIPLIES)[..3], [100.0, 200.0, 300.0]);
    assert_ne!(std::fs::read(&adds).unwrap(), std::fs::read(&multiplies).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_object_that_does_not_link_is_generated_again() {
    let folder = std::env::temp_dir().join(format!("broken-objects-{}", std::process::id()));
    let cache = ObjectCache::open(&folder, 1 << 20).unwrap();
    let expected = run(&cache, ADDS);
    let path = objects(&folder).remove(0);
    let good = std::fs::read(&path).unwrap();
    let header = &good[32..96];
    for broken in [&b"no object"[..], b"\x7fELF", header, &[header, &[0xff; 500]].concat()] {
        std::fs::write(&path, sealed(&path, broken)).unwrap();
        assert_eq!(run(&cache, ADDS), expected, "{} bytes", broken.len());
        assert_eq!(std::fs::read(&path).unwrap(), good, "it is replaced");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
