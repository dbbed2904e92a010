//! Inputs of a program: random ones and corner cases of arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Expr, Program, Read, Tensor, TensorId};
use tensorwright_reference::random::random_in;
use tensorwright_reference::{Buffer, Value, random_inputs};
use tensorwright_testkit::Rng;

/// The inputs of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inputs {
    seed: u64,
    kind: Kind,
}

/// The kind of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Floats below one, small integers, subscripts in bounds.
    Plain,
    /// As drawn by the tuner's workers: by names that depend only on positions.
    Tuned,
    /// Integers over the full range of their type, also in proven subscripts.
    Wide,
    /// Some non-finite floats.
    Special,
    /// Some out-of-bounds subscripts.
    Outside,
}

const KINDS: [(&str, Kind); 5] = [
    ("plain", Kind::Plain),
    ("tuned", Kind::Tuned),
    ("wide", Kind::Wide),
    ("special", Kind::Special),
    ("outside", Kind::Outside),
];

impl Inputs {
    /// Mostly plain inputs.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let kind = match rng.index(100) {
            0..60 => Kind::Plain,
            60..80 => Kind::Wide,
            80..90 => Kind::Special,
            _ => Kind::Outside,
        };
        Self { seed: rng.next_u64() >> 40, kind }
    }

    /// Reads what `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (seed, name) = text.split_once(' ')?;
        let (_, kind) = KINDS.into_iter().find(|(known, _)| *known == name)?;
        Some(Self { seed: seed.parse().ok()?, kind })
    }

    /// The plain variant.
    pub(crate) fn plain(self) -> Self {
        Self { kind: Kind::Plain, ..self }
    }

    /// The variant without non-finite floats.
    pub(crate) fn finite(self) -> Self {
        if self.kind == Kind::Special { self.plain() } else { self }
    }

    /// The byte pattern of unwritten memory: NaN, a large number or a large negative one, because
    /// minima and maxima hide some of them.
    pub(crate) fn garbage(self) -> u8 {
        [0xff, 0x7b, 0xfb][(self.seed % 3) as usize]
    }

    /// A buffer for every input.
    pub(crate) fn buffers(self, program: &Program) -> Result<BTreeMap<String, Buffer>, String> {
        let mut inputs = self.drawn(program)?;
        let subscripts = self::subscripts(program, |_| true);
        let checked = self::subscripts(program, |read| !read.checked.is_empty());
        let mut rng = Rng::new(self.seed);
        for (id, tensor) in program.input_ids().zip(&program.tensors) {
            let Some(buffer) = inputs.get_mut(&tensor.name) else { continue };
            let is_subscript = subscripts.contains(&id);
            let dtype = tensor.dtype;
            match self.kind {
                Kind::Wide if !dtype.is_float() && !checked.contains(&id) => {
                    if !is_subscript {
                        let range = -(1 << 61)..(1 << 61);
                        *buffer = random_in(dtype, &tensor.shape, &tensor.name, self.seed, range)
                            .map_err(|error| error.to_string())?;
                    }
                    sprinkle(buffer, &extremes(dtype), &mut rng);
                }
                Kind::Special if dtype.is_float() => {
                    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
                    let values = special.map(Value::Float);
                    sprinkle(buffer, &values, &mut rng);
                }
                Kind::Outside if is_subscript => {
                    sprinkle(buffer, &[-1, 41, 100].map(Value::Integer), &mut rng);
                }
                _ => {}
            }
        }
        Ok(inputs)
    }
}

impl Inputs {
    /// Random plain inputs.
    fn drawn(self, program: &Program) -> Result<BTreeMap<String, Buffer>, String> {
        let draw = |program: &Program| {
            random_inputs(program, self.seed).map_err(|error| error.to_string())
        };
        if self.kind != Kind::Tuned {
            return draw(program);
        }
        let named = program.canonically_named();
        let mut inputs = draw(&named)?;
        let names = named.tensors.iter().zip(&program.tensors).take(program.inputs);
        let moved =
            |(from, to): (&Tensor, &Tensor)| Some((to.name.clone(), inputs.remove(&from.name)?));
        Ok(names.filter_map(moved).collect())
    }
}

/// Replaces about one element in ten.
fn sprinkle(buffer: &mut Buffer, values: &[Value], rng: &mut Rng) {
    for position in 0..buffer.len() {
        if rng.percent(10) {
            buffer.set(position, *rng.pick(values));
        }
    }
}

/// Integers at the ends of a type, and ones that wrap around to small values when multiplied.
fn extremes(dtype: DType) -> Vec<Value> {
    let (least, most) = dtype.integer_range().unwrap_or((0, 1));
    let turn = 1_i128 << 64;
    let numbers =
        [least, least + 1, most - 1, most, turn / 2, turn / 3, turn / 3 + 1, turn / 5 + 1];
    numbers.map(|number| Value::Integer(number).convert(dtype)).to_vec()
}

/// The tensors used in subscripts of selected reads.
fn subscripts(program: &Program, of: impl Fn(&Read) -> bool) -> BTreeSet<TensorId> {
    let mut found = BTreeSet::new();
    for stage in &program.stages {
        let mut look = |read: &Read| {
            for subscript in read.subscripts.iter().filter(|_| of(read)) {
                subscript.walk_values(&mut |value| {
                    if let Expr::Read(inner) = value {
                        found.insert(inner.tensor);
                    }
                });
            }
        };
        stage.body.walk_reads(&mut |read| look(read));
        look(&stage.element());
    }
    found
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("plain", |(n, _)| n);
        write!(f, "{} {name}", self.seed)
    }
}
