//! Reads the values of sizes: numbers, or ranges of values.

use std::collections::BTreeMap;

use crate::bind::{MAX_SIZE, is_static};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Def;
use crate::program::{AxisId, Index, Size, SizeRange, SizeValue};

/// The sizes of a definition.
pub(super) struct Sizes {
    /// Those that vary, in the order of the signature.
    pub(super) varying: Vec<Size>,
    /// All in order, as functions of those that vary.
    pub(super) all: Vec<Index>,
    /// The likely values by name, and those of scalars.
    pub(super) likely: BTreeMap<String, i64>,
}

/// The sizes with these values.
pub(super) fn sizes(
    def: &Def,
    values: &BTreeMap<String, SizeValue>,
) -> Result<Sizes, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let likely = values.iter().map(|(name, value)| match value {
        SizeValue::Known(value) => (name.clone(), *value),
        SizeValue::Varies(range) => (name.clone(), range.likely),
    });
    let mut sizes = Sizes { varying: Vec::new(), all: Vec::new(), likely: likely.collect() };
    for size in &def.sizes {
        sizes.all.push(match values.get(&size.name) {
            None => Index::constant(1),
            Some(SizeValue::Known(value)) => Index::constant(*value),
            Some(SizeValue::Varies(range)) => {
                if let Some(problem) = problem(range) {
                    let SizeRange { least, most, .. } = range;
                    let message = format!("`{}` cannot be {least} to {most}", size.name);
                    let error = Diagnostic::new(Code::InvalidSize, size.span, message);
                    errors.push(error.here(problem));
                }
                let var = Index::axis(AxisId::of_size(sizes.varying.len() as u32));
                sizes.varying.push(Size { name: size.name.clone(), range: *range });
                var.scale(range.multiple).unwrap_or(var)
            }
        });
    }
    for param in def.tensors[..def.params].iter().filter(|param| is_static(param)) {
        if let Some(SizeValue::Varies(_)) = values.get(&param.name) {
            let message = format!("the scalar `{}` is a range of values", param.name);
            errors.push(
                Diagnostic::new(Code::VaryingSize, param.span, message)
                    .here("a number, or read at run time")
                    .help("give it one value, or none to pass it with every call"),
            );
        }
    }
    if errors.is_empty() { Ok(sizes) } else { Err(errors) }
}

/// Why a range has no sense.
fn problem(range: &SizeRange) -> Option<String> {
    let SizeRange { least, most, likely, multiple } = *range;
    if least < 1 || most > MAX_SIZE {
        return Some("a size is at least 1 and at most 2^48".to_owned());
    }
    if least > most {
        return Some("the least value is above the greatest".to_owned());
    }
    if !(least..=most).contains(&likely) {
        return Some(format!("the likely value {likely} is not among them"));
    }
    if multiple < 1 {
        return Some(format!("there are no multiples of {multiple}"));
    }
    let is_multiple = |value: &i64| value % multiple == 0;
    let other = [least, most, likely].into_iter().find(|value| !is_multiple(value));
    other.map(|value| format!("{value} is no multiple of {multiple}"))
}
