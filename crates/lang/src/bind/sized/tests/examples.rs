//! The programs of the repository, with all sizes varying.

use std::path::{Path, PathBuf};

use tensorwright_random::Rng;

use super::agree::{compare, varies};
use crate::Module;
use crate::program::SizeValue;

/// All programs below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "tc") {
            found.push(path);
        }
    }
    found.sort();
}

/// Numbers for which the definition binds: those of a comment in the text, or some others.
fn numbers(module: &Module, text: &str, def: &str) -> Option<Vec<(String, i64)>> {
    let it = module.def(def).unwrap();
    let names: Vec<String> =
        it.sizes().into_iter().chain(it.integer_scalars()).map(str::to_owned).collect();
    let mut rng = Rng::new(3);
    let written = text.lines().filter(|line| line.contains(&format!("--def {def} ")));
    let written = written.filter_map(|line| {
        let list = line.split("--size ").nth(1)?.split_whitespace().next()?;
        let one = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        list.split(',').map(one).collect::<Option<Vec<(String, i64)>>>()
    });
    let scalars = it.integer_scalars();
    let tries = (0..600).map(|number| {
        let start = [8, 12, 16, 24][number % 4];
        let one = |name: &String| {
            let value = match (scalars.contains(&name.as_str()), number < 4) {
                (true, _) => 1 + rng.below(3) as i64,
                (_, true) => start,
                _ => 1 + rng.below(24) as i64,
            };
            (name.clone(), value)
        };
        names.iter().map(one).collect::<Vec<_>>()
    });
    written.chain(tries).find(|sizes| module.bind(def, sizes.iter().cloned()).is_ok())
}

#[test]
fn programs_of_the_repository_agree_with_the_concrete_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["examples", "bench/kernels", "tests/exact"] {
        files(&root.join(folder), &mut all);
    }
    let (mut lines, mut bound, mut needlessly) = (Vec::new(), 0, 0);
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let module = Module::parse("t.tc", &text).unwrap();
        for def in module.defs() {
            let Some(sizes) = numbers(&module, &text, def.name()) else { continue };
            let scalars = def.integer_scalars();
            let given: Vec<(String, SizeValue)> = sizes
                .into_iter()
                .map(|(name, value)| match scalars.contains(&name.as_str()) {
                    true => (name, SizeValue::Known(value)),
                    false => (name, varies((value / 2).max(1), 2 * value + 3, value)),
                })
                .collect();
            let name = format!("{}:{}", path.file_stem().unwrap().display(), def.name());
            match compare(&module, def.name(), &given) {
                Ok(tally) => {
                    bound += 1;
                    needlessly += tally.needlessly;
                }
                Err(error) => lines.push(format!("{name}: {}", error.lines().next().unwrap())),
            }
        }
    }
    let heading =
        format!("{bound} with all sizes varying, {needlessly} sizes refused needlessly; not:");
    insta::assert_snapshot!(format!("{heading}\n{}", lines.join("\n")), @"
    239 with all sizes varying, 33 sizes refused needlessly; not:
    conv:group_conv2d: [E1011] Error: `CG` multiplies an index, so it has to be a number
    conv:group_conv2d_padded: [E1011] Error: `CG` multiplies an index, so it has to be a number
    kernel:circulant: [E1011] Error: `S` divides an index, so it has to be a number
    kernel:group_conv2d: [E1011] Error: `K` divides an index, so it has to be a number
    circulant:bcm_mm: [E1011] Error: `S` divides an index, so it has to be a number
    depthwise:depthwise_conv2d: [E1011] Error: `C` divides an index, so it has to be a number
    gconv:gconv_flat: [E1011] Error: `F` divides an index, so it has to be a number
    gconv:group_conv2d: [E1011] Error: `K` divides an index, so it has to be a number
    layout:im2col: [E1011] Error: `W` divides an index, so it has to be a number
    layout:tile: [E1011] Error: `M` divides an index, so it has to be a number
    norm:group_norm: [E1011] Error: `C` multiplies an index, so it has to be a number
    kernels:wrapped: [E1011] Error: `N` divides an index, so it has to be a number
    ");
}
