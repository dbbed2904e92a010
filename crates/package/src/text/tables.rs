//! The dispatcher's kernel tables in C.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tensorwright::schedule::interface::Function;

use crate::buckets::{Layout, Padding, Run, costs, covers, measured_cycles};
use crate::compile::{Built, Kernels, Slot};
use crate::operator::{Case, Operator};
use crate::plan::Plan;

/// The size of the identification header of prepared data.
pub(super) const HEADER_BYTES: i64 = 64;

/// The tables of an operator; the last is called `tw_operator_NAME`.
pub(super) fn tables(plan: &Plan, operator: &Operator, kernels: &[Kernels]) -> String {
    let name = &operator.name;
    let mut text = String::new();
    for (number, (case, kernels)) in operator.cases.iter().zip(kernels).enumerate() {
        text += &of_case(plan, operator, case, kernels, &format!("{name}_{number}"));
    }
    let parameters = operator
        .parameters
        .iter()
        .map(|p| format!("{{{}, {}}}", p.dtype.bytes(), i32::from(p.is_output)));
    text += &array("struct parameter", &format!("tw_parameters_{name}"), parameters);
    let cases = operator.cases.iter().enumerate().map(|(number, case)| {
        let (place, first, last) = match &case.varying {
            Some(varying) => (varying.place as i64, varying.range.first, varying.range.last),
            None => (-1, 0, 0),
        };
        let edge = i32::from(case.padding() == Padding::Edge);
        let id = format!("{name}_{number}");
        format!(
            "{{tw_sizes_{id}, {place}, {}, {first}, {last}, tw_buckets_{id}, {edge}, tw_layouts_{id}, \
             tw_variants_{id}}}",
            case.programs.len()
        )
    });
    text += &array("struct case_", &format!("tw_cases_{name}"), cases);
    text + &format!(
        "static const struct operator_ tw_operator_{name} = {{{}, {}, {}, tw_parameters_{name}, \
         tw_cases_{name}}};\n\n",
        operator.sizes.len(),
        operator.parameters.len(),
        operator.cases.len()
    )
}

fn of_case(plan: &Plan, operator: &Operator, case: &Case, kernels: &Kernels, id: &str) -> String {
    // A C array needs an element.
    let or_zero = |list: Vec<String>| if list.is_empty() { vec!["0".to_owned()] } else { list };
    let numbers = |list: &[i64]| or_zero(list.iter().map(i64::to_string).collect());
    let mut text = array("int64_t", &format!("tw_sizes_{id}"), numbers(&case.sizes));
    let values: Vec<i64> = case.programs.iter().map(|(value, _)| *value).collect();
    text += &array("int64_t", &format!("tw_buckets_{id}"), numbers(&values));
    let layout = |layout: &Layout| {
        format!("{{{}, {}, {}}}", layout.rows, layout.step, i32::from(layout.varies))
    };
    text += &array("struct layout", &format!("tw_layouts_{id}"), case.layouts.iter().map(layout));
    let mut variants = Vec::new();
    for (level, kernels) in plan.levels.iter().zip(kernels) {
        let id = format!("{id}_{}", level.name());
        let areas = Areas::of(kernels);
        for kernel in kernels {
            let slots = kernel.slots.iter().map(|slot| match slot {
                Slot::Parameter(parameter) => format!("{{{parameter}, 0}}"),
                Slot::Prepared(offset) => format!("{{-1, {}}}", areas.start(kernel) + offset),
            });
            let prepare = areas.is_owner(kernel).then_some(Function::Prepare);
            for function in [Function::Compute].into_iter().chain(prepare) {
                text += &format!(
                    "tw_hidden int32_t {}(void *const *buffers, void *workspace, tw_pool *pool);\n",
                    kernel.interface.function(function)
                );
            }
            text += &array("struct slot", &format!("tw_slots_{}", kernel.interface.symbol), slots);
        }
        let entries = kernels.iter().map(|kernel| {
            let (symbol, run) =
                (&kernel.interface.symbol, kernel.interface.function(Function::Compute));
            let prepare = match areas.is_owner(kernel) {
                true => kernel.interface.function(Function::Prepare),
                false => "NULL".to_owned(),
            };
            format!(
                "{{{run}, {prepare}, tw_slots_{symbol}, {}, {}, {}}}",
                kernel.slots.len(),
                kernel.interface.workspace.shared_bytes,
                kernel.interface.workspace.private_bytes
            )
        });
        text += &array("struct kernel", &format!("tw_kernels_{id}"), entries);
        let covers = cover_tables(case, kernels, &id);
        text += &covers.0;
        let or = |mask: &dyn Fn(&Built) -> u64| kernels.iter().fold(0, |all, one| all | mask(one));
        variants.push(format!(
            "{{tw_kernels_{id}, {}, UINT64_C({:#x}), UINT64_C({:#x}), UINT64_C({:#x}), {}}}",
            areas.bytes,
            identity(plan, operator, &id, kernels),
            or(&|kernel| kernel.needs),
            or(&|kernel| kernel.prepares),
            covers.1
        ));
    }
    text + &array("struct variant", &format!("tw_variants_{id}"), variants)
}

/// The cover tables of a variant, with their initialisers.
fn cover_tables(case: &Case, kernels: &[Built], id: &str) -> (String, String) {
    let Some(varying) = &case.varying else { return (String::new(), "NULL, NULL".to_owned()) };
    let (values, kind) = (varying.buckets.values(), varying.buckets.variation.kind);
    let estimates: Vec<f64> = kernels.iter().map(|kernel| kernel.cycles).collect();
    let seconds: Vec<Option<f64>> = kernels.iter().map(|kernel| kernel.origin.seconds()).collect();
    let cycles = measured_cycles(&values, &estimates, &seconds);
    let costs = costs(&varying.buckets, &cycles);
    let covers = covers(varying.range.first, &values, kind, &costs);
    let mut starts = Vec::new();
    let mut runs: Vec<Run> = Vec::new();
    for cover in &covers {
        starts.push(runs.len().to_string());
        runs.extend(cover);
    }
    let runs = runs.iter().map(|run| format!("{{{}, {}}}", run.bucket, run.count));
    let mut text = array("uint32_t", &format!("tw_starts_{id}"), starts);
    text += &array("struct run", &format!("tw_runs_{id}"), runs);
    (text, format!("tw_starts_{id}, tw_runs_{id}"))
}

/// The offsets of constants of a variant's kernels; equal layouts share memory.
struct Areas<'a> {
    starts: BTreeMap<&'a str, (i64, &'a str)>,
    bytes: i64,
}

impl<'a> Areas<'a> {
    fn of(kernels: &'a [Built]) -> Self {
        let mut areas = Self { starts: BTreeMap::new(), bytes: 0 };
        for kernel in kernels.iter().filter(|kernel| kernel.interface.has_prepare) {
            let next = areas.bytes.max(HEADER_BYTES);
            if !areas.starts.contains_key(kernel.preparation.as_str()) {
                areas.starts.insert(&kernel.preparation, (next, &kernel.interface.symbol));
                areas.bytes = next + kernel.interface.prepared_bytes;
            }
        }
        areas
    }

    fn start(&self, kernel: &Built) -> i64 {
        self.starts.get(kernel.preparation.as_str()).map_or(0, |(start, _)| *start)
    }

    /// Whether this kernel's preparation is run.
    fn is_owner(&self, kernel: &Built) -> bool {
        let owner = self.starts.get(kernel.preparation.as_str());
        kernel.interface.has_prepare
            && owner.is_some_and(|(_, symbol)| *symbol == kernel.interface.symbol)
    }
}

/// The bytes of a variant's constants.
pub(super) fn prepared_bytes(kernels: &[Built]) -> i64 {
    Areas::of(kernels).bytes
}

/// A hash that distinguishes the prepared data of variants.
fn identity(plan: &Plan, operator: &Operator, id: &str, kernels: &[Built]) -> u64 {
    let mut hash = Sha256::new();
    for part in [&plan.name, &operator.name, id] {
        hash.update(part);
        hash.update([0]);
    }
    kernels.iter().for_each(|kernel| hash.update(&kernel.preparation));
    let digest = hash.finalize();
    digest[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// `static const TYPE NAME[] = {...};`, in lines.
fn array(ctype: &str, name: &str, elements: impl IntoIterator<Item = String>) -> String {
    let elements: Vec<String> = elements.into_iter().collect();
    let mut text = format!("static const {ctype} {name}[] = {{");
    let mut column = usize::MAX;
    for element in &elements {
        if column > 90 {
            text += "\n    ";
            column = 4;
        }
        text += &format!("{element}, ");
        column += element.len() + 2;
    }
    let text = text.trim_end().trim_end_matches(',');
    format!("{text}\n}};\n")
}
