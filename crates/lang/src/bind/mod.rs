//! Binding: from checked definitions and sizes to a [`Program`].

mod assemble;
mod bounds;
mod extent_mismatch;
mod flatten;
mod lower;
mod proofs;
mod resolve;
mod scan;
mod scatter;
mod shapes;
mod simplify;
mod site;
mod sized;
mod undetermined;

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::hir::{Def, Dim, Int, Size, Stmt};
use crate::program::Program;
use crate::source::Source;

use bounds::Mode;
use flatten::{Agreement, Flat, Rule, flatten, is_too_long};
use resolve::{Attempted, ResolvedStatement, Resolver};
use shapes::Shapes;

pub(crate) use sized::bind_sized;

/// The largest value of a size.
const MAX_SIZE: i64 = 1 << 48;

/// Binds a definition to sizes.
pub(crate) fn bind(
    source: &Source,
    defs: &[Option<Def>],
    def: &Def,
    values: &BTreeMap<String, i64>,
) -> Result<Program, Vec<Diagnostic>> {
    let (sizes, mut scalars) = sizes(def, values)?;
    let flat = flatten(defs, def).map_err(|error| vec![error])?;
    scalars.resize(flat.tensors.len(), None);
    let Resolved { shapes, statements, .. } = resolve(def, &flat, &sizes, &scalars)?;
    let statements = assemble::covering(&flat, &shapes, statements);
    let program = assemble::assemble(source, def, &flat, &shapes, &scalars, statements);
    program.map(|(program, _)| program)
}

/// The steps of an inlined definition with all ranges and shapes known.
struct Resolved {
    shapes: Shapes<i64>,
    statements: Vec<Option<ResolvedStatement>>,
    trace: Vec<Attempted>,
}

fn resolve(
    def: &Def,
    flat: &Flat<'_>,
    sizes: &[i64],
    scalars: &[Option<i64>],
) -> Result<Resolved, Vec<Diagnostic>> {
    let mut resolver = resolver(def, flat, sizes, scalars, Mode::Bind);
    let statements = resolver.resolve();
    // Disagreeing sizes cause errors in the callee; only the call is reported.
    let disagreements = disagreements(&resolver);
    if !disagreements.is_empty() {
        return Err(disagreements);
    }
    let Resolver { shapes, diagnostics, trace, .. } = resolver;
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    Ok(Resolved { shapes, statements, trace })
}

/// The size-independent problems of a definition: ambiguous or undetermined ranges. `budget` limits
/// the work over a whole text.
pub(crate) fn check_structure(
    defs: &[Option<Def>],
    def: &Def,
    budget: &mut usize,
) -> Vec<Diagnostic> {
    let callees = def.body.iter().filter_map(|stmt| match stmt {
        Stmt::Call(call) => defs.get(call.callee)?.as_ref(),
        Stmt::Comprehension(_) => None,
    });
    if is_too_long(def) {
        // Reported for the innermost definition only, and inlined only for it.
        let outer = callees.into_iter().any(is_too_long);
        return if outer { Vec::new() } else { flatten(defs, def).err().into_iter().collect() };
    }
    let Some(left) = budget.checked_sub(def.expanded) else { return Vec::new() };
    *budget = left;
    let flat = match flatten(defs, def) {
        Ok(flat) => flat,
        Err(error) => return vec![error],
    };
    // Equal sizes, or a scalar that is 1, may cancel a variable: `(N - M) * i`.
    // A problem for both increasing and decreasing sizes does not depend on sizes.
    let count = def.sizes.len() as i64;
    let growing = structural_problems(def, &flat, &|size| 64 + 7 * size);
    if growing.is_empty() {
        return growing;
    }
    let shrinking = structural_problems(def, &flat, &|size| 64 + 7 * (count - size));
    let same = |a: &Diagnostic, b: &Diagnostic| a.code == b.code && a.span() == b.span();
    growing.into_iter().filter(|a| shrinking.iter().any(|b| same(a, b))).collect()
}

/// The size-independent problems of a definition, found with synthetic sizes.
fn structural_problems(def: &Def, flat: &Flat<'_>, size: &dyn Fn(i64) -> i64) -> Vec<Diagnostic> {
    let sizes: Vec<i64> = (0..def.sizes.len() as i64).map(size).collect();
    let scalars: Vec<Option<i64>> = (0..flat.tensors.len())
        .map(|number| (number < def.params && is_static(&def.tensors[number])).then_some(3))
        .collect();
    let mut resolver = resolver(def, flat, &sizes, &scalars, Mode::Structure);
    resolver.resolve();
    let structural = |code| matches!(code, Code::AmbiguousRange | Code::UnderConstrained);
    let here = |diagnostic: &Diagnostic| {
        structural(diagnostic.code) && diagnostic.span().is_some_and(|span| def.span.contains(span))
    };
    resolver.diagnostics.into_iter().filter(here).collect()
}

/// Whether a parameter is an integer scalar, which may be bound like a size.
pub(crate) fn is_static(tensor: &crate::hir::Tensor) -> bool {
    tensor.rank == 0 && tensor.dtype.is_integer() && !tensor.updated
}

fn resolver<'a>(
    def: &'a Def,
    flat: &'a Flat<'a>,
    sizes: &'a [i64],
    scalars: &'a [Option<i64>],
    mode: Mode,
) -> Resolver<'a> {
    let extent = |dim: &Dim| match dim {
        Dim::Size(size) => sizes[size.0 as usize],
        Dim::Literal(extent) => *extent,
    };
    let shapes = flat.tensors.iter().enumerate().map(|(number, tensor)| {
        let known = number < def.params || tensor.rank == 0;
        known.then(|| tensor.dims.iter().map(extent).collect())
    });
    let shapes = Shapes::new(shapes.collect());
    let (diagnostics, trace) = (Vec::new(), Vec::new());
    Resolver { flat, def, sizes, scalars, shapes, mode, diagnostics, trace }
}

/// The sizes of a definition in order, and per parameter the value of an integer scalar.
#[allow(clippy::type_complexity, reason = "two lists that are made together and used apart")]
fn sizes(
    def: &Def,
    values: &BTreeMap<String, i64>,
) -> Result<(Vec<i64>, Vec<Option<i64>>), Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut missing = Vec::new();
    let mut sizes = Vec::with_capacity(def.sizes.len());
    for size in &def.sizes {
        match values.get(&size.name) {
            Some(value) if (1..=MAX_SIZE).contains(value) => sizes.push(*value),
            Some(value) => {
                let message = format!("the size `{}` cannot be {value}", size.name);
                let limit = if *value < 1 { "at least 1" } else { "at most 2^48" };
                errors.push(
                    Diagnostic::new(Code::InvalidSize, size.span, message)
                        .here(format!("a size is {limit}")),
                );
            }
            None => missing.push(size),
        }
    }
    let params = &def.tensors[..def.params];
    let scalars: Vec<Option<i64>> = params
        .iter()
        .map(|param| values.get(&param.name).copied().filter(|_| is_static(param)))
        .collect();
    for (param, value) in params.iter().zip(&scalars) {
        let range = param.dtype.integer_range();
        if let (Some(value), Some((lo, hi))) = (value, range)
            && !(lo..=hi).contains(&i128::from(*value))
        {
            let message = format!("the scalar `{}` is {value}", param.name);
            errors.push(
                Diagnostic::new(Code::InvalidSize, param.span, message)
                    .here(format!("the values of `{}` are {lo} to {hi}", param.dtype)),
            );
        }
    }
    let statics = params.iter().filter(|param| is_static(param)).map(|param| param.name.as_str());
    let known: Vec<&str> = def.sizes.iter().map(|size| size.name.as_str()).chain(statics).collect();
    for name in values.keys().filter(|name| !known.contains(&name.as_str())) {
        // A misspelled size is not also reported as missing.
        let near = nearest(name, known.iter().copied());
        missing.retain(|size| Some(size.name.as_str()) != near);
        errors.push(unknown_size(def, name, &known));
    }
    if !missing.is_empty() {
        errors.push(missing_sizes(&missing));
    }
    if errors.is_empty() { Ok((sizes, scalars)) } else { Err(errors) }
}

/// The most missing sizes to name; a text may have thousands.
const MAX_NAMED: usize = 8;

fn missing_sizes(missing: &[&Size]) -> Diagnostic {
    let named = &missing[..missing.len().min(MAX_NAMED)];
    let list = |text: &dyn Fn(&Size) -> String, between: &str| {
        named.iter().map(|size| text(size)).collect::<Vec<_>>().join(between)
    };
    let names = list(&|size| format!("`{}`", size.name), ", ");
    let message = match (missing.len(), missing.len() - named.len()) {
        (1, _) => format!("the size {names} has no value"),
        (_, 0) => format!("the sizes {names} have no values"),
        (_, others) => format!("the sizes {names} and {others} others have no values"),
    };
    let example = list(&|size| format!("{}=64", size.name), ",");
    named
        .iter()
        .fold(Diagnostic::without_place(Code::MissingSize, message), |diagnostic, size| {
            diagnostic.label(size.span, "what is its value?")
        })
        .help(format!("sizes are needed to infer ranges; give values, for example `{example}`"))
}

fn unknown_size(def: &Def, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{}` has no size `{name}`", def.name);
    let diagnostic = Diagnostic::without_place(Code::UnknownSize, message);
    match (nearest(name, known.iter().copied()), known) {
        (Some(near), _) => diagnostic.help(format!("did you mean `{near}`?")),
        (None, []) => diagnostic.help("it has no sizes at all"),
        (None, _) => diagnostic.help(format!("its sizes are {}", known.join(", "))),
    }
}

/// Reports argument sizes that a callee's signature, or `concat`, requires to be equal.
fn disagreements(resolver: &Resolver<'_>) -> Vec<Diagnostic> {
    let lowering = resolver.lowering();
    let mut errors = Vec::new();
    for agreement in &resolver.flat.agreements {
        let first = lowering.constant(&agreement.first, agreement.first_span);
        let second = lowering.constant(&agreement.second, agreement.second_span);
        // A tensor without a shape has an error of its own.
        let (Ok(first), Ok(second)) = (first, second) else { continue };
        if first != second {
            let error = disagreement(agreement, first, second);
            errors.push(resolver.flat.with_calls(error, agreement.call));
        }
    }
    errors
}

fn disagreement(agreement: &Agreement, first: i64, second: i64) -> Diagnostic {
    let place = |int: &Int, value: i64| match int {
        Int::DimOf(_, dim) => format!("its dimension {dim} is {value}"),
        _ => format!("declared with {value}"),
    };
    let (message, help) = match &agreement.rule {
        Rule::Size { callee, name } => (
            format!(
                "the arguments of `{callee}` disagree about its size `{name}`: {first} and {second}"
            ),
            "pass tensors whose sizes agree",
        ),
        Rule::Literal { callee } => (
            format!("`{callee}` takes a tensor with an extent of {first}, and gets {second}"),
            "pass a tensor of that size, or declare the parameter with a size name",
        ),
        Rule::Concat => (
            format!(
                "`concat` joins along the last dimension, and another one disagrees: {first} and {second}"
            ),
            "all dimensions but the last must be equal",
        ),
    };
    Diagnostic::new(Code::SizesDisagree, agreement.second_span, message)
        .here(place(&agreement.second, second))
        .label(agreement.first_span, place(&agreement.first, first))
        .help(help)
}
