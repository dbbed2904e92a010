//! Building blocks of random pipelines, one line and one function each.

use super::Builder;

/// An image that stages can read.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub(super) name: String,
    pub(super) channels: i64,
    pub(super) extents: [i64; 2],
    /// How often its size was halved.
    pub(super) halvings: u32,
}

/// Adds stages to a pipeline.
type Block = fn(&mut Builder);

/// Names, weights, and the functions that add the stages.
pub(super) const BLOCKS: [(&str, f64, Block); 9] = [
    ("pointwise", 3.0, pointwise),
    ("combine", 3.0, combine),
    ("along rows", 2.0, along_rows),
    ("along columns", 2.0, along_columns),
    ("square", 1.5, square),
    ("window", 1.5, window),
    ("halve", 1.0, halve),
    ("double", 1.0, double),
    ("channels", 0.7, channels),
];

impl Picture {
    /// A pixel, with subscripts for row and column.
    fn at(&self, y: &str, x: &str) -> String {
        match self.channels {
            1 => format!("{}({y},{x})", self.name),
            _ => format!("{}(c,{y},{x})", self.name),
        }
    }

    fn pixel(&self) -> String {
        self.at("y", "x")
    }

    /// A pixel at an offset; edge pixels are repeated.
    fn shifted(&self, dy: i64, dx: i64) -> String {
        let clamped = |index: &str, by: i64, extent: i64| match by {
            0 => index.to_owned(),
            _ => format!("clamp({index}{by:+},0,{})", extent - 1),
        };
        self.at(&clamped("y", dy, self.extents[0]), &clamped("x", dx, self.extents[1]))
    }

    /// A pixel seen from an image of another size, maybe with other channels.
    pub(super) fn seen_from(&self, other: &Picture) -> String {
        let by = |at: usize, index: &str| match other.extents[at] {
            extent if extent == self.extents[at] => index.to_owned(),
            extent if extent > self.extents[at] => {
                format!("min({index}/{},{})", extent / self.extents[at], self.extents[at] - 1)
            }
            extent => format!(
                "min({index}*{},{})",
                self.extents[at] / extent.max(1),
                self.extents[at] - 1
            ),
        };
        let (y, x) = (by(0, "y"), by(1, "x"));
        match (self.channels, other.channels) {
            (1, _) => format!("{}({y},{x})", self.name),
            (_, 1) => format!("{}(1,{y},{x})", self.name),
            _ => format!("{}(c,{y},{x})", self.name),
        }
    }
}

fn pointwise(builder: &mut Builder) {
    let a = builder.choose();
    let pixel = a.pixel();
    let forms = [
        format!("0.75 * {pixel} + 0.125"),
        format!("max({pixel}, 0.25 * {pixel})"),
        format!("{pixel} * {pixel}"),
        format!("abs({pixel} - 0.5)"),
        format!("{pixel} / (1 + abs({pixel}))"),
        format!("exp(-abs({pixel}))"),
        format!("sqrt(abs({pixel}) + 0.01)"),
        format!("{pixel} > 0.5 ? {pixel} : 0.5 * {pixel} * {pixel} + 0.1"),
    ];
    let form = builder.rng.pick(&forms).clone();
    builder.stage(&a, "=", &form, &[]);
}

fn combine(builder: &mut Builder) {
    let a = builder.choose();
    let b = builder.alike(&a);
    let (p, q) = (a.pixel(), b.pixel());
    let forms = [
        format!("{p} + {q}"),
        format!("{p} - 0.5 * {q}"),
        format!("{p} * {q}"),
        format!("max({p}, {q})"),
        format!("{p} / (1 + {q} * {q})"),
        format!("0.25 * {p} + 0.75 * {q} * {q}"),
    ];
    let form = builder.rng.pick(&forms).clone();
    builder.stage(&a, "=", &form, &[]);
}

/// A sum of pixels at offsets.
fn taps(builder: &mut Builder, steps: &[(i64, i64)]) {
    let a = builder.choose();
    let scale = 1.0 / steps.len() as f64;
    let term = |(number, (dy, dx)): (usize, &(i64, i64))| {
        format!("{:.3} * {}", scale * (1.0 + 0.2 * number as f64), a.shifted(*dy, *dx))
    };
    let terms: Vec<String> = steps.iter().enumerate().map(term).collect();
    builder.stage(&a, "=", &terms.join(" + "), &[]);
}

fn along_rows(builder: &mut Builder) {
    let reach = builder.rng.range(1, 2);
    taps(builder, &(-reach..=reach).map(|dx| (0, dx)).collect::<Vec<_>>());
}

fn along_columns(builder: &mut Builder) {
    let reach = builder.rng.range(1, 2);
    taps(builder, &(-reach..=reach).map(|dy| (dy, 0)).collect::<Vec<_>>());
}

fn square(builder: &mut Builder) {
    let all = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dy, dx)));
    taps(builder, &all.collect::<Vec<_>>());
}

/// A sum or a maximum over a window, as a reduction.
fn window(builder: &mut Builder) {
    let a = builder.choose();
    let width = 2 * builder.rng.range(1, 4) + 1;
    let sums = builder.rng.chance(0.6);
    let [height, breadth] = a.extents;
    let x = format!("clamp(x + k - {},0,{})", width / 2, breadth - 1);
    let y = format!("clamp(y + k - {},0,{})", width / 2, height - 1);
    let read = if builder.rng.chance(0.5) { a.at("y", &x) } else { a.at(&y, "x") };
    let (operator, expression) = match sums {
        true => ("+=!", format!("{:.4} * {read}", 1.0 / width as f64)),
        false => ("max=!", read),
    };
    builder.stage(&a, operator, &expression, &[("k", width)]);
}

/// Half the size, by the mean of four pixels.
fn halve(builder: &mut Builder) {
    let a = builder.choose();
    if a.halvings >= 2 {
        return along_rows(builder);
    }
    let extents = a.extents.map(|extent| extent / 2);
    let half = Picture { extents, halvings: a.halvings + 1, ..a.clone() };
    let parts = [("2*y", "2*x"), ("2*y", "2*x+1"), ("2*y+1", "2*x"), ("2*y+1", "2*x+1")];
    let sum: Vec<String> = parts.iter().map(|(y, x)| a.at(y, x)).collect();
    builder.stage(&half, "=", &format!("({}) / 4", sum.join(" + ")), &[]);
}

/// Twice the size, between neighbours of a row.
fn double(builder: &mut Builder) {
    let a = builder.choose();
    if a.halvings == 0 {
        return pointwise(builder);
    }
    let extents = a.extents.map(|extent| extent * 2);
    let twice = Picture { extents, halvings: a.halvings - 1, ..a.clone() };
    let next = format!("min((x+1)/2,{})", a.extents[1] - 1);
    let expression = format!("({} + {}) / 2", a.at("y/2", "x/2"), a.at("y/2", &next));
    builder.stage(&twice, "=", &expression, &[]);
}

/// One channel of several.
fn channels(builder: &mut Builder) {
    let a = builder.choose();
    if a.channels == 1 {
        return square(builder);
    }
    let grey = Picture { channels: 1, ..a.clone() };
    let part = |(channel, weight): (usize, f64)| format!("{weight} * {}({channel},y,x)", a.name);
    let parts: Vec<String> = [0.3, 0.6, 0.1].into_iter().enumerate().map(part).collect();
    builder.stage(&grey, "=", &parts.join(" + "), &[]);
}
