//! The runner: objects in, verdicts and times out, in a sandbox.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_kernel::CpuTarget;
use tensorwright_outcome::Timing;
use tensorwright_runtime::probe::Probe;
use tensorwright_runtime::timing::stats::{median_and_spread, quantile};
use tensorwright_runtime::{Machine, Pool};

use super::candidate::{Arena, Candidate};
use super::memory::Reused;
use super::{Connection, Served, probes, sandbox, timing};
use crate::TimingPlan;
use crate::protocol::{GREETING, Interface, RunnerReply, RunnerRequest, Verdict};
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
    let jit = CpuTarget::native().and_then(|native| Jit::new(&native)).map_err(|e| text(&e))?;
    // The linker asks the system about itself when it is first used; that must not be in the sandbox.
    let _ = jit.load(&[]).map(drop);
    let arena = Arena::new(&layout, &connection.shared).map_err(|error| text(&error))?;
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
            RunnerRequest::Run { interface, best, plan } => {
                let say = &mut |reply: &RunnerReply| connection.reply(frame.number, reply, &[]);
                let verdict = runner.run(&interface, &frame.bytes, best, &plan, say)?;
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
        interface: &Interface,
        object: &[u8],
        best: Option<f64>,
        plan: &TimingPlan,
        say: &mut dyn FnMut(&RunnerReply) -> Served,
    ) -> Result<Verdict, String> {
        let mut candidate = match self.prepare(interface, object) {
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
    fn prepare(&mut self, interface: &Interface, object: &[u8]) -> Result<Candidate, Verdict> {
        let mut candidate = Candidate::load(&self.jit, interface, object, &mut self.arena)?;
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
        let mismatch = self.arena.mismatch(candidate.error_growth());
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
        candidates: &[(Interface, usize)],
        objects: &[u8],
        budget: Duration,
        plan: &TimingPlan,
    ) -> Vec<Verdict> {
        let mut offset: usize = 0;
        let mut checked = Vec::new();
        for (interface, length) in candidates {
            let end = offset.saturating_add(*length);
            let object = objects.get(offset..end).unwrap_or_default();
            let entrant = self.prepare(interface, object).and_then(|mut candidate| {
                let first = self.check(&mut candidate)?;
                Ok((candidate, first))
            });
            checked.push(entrant);
            offset = end;
        }
        let mut turns: Vec<Turns> = Vec::new();
        for (number, checked) in checked.iter().enumerate() {
            if let Ok((_, first)) = checked {
                turns.push(Turns { number, batch: timing::batch(plan, *first), samples: vec![] });
            }
        }
        let rates = self.take_turns(&mut turns, &mut checked, budget, plan);
        let timings = weigh(&turns, &rates, &mut self.roofline);
        let mut verdicts: Vec<Verdict> = Vec::new();
        for checked in checked {
            verdicts.push(checked.map_or_else(|no| no, |_| Verdict::Right(Timing::default())));
        }
        for (turns, timing) in turns.iter().zip(timings) {
            if let Verdict::Right(place) = &mut verdicts[turns.number] {
                *place = timing;
            }
        }
        verdicts
    }

    /// Rounds of one sample per candidate, each round beginning with another one; the rates of the
    /// probe between the rounds.
    fn take_turns(
        &mut self,
        turns: &mut [Turns],
        checked: &mut [Result<(Candidate, Duration), Verdict>],
        budget: Duration,
        plan: &TimingPlan,
    ) -> Vec<f64> {
        let start = Instant::now();
        let mut rates = vec![self.probe.run_once().rate()];
        for round in 0.. {
            for place in 0..turns.len() {
                let place = (place + round) % turns.len();
                let Turns { number, batch, samples } = &mut turns[place];
                if plan.flush_caches {
                    empty_caches(&mut self.flush, self.cache_bytes);
                }
                let Ok((candidate, _)) = &mut checked[*number] else { continue };
                let mut call = || candidate.call(&mut self.arena, self.pool);
                match timing::sample(&mut call, *batch) {
                    Ok(sample) => samples.push(sample),
                    Err(verdict) => checked[*number] = Err(verdict),
                }
            }
            rates.push(self.probe.run_once().rate());
            let enough = round + 1 >= plan.least_samples as usize;
            if turns.is_empty() || start.elapsed() >= budget && enough {
                break;
            }
        }
        rates
    }
}

/// The samples of one candidate among others.
struct Turns {
    number: usize,
    batch: u32,
    samples: Vec<f64>,
}

/// Timings from rounds: that of the candidate with the least median, and for the others that one times
/// the median of the ratios of the rounds.
fn weigh(turns: &[Turns], rates: &[f64], roofline: &mut Roofline) -> Vec<Timing> {
    let median = |turns: &Turns| quantile(&mut turns.samples.clone(), 0.5);
    let fastest = turns.iter().min_by(|a, b| median(a).total_cmp(&median(b)));
    let Some(fastest) = fastest else { return Vec::new() };
    let base = timing::settle(&fastest.samples, fastest.batch, rates, roofline);
    let timing = |turns: &Turns| {
        let pairs = turns.samples.iter().zip(&fastest.samples);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        let (ratio, _) = median_and_spread(&ratios);
        let (raw_seconds, spread) = median_and_spread(&turns.samples);
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
        let turns =
            [Turns { number: 0, batch: 1, samples: b }, Turns { number: 1, batch: 2, samples: a }];
        let mut roofline =
            Roofline { peak_gflops: 1.0, peak_gbps: 1.0, flops: 1e9, bytes: 0.0, seconds: 1.0 };
        let timings = weigh(&turns, &[1.0], &mut roofline);
        assert!((timings[0].seconds / timings[1].seconds - 1.1).abs() < 1e-9);
        assert_eq!((timings[0].runs, timings[1].runs), (5, 10));
        assert!(weigh(&[], &[1.0], &mut roofline).is_empty());
    }
}
