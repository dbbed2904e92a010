//! Dynamic shapes: computing a call with kernels made for other shapes.
//!
//! ```text
//! y(n,d) = x(n,d) + b(d)      N = 1000: rows 0..768 and 744..1000, by kernels for 768 and 256 rows
//! softmax over D              D = 1000: by a kernel for 1024, on copies; its sums end at 1000
//! anything, N = 0             by the kernel for 2, with sums that end at 0
//! ```
//!
//! A size along which elements are independent, and which is the outermost axis of its tensors, is
//! cut into pieces without a copy ([`cut`]); measured times select the pieces ([`Pieces`]). Other
//! sizes are rounded up. If neither is possible, the shapes get a kernel of their own.

mod cut;
mod dynamic_warning;
mod empty;
mod part;
mod varying;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use tensorwright::ir::{Stage, Tensor};
use tensorwright::{Diagnostics, Program};
use tensorwright_package::buckets::{Pieces, is_piece};

use crate::compiled::{Strides, Variant};
use crate::definition::{Definition, Sizes};
use crate::kernels::Kernels;
use crate::parts::{Part, Placement};
use crate::specialised::{Shapes, Specialised, shapes};
use cut::Cut;
use part::{PartPrograms, bytes, part};
use varying::Varying;

/// Why a call cannot be computed.
#[derive(Debug)]
pub(crate) enum Problem {
    Diagnosed(Diagnostics),
    /// The arguments are invalid.
    Argument(String),
    /// Inputs have to be dense; with the reason, if the caller can change that.
    Dense(Option<String>),
}

impl From<Diagnostics> for Problem {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnosed(diagnostics)
    }
}

/// Plans calls with given sizes: `exactly` by a kernel for them alone, or by kernels that serve
/// other sizes too.
pub(crate) fn plan(
    definition: &Definition,
    kernels: &Kernels,
    sizes: Sizes,
    given: &BTreeMap<String, Vec<i64>>,
    exactly: bool,
) -> Result<Specialised, Problem> {
    if has_zeros(definition, &sizes) {
        return if given.is_empty() {
            empty::empty(definition, kernels, sizes)
        } else {
            Err(Problem::Dense(None))
        };
    }
    let program = Specialised::program(definition, &sizes)?;
    let strides = strides(definition, kernels, &program, given)?;
    let exact = Variant::exact(sizes, strides);
    if !exactly && kernels.is_first_plan() {
        kernels.warn(dynamic_warning::warning(definition, &program, &exact.sizes));
    }
    let sizes = &exact.sizes;
    let varying = Varying::of(definition, kernels, sizes);
    let found = kernels.compiled(&exact);
    if exactly || varying.is_empty() || found.as_ref().is_some_and(|found| found.is_kept) {
        return Ok(whole(definition, kernels, &program, exact)?);
    }
    let cut = Cut::of(definition, &program, sizes, &varying.cut);
    // An existing kernel is used, unless it is one of the pieces, which are selected by measured
    // times.
    let is_piece = cut.as_ref().is_some_and(|cut| is_piece(cut.value));
    let is_known = found.is_some() && !is_piece || Kernels::is_tuned(definition, &program);
    let call = Call { definition, kernels, program: &program, exact: &exact };
    if !is_known && let Some((parts, pieces)) = call.parts(cut.as_ref(), &varying)? {
        let shapes = shapes(&program);
        let made = Specialised::of(definition, &shapes, exact.sizes, &exact.strides, parts);
        return Ok(made.in_pieces(pieces));
    }
    Ok(whole(definition, kernels, &program, exact)?)
}

/// The inputs and outputs of a definition for sizes, some of which may be zero.
pub(crate) fn shapes_of(definition: &Definition, sizes: &Sizes) -> Result<Shapes, Problem> {
    if has_zeros(definition, sizes) {
        return Ok(empty::Empty::new(definition, sizes)?.real);
    }
    Ok(shapes(&Specialised::program(definition, sizes)?))
}

fn has_zeros(definition: &Definition, sizes: &Sizes) -> bool {
    let is_size = |name: &String| definition.signature.sizes.contains(name);
    sizes.iter().any(|(name, value)| *value == 0 && is_size(name))
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

/// The strides of non-dense inputs, if they may get kernels.
fn strides(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    given: &BTreeMap<String, Vec<i64>>,
) -> Result<Strides, Problem> {
    // The diagnosis of an out-of-bounds subscript reads all memory of the inputs, including gaps.
    let is_checked = program.ir().stages.iter().any(Stage::has_data_subscripts);
    let mut found = Strides::new();
    for (number, input) in program.inputs().iter().enumerate() {
        let Some(strides) = given.get(&input.name) else { continue };
        if input.is_const || is_checked || program.with_strides(number, strides).is_none() {
            let advice = format!(
                "{}: `{}` is copied on every call, because {}; pass .contiguous() or numpy.ascontiguousarray(...) to copy it once",
                definition.signature.name,
                input.name,
                if input.is_const {
                    "a constant has to be contiguous"
                } else if is_checked {
                    "subscripts depend on data"
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

/// A call without a kernel, with dynamic sizes.
struct Call<'a> {
    definition: &'a Definition,
    kernels: &'a Kernels,
    program: &'a Program,
    exact: &'a Variant,
}

/// The parts of a call, and the size they are pieces of.
type Parts = (Vec<Part>, Option<Pieces>);

impl Call<'_> {
    /// The parts of the call, if its dynamic sizes allow them.
    fn parts(&self, cut: Option<&Cut>, varying: &Varying) -> Result<Option<Parts>, Problem> {
        let sizes = &self.exact.sizes;
        let rounded = varying.rounded_up(sizes, cut.map(|cut| cut.name.as_str()));
        if rounded != *sizes
            && let Some(parts) = self.parts_of(cut, &rounded)?
        {
            return Ok(Some(parts));
        }
        // A size that cannot be rounded may still be cut.
        if cut.is_some() { self.parts_of(cut, sizes) } else { Ok(None) }
    }

    /// The parts of the call by kernels for these sizes, except the cut one.
    fn parts_of(&self, cut: Option<&Cut>, kernel: &Sizes) -> Result<Option<Parts>, Problem> {
        let Some(cut) = cut else {
            let made = PartPrograms::new(self.definition, kernel.clone(), &self.exact.sizes);
            let Some(made) = made else { return Ok(None) };
            return Ok(Some((vec![part(self, &made, None)?], None)));
        };
        let pieces = cut.pieces(self.kernels, self.exact, kernel);
        let lengths: BTreeSet<i64> = pieces.places().map(|(_, length)| length).collect();
        if lengths.len() > self.kernels.limit() {
            // They would evict each other at every call.
            return Ok(None);
        }
        let mut made = BTreeMap::new();
        let mut parts = Vec::new();
        for (start, length) in pieces.places() {
            let made = match made.entry(length) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => {
                    let (large, small) =
                        (cut.at(kernel, length), cut.at(&self.exact.sizes, length));
                    match PartPrograms::new(self.definition, large, &small) {
                        Some(made) if cut.is_sliced(self.program, &made.small, length) => {
                            place.insert(made)
                        }
                        _ => return Ok(None),
                    }
                }
            };
            parts.push(part(self, made, Some((&cut.variation, start)))?);
        }
        Ok(Some((parts, Some(pieces))))
    }
}
