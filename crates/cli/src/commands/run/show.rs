//! The output of `run`.

use std::io::{self, Write};

use serde::Serialize;
use tensorwright::{Buffer, DType, Precision, Program, Value, Verification, summarize};
use tensorwright_measure::Roof;
use tensorwright_outcome::Seconds;

use crate::args::{Format, RunArgs};
use crate::measure::Measurement;
use crate::report;

/// The results of a run.
pub(super) struct Report {
    pub(super) engine: Engine,
    /// The time of the first call, in seconds.
    pub(super) seconds: f64,
    pub(super) outputs: Vec<Computed>,
    pub(super) verification: Option<Verification>,
    pub(super) measurement: Option<Measurement>,
}

/// What computed the results.
pub(super) enum Engine {
    Reference,
    Compiled {
        target: String,
        threads: usize,
        compile_seconds: f64,
        precision: Precision,
        error_growth: f64,
    },
}

/// One output with its verification results.
pub(super) struct Computed {
    pub(super) name: String,
    pub(super) buffer: Buffer,
    /// The error bound of an evaluation in the output's own type; only the reference computes it.
    pub(super) tolerance: Option<f64>,
}

/// One output as JSON.
#[derive(Debug, Serialize)]
struct JsonResult<'a> {
    name: &'a str,
    dtype: DType,
    shape: &'a [i64],
    checksum: String,
    min: String,
    max: String,
    sum: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<f64>,
}

impl Report {
    /// A run without verification and timing.
    pub(super) fn new(engine: Engine, seconds: f64, outputs: Vec<Computed>) -> Self {
        Self { engine, seconds, outputs, verification: None, measurement: None }
    }

    /// Prints the report in the requested format.
    pub(super) fn show(&self, program: &Program, args: &RunArgs) -> io::Result<()> {
        match args.output.format {
            Format::Json => self.json(program, args),
            Format::Text => self.text(&mut crate::terminal::out(), args.seed),
        }
    }

    fn json(&self, program: &Program, args: &RunArgs) -> io::Result<()> {
        let outputs: Vec<JsonResult<'_>> = self.outputs.iter().map(Computed::as_json).collect();
        let verification = self.verification.as_ref();
        let mut value = serde_json::json!({
            "def": program.name(),
            "engine": self.engine.name(),
            "hash": program.hash().to_string(),
            "seed": args.seed,
            "seconds": self.seconds,
            "outputs": outputs,
            "verified": verification.map(Verification::passed),
            "verified_against": verification.map(|verification| verification.against.to_string()),
        });
        if let Engine::Compiled { target, threads, compile_seconds, precision, error_growth } =
            &self.engine
        {
            value["target"] = target.as_str().into();
            value["threads"] = (*threads).into();
            value["compile_seconds"] = (*compile_seconds).into();
            value["precision"] = precision.name().into();
            value["error_growth"] = (*error_growth).into();
        }
        let measured = self.measurement.as_ref().and_then(|m| serde_json::to_value(m).ok());
        if let (Some(serde_json::Value::Object(measured)), Some(value)) =
            (measured, value.as_object_mut())
        {
            value.extend(measured);
        }
        report::json(&value)
    }

    fn text(&self, out: &mut impl Write, seed: u64) -> io::Result<()> {
        for output in &self.outputs {
            output.text(out)?;
        }
        writeln!(out, "{} {}, seed {seed}", self.engine.text(), Seconds(self.seconds))?;
        if let Engine::Compiled { precision: Precision::Fast, error_growth, .. } = self.engine {
            writeln!(
                out,
                "rounding: the schedule uses rewrites that round differently; on data of one magnitude errors \
                 are up to {error_growth:.0} times those of the program's sums, on other data relative to \
                 the largest numbers (docs/schedules.md, Precision)"
            )?;
        }
        if let Some(verification) = &self.verification {
            let with = verification.against;
            let verdict = if verification.passed() { "agrees" } else { "DISAGREES" };
            writeln!(out, "verified: {verdict} with {with}")?;
        }
        match &self.measurement {
            Some(measurement) => measurement.text(out),
            None => Ok(()),
        }
    }
}

impl Engine {
    fn name(&self) -> &'static str {
        match self {
            Engine::Reference => "reference",
            Engine::Compiled { .. } => "compiled",
        }
    }

    fn text(&self) -> String {
        match self {
            Engine::Reference => "reference interpreter: ran in".to_owned(),
            Engine::Compiled { target, threads, compile_seconds, .. } => {
                let plural = if *threads == 1 { "" } else { "s" };
                let compiled = Seconds(*compile_seconds);
                format!("compiled for {target}, {threads} thread{plural}, in {compiled}: ran in")
            }
        }
    }
}

impl Computed {
    fn as_json(&self) -> JsonResult<'_> {
        let summary = summarize(&self.buffer);
        let text = |value: Option<Value>| value.map_or("nan".to_owned(), |value| value.to_string());
        JsonResult {
            name: &self.name,
            dtype: self.buffer.dtype(),
            shape: self.buffer.shape(),
            checksum: format!("{:016x}", summary.checksum),
            min: text(summary.min),
            max: text(summary.max),
            sum: summary.sum,
            tolerance: self.tolerance,
        }
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let JsonResult { name, checksum, min, max, sum, .. } = self.as_json();
        let type_text = self.buffer.type_text();
        write!(out, "{type_text} {name}  checksum {checksum}  min {min}  max {max}  sum {sum}")?;
        if let Some(tolerance) = self.tolerance {
            write!(out, "  tolerance {tolerance:.2e}")?;
        }
        writeln!(out)?;
        self.elements(out)
    }

    /// The elements of a small output, one row to a line.
    fn elements(&self, out: &mut impl Write) -> io::Result<()> {
        /// Longer outputs are left out.
        const MOST: usize = 32;
        let buffer = &self.buffer;
        let row = buffer.shape().last().map_or(1, |extent| (*extent).max(1) as usize);
        if buffer.len() > MOST || buffer.len() == 1 {
            return Ok(());
        }
        let elements: Vec<String> = buffer.values().map(|value| value.to_string()).collect();
        for row in elements.chunks(row) {
            writeln!(out, "  {}", row.join(" "))?;
        }
        Ok(())
    }
}

impl Measurement {
    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "time: median {} of {} samples, spread {:.1} %, {:.2} GFLOP/s, {:.2} GB/s",
            Seconds(self.median_ns / 1e9),
            self.samples,
            100.0 * self.spread,
            self.gflops,
            self.gbps
        )?;
        let (bound, roof, peak) = match self.bound {
            Roof::Compute => {
                ("compute", "FMA peak".to_owned(), format!("{:.1} GFLOP/s", self.peak_gflops))
            }
            Roof::Memory => (
                "memory",
                format!("{} bandwidth", self.bandwidth),
                format!("{:.1} GB/s", self.peak_gbps),
            ),
        };
        let share = self.share_of_peak.map_or(String::new(), |s| format!("{:.1} % of ", 100.0 * s));
        writeln!(out, "{bound}-bound: {share}the {roof} measured alongside ({peak})")
    }
}
