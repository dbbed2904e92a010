//! [`Manifest`]: operators tuned with a common budget and packaged together.
//!
//! ```toml
//! precision = "exact"     # the default of all operators; or: "fast"
//!
//! [tune]
//! time = "10m"            # for all operators together; or: trials = 2000
//! strategy = "portfolio"
//! mode = "autotune"       # or: "one-shot", "top5"
//!
//! [package]
//! name = "kernels"        # otherwise the name of the file
//! levels = ["avx2", "avx512"]
//!
//! [[operator]]
//! name = "product"        # in a package; otherwise the name of the definition
//! file = "kernels/gemm.tc"
//! def = "gemm"
//! sizes = { M = 1024, N = "1..512", K = 1024 }
//! threads = 2
//! weight = 12             # how often it is called
//! precision = "fast"      # also algebraic rewrites (Winograd, ...)
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tensorwright::{Code, Diagnostic, Diagnostics, Precision, Source, Span};
use toml::Spanned;

use crate::extent::Extent;
use crate::mode::Mode;
use crate::nesting::nested_too_deep;

/// The longest manifest, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Operators with their sizes, and how to tune and package them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Manifest {
    /// The precision of operators without one of their own.
    pub precision: Precision,
    /// How to tune them.
    pub tune: TuneSettings,
    /// How to package them.
    pub package: PackageSettings,
    /// The operators.
    pub operators: Vec<Operator>,
    /// The text.
    pub source: Source,
}

/// The tables of a manifest file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default, deserialize_with = "precision")]
    precision: Option<Precision>,
    #[serde(default)]
    tune: TuneSettings,
    #[serde(default)]
    package: PackageSettings,
    #[serde(default)]
    operator: Vec<Spanned<Operator>>,
}

/// The `[package]` table.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PackageSettings {
    /// The name of the package.
    pub name: Option<String>,
    /// The targets that it has kernels for, if not the defaults.
    pub levels: Option<Vec<String>>,
}

/// The `[tune]` table.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TuneSettings {
    /// Trials for all together.
    pub trials: Option<u64>,
    /// Time for all together: `90s`, `10m`, `2h`.
    #[serde(default, deserialize_with = "duration")]
    pub time: Option<Duration>,
    /// The mode.
    #[serde(default, deserialize_with = "mode")]
    pub mode: Option<Mode>,
    /// The strategy.
    pub strategy: Option<String>,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
}

/// An operator with sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Operator {
    /// Its name in a package; by default the name of the definition.
    pub name: Option<String>,
    /// The file, relative to the manifest.
    pub file: String,
    /// The definition; not needed if the file has one.
    pub def: Option<String>,
    /// Its sizes.
    #[serde(default)]
    pub sizes: BTreeMap<String, Extent>,
    /// The threads.
    #[serde(default = "one")]
    pub threads: usize,
    /// How often it is called: its savings are multiplied by this.
    #[serde(default = "once")]
    pub weight: f64,
    /// Its precision, if it has one of its own.
    #[serde(default, deserialize_with = "precision")]
    pub precision: Option<Precision>,
    /// Its position in the manifest.
    #[serde(skip)]
    pub span: Span,
}

fn one() -> usize {
    1
}

fn once() -> f64 {
    1.0
}

fn precision<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Precision>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn mode<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Mode>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Reads `1500ms`, `90s`, `10m`, `2h`, or seconds.
///
/// # Errors
/// If the text is none of these.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}` is not a duration: write 90s, 10m or 2h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a duration: write 90s, 10m or 2h"))?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("`{text}` is too long"))
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// If the manifest is invalid: what is wrong, and where.
    pub fn parse(source: Source) -> Result<Self, Diagnostics> {
        let problem = |diagnostic| Diagnostics::new(source.clone(), vec![diagnostic]);
        if source.text().len() > MAX_BYTES {
            let message = format!("the manifest is longer than {MAX_BYTES} bytes");
            return Err(problem(Diagnostic::without_place(Code::InvalidManifest, message)));
        }
        if let Some(at) = nested_too_deep(source.text()) {
            let message = "a bracket is nested too deep, or one before it is not closed";
            let diagnostic = Diagnostic::new(Code::InvalidManifest, place(at..at + 1), message);
            return Err(problem(diagnostic));
        }
        let tables: Tables = toml::from_str(source.text()).map_err(|e| problem(unreadable(&e)))?;
        if tables.operator.is_empty() {
            let message = "the manifest has no operator";
            let diagnostic = Diagnostic::without_place(Code::InvalidManifest, message)
                .help("add a table: [[operator]] with file = \"kernel.tc\" and sizes = { N = 64 }");
            return Err(problem(diagnostic));
        }
        let operators = tables.operator.into_iter().map(|spanned| {
            let span = place(spanned.span());
            Operator { span, ..spanned.into_inner() }
        });
        let operators = operators.collect();
        let manifest = Self {
            precision: tables.precision.unwrap_or_default(),
            tune: tables.tune,
            package: tables.package,
            operators,
            source,
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// Overrides the precision of all operators.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self.operators.iter_mut().for_each(|operator| operator.precision = None);
        self
    }

    /// The precision of an operator: its own, or the manifest's.
    #[must_use]
    pub fn precision_of(&self, operator: &Operator) -> Precision {
        operator.precision.unwrap_or(self.precision)
    }

    /// Rejects invalid numbers.
    fn check(&self) -> Result<(), Diagnostics> {
        for operator in &self.operators {
            if !(operator.weight.is_finite() && operator.weight > 0.0) {
                return Err(self.problem(
                    operator,
                    "the weight must be positive",
                    "write weight = 1",
                ));
            }
            if !(1..=1024).contains(&operator.threads) {
                return Err(self.problem(
                    operator,
                    "threads must be 1 to 1024",
                    "leave them out for 1",
                ));
            }
        }
        Ok(())
    }

    /// A diagnostic about an operator, with help.
    #[must_use]
    pub fn problem(
        &self,
        operator: &Operator,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostics {
        let diagnostic = Diagnostic::new(Code::InvalidManifest, operator.span, message);
        let diagnostic = diagnostic.here("this operator").help(help);
        Diagnostics::new(self.source.clone(), vec![diagnostic])
    }
}

/// A diagnostic for a TOML error.
fn unreadable(error: &toml::de::Error) -> Diagnostic {
    match error.span() {
        Some(span) => Diagnostic::new(Code::InvalidManifest, place(span), error.message()),
        None => Diagnostic::without_place(Code::InvalidManifest, error.message()),
    }
}

/// A span in a text of at most [`MAX_BYTES`].
fn place(range: std::ops::Range<usize>) -> Span {
    Span::new(range.start as u32, range.end as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Manifest, Diagnostics> {
        Manifest::parse(Source::new("manifest.toml", text))
    }

    #[test]
    fn tables_that_are_not_closed_do_not_exhaust_the_stack() {
        let table = "[[operator]]\nfile = \"a.tc\"\nsizes = { M = 4\n";
        let error = read(&table.repeat(2000)).unwrap_err();
        assert_eq!(
            error.list()[0].message,
            "a bracket is nested too deep, or one before it is not closed"
        );
    }

    #[test]
    fn manifests_are_read_and_mistakes_are_named() {
        let text = "[tune]\ntime = \"10m\"\n[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 4, N = \"1..9\" }\n";
        let manifest = read(text).unwrap();
        assert_eq!(manifest.tune.time, Some(Duration::from_secs(600)));
        assert_eq!((manifest.operators[0].threads, manifest.operators[0].weight), (1, 1.0));
        assert_eq!(manifest.operators[0].sizes["N"].to_string(), "1..9");
        assert_eq!(manifest.precision_of(&manifest.operators[0]), Precision::Exact);
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        let text = wrong("[[operator]]\nfile = \"a.tc\"\nsize = {}\n");
        assert!(text.contains("unknown field `size`"), "{text}");
        assert!(wrong("[tune]\ntime = \"soon\"").contains("write 90s"));
        assert!(
            wrong("[tune]\nmode = \"best\"").contains("the modes are one-shot, top5, autotune")
        );
        let operator = "[[operator]]\nfile = \"a.tc\"\n";
        let fast = "precision = \"fast\"\n";
        let two = read(&format!("{operator}{fast}{operator}")).unwrap();
        let precisions = |manifest: &Manifest| {
            let all = manifest.operators.iter().map(|operator| manifest.precision_of(operator));
            all.collect::<Vec<Precision>>()
        };
        assert_eq!(precisions(&two), [Precision::Fast, Precision::Exact]);
        assert_eq!(precisions(&two.with_precision(Precision::Exact)), [Precision::Exact; 2]);
        let all = read(&format!("{fast}{operator}precision = \"exact\"\n{operator}")).unwrap();
        assert_eq!(precisions(&all), [Precision::Exact, Precision::Fast]);
        let text = wrong(&format!("precision = \"some\"\n{operator}"));
        assert!(text.contains("it is `exact` or `fast`") && text.contains("manifest.toml:1"));
        assert!(wrong("").contains("the manifest has no operator"));
        let text = wrong("[[operator]]\nfile = \"a.tc\"\nweight = -1.0\n");
        assert!(text.contains("the weight must be positive") && text.contains("manifest.toml:1"));
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert!(parse_duration("1e400").is_err());
    }
}
