//! The roofline plot with all candidates.
//!
//! All candidates of a program do the same operations on the same data, so they form one column in
//! the usual plot. The column is drawn a little wider, and a second plot shows every candidate by
//! its trial under the same roofs, so that the progress of the search is visible.

use std::fmt::{Result, Write};

use super::Page;
use crate::downsample::downsample;
use crate::model::{Roofs, Section};
use crate::text::{digits, grouped};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// The roofline and all candidates.
pub(super) fn write(out: &mut String, page: &Page<'_>, section: &Section, place: usize) -> Result {
    if section.dots.measured == 0 {
        return Ok(());
    }
    let speeds = section.program.flops > 0.0;
    writeln!(out, "<h3>{}</h3>", if section.roofs.is_some() { "Roofline" } else { "Candidates" })?;
    note(out, section)?;
    out.write_str("<div class=\"plots\">\n")?;
    if let (Some(roofs), true) = (&section.roofs, speeds) {
        figure(out, page, section, roofs)?;
    }
    let shown = match section.dots.trial.len() as u64 {
        shown if shown < section.dots.measured => {
            format!("{} of {} measured candidates", grouped(shown), grouped(section.dots.measured))
        }
        shown => format!("all {} measured candidates", grouped(shown)),
    };
    write!(
        out,
        "<figure><figcaption>Every candidate by trial <span>{shown}</span></figcaption>\
         <div class=\"plot\" data-plot=\"dots\" data-kernel=\"{place}\" role=\"img\" \
         aria-label=\"{} of candidates by trial\"></div><p class=\"readout\" aria-hidden=\"true\"></p></figure>\n</div>\n",
        if speeds { "Speed" } else { "Time" },
    )
}

fn note(out: &mut String, section: &Section) -> Result {
    let Some(roofs) = &section.roofs else {
        return out.write_str(
            "<p class=\"note\">The peaks of the machine were not recorded, so there is no roofline.</p>\n",
        );
    };
    writeln!(
        out,
        "<p class=\"note\">{} operations per byte; the machine does {} GFLOP/s and moves {} GB/s: at \
         most {} GFLOP/s for this program. All candidates have the same intensity; their column is \
         widened so that they can be seen.</p>",
        digits(roofs.intensity),
        digits(roofs.peak_gflops),
        digits(roofs.peak_gbps),
        digits(roofs.attainable_gflops()),
    )
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis of whole decades around some values.
    fn around(values: &[f64], from: f64, to: f64) -> Self {
        let positive = values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let low = positive.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = positive.fold(0.0, f64::max).log10().ceil();
        if !low.is_finite() || !high.is_finite() {
            return Self { low: 0.0, high: 1.0, from, to };
        }
        // Limit the decades to a readable number; drop the lowest.
        let high = high.max(low + 1.0);
        Self { low: low.max(high - 6.0), high, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

fn figure(out: &mut String, page: &Page<'_>, section: &Section, roofs: &Roofs) -> Result {
    let flops = section.program.flops;
    let ridge = roofs.peak_gflops / roofs.peak_gbps;
    let x = Axis::around(
        &[roofs.intensity / 3.0, roofs.intensity * 3.0, ridge / 3.0, ridge * 3.0],
        LEFT,
        WIDTH - RIGHT,
    );
    let mut speeds: Vec<f64> =
        section.dots.seconds.iter().map(|seconds| flops / seconds / 1e9).collect();
    speeds.push(roofs.peak_gflops);
    speeds.push(roofs.attainable_gflops());
    let y = Axis::around(&speeds, HEIGHT - BOTTOM, TOP);
    writeln!(
        out,
        "<figure><figcaption>Roofline</figcaption><svg class=\"roofline\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Roofline: the best candidate has {} of at most {} GFLOP/s\">",
        section.headline.gflops.map_or_else(|| "–".to_owned(), digits),
        digits(roofs.attainable_gflops()),
    )?;
    grid(out, &x, &y)?;
    roof(out, &x, &y, roofs, ridge)?;
    dots(out, page, section, &x, &y, roofs)?;
    out.write_str("</svg></figure>\n")
}

fn grid(out: &mut String, x: &Axis, y: &Axis) -> Result {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in x.ticks() {
        let at = x.place(tick);
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            power(tick)
        )?;
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            power(tick)
        )?;
    }
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">operations per byte</text>\
         <text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">GFLOP/s</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 8.0,
        (TOP + bottom) / 2.0,
    )
}

/// A power of ten, short.
fn power(value: f64) -> String {
    if (0.001..=99_999.0).contains(&value) { format!("{value}") } else { format!("{value:.0e}") }
}

/// The roof: memory on the left, operations on the right of the ridge.
fn roof(out: &mut String, x: &Axis, y: &Axis, roofs: &Roofs, ridge: f64) -> Result {
    // The point at which the memory roof enters the plot: its left side or its bottom.
    let start = 10f64.powf(x.low).max(10f64.powf(y.low) / roofs.peak_gbps).min(ridge);
    writeln!(
        out,
        "<path class=\"roof\" d=\"M{:.1} {:.1}L{:.1} {:.1}H{}\"/>",
        x.place(start),
        y.place(start * roofs.peak_gbps),
        x.place(ridge),
        y.place(roofs.peak_gflops),
        WIDTH - RIGHT,
    )
}

/// The candidates in their column, spread by the golden ratio, and the best as a ring.
fn dots(
    out: &mut String,
    page: &Page<'_>,
    section: &Section,
    x: &Axis,
    y: &Axis,
    roofs: &Roofs,
) -> Result {
    let flops = section.program.flops;
    let centre = x.place(roofs.intensity);
    let all: Vec<(f64, usize)> =
        section.dots.seconds.iter().copied().zip(section.dots.strategy.iter().copied()).collect();
    for (at, (seconds, strategy)) in
        downsample(&all, page.share(6000, 100, 500)).into_iter().enumerate()
    {
        let Some(strategy) = section.strategies.get(strategy) else { continue };
        let aside = (at as f64 * 0.618_033_988_75).fract() * 20.0 - 10.0;
        write!(
            out,
            "<circle class=\"c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/>",
            page.colour(&strategy.name),
            centre + aside,
            y.place(flops / seconds / 1e9)
        )?;
    }
    let Some(best) = section.headline.gflops else { return Ok(()) };
    let at = y.place(best);
    // Place the label on the side with room.
    let (label, anchor) =
        if centre > WIDTH / 2.0 { (centre - 18.0, "end") } else { (centre + 18.0, "start") };
    write!(
        out,
        "\n<circle class=\"ring\" cx=\"{centre:.1}\" cy=\"{at:.1}\" r=\"5\"/>\
         <text class=\"strong\" x=\"{label:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">best {}</text>\n",
        at + 16.0,
        digits(best)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_sane_for_any_values() {
        for values in
            [vec![], vec![0.0], vec![f64::NAN, f64::INFINITY], vec![1e-300, 1e300], vec![5.0]]
        {
            let axis = Axis::around(&values, 0.0, 100.0);
            assert!(axis.ticks().count() <= 8);
            for value in [0.0, 1e-9, 1.0, 1e300, f64::INFINITY] {
                assert!((0.0..=100.0).contains(&axis.place(value)), "{values:?} {value}");
            }
        }
    }
}
