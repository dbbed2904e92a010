//! Programs for ranges of sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tensorwright::ir::{SizeRange, SizeValue};
use tensorwright::{Diagnostics, SizedProgram};

use super::varying::is_named;
use crate::definition::{Definition, Sizes};
use crate::family::{Family, FamilyProgram};
use crate::kernels::Kernels;

/// The greatest values of sizes that vary; the first is taken for which all index arithmetic fits
/// 64 bits and buffers of a kernel's own that are as large as the largest sizes fit [`FIXED`].
const MOST: [i64; 3] = [1 << 20, 1 << 16, 1 << 12];

/// The most bytes of a kernel's own memory that does not depend on the sizes of a call.
const FIXED: i64 = 64 << 20;

/// Regimes by the greatest value of a call: up to which value, and the least one that kernels are
/// made for. One row needs other loops than many, and a small image others than a large one, whose
/// intermediates exceed caches.
const REGIMES: [(i64, i64); 3] = [(4, 2), (256, 64), (i64::MAX, 1024)];

/// A family with its program.
pub(super) struct Found {
    pub(super) family: Family,
    pub(super) program: Arc<FamilyProgram>,
}

/// The program for the sizes of a call, the named ones of which vary; `None` if none of them can.
pub(super) fn of_call(
    definition: &Definition,
    kernels: &Kernels,
    sizes: &Sizes,
    mut varying: Vec<String>,
) -> Option<Found> {
    let found = of_family(definition, kernels, sizes, &varying);
    if varying.len() > 1 && matches!(*found.program, FamilyProgram::Fixed(_)) {
        // Those that can vary alone may vary together.
        varying.retain(|name| {
            let alone = of_family(definition, kernels, sizes, std::slice::from_ref(name));
            matches!(*alone.program, FamilyProgram::Bound(_))
        });
        if varying.is_empty() {
            return None;
        }
        return Some(of_family(definition, kernels, sizes, &varying)).filter(Found::is_bound);
    }
    Some(found).filter(Found::is_bound)
}

/// The sizes that were asked to vary and cannot, with the reasons; `None` if there are none.
pub(super) fn warning(definition: &Definition, kernels: &Kernels, sizes: &Sizes) -> Option<String> {
    let choices = &definition.choices;
    let names = definition.signature.sizes.iter().filter(|name| is_named(choices, name));
    let reason = |name: &String| {
        if choices.target.gpu().is_some() {
            return Some("device kernels have fixed sizes".to_owned());
        }
        match &*of_family(definition, kernels, sizes, std::slice::from_ref(name)).program {
            FamilyProgram::Bound(_) => None,
            FamilyProgram::Fixed(reason) => Some(reason.clone()),
        }
    };
    let one = |name| Some(format!("`{name}` cannot be dynamic: {}", reason(name)?));
    let all: Vec<String> = names.filter_map(one).collect();
    let text = format!("{}; each value gets its own kernel", all.join("; "));
    (!all.is_empty()).then(|| definition.signature.says(&text))
}

fn of_family(
    definition: &Definition,
    kernels: &Kernels,
    sizes: &Sizes,
    varying: &[String],
) -> Found {
    let def = definition.module.def(&definition.signature.name);
    let scalars: Vec<&str> = def.as_ref().map_or_else(|_| Vec::new(), |def| def.integer_scalars());
    let is_known = |name: &String| !varying.contains(name) && !scalars.contains(&name.as_str());
    let greatest = varying.iter().filter_map(|name| sizes.get(name)).max().map_or(1, |most| *most);
    let regime = REGIMES.iter().position(|(most, _)| greatest <= *most).unwrap_or(0);
    let mut family = Family { varying: varying.to_vec(), known: sizes.clone(), regime };
    family.known.retain(|name, _| is_known(name));
    let make = |family: &Family| kernels.family(family, || bound(definition, sizes, family));
    let program = make(&family);
    // Scalars that shape something are known.
    if matches!(*program, FamilyProgram::Fixed(_)) && !scalars.is_empty() {
        family.known = sizes.clone();
        family.known.retain(|name, _| !varying.contains(name));
        let program = make(&family);
        return Found { family, program };
    }
    Found { family, program }
}

fn bound(definition: &Definition, sizes: &Sizes, family: &Family) -> FamilyProgram {
    let mut reason = String::new();
    for most in MOST {
        match bind(definition, sizes, family, most) {
            Ok(program) if !is_small(definition, &program) => {
                reason = "its buffers would be too large".to_owned();
            }
            Ok(program) => return FamilyProgram::Bound(program),
            Err(error) => {
                let first = error.list().first();
                reason = first.map_or_else(String::new, |first| first.message.clone());
            }
        }
    }
    FamilyProgram::Fixed(reason)
}

/// Whether a kernel of a program needs little memory beside that for the sizes of a call.
fn is_small(definition: &Definition, program: &SizedProgram) -> bool {
    let choices = &definition.choices;
    let builder = program.compile().target(choices.target.clone());
    let lowered = builder.threads(choices.threads).precision(choices.precision).lower();
    let workers = i32::try_from(choices.threads).unwrap_or(i32::MAX);
    lowered.is_ok_and(|lowered| lowered.interface().workspace.bytes(workers) <= FIXED)
}

fn bind(
    definition: &Definition,
    sizes: &Sizes,
    family: &Family,
    most: i64,
) -> Result<SizedProgram, Diagnostics> {
    let range = |name: &String| {
        let value = sizes.get(name).map_or(1, |value| *value);
        let likely = likely(value, family.regime).min(most);
        SizeValue::Varies(SizeRange { least: 1, most, likely, multiple: 1 })
    };
    let known = family.known.iter().map(|(name, size)| (name.clone(), SizeValue::Known(*size)));
    let varying = family.varying.iter().map(|name| (name.clone(), range(name)));
    let values: BTreeMap<String, SizeValue> = known.chain(varying).collect();
    definition.module.def(&definition.signature.name)?.bind_sized(values)
}

/// The value that a kernel is made for, if it first meets this one.
fn likely(value: i64, regime: usize) -> i64 {
    let (_, floor) = REGIMES.get(regime).copied().unwrap_or((1, 1));
    // The window of a stencil, or the channels of an image, beside larger sizes.
    if (2..8).contains(&value) && floor > 8 {
        return value;
    }
    // Tiles for powers of two suit most other sizes.
    let value = value.max(floor);
    u64::try_from(value).ok().and_then(u64::checked_next_power_of_two).map_or(value, |p| p as i64)
}

impl Found {
    fn is_bound(&self) -> bool {
        matches!(*self.program, FamilyProgram::Bound(_))
    }
}
