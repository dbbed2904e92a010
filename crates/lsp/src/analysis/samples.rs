//! Binds a definition to sample sizes, to validate formulas.

use tensorwright_lang::Def;
use tensorwright_lang::program::{Axis, Program, Stage, Tensor};
use tensorwright_lang::source::Span;

use super::poly::Values;

/// A definition bound to sizes.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) sizes: Values,
    pub(super) program: Program,
}

/// The number of programs, and the number of size choices to try for them: many do not bind, such
/// as an image smaller than its kernel.
const WANTED: usize = 8;
const TRIES: usize = 96;

/// With more stages, a second program would be too slow for interactive use.
const MAX_STAGES: usize = 400;

/// Programs for widely different sizes, the given ones first.
pub(super) fn samples(def: &Def<'_>, given: Option<&Values>) -> Vec<Sample> {
    let sizes = def.sizes();
    let scalars = def.integer_scalars();
    let made_up = (0..TRIES).map(|number| made_up(number, &sizes, &scalars));
    let mut samples: Vec<Sample> = Vec::new();
    for values in given.cloned().into_iter().chain(made_up) {
        let long = |sample: &Sample| sample.program.stages.len() > MAX_STAGES;
        if samples.len() == WANTED || samples.iter().any(long) {
            break;
        }
        // Failure is expected: the sizes are synthetic.
        if let Ok(program) = def.bind(values.clone()) {
            samples.push(Sample { sizes: values, program });
        }
    }
    samples
}

/// All sizes equal, for definitions that require equal ones, or all different: a lattice in which
/// every two sizes occur in either order.
fn made_up(number: usize, sizes: &[&str], scalars: &[&str]) -> Values {
    const ALIKE: [i64; 3] = [12, 7, 30];
    const OWN: [i64; 11] = [2, 3, 4, 6, 9, 13, 19, 28, 41, 60, 97];
    let alike = ALIKE.get(number / 2).filter(|_| number.is_multiple_of(2));
    let size = |(position, name): (usize, &&str)| {
        let (row, column) = (number / OWN.len(), position % OWN.len());
        let own = OWN[(number * (column + 1) + row * column * column + column) % OWN.len()];
        ((*name).to_owned(), alike.copied().unwrap_or(own))
    };
    let scalar = |(position, name): (usize, &&str)| {
        ((*name).to_owned(), 1 + ((number + position) % 3) as i64)
    };
    let sizes = sizes.iter().enumerate().map(size);
    sizes.chain(scalars.iter().enumerate().map(scalar)).collect()
}

impl Sample {
    /// The stage of a statement of the definition itself.
    pub(super) fn stage(&self, stmt: Span) -> Option<&Stage> {
        self.program.stages.iter().find(|stage| stage.span == stmt)
    }

    /// The loop of an index variable.
    pub(super) fn axis(&self, stmt: Span, name: &str) -> Option<&Axis> {
        self.stage(stmt)?.axes.iter().find(|axis| axis.name == name)
    }

    /// The tensor that is declared or first written at a place.
    pub(super) fn tensor(&self, declared: Span) -> Option<&Tensor> {
        self.program.tensors.iter().find(|tensor| tensor.span == declared)
    }

    /// The sizes as in a comment: `M=64, N=32`.
    pub(super) fn sizes_text(&self) -> String {
        let pairs: Vec<String> =
            self.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(", ")
    }
}
