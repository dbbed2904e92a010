//! The runner: checks and times candidates.

use std::time::{Duration, Instant};

use tensorwright_outcome::Timing;
use tensorwright_runtime::timing::stats::{median_and_spread, quantile};

use super::backend::Backend;
use super::{Connection, Served, timing};
use crate::TimingPlan;
use crate::protocol::{Compared, Description, GREETING, RunnerReply, RunnerRequest, Verdict};
use crate::roofline::Roofline;

/// The state of the runner.
struct Runner<B> {
    backend: B,
    roofline: Roofline,
}

/// Answers requests until the parent is gone.
pub(super) fn work(
    mut connection: Connection,
    backend: impl Backend,
    roofline: Roofline,
) -> Served {
    let mut runner = Runner { backend, roofline };
    connection.reply(GREETING, &RunnerReply::Ready(runner.roofline), &[])?;
    while let Some(frame) = connection.next()? {
        let request = frame.message().map_err(|error| format!("cannot read: {error}"))?;
        let reply = match request {
            RunnerRequest::Run { description, best, plan } => {
                let say = &mut |reply: &RunnerReply| connection.reply(frame.number, reply, &[]);
                let verdict = runner.run(&description, &frame.bytes, best, &plan, say)?;
                RunnerReply::Timed(verdict, runner.roofline)
            }
            RunnerRequest::Compare { candidates, budget, limit, plan } => {
                let time = Time { begun: Instant::now(), budget, limit };
                let verdicts = runner.compare(&candidates, &frame.bytes, &time, &plan);
                RunnerReply::Compared(verdicts, runner.roofline)
            }
        };
        connection.reply(frame.number, &reply, &[])?;
    }
    Ok(())
}

impl<B: Backend> Runner<B> {
    fn run(
        &mut self,
        description: &Description,
        code: &[u8],
        best: Option<f64>,
        plan: &TimingPlan,
        say: &mut dyn FnMut(&RunnerReply) -> Served,
    ) -> Result<Verdict, String> {
        let mut candidate = match self.backend.load(description, code) {
            Ok(candidate) => candidate,
            Err(verdict) => return Ok(verdict),
        };
        if B::COMPILES {
            say(&RunnerReply::Loaded)?;
        }
        if let Err(verdict) = self.backend.prepare(&mut candidate) {
            return Ok(verdict);
        }
        say(&RunnerReply::Prepared)?;
        let first = match self.check(&mut candidate) {
            Ok(first) => first,
            Err(verdict) => return Ok(verdict),
        };
        say(&RunnerReply::Checked)?;
        Ok(self.time(&mut candidate, first, best, plan).map_or_else(|no| no, Verdict::Right))
    }

    /// Calls a candidate once; returns the time if the result is right.
    fn check(&mut self, candidate: &mut B::Candidate) -> Result<Duration, Verdict> {
        self.backend.poison(candidate)?;
        let first = self.backend.sample(candidate, 1)?;
        self.backend.confirm(candidate)?;
        Ok(Duration::try_from_secs_f64(first).unwrap_or(Duration::MAX))
    }

    fn time(
        &mut self,
        candidate: &mut B::Candidate,
        first: Duration,
        best: Option<f64>,
        plan: &TimingPlan,
    ) -> Result<Timing, Verdict> {
        let Self { backend, roofline } = self;
        let timing = timing::time(backend, candidate, first, best, plan, roofline)?;
        // A data race may give right results once and wrong ones the next time.
        self.backend.confirm(candidate)?;
        Ok(timing)
    }

    /// Times candidates in turns, within the same moments, so that the machine affects all alike.
    fn compare(
        &mut self,
        candidates: &[(Description, usize)],
        codes: &[u8],
        time: &Time,
        plan: &TimingPlan,
    ) -> Vec<Compared> {
        let mut offset: usize = 0;
        let mut entrants = Vec::new();
        for (description, length) in candidates {
            let end = offset.saturating_add(*length);
            let code = codes.get(offset..end).unwrap_or_default();
            entrants.push(self.enter(description, code, plan));
            offset = end;
        }
        let rates = self.take_turns(&mut entrants, time, plan);
        for entrant in &mut entrants {
            // A data race may give right results once and wrong ones the next time.
            let again = entrant.as_mut().map(|entrant| self.check(&mut entrant.candidate).err());
            if let Ok(Some(verdict)) = again {
                *entrant = Err(verdict);
            }
        }
        weigh(entrants, &rates, &mut self.roofline)
    }

    /// Checks a participant of a comparison and chooses the calls per sample.
    fn enter(
        &mut self,
        description: &Description,
        code: &[u8],
        plan: &TimingPlan,
    ) -> Result<Entrant<B::Candidate>, Verdict> {
        let mut candidate = self.backend.load(description, code)?;
        self.backend.prepare(&mut candidate)?;
        let first = self.check(&mut candidate)?;
        let warm = timing::warm(&mut self.backend, &mut candidate, first, plan)?;
        let batch = timing::batch(plan, Duration::from_secs_f64(warm));
        Ok(Entrant { candidate, batch, samples: Vec::new() })
    }

    /// Times rounds of one sample per candidate, each starting with another one; also returns the
    /// probe's rates between the rounds.
    fn take_turns(
        &mut self,
        entrants: &mut [Result<Entrant<B::Candidate>, Verdict>],
        time: &Time,
        plan: &TimingPlan,
    ) -> Vec<f64> {
        let start = Instant::now();
        let mut rates = vec![self.backend.rate()];
        for round in 0.. {
            for place in 0..entrants.len() {
                let place = (place + round) % entrants.len();
                if plan.flush_caches {
                    self.backend.flush();
                }
                let Ok(Entrant { candidate, batch, samples }) = &mut entrants[place] else {
                    continue;
                };
                match self.backend.sample(candidate, *batch) {
                    Ok(sample) => samples.push(sample),
                    Err(verdict) => entrants[place] = Err(verdict),
                }
            }
            rates.push(self.backend.rate());
            let is_over = time.is_over(round + 1, start.elapsed(), plan.least_rounds as usize);
            if is_over || entrants.iter().all(Result::is_err) {
                break;
            }
        }
        rates
    }
}

/// The time of a comparison.
struct Time {
    begun: Instant,
    /// The time for rounds.
    budget: Duration,
    /// The time, including loading and checking, after which no round begins.
    limit: Duration,
}

impl Time {
    /// Whether there were enough rounds, or there is no time for more.
    fn is_over(&self, rounds: usize, elapsed: Duration, least: usize) -> bool {
        elapsed >= self.budget && rounds >= least
            || elapsed >= self.budget.saturating_mul(4) && rounds >= least / 2
            || self.begun.elapsed() >= self.limit
    }
}

/// A candidate in a comparison, with its sample of every round.
struct Entrant<C> {
    candidate: C,
    batch: u32,
    samples: Vec<f64>,
}

/// The results of a comparison: a timing and the rounds of each right candidate.
fn weigh<C>(
    entrants: Vec<Result<Entrant<C>, Verdict>>,
    rates: &[f64],
    roofline: &mut Roofline,
) -> Vec<Compared> {
    let turns: Vec<Turns<'_>> = entrants
        .iter()
        .flatten()
        .map(|entrant| Turns { batch: entrant.batch, samples: &entrant.samples })
        .collect();
    let mut timings = timings(&turns, rates, roofline).into_iter();
    let compared = entrants.into_iter().map(|entrant| match entrant {
        Ok(entrant) => Compared {
            verdict: Verdict::Right(timings.next().unwrap_or_default()),
            rounds: entrant.samples,
        },
        Err(verdict) => Compared { verdict, rounds: Vec::new() },
    });
    compared.collect()
}

/// The samples of one candidate in a comparison.
struct Turns<'s> {
    batch: u32,
    samples: &'s [f64],
}

/// Timings from rounds: the candidate with the least median is the base, and the others take its
/// time multiplied by the median ratio of the rounds.
fn timings(turns: &[Turns<'_>], rates: &[f64], roofline: &mut Roofline) -> Vec<Timing> {
    let median = |turns: &Turns<'_>| quantile(&mut turns.samples.to_vec(), 0.5);
    let fastest = turns.iter().min_by(|a, b| median(a).total_cmp(&median(b)));
    let Some(fastest) = fastest else { return Vec::new() };
    let base = timing::settle(fastest.samples, fastest.batch, rates, roofline);
    let timing = |turns: &Turns<'_>| {
        let pairs = turns.samples.iter().zip(fastest.samples);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        let (ratio, _) = median_and_spread(&ratios);
        let (raw_seconds, spread) = median_and_spread(turns.samples);
        let seconds = base.seconds * ratio;
        let runs = u32::try_from(turns.samples.len()).unwrap_or(u32::MAX);
        let runs = runs.saturating_mul(turns.batch);
        Timing { seconds, raw_seconds, spread, runs, roofline: roofline.share(seconds), cut: false }
    };
    turns.iter().map(timing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_rounds_decide_and_not_medians() {
        // The machine slows down by half; both slow down, and the second is always 10 % slower.
        let a = vec![1.0, 1.0, 1.5, 1.5, 1.5];
        let b: Vec<f64> = a.iter().map(|a| a * 1.1).collect();
        let turns = [Turns { batch: 1, samples: &b }, Turns { batch: 2, samples: &a }];
        let mut roofline =
            Roofline { peak_gflops: 1.0, peak_gbps: 1.0, flops: 1e9, bytes: 0.0, seconds: 1.0 };
        let found = timings(&turns, &[1.0], &mut roofline);
        assert!((found[0].seconds / found[1].seconds - 1.1).abs() < 1e-9);
        assert_eq!((found[0].runs, found[1].runs), (5, 10));
        assert!(timings(&[], &[1.0], &mut roofline).is_empty());
    }
}
