//! Assembles the program: every write makes a new version of its tensor.

use super::flatten::{Flat, Step};
use super::resolve::ResolvedStatement;
use super::shapes::Shapes;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Comprehension, Def, Symbol};
use crate::infer::Range;
use crate::ops::AssignOp;
use crate::program::{
    Axis, AxisKind, Combine, Expr, FixedScalar, Program, Read, Scatter, Stage, Tensor, TensorId,
};
use crate::source::Source;
use crate::syntax::ast::MAX_DEPTH;

/// The most iterations of one statement.
const MAX_ITERATIONS: u128 = 1 << 62;

/// The most bytes of one tensor.
const MAX_BYTES: i128 = 1 << 62;

/// Adds to each statement which dimensions of its target it covers.
pub(super) fn covering(
    flat: &Flat<'_>,
    shapes: &Shapes<i64>,
    resolved: Vec<Option<ResolvedStatement>>,
) -> Vec<Option<(ResolvedStatement, Vec<bool>)>> {
    let one = |(step, resolved): (&Step<'_>, Option<ResolvedStatement>)| {
        let Step::Compute(stmt, _) = step else { return None };
        let resolved = resolved?;
        let shape = shapes.of(stmt.target).unwrap_or_default();
        let whole =
            |((range, _), extent): (&(Range, _), &i64)| range.lo == 0 && range.hi == *extent;
        let covers = resolved.ranges[..stmt.rank].iter().zip(shape).map(whole).collect();
        Some((resolved, covers))
    };
    flat.steps.iter().zip(resolved).map(one).collect()
}

/// Builds the program, with the symbol of each tensor. Every step must be resolved.
pub(super) fn assemble(
    source: &Source,
    def: &Def,
    flat: &Flat<'_>,
    shapes: &Shapes<i64>,
    scalars: &[Option<i64>],
    resolved: Vec<Option<(ResolvedStatement, Vec<bool>)>>,
) -> Result<(Program, Vec<Symbol>), Vec<Diagnostic>> {
    let mut assembler = Assembler {
        flat,
        shapes,
        tensors: Vec::new(),
        symbols: Vec::new(),
        stages: Vec::new(),
        current: vec![None; flat.tensors.len()],
        errors: Vec::new(),
    };
    let params = (0..def.params as u32).map(Symbol);
    let params = params.filter(|param| scalars[param.0 as usize].is_none());
    let updated = def.returns.iter().copied().filter(|result| {
        result.0 as usize >= def.params && flat.tensors[result.0 as usize].updated
    });
    for symbol in params.chain(updated) {
        let id = assembler.tensor(symbol);
        assembler.current[symbol.0 as usize] = Some(id);
    }
    let inputs = assembler.tensors.len();
    for (step, resolved) in flat.steps.iter().zip(resolved) {
        match (step, resolved) {
            (Step::Alias { target, source }, _) => {
                assembler.current[target.0 as usize] = assembler.current[source.0 as usize];
            }
            (Step::Compute(stmt, site), Some(resolved)) => {
                let before = assembler.errors.len();
                let (resolved, covers) = resolved;
                assembler.stage(stmt, resolved, &covers);
                for error in assembler.errors.split_off(before) {
                    assembler.errors.push(flat.with_calls(error, site.call));
                }
            }
            (Step::Compute(..), None) => {}
        }
    }
    let outputs =
        def.returns.iter().filter_map(|result| assembler.current[result.0 as usize]).collect();
    if !assembler.errors.is_empty() {
        return Err(assembler.errors);
    }
    let program = Program {
        name: def.name.clone(),
        tensors: assembler.tensors,
        inputs,
        outputs,
        fixed: fixed(def, scalars),
        stages: assembler.stages,
        source: source.clone(),
    };
    printable(&program)?;
    Ok((program, assembler.symbols))
}

/// The parameters that have a value.
fn fixed(def: &Def, scalars: &[Option<i64>]) -> Vec<FixedScalar> {
    let params = def.tensors[..def.params].iter().zip(scalars).enumerate();
    let one = |(place, (param, value)): (usize, (&crate::hir::Tensor, &Option<i64>))| {
        let (name, dtype, is_const) = (param.name.clone(), param.dtype, param.is_const);
        value.map(|value| FixedScalar { place, name, dtype, value, is_const })
    };
    params.filter_map(one).collect()
}

/// Checks that the printed program parses, for deeply nested statements.
fn printable(program: &Program) -> Result<(), Vec<Diagnostic>> {
    let deep = |stage: &&Stage| stage.body.height() > MAX_DEPTH / 2;
    let too_deep = |stage: &Stage| {
        let text = format!("def f(float x) -> (y) {{\n{}\n}}", stage.text(program));
        let (_, found) = crate::syntax::parse(&Source::new("", &text));
        found.iter().any(|diagnostic| diagnostic.code == Code::NestingTooDeep)
    };
    let errors: Vec<Diagnostic> = program
        .stages
        .iter()
        .filter(deep)
        .filter(|stage| too_deep(stage))
        .map(|stage| super::resolve::too_deep(stage.span))
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

struct Assembler<'a> {
    flat: &'a Flat<'a>,
    shapes: &'a Shapes<i64>,
    tensors: Vec<Tensor>,
    /// The symbol of each tensor.
    symbols: Vec<Symbol>,
    stages: Vec<Stage>,
    /// The current version of each tensor.
    current: Vec<Option<TensorId>>,
    errors: Vec<Diagnostic>,
}

impl Assembler<'_> {
    /// A new version of a tensor.
    fn tensor(&mut self, symbol: Symbol) -> TensorId {
        let tensor = &self.flat.tensors[symbol.0 as usize];
        let shape = self.shapes.of(symbol).unwrap_or_default().to_vec();
        let bytes = shape.iter().try_fold(tensor.dtype.bytes() as i128, |bytes, extent| {
            bytes.checked_mul(i128::from(*extent)).filter(|bytes| *bytes <= MAX_BYTES)
        });
        if bytes.is_none() {
            let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
            let message = format!("`{}` is too large: {}", tensor.name, extents.join(" x "));
            self.errors.push(
                Diagnostic::new(Code::TooLarge, tensor.span, message)
                    .here("it would have more than 2^62 bytes")
                    .help("use smaller sizes"),
            );
        }
        let id = TensorId(self.tensors.len() as u32);
        self.symbols.push(symbol);
        self.tensors.push(Tensor {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape,
            is_const: tensor.is_const,
            span: tensor.span,
        });
        id
    }

    /// Adds a stage; `covers` says which dimensions of the target its ranges cover.
    fn stage(&mut self, stmt: &Comprehension, resolved: ResolvedStatement, covers: &[bool]) {
        let ResolvedStatement { ranges, mut body, mut scan, mut scatter } = resolved;
        let shape = self.shapes.of(stmt.target).unwrap_or_default().to_vec();
        let before = self.current[stmt.target.0 as usize];
        let spatial: Vec<Range> = ranges[..stmt.rank].iter().map(|(range, _)| *range).collect();
        let whole = covers.iter().all(|covers| *covers);
        if before.is_none() && !whole {
            self.errors.push(self.partly_defined(stmt, &spatial, &shape));
        }
        let combine = match stmt.op {
            AssignOp::Assign => Combine::Assign,
            AssignOp::Reduce { op, initialize: true } => Combine::Reduce(op),
            AssignOp::Reduce { op, initialize: false } => Combine::Accumulate(op),
        };
        let base = before.filter(|_| !whole || matches!(combine, Combine::Accumulate(_)));
        let iterations = ranges.iter().try_fold(1u128, |product, (range, _)| {
            product
                .checked_mul((range.hi - range.lo).unsigned_abs().into())
                .filter(|product| *product <= MAX_ITERATIONS)
        });
        if scan.is_some() && base.is_some() {
            self.errors.push(self.scan_of_part(stmt, &spatial, &shape));
        }
        let is_part = |it: &&Scatter| covers.get(it.axis.0 as usize) != Some(&true);
        if let Some(part) = scatter.iter().find(is_part).filter(|_| before.is_some()) {
            self.errors.push(self.scatter_of_part(stmt, part, &spatial, &shape));
        }
        // A recurrence reads its own output.
        let own = scan.is_some().then_some(TensorId(self.tensors.len() as u32));
        let current = &self.current;
        let version = |read: &mut Read| {
            let newest = current[read.tensor.0 as usize];
            let is_own = read.tensor.0 == stmt.target.0;
            // Reads of tensors without a value were rejected by the checker.
            read.tensor = own.filter(|_| is_own).or(newest).unwrap_or(read.tensor);
        };
        body.for_each_read_mut(&mut |read| version(read));
        if let Some(scan) = &mut scan {
            scan.start.for_each_read_mut(&mut |read| version(read));
        }
        for it in &mut scatter {
            let mut versions =
                |value: &mut Expr| value.for_each_read_mut(&mut |read| version(read));
            it.at.for_each_value_mut(&mut versions);
        }
        let axes = stmt
            .vars
            .iter()
            .zip(ranges)
            .enumerate()
            .map(|(number, (var, (range, reason)))| Axis {
                name: var.name.clone(),
                kind: if number < stmt.rank { AxisKind::Spatial } else { AxisKind::Reduce },
                lo: range.lo,
                hi: range.hi,
                reason,
            })
            .collect();
        let errors = self.errors.len();
        let output = self.tensor(stmt.target);
        // A tensor that is too large was reported; its loops then need no report.
        if iterations.is_none() && self.errors.len() == errors {
            self.errors.push(
                Diagnostic::new(
                    Code::TooLarge,
                    stmt.span,
                    "this statement has too many iterations",
                )
                .here("more than 2^62")
                .help("use smaller sizes"),
            );
        }
        self.current[stmt.target.0 as usize] = Some(output);
        self.stages.push(Stage {
            output,
            base,
            axes,
            combine,
            body,
            scan,
            scatter,
            span: stmt.span,
        });
    }

    fn partly_defined(&self, stmt: &Comprehension, ranges: &[Range], shape: &[i64]) -> Diagnostic {
        let name = &self.flat.tensors[stmt.target.0 as usize].name;
        let message =
            format!("the first statement of `{name}` does not compute all of its elements");
        let indices: Vec<&str> =
            stmt.vars[..stmt.rank].iter().map(|var| var.name.as_str()).collect();
        Diagnostic::new(Code::PartlyDefined, stmt.span, message)
            .here(gaps(stmt, ranges, shape))
            .help(format!(
                "compute all elements first, for example `{name}({}) = 0`, and then these; or \
                 shift the subscripts on the right side so that the range starts at 0",
                indices.join(", ")
            ))
    }

    /// E0414.
    fn scan_of_part(&self, stmt: &Comprehension, ranges: &[Range], shape: &[i64]) -> Diagnostic {
        let name = &self.flat.tensors[stmt.target.0 as usize].name;
        let message = format!("this recurrence computes a part of `{name}`, which has a value");
        Diagnostic::new(Code::ScanOfPart, stmt.span, message)
            .here(gaps(stmt, ranges, shape))
            .help("compute a tensor of another name, and copy the part in a statement after this")
            .note("a recurrence does not continue from existing values")
    }

    /// E0419.
    fn scatter_of_part(
        &self,
        stmt: &Comprehension,
        part: &Scatter,
        ranges: &[Range],
        shape: &[i64],
    ) -> Diagnostic {
        let name = &self.flat.tensors[stmt.target.0 as usize].name;
        let var = &stmt.vars[part.axis.0 as usize].name;
        let message = format!("this scatter goes to a part of `{name}` along `{var}`");
        Diagnostic::new(Code::ScatterOfPart, stmt.span, message)
            .here(gaps(stmt, ranges, shape))
            .label(part.place.0, "the position is checked against all of the dimension")
            .help(format!(
                "let `{var}` go over all of it, and give values that are not wanted no weight: \
                 `p(i) < 8 ? x(i) : 0`"
            ))
    }
}

/// Describes the elements that the ranges leave out.
fn gaps(stmt: &Comprehension, ranges: &[Range], shape: &[i64]) -> String {
    let gaps: Vec<String> = ranges
        .iter()
        .zip(shape)
        .zip(&stmt.vars)
        .filter(|((range, extent), _)| range.lo != 0 || range.hi != **extent)
        .map(|((range, extent), var)| {
            format!("`{}` is {} to {} of 0 to {}", var.name, range.lo, range.hi - 1, extent - 1)
        })
        .collect();
    gaps.join(", ")
}
