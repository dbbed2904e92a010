//! Builds a [`Section`] from the statistics of a key.

use tensorwright_records::{Best, KeySummary, Result, RunSummary, Store, Trial};

use super::key_statistics::{KeyStatistics, StrategyRuns};
use super::space::{Space, SpaceName};
use super::{Limits, MOST_RUNS};
use crate::curve::{BestSoFar, Curve, Median, median, rounded};
use crate::importance::importance;
use crate::meta::Meta;
use crate::model::{Dots, Headline, Outcomes, Proposals, Reason, Roofs, Section, Strategy, Winner};

/// The most strategies to list.
const MOST_STRATEGIES: usize = 24;

/// The most reasons to list.
const MOST_REASONS: usize = 12;

/// The share of the best speed that counts as reaching the best.
const REACHED: f64 = 0.95;

/// The section of a key. `whole` if it covers all runs of the key.
pub(super) fn section(
    store: &dyn Store,
    summary: KeySummary,
    mut runs: Vec<RunSummary>,
    whole: bool,
    limits: Limits,
) -> Result<Section> {
    let runs_left_out = runs.len().saturating_sub(MOST_RUNS);
    runs.truncate(MOST_RUNS);
    let mut statistics = KeyStatistics::new(limits);
    for run in &runs {
        statistics.run(store, run)?;
    }
    let best = summary.best.filter(|best| {
        whole || runs.iter().any(|run| run.info.id == best.id.run && best.declared.is_some())
    });
    let removed = if whole { summary.removed } else { 0 };
    let roofs = roofs(&statistics.meta, summary.program.flops, summary.program.bytes);
    let headline = Headline {
        removed,
        first: runs.iter().map(|run| run.info.started).min(),
        last: runs.iter().map(|run| run.info.started).max(),
        ..headline(&mut statistics, best.as_ref(), summary.program.flops, roofs.as_ref())
    };
    let winner = winner(best, &statistics);
    let origins = origins(&statistics, winner.as_ref());
    let fastest = statistics.fastest.table(|space| {
        statistics.spaces.get(space).map_or(&[], |space| space.parameters.as_slice())
    });
    let order = ranking(&statistics.groups);
    let target = summary.key.target.split(" [").next().unwrap_or_default().to_owned();
    Ok(Section {
        machine: statistics.meta.machine.clone().unwrap_or(target),
        headline,
        roofs,
        strategies: strategies(&statistics, &order, limits),
        origins,
        outcomes: outcomes(&statistics),
        dots: dots(&statistics, &order),
        importance: most_tried(statistics.spaces),
        winner,
        fastest,
        runs: statistics.lines,
        runs_left_out,
        key: summary.key,
        program: summary.program,
    })
}

fn headline(
    statistics: &mut KeyStatistics,
    best: Option<&Best>,
    flops: f64,
    roofs: Option<&Roofs>,
) -> Headline {
    let fastest = statistics.fastest.first();
    let seconds = best.map(|best| best.seconds).or(fastest.map(|found| found.seconds));
    let timing = match best {
        Some(best) => best.trial.outcome.timing(),
        None => fastest.and_then(|found| found.trial.outcome.timing()),
    };
    let told = timing.and_then(|timing| timing.roofline);
    let meta = &statistics.meta;
    let gflops = seconds.filter(|_| flops > 0.0).map(|seconds| flops / seconds / 1e9);
    let by_time = meta.bound_seconds.zip(seconds).map(|(bound, seconds)| bound / seconds);
    let by_speed = roofs.zip(gflops).map(|(roofs, gflops)| gflops / roofs.attainable_gflops());
    // Prefer the default's time from the finals: times from other moments do not compare.
    let in_turns = best.as_ref().and_then(|best| best.declared.as_ref());
    let in_turns = in_turns.and_then(|declared| declared.against.get("default_seconds")?.as_f64());
    let default_seconds =
        in_turns.or(meta.default_seconds).or_else(|| median(&mut statistics.defaults));
    Headline {
        seconds,
        declared: best.is_some_and(|best| best.declared.is_some()),
        gflops,
        roofline: by_time.or(by_speed).or(told),
        default_seconds,
        speedup: default_seconds.zip(seconds).map(|(default, seconds)| default / seconds),
        trials: statistics.tally.trials(),
        refused: statistics.tally.count("illegal"),
        ..Headline::default()
    }
}

fn roofs(meta: &Meta, flops: f64, bytes: f64) -> Option<Roofs> {
    let flops = meta.flops.unwrap_or(flops);
    let bytes = meta.bytes.unwrap_or(bytes);
    let roofs = Roofs {
        peak_gflops: meta.peak_gflops?,
        peak_gbps: meta.peak_gbps?,
        intensity: flops / bytes,
    };
    (roofs.intensity.is_finite() && roofs.intensity > 0.0).then_some(roofs)
}

fn winner(best: Option<Best>, statistics: &KeyStatistics) -> Option<Winner> {
    let fastest =
        || statistics.fastest.first().map(|found| (found.id.clone(), found.trial.clone()));
    let (id, trial) = best.map(|best| (best.id, best.trial)).or_else(fastest)?;
    let Trial { origin, algorithm, schedule, .. } = trial;
    Some(Winner {
        trial: id,
        origin: origin.into(),
        algorithm,
        schedule,
        loops: None,
        stages: None,
    })
}

/// The groups to show, by the median of their runs' bests.
fn ranking(groups: &[StrategyRuns]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(groups[*at].trials));
    order.truncate(MOST_STRATEGIES);
    let middle = |at: &usize| median(&mut bests(&groups[*at])).unwrap_or(f64::INFINITY);
    order.sort_by(|a, b| {
        let names = || groups[*a].name.cmp(&groups[*b].name);
        middle(a).total_cmp(&middle(b)).then_with(names)
    });
    order
}

/// The best of each run; infinite for a run without one.
fn bests(group: &StrategyRuns) -> Vec<f64> {
    group.histories.iter().map(|(_, history)| history.best().unwrap_or(f64::INFINITY)).collect()
}

fn strategies(statistics: &KeyStatistics, order: &[usize], limits: Limits) -> Vec<Strategy> {
    let all = statistics.groups.iter().flat_map(bests);
    let goal = all.fold(f64::INFINITY, f64::min) / REACHED;
    order.iter().map(|at| strategy(&statistics.groups[*at], goal, limits)).collect()
}

fn strategy(group: &StrategyRuns, goal: f64, limits: Limits) -> Strategy {
    let finite = |value: &f64| value.is_finite();
    let mut bests = bests(group);
    let reached: Vec<_> =
        group.histories.iter().map(|(_, history)| history.reaches(goal)).collect();
    let middle = |place: fn(&crate::curve::Step) -> f64| {
        let places = reached.iter().map(|step| step.as_ref().map_or(f64::INFINITY, place));
        median(&mut places.collect::<Vec<_>>()).filter(finite).map(rounded)
    };
    let histories: Vec<&BestSoFar> = group.histories.iter().map(|(_, history)| history).collect();
    let curves = group.histories.iter().take(limits.curves);
    Strategy {
        name: group.name.clone(),
        runs: group.histories.len(),
        trials: group.trials,
        median_best: median(&mut bests).filter(finite),
        best: bests.first().copied().filter(finite),
        reached: reached.iter().flatten().count(),
        trials_to_reach: middle(|step| step.trial as f64),
        seconds_to_reach: middle(|step| step.elapsed),
        curves: curves.map(|(seed, history)| Curve::of(history, *seed, limits.steps)).collect(),
        median: (histories.len() > 1).then(|| Median::of(&histories, 2 * limits.steps)),
    }
}

/// The origins of the candidates.
fn origins(statistics: &KeyStatistics, winner: Option<&Winner>) -> Vec<Proposals> {
    let of = |(name, origin): (&String, &Proposals)| {
        let found_best = winner.is_some_and(|winner| winner.origin == *name);
        Proposals { found_best, ..origin.clone() }
    };
    let mut origins: Vec<Proposals> = statistics.origins.iter().map(of).collect();
    origins.sort_by_key(|origin| std::cmp::Reverse((origin.improvements, origin.proposed)));
    origins
}

fn outcomes(statistics: &KeyStatistics) -> Outcomes {
    let reasons = statistics.tally.commonest(MOST_REASONS).into_iter();
    let reason = |(kind, reason, count): (&'static str, &str, u64)| Reason {
        kind,
        reason: reason.to_owned(),
        count,
    };
    Outcomes {
        kinds: statistics.tally.kinds().collect(),
        reasons: reasons.map(reason).collect(),
        crashes: statistics.crashes.clone(),
    }
}

fn dots(statistics: &KeyStatistics, order: &[usize]) -> Dots {
    let mut dots = statistics.dots.clone().into_items();
    dots.sort_by_key(|dot| dot.trial);
    let mut columns = Dots { measured: statistics.dots.seen(), ..Dots::default() };
    for dot in dots {
        let Some(strategy) = order.iter().position(|at| *at == dot.group) else { continue };
        columns.trial.push(dot.trial);
        columns.seconds.push(rounded(dot.seconds));
        columns.strategy.push(strategy);
    }
    columns
}

/// The importance of parameters in the space with the most candidates.
fn most_tried(
    spaces: std::collections::BTreeMap<SpaceName, Space>,
) -> Option<crate::importance::Importance> {
    let space = spaces.into_values().max_by_key(|space| space.points.seen())?;
    importance(&space.points.into_items(), &space.parameters)
}
