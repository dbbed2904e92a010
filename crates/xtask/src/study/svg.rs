//! SVG plots.

use std::fmt::Display;
use std::path::Path;

/// A logarithmic axis.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Axis {
    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + (value / self.low).ln() / (self.high / self.low).ln() * (self.to - self.from)
    }
}

/// A text next to a point.
pub(super) fn text(x: f64, y: f64, anchor: &str, text: impl Display) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// A grid line.
pub(super) fn line(from: (f64, f64), to: (f64, f64), colour: &str) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!(
        "<line x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    )
}

/// Colours for dark pages.
const STYLE: &str = r##"<style>
@media (prefers-color-scheme: dark) {
[fill="#222222"] { fill: #d6dbe1; }
[fill="#ffffff"] { fill: #1b1f24; }
[fill="#2f6fb2"] { fill: #6ba6e0; }
[stroke="#222222"] { stroke: #d6dbe1; }
[stroke="#2f6fb2"] { stroke: #6ba6e0; }
[stroke="#d8d8d8"] { stroke: #454c55; }
}
</style>"##;

/// The whole plot.
pub(super) fn document(width: f64, height: f64, parts: &[String]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n{STYLE}\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}\n</svg>\n",
        parts.join("\n")
    )
}

/// Writes a plot and prints its path.
pub(super) fn write(path: &Path, svg: &str) -> Result<(), String> {
    std::fs::write(path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
