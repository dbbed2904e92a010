//! Tables 1 to 3.

use super::applications::applications;
use super::switches::{Switches, search};
use super::{StudyOptions, mean};

/// The seconds of a search, and whether the time limit ended it.
type Timed = (f64, bool);

/// A statistic over the searches of a program, by column.
type Figure<'a> = &'a dyn Fn(&[Timed], usize) -> f64;

/// Prints table 1: evaluated states, preceded by the number of costed states with all three
/// optimisations. Costs are the model's cost of the result, relative to that without sampling and
/// freezing.
pub(super) fn states(options: &StudyOptions) -> Result<(), String> {
    let goal = options.goal()?;
    let mut head = "| application | stages | computed, all three |".to_owned();
    for switches in Switches::FOUR {
        head += &format!(" {} | cost |", switches.beside_memoization());
    }
    println!("{head}\n|{}", " --- |".repeat(3 + 2 * Switches::FOUR.len()));
    let mut computed = Vec::new();
    let mut columns = vec![(Vec::new(), Vec::new()); Switches::FOUR.len()];
    for application in applications(&options.only)? {
        let mut found = Vec::new();
        for switches in Switches::FOUR {
            let of = search(application.program.ir(), &goal, switches, 0, options.longest)?;
            let cost = of.outcome.states.first().map_or(f64::NAN, |(_, cost)| *cost);
            found.push((of.outcome.statistics, cost, of.is_ended));
        }
        let [(all_three, ..), .., (neither, base, _)] = found.as_slice() else { continue };
        let most = neither.states as f64;
        let share = all_three.computed as f64 / most;
        computed.push(share);
        let stages = application.program.ir().stages.len();
        let mut row = format!(
            "| {} | {stages} | {} ({:.1} %) |",
            application.name,
            all_three.computed,
            100.0 * share
        );
        for ((taken, cost, is_ended), (shares, losses)) in found.iter().zip(&mut columns) {
            let (share, loss) = (taken.states as f64 / most, cost / base);
            let mark = if *is_ended { "more than " } else { "" };
            row += &format!(" {mark}{} ({:.1} %) | {loss:.2} |", taken.states, 100.0 * share);
            shares.push(share);
            losses.push(loss);
        }
        println!("{row}");
    }
    let mut row = format!("| geometric mean | | {:.1} % |", 100.0 * mean(&computed));
    for (shares, losses) in &columns {
        row += &format!(" {:.1} % | {:.2} |", 100.0 * mean(shares), mean(losses));
    }
    println!("{row}");
    Ok(())
}

/// Prints table 2, and then table 3.
pub(super) fn times(options: &StudyOptions) -> Result<(), String> {
    let goal = options.goal()?;
    let all = Switches::eight();
    let mut head = "| application |".to_owned();
    for switches in &all {
        head += &format!(" {} |", switches.head());
    }
    let rule = format!("|{}", " --- |".repeat(all.len() + 1));
    println!("{head}\n{rule}");
    let mut rows = Vec::new();
    for application in applications(&options.only)? {
        let mut seconds = Vec::new();
        let mut row = format!("| {} |", application.name);
        for switches in &all {
            let found = search(application.program.ir(), &goal, *switches, 0, options.longest)?;
            let mark = if found.is_ended { "> " } else { "" };
            row += &format!(" {mark}{:.2} |", found.time.as_secs_f64());
            seconds.push((found.time.as_secs_f64(), found.is_ended));
        }
        println!("{row}");
        rows.push((application.name, seconds));
    }
    let column = |place: usize, of: Figure<'_>| {
        mean(&rows.iter().map(|(_, seconds)| of(seconds, place)).collect::<Vec<f64>>())
    };
    let means = |of: Figure<'_>, digits: usize| {
        let cells = (0..all.len()).map(|place| format!(" {:.digits$} |", column(place, of)));
        format!("| geometric mean |{}", cells.collect::<String>())
    };
    println!("{}\n\n{head}\n{rule}", means(&|seconds, place| seconds[place].0, 2));
    let speedup = |seconds: &[Timed], place: usize| {
        seconds.last().map_or(1.0, |last| last.0 / seconds[place].0)
    };
    for (name, seconds) in &rows {
        let is_more = |place: usize| seconds.last().is_some_and(|last| last.1) && !seconds[place].1;
        let mark = |place| if is_more(place) { "> " } else { "" };
        let cells =
            (0..all.len()).map(|place| format!(" {}{:.1} |", mark(place), speedup(seconds, place)));
        println!("| {name} |{}", cells.collect::<String>());
    }
    println!("{}", means(&speedup, 1));
    Ok(())
}
