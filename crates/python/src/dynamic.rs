//! Shapes that change: how a call is computed with kernels that were made for other shapes.
//!
//! ```text
//! y(n,d) = x(n,d) + b(d)      N = 1000: rows 0..768 and 744..1000, by kernels for 768 and 256 rows
//! softmax over D              D = 1000: by a kernel for 1024, on copies; its sums end at 1000
//! anything, N = 0             by the kernel for 2, with sums that end at 0
//! ```
//!
//! A size along which elements do not depend on each other, and that is the outermost of its tensors, is cut into pieces without
//! a copy. Others are rounded up. What can be neither has a kernel for its shapes.

use std::collections::BTreeMap;

use tensorwright::ir::{Guarded, Stage, Tensor, TensorId};
use tensorwright::{Diagnostics, Program};
use tensorwright_package::buckets::{
    Kind, Price, Variation, is_piece, largest_piece, pieces, round_up, variation,
};

use crate::compiled::{Strides, Variant};
use crate::definition::{Definition, Dynamic, Sizes};
use crate::kernels::Kernels;
use crate::parts::{Part, Placement, Region};
use crate::specialised::{Shapes, Specialised, shapes};

/// A size that has had so many values is cut into pieces.
const CUT_FROM: usize = 5;

/// A size that has had so many values is rounded up, which takes copies.
const ROUND_FROM: usize = 17;

/// Nanoseconds that a call of a kernel costs beside its work.
const CALL: f64 = 1500.0;

/// Bytes that are read in a nanosecond.
const BYTES: f64 = 10.0;

/// Innermost iterations in a nanosecond.
const ITERATIONS: f64 = 16.0;

/// Why there is no way to compute a call.
#[derive(Debug)]
pub(crate) enum Problem {
    Diagnosed(Diagnostics),
    /// What is wrong with the arguments.
    Argument(String),
    /// Inputs have to be dense; why, if the caller can do something about it.
    Dense(Option<String>),
}

impl From<Diagnostics> for Problem {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnosed(diagnostics)
    }
}

/// How to compute calls with given sizes: `exactly` by a kernel for them alone, or by what is there for others too.
pub(crate) fn plan(
    definition: &Definition,
    kernels: &Kernels,
    sizes: Sizes,
    given: &BTreeMap<String, Vec<i64>>,
    exactly: bool,
) -> Result<Specialised, Problem> {
    let is_size = |name: &String| definition.signature.sizes.contains(name);
    if sizes.iter().any(|(name, value)| *value == 0 && is_size(name)) {
        return if given.is_empty() {
            empty(definition, kernels, sizes)
        } else {
            Err(Problem::Dense(None))
        };
    }
    let program = Specialised::program(definition, &sizes)?;
    let strides = strides(definition, kernels, &program, given)?;
    let exact = Variant::exact(sizes, strides);
    let sizes = &exact.sizes;
    let varying = Varying::of(definition, kernels, sizes);
    let is_known = exactly
        || varying.is_empty()
        || kernels.compiled(&exact).is_some()
        || Kernels::is_tuned(definition, &program);
    if !is_known && let Some(parts) = parts(definition, kernels, &program, &exact, &varying)? {
        let shapes = shapes(&program);
        return Ok(Specialised::of(definition, &shapes, exact.sizes, &exact.strides, parts));
    }
    Ok(whole(definition, kernels, &program, exact)?)
}

fn whole(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    exact: Variant,
) -> Result<Specialised, Diagnostics> {
    let compiled = kernels.compile(definition, &exact, program)?;
    let place = |(number, tensor): (usize, &Tensor)| {
        let before =
            exact.strides.get(&number).and_then(|strides| program.with_strides(number, strides));
        Placement::At(-bytes(tensor, before.map_or(0, |(_, before)| before)))
    };
    let inputs = program.inputs().iter().enumerate().map(place).collect();
    let outputs = vec![Placement::At(0); program.outputs().len()];
    let part = Part { compiled, inputs, outputs, ends: Vec::new() };
    Ok(Specialised::of(definition, &shapes(program), exact.sizes, &exact.strides, vec![part]))
}

/// The bytes of so many elements.
fn bytes(tensor: &Tensor, elements: i64) -> isize {
    elements as isize * tensor.dtype.bytes() as isize
}

/// The strides of inputs that are not dense, if there may be kernels for them.
fn strides(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    given: &BTreeMap<String, Vec<i64>>,
) -> Result<Strides, Problem> {
    // Whoever explains a subscript that is out of bounds looks at all memory of the inputs, gaps too.
    let is_checked = program.ir().stages.iter().any(Stage::has_data_subscripts);
    let mut found = Strides::new();
    for (number, input) in program.inputs().iter().enumerate() {
        let Some(strides) = given.get(&input.name) else { continue };
        if input.is_const || is_checked || program.with_strides(number, strides).is_none() {
            let advice = format!(
                "{}: `{}` is copied at every call, because {}; pass .contiguous() or numpy.ascontiguousarray(...) to copy it once",
                definition.signature.name,
                input.name,
                if input.is_const {
                    "a constant has to be contiguous"
                } else if is_checked {
                    "subscripts are data"
                } else {
                    "kernels cannot read it with these strides"
                }
            );
            return Err(Problem::Dense(Some(advice)));
        }
        found.insert(number, strides.clone());
    }
    let is_here = definition.choices.target.gpu().is_none();
    if found.is_empty() || is_here && kernels.admits(&found) {
        Ok(found)
    } else {
        Err(Problem::Dense(None))
    }
}

/// The sizes that vary, by what may be done about them.
#[derive(Debug, Default)]
struct Varying {
    cut: Vec<String>,
    rounded: Vec<String>,
}

impl Varying {
    fn of(definition: &Definition, kernels: &Kernels, sizes: &Sizes) -> Self {
        let mut varying = Self::default();
        let choices = &definition.choices;
        if choices.dynamic == Dynamic::Never || choices.target.gpu().is_some() {
            return varying;
        }
        for (name, values) in kernels.count(sizes) {
            if !definition.signature.sizes.contains(&name) {
                continue;
            }
            let is_named = match &choices.dynamic {
                Dynamic::Never => false,
                Dynamic::All => true,
                Dynamic::Found(named) => named.contains(&name),
            };
            if is_named || values >= CUT_FROM {
                varying.cut.push(name.clone());
            }
            if is_named || values >= ROUND_FROM {
                varying.rounded.push(name);
            }
        }
        varying
    }

    fn is_empty(&self) -> bool {
        self.cut.is_empty() && self.rounded.is_empty()
    }
}

/// The parts of a call, if sizes that vary let it be computed so.
#[expect(clippy::map_entry, reason = "what makes an entry may end the function")]
fn parts(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    exact: &Variant,
    varying: &Varying,
) -> Result<Option<Vec<Part>>, Problem> {
    let sizes = &exact.sizes;
    let bind = |sizes: &Sizes| Specialised::program(definition, sizes);
    let with = |sizes: &Sizes, name: &str, value: i64| {
        let mut sizes = sizes.clone();
        sizes.insert(name.to_owned(), value);
        sizes
    };
    let mut cut = None;
    for name in &varying.cut {
        let value = sizes[name];
        let other = if is_piece(value) { value + 1 } else { largest_piece(value) };
        let Ok(found) = bind(&with(sizes, name, other)) else { continue };
        let found = variation((program.ir(), value), (found.ir(), other));
        if let Ok(found) = found
            && found.kind == Kind::Sliced
            && is_outermost(program, &found)
        {
            cut = Some((name, found));
            break;
        }
    }
    let mut rounded = sizes.clone();
    for name in
        varying.rounded.iter().filter(|name| cut.as_ref().is_none_or(|(cut, _)| cut != name))
    {
        rounded.insert(name.clone(), round_up(sizes[name]));
    }
    if cut.is_none() && rounded == *sizes {
        return Ok(None);
    }
    let pieces = match &cut {
        Some((name, variation)) => pieces(sizes[*name], &price(program, sizes[*name], variation)),
        None => vec![(0, 0)],
    };
    let mut made = BTreeMap::new();
    let mut parts = Vec::new();
    for (start, length) in pieces {
        if !made.contains_key(&length) {
            let (kernel, here) = match &cut {
                Some((name, _)) => (with(&rounded, name, length), with(sizes, name, length)),
                None => (rounded.clone(), sizes.clone()),
            };
            let (Ok(large), Ok(small)) = (bind(&kernel), bind(&here)) else { return Ok(None) };
            if let Some((name, _)) = &cut
                && length != sizes[*name]
            {
                let (value, ir) = (sizes[*name], program.ir());
                let same = variation((ir, value), (small.ir(), length));
                if !same.is_ok_and(|same| same.kind == Kind::Sliced) {
                    return Ok(None);
                }
            }
            let Ok(guards) = large.guards_for(&small) else {
                // What cannot be rounded may still be cut.
                let cut_alone = Varying { cut: varying.cut.clone(), rounded: Vec::new() };
                let again = !varying.rounded.is_empty() && cut.is_some();
                return if again {
                    self::parts(definition, kernels, program, exact, &cut_alone)
                } else {
                    Ok(None)
                };
            };
            made.insert(length, (kernel, large, small, guards));
        }
        let (kernel, large, small, guards) = &made[&length];
        let along = cut.as_ref().map(|(_, variation)| (variation, start));
        parts.push(part(
            definition,
            kernels,
            program,
            (kernel, large, small, guards),
            along,
            &exact.strides,
        )?);
    }
    Ok(Some(parts))
}

/// A part of a call.
fn part(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    (sizes, large, small, guards): (&Sizes, &Program, &Program, &Vec<Guarded>),
    along: Option<(&Variation, i64)>,
    strides: &Strides,
) -> Result<Part, Problem> {
    let ir = program.ir();
    let place = |id: TensorId| {
        let number = id.0 as usize;
        let apart = strides.get(&number);
        let start = along.and_then(|(variation, start)| {
            let dimension = variation.dimensions.get(number).copied().flatten()?;
            let dense = || ir.tensor(id).shape[dimension + 1..].iter().product();
            Some(start * apart.map_or_else(dense, |strides| strides[dimension]))
        });
        let (tensor, start) = (ir.tensor(id), start.unwrap_or(0));
        let Some(apart) = apart else {
            return placement(tensor, small.ir().tensor(id), large.ir().tensor(id), start);
        };
        match large.with_strides(number, apart) {
            Some((_, before)) => Placement::At(bytes(tensor, start - before)),
            None => Placement::At(0),
        }
    };
    let kernel_takes = |number: usize| {
        strides.get(&number).is_none_or(|strides| large.with_strides(number, strides).is_some())
    };
    let has_its_shape = |number: &usize| {
        let (small, large) = (&small.inputs()[*number], &large.inputs()[*number]);
        small.shape == large.shape && kernel_takes(*number)
    };
    if !strides.keys().all(has_its_shape) {
        return Err(Problem::Dense(None));
    }
    let inputs: Vec<Placement> = ir.input_ids().map(place).collect();
    let outputs = ir.outputs.iter().map(|id| place(*id)).collect();
    // A constant of which kernels get other pieces in other calls cannot be prepared.
    let differs = |(a, b): (&Tensor, &Tensor)| a.is_const && a.shape != b.shape;
    let has_constants = !program.inputs().iter().zip(large.inputs()).any(differs);
    let variant = Variant {
        sizes: sizes.clone(),
        guards: guards.clone(),
        has_constants,
        strides: strides.clone(),
    };
    let compiled = kernels.compile(definition, &variant, large)?;
    let end = |guard: &Guarded| small.ir().stages[guard.stage].axis(guard.axis).hi as i32;
    Ok(Part { compiled, inputs, outputs, ends: guards.iter().map(end).collect() })
}

/// Where a kernel for the tensor `large` finds the part `small` of the caller's, which starts so many elements in.
fn placement(whole: &Tensor, small: &Tensor, large: &Tensor, start: i64) -> Placement {
    if small.shape == large.shape {
        // A piece of the outermost axis, or all.
        return Placement::At(bytes(whole, start));
    }
    let start = start as usize * whole.dtype.bytes();
    let extents = |tensor: &Tensor| tensor.shape.iter().map(|extent| *extent as usize).collect();
    let (valid, padded) = (extents(small), extents(large));
    Placement::Copied(Region {
        start,
        element: whole.dtype.bytes(),
        whole: extents(whole),
        valid,
        padded,
    })
}

/// Whether the size is the outermost of all tensors of a caller that have it.
fn is_outermost(program: &Program, variation: &Variation) -> bool {
    let ir = program.ir();
    let mut all = ir.input_ids().chain(ir.outputs.iter().copied());
    all.all(|id| match variation.dimensions.get(id.0 as usize).copied().flatten() {
        Some(dimension) => ir.tensor(id).shape[..dimension].iter().all(|extent| *extent == 1),
        None => true,
    })
}

/// What pieces cost, about: tensors that do not vary are read again for each.
fn price(program: &Program, value: i64, variation: &Variation) -> Price {
    let ir = program.ir();
    let moved = |varies: bool| -> f64 {
        let all = ir.input_ids().chain(ir.outputs.iter().copied());
        let is = |id: &TensorId| {
            variation.dimensions.get(id.0 as usize).copied().flatten().is_some() == varies
        };
        all.filter(is).map(|id| ir.tensor(id).bytes() as f64).sum()
    };
    let work = (program.iterations() as f64 / ITERATIONS).max(moved(true) / BYTES);
    Price { call: CALL + moved(false) / BYTES, step: work / value as f64 }
}

/// How to compute calls with sizes of which some are zero: by what is common to larger ones.
fn empty(definition: &Definition, kernels: &Kernels, sizes: Sizes) -> Result<Specialised, Problem> {
    let is_size = |name: &String| definition.signature.sizes.contains(name);
    let at = |value: i64| -> Sizes {
        let one = |(name, size): (&String, &i64)| {
            (name.clone(), if *size == 0 && is_size(name) { value } else { *size })
        };
        sizes.iter().map(one).collect()
    };
    let zeros = sizes.iter().filter(|(name, size)| **size == 0 && is_size(name));
    let zeros = zeros.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let program = Specialised::program(definition, &at(2))?;
    let larger = Specialised::program(definition, &at(3))?;
    // Extents are sums of sizes, so that they go on to zero as they went from three to two.
    let extent = |(two, three): (&i64, &i64)| two - 2 * (three - two);
    let mut real: Shapes = shapes(&program);
    let others = shapes(&larger);
    let pairs = real.0.iter_mut().zip(&others.0).chain(real.1.iter_mut().zip(&others.1));
    for (tensor, other) in pairs {
        tensor.shape = tensor.shape.iter().zip(&other.shape).map(extent).collect();
        if tensor.shape.iter().any(|extent| *extent < 0) {
            let message =
                format!("{zeros} cannot be 0: `{}` would have a negative extent", tensor.name);
            return Err(Problem::Argument(message));
        }
    }
    if real.1.iter().all(|tensor| tensor.shape.contains(&0)) {
        return Ok(Specialised::of(definition, &real, sizes, &Strides::new(), Vec::new()));
    }
    let guards = larger.guards_for(&program).map_err(|reason| {
        Problem::Argument(format!("has no value where {zeros} is 0: {reason}"))
    })?;
    let end = |guard: &Guarded| {
        let hi = |program: &Program| program.ir().stages[guard.stage].axis(guard.axis).hi;
        extent((&hi(&program), &hi(&larger))).max(0) as i32
    };
    let varies = |(a, b): (&Tensor, &Tensor)| a.is_const && a.shape != b.shape;
    let has_constants = !real.0.iter().zip(program.inputs()).any(varies);
    let variant =
        Variant { sizes: at(2), guards: guards.clone(), has_constants, strides: Strides::new() };
    let compiled = kernels.compile(definition, &variant, &program)?;
    let outputs = program.outputs();
    let place = |(real, made): (&Tensor, &Tensor)| placement(real, real, made, 0);
    let part = Part {
        compiled,
        inputs: real.0.iter().zip(program.inputs()).map(place).collect(),
        outputs: real.1.iter().zip(outputs).map(place).collect(),
        ends: guards.iter().map(end).collect(),
    };
    Ok(Specialised::of(definition, &real, sizes, &Strides::new(), vec![part]))
}
