//! Prints the schedule from a pipeline search, and the search time on stderr.
//!
//! ```text
//! pipeline FILE DEF H=1536,W=2560 [cuda:sm_80] [greedy] [no-sampling] [no-freezing] [no-memoization] [states]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;
use std::time::Instant;

use tensorwright_lang::Module;
use tensorwright_machine::{Goal, Target};
use tensorwright_pipeline::BeamOptions;
use tensorwright_policy::pipeline_search;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, def, sizes, flags @ ..] = arguments.as_slice() else {
        return Err("expected FILE DEF SIZES".into());
    };
    let sizes = sizes.split(',').filter_map(|size| size.split_once('='));
    let sizes = sizes.map(|(name, size)| Ok((name.to_owned(), size.parse()?)));
    let sizes: Vec<(String, i64)> = sizes.collect::<Result<_, std::num::ParseIntError>>()?;
    let program = Module::parse(file, &std::fs::read_to_string(file)?)?.bind(def, sizes)?;
    let has = |flag: &str| flags.iter().any(|known| known == flag);
    let mut options = if has("greedy") { BeamOptions::greedy() } else { BeamOptions::beam() };
    options.sampling = !has("no-sampling");
    options.freezing = !has("no-freezing");
    options.memoization = !has("no-memoization");
    let named = flags.iter().find(|flag| flag.contains(':'));
    let target = named.map_or_else(Target::native, |name| Target::named(name))?;
    let goal = Goal::new(target).with_threads(2);
    let start = Instant::now();
    let pipeline = pipeline_search(&program, &goal, None)?;
    let found = pipeline.search_while(&options, &mut || true);
    let searched = start.elapsed();
    for (state, cycles) in &found.states {
        if has("states") {
            eprint!("{}", state.text(pipeline.dag(), pipeline.levels()));
        }
        match pipeline.decode(state) {
            Ok(schedule) => {
                eprintln!(
                    "{cycles:.0} cycles; searched {searched:.2?}, {:.2?} with the schedule; {:?}",
                    start.elapsed(),
                    found.statistics
                );
                print!("{schedule}");
                return Ok(());
            }
            Err(refused) => eprintln!("refused: {refused:?}"),
        }
    }
    Err("no state can be decoded".into())
}
