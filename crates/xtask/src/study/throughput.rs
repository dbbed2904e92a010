//! Figure 7: run times of the beam's schedules, with sampling and freezing on and off.

use std::collections::HashMap;
use std::time::Duration;

use tensorwright::{Goal, Program};
use tensorwright_measure::{Config, Measurer, TimingPlan, WorkerCommand};
use tensorwright_schedule::Schedule;

use super::applications::{Application, applications};
use super::svg::{self, Axis, text};
use super::switches::{SearchResult, Switches, search};
use super::{StudyOptions, mean};

/// The schedules measured per search.
const TOP: usize = 5;

/// The states tried at most: some have no schedule, or the same one.
const TRIES: usize = 64;

/// The measurements per schedule; the minimum counts.
const TIMES: usize = 2;

/// The polling interval for builds and runs.
const TICK: Duration = Duration::from_millis(500);

/// Prints speeds for one shot and for the best of five, relative to the best of five with both
/// optimisations: medians over the seeds. Above 1 is faster. Also writes a plot.
pub(super) fn run(options: &StudyOptions) -> Result<(), String> {
    let goal = options.goal()?;
    let heads = Switches::FOUR.map(Switches::beside_memoization);
    let columns =
        |of: &str| heads.iter().map(|head| format!(" {of}: {head} |")).collect::<String>();
    println!("| application | ms |{}{}", columns("one shot"), columns("of five"));
    println!("| --- | --- |{}", " --- |".repeat(2 * heads.len()));
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); 2 * heads.len()];
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for application in applications(&options.only)? {
        let times = times(options, &goal, &application)?;
        let Some(unit) = times.get(heads.len()).copied() else { continue };
        let shares: Vec<f64> = times.iter().map(|seconds| unit / seconds).collect();
        let cells: String = shares.iter().map(|share| format!(" {share:.2} |")).collect();
        println!("| {} | {:.2} |{cells}", application.name, unit * 1e3);
        all.iter_mut().zip(&shares).for_each(|(column, share)| column.push(*share));
        rows.push((application.name, shares));
    }
    let means: Vec<f64> = all.iter().map(|column| mean(column)).collect();
    let cells: String = means.iter().map(|mean| format!(" {mean:.2} |")).collect();
    println!("| geometric mean | |{cells}");
    rows.push(("geometric mean".to_owned(), means));
    match &options.plot {
        Some(path) => svg::write(path, &plot(&heads, &rows)),
        None => Ok(()),
    }
}

const WIDTH: f64 = 720.0;
const LEFT: f64 = 160.0;
const ABOVE: f64 = 64.0;
const ROW: f64 = 22.0;

/// The switches' colours, in the order of [`Switches::FOUR`].
const COLOURS: [&str; 4] = ["#2f6fb2", "#3a9a5b", "#e08a2e", "#999999"];

/// The plot: a line per application, with a ring for the first choice and a disc for the best of
/// five.
fn plot(heads: &[String], rows: &[(String, Vec<f64>)]) -> String {
    let height = ABOVE + ROW * (rows.len() as f64 + 1.0);
    let all = || rows.iter().flat_map(|(_, shares)| shares.iter().copied());
    let low = all().filter(|share| *share > 0.0).fold(0.5, f64::min) / 1.1;
    let high = all().filter(|share| share.is_finite()).fold(1.25, f64::max) * 1.1;
    let x = Axis { low, high, from: LEFT, to: WIDTH - 20.0 };
    let about = "throughput over that of sampling and freezing, best of five; ring: first choice, disc: best of five";
    let mut parts = vec![text(12.0, 16.0, "start", about)];
    for (place, (head, colour)) in heads.iter().zip(COLOURS).enumerate() {
        let at = LEFT + 140.0 * place as f64;
        parts.push(format!("<circle cx=\"{at:.1}\" cy=\"32\" r=\"5\" fill=\"{colour}\"/>"));
        parts.push(text(at + 10.0, 36.0, "start", head));
    }
    let ticks = [0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 4.0];
    for tick in ticks.into_iter().filter(|tick| (low..=high).contains(tick)) {
        let (at, colour) = (x.at(tick), if tick == 1.0 { "#222222" } else { "#d8d8d8" });
        parts.push(svg::line((at, ABOVE - 4.0), (at, height - 8.0), colour));
        parts.push(text(at, ABOVE - 8.0, "middle", tick));
    }
    for (row, (name, shares)) in rows.iter().enumerate() {
        let y = ABOVE + ROW * (row as f64 + 0.5);
        parts.push(text(LEFT - 12.0, y + 4.0, "end", name));
        // The most interesting marks are drawn last, on top.
        for (place, share) in shares.iter().enumerate().rev().filter(|(_, share)| **share > 0.0) {
            let colour = COLOURS[place % COLOURS.len()];
            let fill = if place < COLOURS.len() { "none" } else { colour };
            parts.push(format!(
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                x.at(*share)
            ));
        }
    }
    svg::document(WIDTH, height, &parts)
}

/// Median seconds over the seeds: the first choice for each combination, then the best of five.
fn times(
    options: &StudyOptions,
    goal: &Goal,
    application: &Application,
) -> Result<Vec<f64>, String> {
    let program = &application.program;
    let mut choices: Vec<Vec<Vec<Schedule>>> = Vec::new();
    for switches in Switches::FOUR {
        let mut of_seeds = Vec::new();
        for seed in 0..options.seeds.max(1) {
            let found = search(program.ir(), goal, switches, seed, options.longest)?;
            of_seeds.push(schedules(&found));
        }
        choices.push(of_seeds);
    }
    let seconds = measure(options, goal, program, choices.iter().flatten().flatten())
        .map_err(|error| format!("{}: {error}", application.name))?;
    let of = |schedule: &Schedule| seconds.get(&schedule.to_string()).copied();
    let median = |of_seeds: &[Vec<Schedule>], count: usize| {
        let best = |schedules: &Vec<Schedule>| {
            schedules.iter().take(count).filter_map(of).fold(f64::INFINITY, f64::min)
        };
        let mut times: Vec<f64> = of_seeds.iter().map(best).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok([1, TOP]
        .iter()
        .flat_map(|count| choices.iter().map(move |of_seeds| median(of_seeds, *count)))
        .collect())
}

/// The best different schedules of a search, by the model.
fn schedules(found: &SearchResult) -> Vec<Schedule> {
    let mut schedules: Vec<Schedule> = Vec::new();
    for (state, _) in found.outcome.states.iter().take(TRIES) {
        if schedules.len() == TOP {
            break;
        }
        if let Ok(schedule) = found.pipeline.decode(state)
            && !schedules.contains(&schedule)
        {
            schedules.push(schedule);
        }
    }
    schedules
}

/// The minimum seconds of each schedule by its text; failures are left out.
fn measure<'a>(
    options: &StudyOptions,
    goal: &Goal,
    program: &Program,
    schedules: impl Iterator<Item = &'a Schedule>,
) -> Result<HashMap<String, f64>, String> {
    let mut all: Vec<&Schedule> = Vec::new();
    for schedule in schedules {
        if !all.contains(&schedule) {
            all.push(schedule);
        }
    }
    let worker = WorkerCommand::new(&options.command).arg("worker");
    let mut config = Config::new(worker, goal.target.clone());
    config.threads = goal.threads();
    config.timing = TimingPlan { maximum: Duration::from_millis(200), ..TimingPlan::default() };
    let mut measurer = Measurer::start(program, config).map_err(|error| error.to_string())?;
    for _ in 0..TIMES {
        for (number, schedule) in all.iter().enumerate() {
            measurer.submit(number as u64, schedule);
        }
    }
    let mut seconds: HashMap<String, f64> = HashMap::new();
    while measurer.in_flight() > 0 {
        let Some(finished) = measurer.next(TICK) else { continue };
        let Some(schedule) = all.get(finished.id as usize) else { continue };
        match finished.outcome.timing() {
            Some(timing) => {
                let least = seconds.entry(schedule.to_string()).or_insert(f64::INFINITY);
                *least = least.min(timing.seconds);
            }
            None => eprintln!("a schedule was not measured: {:?}", finished.outcome),
        }
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_is_drawn() {
        let heads = Switches::FOUR.map(Switches::beside_memoization);
        let shares = vec![0.9, 0.8, 0.7, 0.6, 1.0, 1.1, 0.3, 0.0];
        let svg = plot(&heads, &[("blur".to_owned(), shares)]);
        // Four in the legend; unmeasured points are left out.
        assert_eq!(svg.matches("<circle").count(), 4 + 7, "{svg}");
        assert!(svg.contains(">blur<") && svg.contains(">neither<"), "{svg}");
    }
}
