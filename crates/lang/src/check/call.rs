//! Checks calls of definitions, and `concat`.

use super::coerce;
use super::elaborate::{Elaborator, reduction_help};
use super::scope::{Scope, Signature};
use super::statement::writes_no_input;
use crate::builtin::Builtin;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{self, Arg, Call, Comprehension, Expr, Int, Stmt, Symbol, Ty, Var, VarId};
use crate::ops::{ArithOp, AssignOp, CompareOp, UnaryOp};
use crate::syntax::ast::{self, ExprKind};
use crate::syntax::prelude;

/// Checks a call; `None` if it has errors, which are reported.
pub(super) fn check<'a>(scope: &mut Scope<'a>, call: &'a ast::Call) -> Option<Stmt> {
    if call.callee.name == ast::CONCAT {
        return Some(Stmt::Comprehension(concat(scope, call)?));
    }
    let Some(callee) = scope.defs.get(call.callee.name.as_str()).copied() else {
        let diagnostic = unknown_def(scope, call);
        scope.report(diagnostic);
        return None;
    };
    // A definition with errors was reported at its own span.
    let signature = scope.signatures[callee].clone()?;
    if call.args.len() != signature.params.len() {
        let (expected, found) = (signature.params.len(), call.args.len());
        let params: Vec<String> = signature.params.iter().map(param_text).collect();
        let (plural, verb) = (plural(expected), if found == 1 { "is" } else { "are" });
        let message = format!(
            "`{}` takes {expected} argument{plural}, and {found} {verb} given",
            call.callee.name
        );
        scope.report(
            Diagnostic::new(Code::CallArgumentCount, call.callee.span, message)
                .here(format!("{found} given"))
                .help(format!("its parameters are ({})", params.join(", "))),
        );
        return None;
    }
    if call.targets.len() != signature.results.len() {
        let (expected, found) = (signature.results.len(), call.targets.len());
        let results: Vec<&str> = signature.results.iter().map(|r| r.name.as_str()).collect();
        let (plural, verb) = (plural(expected), if found == 1 { "is" } else { "are" });
        let message = format!(
            "`{}` has {expected} result{plural}, and {found} {verb} taken",
            call.callee.name
        );
        scope.report(
            Diagnostic::new(Code::CallResultCount, call.callee.span, message)
                .here(format!("{found} taken"))
                .help(format!("its results are ({})", results.join(", "))),
        );
        return None;
    }
    let args: Vec<_> = call
        .args
        .iter()
        .zip(&signature.params)
        .map(|(arg, param)| argument(scope, call, arg, param))
        .collect();
    let targets: Vec<_> = call
        .targets
        .iter()
        .zip(&signature.results)
        .map(|(target, result)| {
            let start = start_of(call, &signature, result);
            not_read_otherwise(scope, call, target, start)?;
            let in_place = passes(call, start, &target.name);
            call_target(scope, target, result, start, in_place)
        })
        .collect();
    Some(Stmt::Call(Call {
        callee,
        args: args.into_iter().collect::<Option<_>>()?,
        targets: targets.into_iter().collect::<Option<_>>()?,
        span: call.span,
    }))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn unknown_def(scope: &Scope<'_>, call: &ast::Call) -> Diagnostic {
    let name = call.callee.name.as_str();
    let message = format!("there is no `def {name}`");
    let diagnostic = Diagnostic::new(Code::UnknownDef, call.callee.span, message);
    let target = call.targets.first().map_or("x", |target| target.name.as_str());
    let is_function = prelude().iter().any(|function| function.name.name == name);
    if is_function || Builtin::from_name(name).is_some() || scope.tensor_named(name).is_some() {
        return diagnostic
            .here("not a `def`")
            .help(format!("to compute elements, write subscripts on the left: `{target}(i) = ...`, or `{target}() = ...` for a scalar"));
    }
    if let Some(help) = reduction_help(name) {
        return diagnostic.here("not known").help(help);
    }
    match scope.suggest(name, scope.defs.keys().copied()) {
        Some(near) => diagnostic
            .here("not known")
            .help(format!("did you mean `{near}`?"))
            .fix(call.callee.span, near),
        None => diagnostic.here("not known").help("define it in this file"),
    }
}

fn param_text(param: &hir::Tensor) -> String {
    match param.rank {
        0 => format!("{} {}", param.dtype, param.name),
        rank => format!("{}({}) {}", param.dtype, vec!["_"; rank].join(","), param.name),
    }
}

/// An argument: the name of a tensor, or a constant for a scalar parameter.
fn argument<'a>(
    scope: &mut Scope<'a>,
    call: &ast::Call,
    arg: &'a ast::Expr,
    param: &hir::Tensor,
) -> Option<Arg> {
    if let ExprKind::Name(name) = &arg.kind
        && let Some(symbol) = scope.tensor_named(name)
    {
        return tensor_argument(scope, call, arg, symbol, param);
    }
    if param.rank > 0 {
        let message = format!("the parameter `{}` takes a tensor", param.name);
        scope.report(
            Diagnostic::new(Code::CallArgumentType, arg.span, message)
                .here("not the name of a tensor")
                .help("compute it into a tensor in a statement of its own and pass its name"),
        );
        return None;
    }
    let mut elaborator = Elaborator::new(scope);
    let (value, ty) = elaborator.value(arg)?;
    let unknown = elaborator.vars.first().map(|var| (var.name.clone(), var.span));
    if let Some((name, span)) = unknown {
        let message = format!("`{name}` is not known here");
        let diagnostic = Diagnostic::new(Code::UnknownName, span, message)
            .here("not a tensor, a size or a scalar");
        let diagnostic = match scope.suggest(&name, scope.names.keys().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(span, near),
            None => diagnostic.help(format!("the parameter `{}` takes a scalar", param.name)),
        };
        scope.report(diagnostic);
        return None;
    }
    match (value, ty) {
        (Expr::Int(int, ..), Ty::AnyInt) => {
            if param.dtype.is_float() {
                coerce::no_integer_division(
                    scope,
                    &Expr::Int(int.clone(), None, arg.span),
                    Ty::AnyInt,
                    arg.span,
                )?;
            }
            Some(Arg::Int(int))
        }
        (value, Ty::AnyFloat) if param.dtype.is_float() && fraction(&value).is_some() => {
            fraction(&value).map(Arg::Float)
        }
        (Expr::Bool(value), _) if param.dtype == DType::Bool => {
            Some(Arg::Int(Int::Literal(i64::from(value))))
        }
        (_, ty) => {
            let message = format!(
                "the parameter `{}` has type `{}` and takes a scalar or a constant",
                param.name, param.dtype
            );
            scope.report(
                Diagnostic::new(Code::CallArgumentType, arg.span, message)
                    .here(format!("this is {}", coerce::describe(ty)))
                    .help("compute it into a scalar first (`s() = ...`) and pass its name"),
            );
            None
        }
    }
}

/// Evaluates arithmetic on literals.
fn fraction(value: &Expr) -> Option<f64> {
    match value {
        Expr::Float(value, _) => Some(*value),
        Expr::Int(Int::Literal(value), ..) => Some(*value as f64),
        Expr::Unary(UnaryOp::Neg, operand) => Some(-fraction(operand)?),
        Expr::Arith(op, lhs, rhs) => {
            let (lhs, rhs) = (fraction(lhs)?, fraction(rhs)?);
            match op {
                ArithOp::Add => Some(lhs + rhs),
                ArithOp::Sub => Some(lhs - rhs),
                ArithOp::Mul => Some(lhs * rhs),
                ArithOp::Div => Some(lhs / rhs),
                ArithOp::Rem => None,
            }
        }
        _ => None,
    }
}

fn tensor_argument(
    scope: &mut Scope<'_>,
    call: &ast::Call,
    arg: &ast::Expr,
    symbol: Symbol,
    param: &hir::Tensor,
) -> Option<Arg> {
    let tensor = scope.tensor(symbol).clone();
    scope.used[symbol.0 as usize] = true;
    if !scope.is_assigned(symbol) {
        let targets: Vec<&str> = call.targets.iter().map(|target| target.name.as_str()).collect();
        let diagnostic = scope.read_too_early(symbol, arg.span, &targets);
        scope.report(diagnostic);
        return None;
    }
    if tensor.rank != param.rank || tensor.dtype != param.dtype {
        let message = format!(
            "the parameter `{}` is {}, and the argument `{}` is {}",
            param.name,
            shape_words(param),
            tensor.name,
            shape_words(&tensor)
        );
        scope.report(
            Diagnostic::new(Code::CallArgumentType, arg.span, message)
                .here("the argument")
                .label(param.span, "the parameter")
                .help(if tensor.rank == param.rank {
                    format!(
                        "convert it in a statement before the call: `t(...) = {}({}(...))`",
                        param.dtype, tensor.name
                    )
                } else {
                    "pass a tensor with as many dimensions as the parameter has".to_owned()
                }),
        );
        return None;
    }
    Some(Arg::Tensor(symbol, arg.span))
}

fn shape_words(tensor: &hir::Tensor) -> String {
    match tensor.rank {
        0 => format!("a scalar of type `{}`", tensor.dtype),
        1 => format!("a `{}` tensor with 1 dimension", tensor.dtype),
        rank => format!("a `{}` tensor with {rank} dimensions", tensor.dtype),
    }
}

/// The initial value of a call result.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// None: the callee computes it.
    Nothing,
    /// The current value of the target tensor.
    Target,
    /// The value of this argument, which the callee updates.
    Argument(usize),
}

fn start_of(call: &ast::Call, signature: &Signature, result: &hir::Tensor) -> Start {
    let param = signature.params.iter().position(|param| param.name == result.name);
    match param.filter(|position| *position < call.args.len()) {
        Some(position) => Start::Argument(position),
        None if result.updated => Start::Target,
        None => Start::Nothing,
    }
}

/// Whether the initial value of a result is that of its target.
fn passes(call: &ast::Call, start: Start, target: &str) -> bool {
    match start {
        Start::Nothing => false,
        Start::Target => true,
        Start::Argument(position) => {
            matches!(&call.args[position].kind, ExprKind::Name(name) if name == target)
        }
    }
}

/// Rejects an updated tensor that is also another argument: whether that argument would see the
/// update is ambiguous.
fn not_read_otherwise(
    scope: &mut Scope<'_>,
    call: &ast::Call,
    target: &ast::Ident,
    start: Start,
) -> Option<()> {
    let own = match start {
        Start::Nothing => return Some(()),
        Start::Target => None,
        Start::Argument(position) => Some(position),
    };
    let other = call.args.iter().enumerate().find(|(position, arg)| {
        let named = matches!(&arg.kind, ExprKind::Name(name) if *name == target.name);
        named && Some(*position) != own
    });
    let Some((_, arg)) = other else { return Some(()) };
    let message = format!("the call updates `{}` and reads it as another argument", target.name);
    scope.report(
        Diagnostic::new(Code::CallTargetAssigned, arg.span, message)
            .here("read here")
            .label(target.span, "updated here")
            .help("copy it to a tensor with another name first and pass that"),
    );
    None
}

/// The target of a result: a new tensor, unless the callee updates it.
fn call_target(
    scope: &mut Scope<'_>,
    target: &ast::Ident,
    result: &hir::Tensor,
    start: Start,
    in_place: bool,
) -> Option<Symbol> {
    let Some(symbol) = scope.tensor_named(&target.name) else {
        let message = format!("`{}` is a size and cannot be computed", target.name);
        scope.report(
            Diagnostic::new(Code::NotATensor, target.span, message)
                .here("sizes are part of the signature")
                .help("choose another name for the result"),
        );
        return None;
    };
    writes_no_input(scope, target, symbol)?;
    let assigned = scope.is_assigned(symbol);
    if start == Start::Target && !assigned {
        if !scope.is_result(&target.name) {
            let message = format!("the call updates `{}`, which has no value yet", target.name);
            scope.report(
                Diagnostic::new(Code::UsedBeforeDefined, target.span, message)
                    .here("no value yet")
                    .label(result.span, "the callee starts from the value it is given")
                    .help("compute a first value in a statement before the call"),
            );
            return None;
        }
        scope.tensors[symbol.0 as usize].updated = true;
    }
    if assigned && !in_place {
        let message = format!("the call would overwrite `{}`", target.name);
        scope.report(
            Diagnostic::new(Code::CallTargetAssigned, target.span, message)
                .here("has a value already")
                .label(scope.tensor(symbol).span, "computed here")
                .help("take the result in a tensor with another name"),
        );
        return None;
    }
    scope.assigned[symbol.0 as usize] = true;
    Some(symbol)
}

/// Lowers `I = concat(A, B, C)`, which joins along the last dimension, to a comprehension that
/// selects by the last index: `I(i, j) = j < A.1 ? A(i, j) : (j < A.1 + B.1 ? ... )`.
fn concat<'a>(scope: &mut Scope<'a>, call: &'a ast::Call) -> Option<Comprehension> {
    let [target] = call.targets.as_slice() else {
        let message = format!("`concat` has 1 result, and {} are taken", call.targets.len());
        scope.report(
            Diagnostic::new(Code::CallResultCount, call.callee.span, message).here("one result"),
        );
        return None;
    };
    let parts = concat_parts(scope, call)?;
    let first = scope.tensor(*parts.first()?).clone();
    let result = hir::Tensor { updated: false, ..first.clone() };
    let symbol = call_target(scope, target, &result, Start::Nothing, false)?;
    let rank = first.rank;
    let last = VarId(rank as u32 - 1);
    let span = call.span;
    let var = |d: usize, range| Var { name: format!("i{d}"), span, range };
    // The end of each part along the last dimension.
    let mut ends: Vec<Int> = Vec::new();
    for part in &parts {
        let extent = Int::DimOf(*part, rank as u32 - 1);
        ends.push(match ends.last() {
            Some(start) => Int::arith(ArithOp::Add, start.clone(), extent, span),
            None => extent,
        });
    }
    let read = |position: usize| {
        let mut subscripts: Vec<Int> = (0..rank as u32).map(|d| Int::Var(VarId(d))).collect();
        if position > 0 {
            let start = ends[position - 1].clone();
            subscripts[rank - 1] = Int::arith(ArithOp::Sub, Int::Var(last), start, span);
        }
        Expr::Read(parts[position], subscripts, call.args[position].span)
    };
    let mut rhs = read(parts.len() - 1);
    for position in (0..parts.len() - 1).rev() {
        let inside = Expr::CompareInt(CompareOp::Lt, Int::Var(last), ends[position].clone());
        rhs = Expr::Select(Box::new(inside), Box::new(read(position)), Box::new(rhs));
    }
    // The other dimensions agree with the first operand; guarded reads do not determine them.
    let mut vars: Vec<Var> = (0..rank - 1)
        .map(|d| var(d, Some((Int::Literal(0), Int::DimOf(parts[0], d as u32), span))))
        .collect();
    vars.push(var(rank - 1, Some((Int::Literal(0), ends.pop()?, span))));
    Some(Comprehension {
        target: symbol,
        target_span: target.span,
        vars,
        rank,
        op: AssignOp::Assign,
        rhs,
        scan: None,
        scatter: Vec::new(),
        joins: parts.iter().zip(&call.args).map(|(part, arg)| (*part, arg.span)).collect(),
        span,
    })
}

/// The most operands of one `concat`, which become nested selections.
const MAX_PARTS: usize = 64;

/// The operands: names of tensors of one type and rank, with at least one dimension.
fn concat_parts(scope: &mut Scope<'_>, call: &ast::Call) -> Option<Vec<Symbol>> {
    if call.args.is_empty() || call.args.len() > MAX_PARTS {
        let message =
            format!("`concat` joins 1 to {MAX_PARTS} tensors, and {} are given", call.args.len());
        scope.report(
            Diagnostic::new(Code::CallArgumentCount, call.callee.span, message)
                .here(format!("{} given", call.args.len())),
        );
        return None;
    }
    let mut parts = Vec::new();
    for arg in &call.args {
        let symbol = match &arg.kind {
            ExprKind::Name(name) => scope.tensor_named(name),
            _ => None,
        };
        let Some(symbol) = symbol else {
            scope.report(
                Diagnostic::new(Code::CallArgumentType, arg.span, "`concat` joins tensors")
                    .here("not the name of a tensor"),
            );
            return None;
        };
        let expected = scope.tensor(parts.first().copied().unwrap_or(symbol)).clone();
        if expected.rank == 0 {
            scope.report(
                Diagnostic::new(
                    Code::CallArgumentType,
                    arg.span,
                    "`concat` joins along the last dimension",
                )
                .here("a scalar has no dimensions"),
            );
            return None;
        }
        match tensor_argument(scope, call, arg, symbol, &expected)? {
            Arg::Tensor(symbol, _) => parts.push(symbol),
            Arg::Int(_) | Arg::Float(_) => return None,
        }
    }
    Some(parts)
}
