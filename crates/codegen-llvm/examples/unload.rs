//! Compiles, loads and unloads a function repeatedly; prints resident memory.
//!
//! `cargo run --release -p tensorwright-codegen-llvm --example unload -- 10000`
#![allow(unsafe_code, reason = "the example calls the code it generates")]
#![allow(clippy::print_stdout, reason = "the example reports on standard output")]

use std::error::Error;

use inkwell::context::Context;
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;

fn main() -> Result<(), Box<dyn Error>> {
    let cycles = std::env::args().nth(1).map_or(Ok(10_000), |count| count.parse::<u64>())?;
    let target = Processor::native()?;
    let jit = Jit::new(&target)?;
    for cycle in 0..=cycles {
        let value = run(&target, &jit, cycle)?;
        if value != cycle {
            return Err(format!("cycle {cycle} returned {value}").into());
        }
        if cycle % (cycles / 10).max(1) == 0 {
            println!("{cycle:>6} cycles: {:>8} KiB resident", resident_kib()?);
        }
    }
    Ok(())
}

/// Compiles, calls and unloads a function that returns a number.
fn run(target: &Processor, jit: &Jit, number: u64) -> Result<u64, Box<dyn Error>> {
    let machine = target.machine()?;
    let context = Context::create();
    let module = context.create_module("unload");
    target.prepare(&module, &machine);
    let integer = context.i64_type();
    let name = format!("number{number}");
    let function = module.add_function(&name, integer.fn_type(&[], false), None);
    target.annotate(function);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    builder.build_return(Some(&integer.const_int(number, false)))?;
    let code = jit.load_module(&module, &machine)?;
    // SAFETY: the function takes nothing, returns 64 bits, and `code` outlives the call.
    let call: unsafe extern "C" fn() -> u64 = unsafe { code.function(&name)? };
    // SAFETY: as above.
    Ok(unsafe { call() })
}

fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}
