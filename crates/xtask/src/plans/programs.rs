//! The programs whose plans are kept: examples, written schedules, and workloads of the benchmark.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

/// A program at fixed sizes.
pub(super) struct Case {
    pub(super) suite: &'static str,
    pub(super) name: String,
    /// The file, the definition and the sizes.
    pub(super) source: String,
    pub(super) program: Program,
}

/// Reads the cases of a suite.
type Read = fn(&'static str) -> Result<Vec<Case>, String>;

/// The suites, one line each. Those of the benchmark have the names of `bench/run`.
const SUITES: [(&str, Read); 15] = [
    ("examples", |suite| golden(suite, "cases.json", "kernels", 1)),
    ("examples_large", |suite| golden(suite, "cases.json", "kernels", LARGER)),
    ("pipelines", |suite| golden(suite, "pipelines.json", "pipelines", 1)),
    ("gallery", gallery),
    ("written", written),
    ("yolo", |suite| workloads(suite, &["flextensor_yolo"])),
    ("ops", |suite| workloads(suite, &["flextensor_ops"])),
    ("gemm", |suite| workloads(suite, &["gbfs", "opevo"])),
    ("tc", |suite| workloads(suite, &["tc"])),
    ("rows", |suite| workloads(suite, &["rows"])),
    ("attention", |suite| workloads(suite, &["attention"])),
    ("gradients", |suite| workloads(suite, &["attention_gradients"])),
    ("scans", |suite| workloads(suite, &["scans"])),
    ("imaging", |suite| workloads(suite, &["imaging"])),
    ("applications", |suite| workloads(suite, &["applications"])),
];

/// Golden sizes are tiny: large examples have these times the extents, those up to `SMALL` kept.
const LARGER: i64 = 24;
const SMALL: i64 = 4;

/// The sizes of the gallery that its results do not list.
const GALLERY_SIZES: [(&str, &str); 5] = [
    ("circulant", "C=512"),
    ("depthwise", "KH=3,KW=3,s=1,p=1"),
    ("grouped_conv", "CG=8,KH=3,KW=3,s=1,p=1"),
    ("shift", "k=3"),
    ("wavenet", "R=2"),
];

/// The suites with this name, or all.
pub(super) fn cases(only: Option<&str>) -> Result<Vec<Case>, String> {
    let chosen = SUITES.iter().filter(|(suite, _)| only.is_none_or(|only| only == *suite));
    let mut found = Vec::new();
    for (suite, read) in chosen {
        found.extend(read(suite)?);
    }
    if found.is_empty() {
        let names: Vec<&str> = SUITES.iter().map(|(suite, _)| *suite).collect();
        return Err(format!("--only: no such suite; there are {}", names.join(", ")));
    }
    Ok(found)
}

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

fn json(path: &str) -> Result<Value, String> {
    serde_json::from_str(&text(path)?).map_err(|error| format!("{path}: {error}"))
}

/// A list of objects.
fn list(path: &str) -> Result<Vec<Value>, String> {
    match json(path)? {
        Value::Array(list) if !list.is_empty() => Ok(list),
        _ => Err(format!("{path}: no list of cases")),
    }
}

/// A definition at sizes.
fn case(
    suite: &'static str,
    name: &str,
    (path, def): (&str, &str),
    sizes: &[(String, i64)],
) -> Result<Case, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{name} of {path}: {error}");
    let module = Module::parse(path, &text(path)?).map_err(|error| wrong(&error))?;
    let bound = module.def(def).and_then(|def| def.bind(sizes.iter().cloned()));
    let program = bound.map_err(|error| wrong(&error))?;
    let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let source = format!("{path} {def} {}", sizes.join(","));
    Ok(Case { suite, name: name.to_owned(), source: source.trim_end().to_owned(), program })
}

/// A field of a case.
fn field<'v>(case: &'v Value, name: &str) -> Result<&'v str, String> {
    case[name].as_str().ok_or_else(|| format!("a case without `{name}`: {case}"))
}

/// `M=1,N=2` as names and numbers.
fn sizes(text: &str) -> Result<Vec<(String, i64)>, String> {
    let pair = |pair: &str| {
        let (name, size) = pair.split_once('=')?;
        Some((name.to_owned(), size.parse().ok()?))
    };
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|text| pair(text).ok_or_else(|| format!("`{text}` is no size"))).collect()
}

/// Names and numbers of an object.
fn listed(object: &Value) -> Vec<(String, i64)> {
    let pairs = object.as_object().into_iter().flatten();
    pairs.filter_map(|(name, size)| Some((name.clone(), size.as_i64()?))).collect()
}

/// The golden cases: all at their own sizes, or one per definition at larger ones, where they fit
/// together.
fn golden(suite: &'static str, cases: &str, folder: &str, times: i64) -> Result<Vec<Case>, String> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for known in list(&format!("examples/golden/{cases}"))? {
        let (file, def) = (field(&known, "file")?, field(&known, "def")?);
        let path = format!("examples/{folder}/{file}");
        let larger = |size: i64| if size > SMALL { size * times } else { size };
        let sizes = listed(&known["sizes"]).into_iter().map(|(name, size)| (name, larger(size)));
        let sizes: Vec<(String, i64)> = sizes.collect();
        let stem = file.trim_end_matches(".tc");
        let mut name = format!("{stem}.{def}");
        if times > 1 {
            if seen.insert(name.clone()) {
                found.extend(case(suite, &name, (&path, def), &sizes).ok());
            }
            continue;
        }
        for number in 2.. {
            if seen.insert(name.clone()) {
                break;
            }
            name = format!("{stem}.{def}.{number}");
        }
        found.push(case(suite, &name, (&path, def), &sizes)?);
    }
    Ok(found)
}

/// The gallery of the guide, at the sizes of its tables.
fn gallery(suite: &'static str) -> Result<Vec<Case>, String> {
    let results = json("examples/gallery/results.json")?;
    let mut found = Vec::new();
    for (name, result) in results.as_object().into_iter().flatten() {
        let path = format!("examples/gallery/{name}/kernel.tc");
        let source = text(&path)?;
        let mut defs = source.lines().filter_map(|line| line.strip_prefix("def "));
        let def = defs.next_back().and_then(|rest| rest.split('(').next()).unwrap_or_default();
        let more = GALLERY_SIZES.iter().find(|(known, _)| known == name);
        let mut all = listed(&result["sizes"]);
        all.extend(sizes(more.map_or("", |(_, text)| text))?);
        found.push(case(suite, name, (&path, def), &all)?);
    }
    Ok(found)
}

/// Programs that have a schedule written by hand.
fn written(suite: &'static str) -> Result<Vec<Case>, String> {
    let mut found = Vec::new();
    for (cases, folder) in
        [("bench/cases.json", "examples/kernels/"), ("bench/hand/cases.json", "")]
    {
        for known in list(cases)? {
            let path = format!("{folder}{}", field(&known, "file")?);
            let (def, sizes) = (field(&known, "def")?, sizes(field(&known, "size")?)?);
            found.push(case(suite, field(&known, "name")?, (&path, def), &sizes)?);
        }
    }
    Ok(found)
}

/// Workloads of the benchmark.
fn workloads(suite: &'static str, files: &[&str]) -> Result<Vec<Case>, String> {
    let mut found = Vec::new();
    for file in files {
        for workload in list(&format!("bench/workloads/{file}.json"))? {
            let (path, def) = (field(&workload, "file")?, field(&workload, "def")?);
            let sizes = sizes(field(&workload, "size")?)?;
            found.push(case(suite, field(&workload, "name")?, (path, def), &sizes)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{SUITES, cases, list, root};

    #[test]
    fn every_case_has_a_name_of_its_own_and_every_list_of_workloads_is_read() {
        let all = cases(None).unwrap();
        let names: HashSet<(&str, &str)> = all.iter().map(|c| (c.suite, c.name.as_str())).collect();
        assert_eq!(names.len(), all.len());
        for (suite, _) in SUITES {
            assert!(all.iter().any(|case| case.suite == suite), "{suite} is empty");
        }
        let sources: HashSet<&str> = all.iter().map(|case| case.source.as_str()).collect();
        for entry in std::fs::read_dir(root().join("bench/workloads")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".json") {
                for workload in list(&format!("bench/workloads/{name}")).unwrap() {
                    let field = |name: &str| workload[name].as_str().unwrap();
                    let source = format!("{} {} {}", field("file"), field("def"), field("size"));
                    assert!(sources.contains(source.as_str()), "{name}: {source}");
                }
            }
        }
        assert!(cases(Some("no such suite")).is_err());
    }
}
