//! Measures how well the cost model ranks measured schedules.
//!
//! For every run in a database of records, it prints the rank correlation between estimates and
//! times, and how much slower than the best measured schedule the model's first choice and the best
//! of its first five choices are.
//!
//! ```text
//! cargo run --release -p tensorwright-tuner --example cost_model -- records.db [--terms]
//! ```
//!
//! The last line says how much slower the default schedules are than the winners.
//!
//! With `--terms` it prints the terms of every point beside its time, for fitting.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::Path;

use tensorwright::{Goal, Module, Target};
use tensorwright_policy::{Preset, ScheduleSpace};
use tensorwright_records::{RunFilter, SqliteStore, Store, StoreOptions};
use tensorwright_space::Point;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("give a database of records")?;
    let with_terms = arguments.iter().any(|argument| argument == "--terms");
    let store = SqliteStore::open(Path::new(path), StoreOptions::default())?;
    let (mut correlations, mut regrets) = (Vec::new(), [Vec::new(), Vec::new()]);
    for run in store.runs(&RunFilter { limit: 10_000, ..RunFilter::default() })? {
        let Some(program) = store.program(&run.key.program)? else { continue };
        let module = Module::parse("record", &program.text)?;
        let program = module.def(&program.def)?.bind(Vec::<(&str, i64)>::new())?;
        let program = program.canonically_named();
        let threads = run.key.threads as usize;
        let goal = Goal::new(Target::native()?).with_threads(threads);
        let goal = goal.with_precision(run.key.precision).on_this_machine();
        let options = Preset::Full.options();
        let spaces = ScheduleSpace::alternatives(program.ir(), &goal, &options)?;
        for space in &spaces {
            let mut pairs: Vec<(f64, f64)> = Vec::new();
            for trial in store.trials(&run.info.id, None, 100_000)? {
                let Some(seconds) = trial.outcome.cost() else { continue };
                let point = Point::new(trial.point);
                let is_here = trial.algorithm == space.algorithm();
                if !is_here || !space.search_space().contains(&point) {
                    continue;
                }
                pairs.push((space.estimate(&point), seconds));
                if with_terms {
                    println!(
                        "{} {seconds:e} {} {:?} {}",
                        run.def,
                        space.algorithm(),
                        space.estimate_terms(&point),
                        space.search_space().text(&point)
                    );
                }
            }
            if pairs.len() < 8 {
                continue;
            }
            let correlation = spearman(&pairs);
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let best = |count: usize| {
                pairs.iter().take(count).map(|(_, time)| *time).fold(f64::INFINITY, f64::min)
            };
            let (all, first, five) = (best(pairs.len()), best(1), best(5));
            correlations.push(correlation);
            regrets[0].push(first / all);
            regrets[1].push(five / all);
            println!(
                "{:28} {:60} {:4} points, rank correlation {correlation:5.2}, first {:5.2}x, best \
                 of five {:5.2}x, {:.3} ms for {:.3}",
                run.def,
                format!("{:?} {}", run.sizes.values().collect::<Vec<_>>(), space.algorithm()),
                pairs.len(),
                first / all,
                five / all,
                pairs[0].0 / 2.5e6,
                pairs[0].1 * 1e3,
            );
        }
    }
    // Winners and the default schedule were timed in turns.
    let mut untuned: Vec<f64> = Vec::new();
    for (_, best) in store.declared()? {
        let default = best.against["default_seconds"].as_f64();
        untuned.extend(default.map(|default| default / best.seconds));
    }
    let geometric =
        |list: &[f64]| (list.iter().map(|x| x.ln()).sum::<f64>() / list.len().max(1) as f64).exp();
    println!(
        "{} runs: mean rank correlation {:.2}; geometric mean of the first {:.2}x, of the best of \
         five {:.2}x",
        correlations.len(),
        correlations.iter().sum::<f64>() / correlations.len().max(1) as f64,
        geometric(&regrets[0]),
        geometric(&regrets[1])
    );
    println!(
        "{} programs: the default schedule takes {:.2} times as long as the tuned one (geometric mean)",
        untuned.len(),
        geometric(&untuned)
    );
    Ok(())
}

fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |key: &dyn Fn(&(f64, f64)) -> f64| {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|a, b| key(&pairs[*a]).total_cmp(&key(&pairs[*b])));
        let mut ranks = vec![0.0; pairs.len()];
        order.into_iter().enumerate().for_each(|(rank, place)| ranks[place] = rank as f64);
        ranks
    };
    let (a, b) = (ranks(&|pair| pair.0), ranks(&|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let covariance: f64 = a.iter().zip(&b).map(|(a, b)| (a - mean) * (b - mean)).sum();
    let variance: f64 = a.iter().map(|a| (a - mean) * (a - mean)).sum();
    covariance / variance.max(f64::MIN_POSITIVE)
}
