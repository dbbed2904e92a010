//! The cost of dynamic sizes: bucketed kernels against exact ones.
//!
//! Both are packaged and called in turns from a C program.
//!
//! ```text
//! cargo run --release -p tensorwright-package --example buckets
//! ```
#![allow(clippy::print_stdout, reason = "this is what the example is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use tensorwright::{Module, Source, Target};
use tensorwright_package::buckets::choose;
use tensorwright_package::{BuildOptions, Level, Plan};
use tensorwright_space::Rng;
use tensorwright_tuner::{Manifest, SizeRange};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// The fixed sizes.
const FIXED: i64 = 256;

/// The range.
const LAST: i64 = 512;

/// How many values between buckets are measured.
const BETWEEN: usize = 40;

/// The measuring program.
const TIMER: &str = include_str!("timer.c");

fn main() -> Result<(), Box<dyn Error>> {
    let level = best_level().ok_or("this machine has no level of packages")?;
    let folder = tempfile::tempdir()?;
    println!("gemm, the other sizes {FIXED}, one thread, {level}");
    println!("times relative to a kernel that is made for the value alone\n");
    for (varying, place) in [("M", "outermost"), ("N", "innermost"), ("K", "summed")] {
        let measured = measure(folder.path(), varying, level)?;
        report(&format!("{varying} = 1..{LAST}, {place}"), &measured);
    }
    Ok(())
}

/// The highest level that this machine supports.
fn best_level() -> Option<&'static str> {
    let runs = |name: &&str| Target::named(name).is_ok_and(|t| t.check_runs_here().is_ok());
    Level::ALL.into_iter().rev().find(runs)
}

/// A value with the nanoseconds of both kinds of kernels.
struct Measured {
    value: i64,
    is_bucket: bool,
    ratio: f64,
    exact: f64,
}

fn measure(folder: &Path, varying: &str, level: &str) -> Result<Vec<Measured>, Box<dyn Error>> {
    let buckets = choose(&SizeRange::new(1, LAST, Vec::new())?);
    let mut rng = Rng::new(0);
    let mut between: Vec<i64> = Vec::new();
    while between.len() < BETWEEN {
        let value = 1 + rng.below(LAST as u64) as i64;
        if !buckets.contains(&value) && !between.contains(&value) {
            between.push(value);
        }
    }
    let mut values = [buckets.clone(), between].concat();
    values.sort_unstable();

    let mut manifest = format!("[package]\nname = \"timed\"\nlevels = [\"{level}\"]\n");
    let mut operator = |name: &str, extent: &str| {
        let size = |name: &str| match name == varying {
            true => format!("{name} = {extent}"),
            false => format!("{name} = {FIXED}"),
        };
        let sizes = ["M", "K", "N"].map(size).join(", ");
        manifest +=
            &format!("[[operator]]\nname = \"{name}\"\nfile = \"gemm\"\nsizes = {{ {sizes} }}\n");
    };
    operator("covered", &format!("\"1..{LAST}\""));
    values.iter().for_each(|value| operator(&format!("exact_{value}"), &value.to_string()));
    let manifest = Manifest::parse(Source::new("timed.toml", &manifest))?;
    let plan = Plan::new(&manifest, "timed", &mut |name| Module::parse(name, GEMM))?;
    plan.build(&BuildOptions::default())?.write(folder)?;
    let times = run_timer(folder, varying, &values)?;
    let measured = values.iter().zip(times).map(|(value, (covered, exact))| Measured {
        value: *value,
        is_bucket: buckets.contains(value),
        ratio: covered / exact,
        exact,
    });
    Ok(measured.collect())
}

/// Compiles and runs the C program; returns nanoseconds of bucketed and exact kernels for each
/// value.
fn run_timer(
    folder: &Path,
    varying: &str,
    values: &[i64],
) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let arguments = |value: i64| {
        let size = |name: &str| if name == varying { value } else { FIXED };
        ["M", "K", "N"].map(size).map(|size| size.to_string()).join(", ")
    };
    let one = |value: &i64| format!("    TIME({value}, {});\n", arguments(*value));
    let calls: String = values.iter().map(one).collect();
    std::fs::write(folder.join("timer.c"), TIMER.replace("    CALLS;\n", &calls))?;
    let program: PathBuf = folder.join("timer");
    let compiled = Command::new("cc")
        .args(["-O2", "-std=gnu11", "-I.", "timer.c", "libtimed.a", "-lm", "-o", "timer"])
        .current_dir(folder)
        .status()?;
    if !compiled.success() {
        return Err("the C compiler failed".into());
    }
    let output = String::from_utf8(Command::new(program).output()?.stdout)?;
    let times = output.lines().map(|line| {
        let (covered, exact) = line.split_once(' ').ok_or("the timer printed something else")?;
        Ok::<_, Box<dyn Error>>((covered.parse()?, exact.parse()?))
    });
    times.collect()
}

fn report(title: &str, measured: &[Measured]) {
    println!("{title}");
    for (kind, is_bucket) in [("buckets", true), ("between", false)] {
        let of_kind = || measured.iter().filter(|one| one.is_bucket == is_bucket);
        let mut ratios: Vec<f64> = of_kind().map(|one| one.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
        let worst = of_kind().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let worst = worst
            .map(|one| format!("{:.2} at {} ({:.1} us)", one.ratio, one.value, one.exact / 1e3));
        println!(
            "  {} {kind}: median {median:.2}, worst {}",
            ratios.len(),
            worst.unwrap_or_default()
        );
        let all: Vec<String> =
            of_kind().map(|one| format!("{}:{:.2}", one.value, one.ratio)).collect();
        for line in all.chunks(12) {
            println!("    {}", line.join(" "));
        }
    }
    println!();
}
