//! Prints FMA peak and memory bandwidth of one core.
//!
//! `cargo run --release -p tensorwright-runtime --example probes`
#![allow(clippy::print_stdout, reason = "prints a table")]

use std::error::Error;
use std::time::Duration;

use tensorwright_runtime::Machine;
use tensorwright_runtime::probe::{copy_bandwidth, fma_peak, fma_peak_f64, read_bandwidth};

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::detect();
    println!("{machine}\n");
    let duration = Duration::from_millis(200);
    println!("f32 FMA peak  {:7.1} GFLOP/s", fma_peak(duration));
    println!("f64 FMA peak  {:7.1} GFLOP/s", fma_peak_f64(duration));
    let caches = machine.caches;
    let beyond = 4 * caches.l3.unwrap_or(caches.l2);
    let sizes = [("half of L1", caches.l1d / 2), ("half of L2", caches.l2 / 2), ("memory", beyond)];
    for (name, bytes) in sizes {
        println!("read  {name:10} {:7.1} GB/s", read_bandwidth(bytes, duration)?);
        println!("copy  {name:10} {:7.1} GB/s", copy_bandwidth(bytes / 2, duration)?);
    }
    Ok(())
}
