//! Footprints: producer regions that consumer regions need.
//!
//! Only extents matter, not positions: a tile of `8 x 64` of `out(y,x) = p(y+1, 2*x) + p(y-1, 2*x)`
//! needs `10 x 127` of `p`, wherever the tile is. A clamp never increases a distance, so
//! `clamp(x+1, 0, W-1)` needs what `x+1` does; a mirrored border needs at most the longer of its
//! two sides.

use std::fmt;

use tensorwright_lang::program::{Atom, AxisKind, Index, Stage};

/// The range of an index over a region: the number of elements minus one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Multiples of the extents of the consumer's dimensions, plus a constant: stencils and
    /// reduction loops.
    Sum {
        /// Dimensions, with the stride of the index along each.
        terms: Vec<(usize, i64)>,
        /// Parts that are not multiples of dimensions, with their factors.
        parts: Vec<(i64, Reach)>,
        /// The constant.
        spread: i64,
    },
    /// `/`: a range divided by a constant.
    Quotient(Box<Reach>, i64),
    /// `%`: a range limited by a constant.
    Remainder(Box<Reach>, i64),
    /// The longer of two ranges, plus a constant: a mirrored border, or reads with different
    /// strides.
    Longer(Box<Reach>, Box<Reach>, i64),
    /// The whole dimension: data-dependent positions.
    Whole,
}

impl Reach {
    /// The number of elements of a dimension that a region of the consumer needs.
    #[must_use]
    pub fn count(&self, region: &[i64], extent: i64) -> i64 {
        self.of(region).map_or(extent, |reach| reach.saturating_add(1).min(extent).max(1))
    }

    fn of(&self, region: &[i64]) -> Option<i64> {
        match self {
            Self::Sum { terms, parts, spread } => {
                let mut sum = *spread;
                for (dimension, by) in terms {
                    let steps = region.get(*dimension).copied().unwrap_or(1).saturating_sub(1);
                    sum = sum.saturating_add(steps.saturating_mul(*by));
                }
                for (factor, part) in parts {
                    sum = sum.saturating_add(part.of(region)?.saturating_mul(*factor));
                }
                Some(sum)
            }
            Self::Quotient(inner, by) => Some((inner.of(region)?.saturating_add(by - 1)) / by),
            Self::Remainder(inner, by) => Some(inner.of(region)?.min(by - 1)),
            Self::Longer(a, b, apart) => {
                Some(a.of(region)?.max(b.of(region)?).saturating_add(*apart))
            }
            Self::Whole => None,
        }
    }

    /// Whether it is one dimension of the consumer, element by element.
    #[must_use]
    pub fn is_in_place(&self, dimension: usize) -> bool {
        matches!(self, Self::Sum { terms, parts, spread: 0 }
            if parts.is_empty() && terms.as_slice() == [(dimension, 1)])
    }

    /// The stride along a dimension of the consumer; `None` if it varies.
    #[must_use]
    pub fn step(&self, dimension: usize) -> Option<i64> {
        match self {
            Self::Sum { terms, parts, .. } => {
                let own = terms.iter().find(|(of, _)| *of == dimension).map_or(0, |(_, by)| *by);
                let still = parts.iter().all(|(_, part)| part.step(dimension) == Some(0));
                still.then_some(own)
            }
            Self::Quotient(inner, _) | Self::Remainder(inner, _) => {
                inner.step(dimension).filter(|step| *step == 0)
            }
            Self::Longer(a, b, _) => {
                a.step(dimension).filter(|step| b.step(dimension) == Some(*step))
            }
            Self::Whole => None,
        }
    }
}

/// An index as a constant plus a range.
struct Form {
    reach: Reach,
    constant: i64,
}

/// The region of one producer that a region of a consumer needs, per dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// One per dimension of the producer.
    pub dimensions: Vec<Reach>,
    /// The extents of the producer.
    pub shape: Vec<i64>,
}

impl Footprint {
    /// The extents of the producer's region for a region of the consumer.
    ///
    /// ```
    /// use tensorwright_lang::Module;
    /// use tensorwright_pipeline::Dag;
    ///
    /// let text = "def blur(float(H,W) in) -> (out) {
    ///   bx(y,x) = in(y,x) + in(y,x+1)
    ///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
    /// }";
    /// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 64), ("W", 64)])?;
    /// let dag = Dag::new(&program);
    /// assert_eq!(dag.stages[1].edges[0].footprint.region(&[8, 16]), [10, 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn region(&self, region: &[i64]) -> Vec<i64> {
        let each = self.dimensions.iter().zip(&self.shape);
        each.map(|(reach, extent)| reach.count(region, *extent)).collect()
    }

    /// The footprint of several reads of one tensor.
    pub(super) fn of(stage: &Stage, shape: &[i64], reads: &[&[Index]]) -> Self {
        let dimension = |at: usize| {
            let mut forms =
                reads.iter().map(|read| read.get(at).and_then(|index| form(stage, index)));
            let mut first = forms.next().flatten()?;
            let mut last = first.constant;
            for other in forms {
                let other = other?;
                if other.reach == first.reach {
                    first.constant = first.constant.min(other.constant);
                    last = last.max(other.constant);
                } else {
                    let apart = (other.constant - first.constant).abs();
                    let (a, b) = (Box::new(first.reach), Box::new(other.reach));
                    first.reach = Reach::Longer(a, b, apart);
                }
            }
            Some(widen(first.reach, last - first.constant))
        };
        let dimensions = (0..shape.len()).map(|at| dimension(at).unwrap_or(Reach::Whole)).collect();
        Self { dimensions, shape: shape.to_vec() }
    }
}

/// Adds a constant to a range.
fn widen(reach: Reach, by: i64) -> Reach {
    match reach {
        reach if by == 0 => reach,
        Reach::Sum { terms, parts, spread } => Reach::Sum { terms, parts, spread: spread + by },
        reach => Reach::Sum { terms: Vec::new(), parts: vec![(1, reach)], spread: by },
    }
}

/// The form of an index of a stage; `None` if it is data-dependent.
fn form(stage: &Stage, index: &Index) -> Option<Form> {
    let (mut terms, mut parts) = (Vec::new(), Vec::new());
    let (mut spread, mut constant) = (0i64, index.constant_term());
    for term in index.terms() {
        let factor = term.coefficient.checked_abs()?;
        match &term.atom {
            Atom::Axis(axis) if stage.axis(*axis).kind == AxisKind::Spatial => {
                terms.push((axis.0 as usize, factor));
            }
            Atom::Axis(axis) => {
                let steps = stage.axis(*axis).extent().saturating_sub(1);
                spread = spread.saturating_add(steps.saturating_mul(factor));
            }
            atom => {
                let form = of_atom(stage, atom)?;
                constant = constant.saturating_add(form.constant.saturating_mul(term.coefficient));
                match form.reach {
                    // A clamped index moves like the index itself.
                    Reach::Sum { terms: own, parts: more, spread: further } => {
                        terms.extend(
                            own.into_iter().map(|(of, by)| (of, by.saturating_mul(factor))),
                        );
                        parts.extend(
                            more.into_iter().map(|(by, of)| (by.saturating_mul(factor), of)),
                        );
                        spread = spread.saturating_add(further.saturating_mul(factor));
                    }
                    reach => parts.push((factor, reach)),
                }
            }
        }
    }
    terms.sort_unstable();
    Some(Form { reach: Reach::Sum { terms, parts, spread }, constant })
}

fn of_atom(stage: &Stage, atom: &Atom) -> Option<Form> {
    match atom {
        Atom::Div(inner, by) => {
            let Form { reach, constant } = form(stage, inner)?;
            let reach = Reach::Quotient(Box::new(reach), *by);
            Some(Form { reach, constant: constant.div_euclid(*by) })
        }
        Atom::Mod(inner, by) => {
            let Form { reach, .. } = form(stage, inner)?;
            Some(Form { reach: Reach::Remainder(Box::new(reach), *by), constant: 0 })
        }
        Atom::Min(a, b) | Atom::Max(a, b) => match (a.as_constant(), b.as_constant()) {
            (Some(_), None) => form(stage, b),
            (None, Some(_)) => form(stage, a),
            _ => {
                let (a, b) = (form(stage, a)?, form(stage, b)?);
                let constant = a.constant.min(b.constant);
                if a.reach == b.reach {
                    // A mirrored border, or a selection of two positions.
                    return Some(Form { reach: a.reach, constant });
                }
                let reach = Reach::Longer(Box::new(a.reach), Box::new(b.reach), 0);
                Some(Form { reach, constant })
            }
        },
        Atom::Axis(_) | Atom::Product(..) | Atom::Value(_) => None,
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sum { terms, parts, spread } => {
                let mut words: Vec<String> = Vec::new();
                for (dimension, by) in terms {
                    let times = if *by == 1 { String::new() } else { format!("{by}*") };
                    words.push(format!("{times}d{dimension}"));
                }
                let of_part = |(by, part): &(i64, Self)| match by {
                    1 => part.to_string(),
                    by => format!("{by}*{part}"),
                };
                words.extend(parts.iter().map(of_part));
                if *spread != 0 || words.is_empty() {
                    words.push(spread.to_string());
                }
                f.write_str(&words.join("+"))
            }
            Self::Quotient(inner, by) => write!(f, "({inner})/{by}"),
            Self::Remainder(inner, by) => write!(f, "({inner})%{by}"),
            Self::Longer(a, b, 0) => write!(f, "max({a}, {b})"),
            Self::Longer(a, b, apart) => write!(f, "max({a}, {b})+{apart}"),
            Self::Whole => f.write_str("all"),
        }
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.dimensions.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", each.join(", "))
    }
}
