//! The runner: objects in, verdicts and times out, in a sandbox.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_outcome::Timing;
use tensorwright_runtime::probe::Probe;
use tensorwright_runtime::timing::stats::{median_and_spread, quantile};
use tensorwright_runtime::{Machine, Pool};

use super::candidate::{Arena, Candidate};
use super::memory::Reused;
use super::{Connection, Served, probes, sandbox, timing};
use crate::TimingPlan;
use crate::protocol::{Compared, Description, GREETING, RunnerReply, RunnerRequest, Verdict};
use crate::roofline::Roofline;
use crate::shared::Layout;
use crate::system::AddressSpace;

/// Everything that a candidate meets.
struct Runner<'p> {
    jit: Jit,
    arena: Arena,
    pool: Option<&'p Pool>,
    probe: Box<dyn Probe + 'p>,
    roofline: Roofline,
    flush: Reused,
    cache_bytes: usize,
}

pub(super) fn serve(mut connection: Connection) -> Served {
    let Some((setup, program)) = connection.setup()? else { return Ok(()) };
    let layout = Layout::of(&program).ok_or("the tensors are too large")?;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let machine = Machine::detect();
    let jit = Processor::native().and_then(|native| Jit::new(&native)).map_err(|e| text(&e))?;
    // The linker asks the system about itself when it is first used; that must not be in the sandbox.
    let _ = jit.load(&[]).map(drop);
    let workers = i32::try_from(setup.threads).unwrap_or(i32::MAX);
    let arena = Arena::new(&program, &layout, workers, &connection.shared);
    let arena = arena.map_err(|error| text(&error))?;
    let used = AddressSpace::open().map_err(|error| text(&error))?;
    sandbox::leave_files()?;
    let pool = match setup.threads {
        1 => None,
        threads => Some(Pool::new(threads).map_err(|error| text(&error))?),
    };
    if let Some(Ok(pin)) = pool.as_ref().map(Pool::pin_caller) {
        // For as long as the process lives.
        std::mem::forget(pin);
    }
    let pool = pool.as_ref();
    let (probe, roofline) =
        probes::nearer(&program, pool, setup.roofline).map_err(|error| text(&error))?;
    let cache_bytes = 2 * machine.caches.l3.unwrap_or(machine.caches.l2);
    let flush = Reused::default();
    let mut runner = Runner { jit, arena, pool, probe, roofline, flush, cache_bytes };
    sandbox::enter(&used, setup.memory_bytes)?;
    connection.reply(GREETING, &RunnerReply::Ready(runner.roofline), &[])?;
    while let Some(frame) = connection.next()? {
        let request = frame.message().map_err(|error| format!("cannot read: {error}"))?;
        let reply = match request {
            RunnerRequest::Run { description, best, plan } => {
                let say = &mut |reply: &RunnerReply| connection.reply(frame.number, reply, &[]);
                let verdict = runner.run(&description, &frame.bytes, best, &plan, say)?;
                RunnerReply::Timed(verdict, runner.roofline)
            }
            RunnerRequest::Compare { candidates, budget, plan } => {
                let verdicts = runner.compare(&candidates, &frame.bytes, budget, &plan);
                RunnerReply::Compared(verdicts, runner.roofline)
            }
        };
        connection.reply(frame.number, &reply, &[])?;
    }
    Ok(())
}

impl Runner<'_> {
    fn run(
        &mut self,
        description: &Description,
        object: &[u8],
        best: Option<f64>,
        plan: &TimingPlan,
        say: &mut dyn FnMut(&RunnerReply) -> Served,
    ) -> Result<Verdict, String> {
        let mut candidate = match self.prepare(description, object) {
            Ok(candidate) => candidate,
            Err(verdict) => return Ok(verdict),
        };
        say(&RunnerReply::Prepared)?;
        let first = match self.check(&mut candidate) {
            Ok(first) => first,
            Err(verdict) => return Ok(verdict),
        };
        say(&RunnerReply::Checked)?;
        Ok(self.time(&mut candidate, first, best, plan).map_or_else(|no| no, Verdict::Right))
    }

    /// Links a candidate and runs what runs ahead of all calls.
    fn prepare(&mut self, description: &Description, object: &[u8]) -> Result<Candidate, Verdict> {
        let mut candidate = Candidate::load(&self.jit, description, object, &mut self.arena)?;
        candidate.prepare(&mut self.arena, self.pool)?;
        Ok(candidate)
    }

    /// Calls a candidate once; how long that took, if the result is right.
    fn check(&mut self, candidate: &mut Candidate) -> Result<Duration, Verdict> {
        self.arena.spoil(candidate);
        let start = Instant::now();
        candidate.call(&mut self.arena, self.pool)?;
        let first = start.elapsed();
        self.confirm(candidate)?;
        Ok(first)
    }

    fn confirm(&self, candidate: &Candidate) -> Result<(), Verdict> {
        let overrun = self.arena.overrun(candidate);
        let mismatch = overrun.or_else(|| self.arena.mismatch(candidate.error_growth()));
        mismatch.map_or(Ok(()), |reason| Err(Verdict::Wrong(reason)))
    }

    fn time(
        &mut self,
        candidate: &mut Candidate,
        first: Duration,
        best: Option<f64>,
        plan: &TimingPlan,
    ) -> Result<Timing, Verdict> {
        let Self { arena, pool, probe, roofline, flush, cache_bytes, .. } = self;
        let mut call = || candidate.call(arena, *pool);
        let flush = &mut || empty_caches(flush, *cache_bytes);
        let timing = timing::time(&mut call, first, best, plan, probe.as_mut(), roofline, flush)?;
        // Threads that race may be right once and wrong the next time.
        self.confirm(candidate)?;
        Ok(timing)
    }

    /// Candidates timed in turns, within the same moments: what differs between them then is not
    /// the machine.
    fn compare(
        &mut self,
        candidates: &[(Description, usize)],
        objects: &[u8],
        budget: Duration,
        plan: &TimingPlan,
    ) -> Vec<Compared> {
        let mut offset: usize = 0;
        let mut entrants = Vec::new();
        for (description, length) in candidates {
            let end = offset.saturating_add(*length);
            let object = objects.get(offset..end).unwrap_or_default();
            entrants.push(self.enter(description, object, plan));
            offset = end;
        }
        let rates = self.take_turns(&mut entrants, budget, plan);
        for entrant in &mut entrants {
            // Threads that race may be right once and wrong the next time.
            let again = entrant.as_mut().map(|entrant| self.check(&mut entrant.candidate).err());
            if let Ok(Some(verdict)) = again {
                *entrant = Err(verdict);
            }
        }
        weigh(entrants, &rates, &mut self.roofline)
    }

    /// Checks a candidate that takes part in a comparison, and settles how many calls make a sample.
    fn enter(
        &mut self,
        description: &Description,
        object: &[u8],
        plan: &TimingPlan,
    ) -> Result<Entrant, Verdict> {
        let mut candidate = self.prepare(description, object)?;
        let first = self.check(&mut candidate)?;
        let warm = timing::warm(&mut || candidate.call(&mut self.arena, self.pool), first, plan)?;
        let batch = timing::batch(plan, Duration::from_secs_f64(warm));
        Ok(Entrant { candidate, batch, samples: Vec::new() })
    }

    /// Rounds of one sample per candidate, each round beginning with another one; the rates of the
    /// probe between the rounds.
    fn take_turns(
        &mut self,
        entrants: &mut [Result<Entrant, Verdict>],
        budget: Duration,
        plan: &TimingPlan,
    ) -> Vec<f64> {
        let start = Instant::now();
        let mut rates = vec![self.probe.run_once().rate()];
        for round in 0.. {
            for place in 0..entrants.len() {
                let place = (place + round) % entrants.len();
                if plan.flush_caches {
                    empty_caches(&mut self.flush, self.cache_bytes);
                }
                let Ok(Entrant { candidate, batch, samples }) = &mut entrants[place] else {
                    continue;
                };
                let mut call = || candidate.call(&mut self.arena, self.pool);
                match timing::sample(&mut call, *batch) {
                    Ok(sample) => samples.push(sample),
                    Err(verdict) => entrants[place] = Err(verdict),
                }
            }
            rates.push(self.probe.run_once().rate());
            let (rounds, elapsed) = (round + 1, start.elapsed());
            let least = plan.least_rounds as usize;
            let is_over = elapsed >= budget && rounds >= least
                || elapsed >= budget * 4 && rounds >= least / 2;
            if is_over || entrants.iter().all(Result::is_err) {
                break;
            }
        }
        rates
    }
}

/// A candidate in a comparison, with a sample of every round.
struct Entrant {
    candidate: Candidate,
    batch: u32,
    samples: Vec<f64>,
}

/// What came of a comparison: a timing and the rounds of each candidate that is right.
fn weigh(
    entrants: Vec<Result<Entrant, Verdict>>,
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

/// The samples of one candidate among others.
struct Turns<'s> {
    batch: u32,
    samples: &'s [f64],
}

/// Timings from rounds: that of the candidate with the least median, and for the others that one times
/// the median of the ratios of the rounds.
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

/// Fills the caches with something else. Without memory for that, they stay as they are.
fn empty_caches(buffer: &mut Reused, bytes: usize) {
    let Ok(region) = buffer.at_least(bytes) else { return };
    let lines = region.bytes_mut().iter_mut().step_by(64);
    lines.for_each(|byte| *byte = byte.wrapping_add(1));
    black_box(region.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_rounds_decide_and_not_medians() {
        // The machine slows down by half; both do, and the second is always 10 % slower.
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
