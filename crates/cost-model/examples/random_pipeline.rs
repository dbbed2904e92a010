//! Prints a random pipeline and its training schedules.
//!
//! ```sh
//! cargo run -p tensorwright-cost-model --example random_pipeline -- 3 2    # seed, schedules
//! ```

#![allow(clippy::print_stdout, reason = "an example that prints")]

use tensorwright_cost_model::{RandomPipeline, candidates};
use tensorwright_lang::Module;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_pipeline::Machine;
use tensorwright_policy::cpu::Pipeline;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (seed, count) =
        (numbers.first().copied().unwrap_or(0), numbers.get(1).copied().unwrap_or(1));
    let text = RandomPipeline::new(seed).text;
    println!("{text}");
    let none: [(&str, i64); 0] = [];
    let program = Module::parse("random.tc", &text)?.bind("random", none)?;
    let goal = Goal::new(Cpu::avx512());
    let pipeline = Pipeline::new(&program, &goal);
    for (state, schedule) in candidates(&pipeline, &Machine::of(&goal), count as usize, seed) {
        println!("{}\n{schedule}\n", state.text(&pipeline.dag, &pipeline.levels));
    }
    Ok(())
}
