//! Compile times from a bound program to a callable kernel, for four kernels.
//!
//! ```console
//! $ cargo run --release -p tensorwright --example compile_times
//! ```
//!
//! Each is compiled twenty times; prints the fastest, phase by phase, in milliseconds.

#![allow(clippy::print_stdout, reason = "an example that prints a table")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tensorwright::Module;

/// An example: name, file and definition, sizes, schedule or its text.
type Example =
    (&'static str, &'static str, &'static str, &'static [(&'static str, i64)], &'static str);

const KERNELS: [Example; 4] = [
    ("GEMV", "matvec.tc", "gemv", &[("M", 4096), ("K", 4096)], "gemv_4096.sched"),
    ("GEMM, divisible", "gemm.tc", "gemm", &[("M", 252), ("N", 256), ("K", 256)], DIVISIBLE),
    ("GEMM, packed, with tails", "gemm.tc", "gemm", &CUBE, "gemm_509.sched"),
    ("convolution", "conv2d.tc", "conv2d_two_stage", &LAYER, "conv2d_256_512_28.sched"),
];

const CUBE: [(&str, i64); 3] = [("M", 509), ("N", 509), ("K", 509)];

const LAYER: [(&str, i64); 9] = [
    ("B", 1),
    ("IP", 256),
    ("OP", 512),
    ("H", 28),
    ("W", 28),
    ("KH", 3),
    ("KW", 3),
    ("s", 1),
    ("p", 1),
];

const DIVISIBLE: &str = "C: split m 6\nC: split n 4 16\nC: reorder n.0 m.0 k m.1 n.1 n.2\n\
    C: unroll m.1\nC: unroll n.1\nC: vectorize n.2\nC: cache_write at m.0\n";

fn main() -> Result<(), Box<dyn Error>> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    println!(
        "{:26} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "ms", "schedule", "emit", "passes", "codegen", "load", "total"
    );
    for (name, file, def, sizes, schedule) in KERNELS {
        let text = fs::read_to_string(examples.join("kernels").join(file))?;
        let program = Module::parse(file, &text)?.def(def)?.bind(sizes.iter().copied())?;
        let schedule = match schedule.strip_suffix(".sched") {
            Some(_) => fs::read_to_string(examples.join("schedules").join(schedule))?,
            None => schedule.to_owned(),
        };
        let mut best = [Duration::MAX; 6];
        for _ in 0..20 {
            let start = Instant::now();
            let kernel = program.compile().schedule_text(&schedule)?.build()?;
            let total = start.elapsed();
            let times = kernel.compile_times();
            let rest = times.emit + times.passes + times.codegen + times.load;
            let phases = [
                total.saturating_sub(rest),
                times.emit,
                times.passes,
                times.codegen,
                times.load,
                total,
            ];
            for (best, time) in best.iter_mut().zip(phases) {
                *best = time.min(*best);
            }
        }
        let columns = best.map(|time| format!("{:8.2}", time.as_secs_f64() * 1e3));
        println!("{name:26} {}", columns.join(" "));
    }
    Ok(())
}
