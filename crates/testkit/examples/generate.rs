//! Prints the programs of seeds: `cargo run -p tensorwright-testkit --example generate -- 0 20`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let first = numbers.next().unwrap_or(0);
    let mut out = io::stdout().lock();
    for seed in first..first.saturating_add(numbers.next().unwrap_or(1)) {
        let program = tensorwright_testkit::generate(seed);
        let sizes: Vec<String> = program.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        writeln!(out, "# seed {seed}: --def {} --size {}", program.def, sizes.join(","))?;
        writeln!(out, "{}", program.text)?;
    }
    Ok(())
}
