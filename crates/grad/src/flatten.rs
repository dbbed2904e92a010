//! Inlines all calls of a definition, on the syntax tree.
//!
//! Gradients are built from the syntax tree and not from the checked HIR: the tree has a span for
//! every expression (for diagnostics) and is what the printer takes; the types that a derivative
//! needs are one lookup (`Scope::kind`). The text has passed the checker, so names resolve and
//! types agree.

use std::collections::BTreeMap;

use tensorwright_lang::diagnostic::{Code, Diagnostic, Diagnostics};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::inline::{self, CalleeTensor};
use tensorwright_lang::ops::{ArithOp, AssignOp, CompareOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{
    self, CONCAT, Comprehension, Dim, Expr, ExprKind, Ident, RangeConstraint, ScanClause,
    ScatterClause, Stmt,
};
use tensorwright_lang::{Module, Signature, syntax};

use crate::build;
use crate::scope::{Scope, Tensor};
use crate::tree;

/// A definition with all calls inlined.
#[derive(Debug)]
pub(crate) struct Flat {
    pub(crate) scope: Scope,
    pub(crate) def: ast::Def,
    pub(crate) statements: Vec<Comprehension>,
}

/// A syntax tree with the types that the checker inferred.
struct TypedDef<'m> {
    def: &'m ast::Def,
    /// Parameters first, then the tensors that statements compute.
    tensors: Vec<Signature>,
}

type Names = BTreeMap<String, Expr>;
type Frame<'d, 'm> = inline::Frame<'d, TypedDef<'m>, Names>;
type Binding = inline::Binding<String, Expr>;

/// Inlines all calls of a definition.
pub(crate) fn flatten(module: &Module, name: &str) -> Result<Flat, Diagnostics> {
    module.def(name)?;
    let (mut tree, _) = syntax::parse(module.source());
    syntax::expand(&mut tree);
    let checked = |def| Ok(TypedDef { def, tensors: module.def(&def.name.name)?.tensors() });
    let defs: Vec<TypedDef<'_>> = tree.defs.iter().map(checked).collect::<Result<_, _>>()?;
    let by_name: BTreeMap<&str, &TypedDef<'_>> =
        defs.iter().map(|checked| (checked.def.name.name.as_str(), checked)).collect();
    let refused = |diagnostic| Diagnostics::new(module.source().clone(), Vec::from([diagnostic]));
    let Some(root) = by_name.get(name).copied() else {
        return Err(refused(Diagnostic::without_place(
            Code::NoSuchDef,
            format!("there is no `def {name}`"),
        )));
    };
    let TypedDef { def, tensors } = root;
    let mut flattener = Flattener { scope: root_scope(def, tensors), statements: Vec::new() };
    let visit = |frame: &Frame<'_, '_>, stmt: &Stmt| {
        let names = frame.names.as_ref();
        match stmt {
            Stmt::Comprehension(stmt) => flattener.comprehension(names, stmt),
            Stmt::Call(call) if call.callee.name == CONCAT => flattener.concat(names, call),
            Stmt::Call(call) => {
                let callee = by_name.get(call.callee.name.as_str()).copied()?;
                return Some(Frame::called(callee, flattener.enter(names, call, callee)));
            }
        }
        None
    };
    inline::walk(root, |checked| checked.def.body.as_slice(), visit).map_err(|at| {
        let span = match at {
            Stmt::Call(call) => call.span,
            Stmt::Comprehension(stmt) => stmt.span,
        };
        refused(inline::too_long(name, span))
    })?;
    let implicit = |s: &&Signature| s.updated && !def.params.iter().any(|p| p.name.name == s.name);
    if let Some(result) = tensors.iter().find(implicit) {
        return Err(refused(undeclared(def, &result.name)));
    }
    let Flattener { scope, statements } = flattener;
    Ok(Flat { scope, def: (*def).clone(), statements })
}

fn undeclared(def: &ast::Def, result: &str) -> Diagnostic {
    let returned = def.returns.iter().find(|ident| ident.name == result);
    let span = returned.map_or(def.span, |ident| ident.span);
    let message = format!("`{result}` has a value before it is computed, and is not a parameter");
    Diagnostic::new(Code::NotDifferentiable, span, message)
        .here("the caller supplies its first value")
        .help(format!("declare it as a parameter too, or write `+=!` where `{result}` is computed"))
}

fn root_scope(def: &ast::Def, tensors: &[Signature]) -> Scope {
    let mut scope = Scope::default();
    for param in &def.params {
        let dims = param.dims.iter().map(|dim| match dim {
            Dim::Name(size) => {
                scope.sizes.insert(size.name.clone());
                Some(build::name(&size.name))
            }
            Dim::Literal(extent, _) => Some(build::int(*extent)),
        });
        let tensor = Tensor { dtype: param.dtype, shape: dims.collect() };
        scope.tensors.insert(param.name.name.clone(), tensor);
    }
    for made in tensors.iter().filter(|t| !def.params.iter().any(|p| p.name.name == t.name)) {
        let tensor = Tensor { dtype: made.dtype, shape: vec![None; made.dims.len()] };
        scope.tensors.insert(made.name.clone(), tensor);
    }
    let sizes: Vec<String> = scope.sizes.iter().cloned().collect();
    let tensors: Vec<String> = scope.tensors.keys().cloned().collect();
    sizes.iter().chain(&tensors).for_each(|name| scope.take(name));
    scope
}

struct Flattener {
    scope: Scope,
    statements: Vec<Comprehension>,
}

impl Flattener {
    fn comprehension(&mut self, names: Option<&Names>, stmt: &Comprehension) {
        let expr = |expr: &Expr| self.substituted(names, expr);
        let constraints = stmt.constraints.iter().map(|constraint| RangeConstraint {
            var: renamed(names, &constraint.var),
            lo: expr(&constraint.lo),
            hi: expr(&constraint.hi),
            span: constraint.span,
        });
        let scan = stmt.scan.as_ref().map(|scan| ScanClause {
            var: renamed(names, &scan.var),
            start: expr(&scan.start),
            span: scan.span,
        });
        let scatter = stmt.scatter.iter().map(|scatter| ScatterClause {
            var: renamed(names, &scatter.var),
            at: expr(&scatter.at),
            span: scatter.span,
        });
        let statement = Comprehension {
            target: renamed(names, &stmt.target),
            indices: stmt.indices.iter().map(|index| renamed(names, index)).collect(),
            op: stmt.op,
            position: stmt.position,
            rhs: expr(&stmt.rhs),
            scan,
            scatter: scatter.collect(),
            constraints: constraints.collect(),
            span: stmt.span,
        };
        let mentioned: Vec<String> =
            tree::sides(&statement).flat_map(tree::names).map(str::to_owned).collect();
        let indices = statement.indices.iter().map(|index| index.name.clone());
        indices.chain(mentioned).for_each(|name| self.scope.take(&name));
        self.statements.push(statement);
    }

    /// A callee's expression in the names of the outermost definition. Sizes become the parameters'
    /// size names.
    fn substituted(&self, names: Option<&Names>, expr: &Expr) -> Expr {
        let new = |name: &str| names.and_then(|names| names.get(name));
        let new_name = |name: &str| new(name).and_then(build::as_name).map(str::to_owned);
        tree::replace(expr, &mut |part| match &part.kind {
            ExprKind::Name(name) => {
                let other = new(name)?;
                Some(Expr { kind: other.kind.clone(), span: part.span })
            }
            ExprKind::DimOf(tensor, dim) => {
                let name = new_name(&tensor.name).unwrap_or_else(|| tensor.name.clone());
                Some(self.extent(&name, *dim as usize))
            }
            ExprKind::Apply(callee, args) => {
                let callee = match new_name(&callee.name) {
                    Some(name) => Ident { name, span: callee.span },
                    None => callee.clone(),
                };
                let args = args.iter().map(|arg| self.substituted(names, arg)).collect();
                Some(Expr { kind: ExprKind::Apply(callee, args), span: part.span })
            }
            _ => None,
        })
    }

    /// The extent of a dimension: its size if the tensor is a parameter.
    fn extent(&self, tensor: &str, dim: usize) -> Expr {
        let known = self.scope.tensor(tensor).and_then(|t| t.shape.get(dim).cloned().flatten());
        known.unwrap_or_else(|| build::expr(ExprKind::DimOf(build::ident(tensor), dim as u32)))
    }

    /// Maps the names of a callee to the caller's.
    fn enter(&mut self, outer: Option<&Names>, call: &ast::Call, callee: &TypedDef<'_>) -> Names {
        let TypedDef { def, tensors } = callee;
        let mut names = Names::new();
        for (number, tensor) in tensors.iter().enumerate() {
            let param = def.params.get(number);
            let argument = param.zip(call.args.get(number)).map(|(param, arg)| {
                let arg = self.substituted(outer, arg);
                match build::as_name(&arg).filter(|arg| self.scope.tensors.contains_key(*arg)) {
                    Some(passed) => Binding::Tensor(passed.to_owned()),
                    None => Binding::Number(constant(arg, param.dtype)),
                }
            });
            let returned = def.returns.iter().position(|result| result.name == tensor.name);
            let target = returned.and_then(|place| call.targets.get(place));
            let target = target.map(|target| renamed(outer, target).name);
            let passed = match inline::meaning(argument, target) {
                CalleeTensor::Given(Binding::Tensor(name)) => name,
                CalleeTensor::Given(Binding::Number(value)) => {
                    names.insert(tensor.name.clone(), value);
                    continue;
                }
                CalleeTensor::Updated { target, source } => {
                    self.copy(&target, &source, call.span);
                    target
                }
                CalleeTensor::Own => self.new_tensor(def, tensor),
            };
            for (dim, size) in param.iter().flat_map(|param| param.dims.iter().enumerate()) {
                let Dim::Name(size) = size else { continue };
                let extent = self.extent(&passed, dim);
                names.entry(size.name.clone()).or_insert(extent);
            }
            names.insert(tensor.name.clone(), build::name(&passed));
        }
        self.keep_variables_apart(def, &mut names);
        names
    }

    /// A local tensor of a callee, under a fresh name.
    fn new_tensor(&mut self, callee: &ast::Def, tensor: &Signature) -> String {
        let name = self.scope.fresh(&format!("{}_{}", callee.name.name, tensor.name));
        let shape = vec![None; tensor.dims.len()];
        self.scope.tensors.insert(name.clone(), Tensor { dtype: tensor.dtype, shape });
        name
    }

    /// Renames a callee's index variables that collide with outer names.
    fn keep_variables_apart(&mut self, callee: &ast::Def, names: &mut Names) {
        let comprehensions = callee.body.iter().filter_map(|stmt| match stmt {
            Stmt::Comprehension(stmt) => Some(stmt),
            Stmt::Call(_) => None,
        });
        for stmt in comprehensions {
            let bare = tree::names(&stmt.rhs).into_iter().filter(|n| tree::mentions(&stmt.rhs, n));
            for var in stmt.indices.iter().map(|index| index.name.as_str()).chain(bare) {
                let clashes =
                    self.scope.tensors.contains_key(var) || self.scope.sizes.contains(var);
                if clashes && !names.contains_key(var) {
                    let other = self.scope.fresh(&format!("{}_{var}", callee.name.name));
                    names.insert(var.to_owned(), build::name(&other));
                }
            }
        }
    }

    /// `target(i, j) = source(i, j)`
    fn copy(&mut self, target: &str, source: &str, span: Span) {
        let rank = self.scope.tensor(source).map_or(0, |tensor| tensor.shape.len());
        let indices = self.index_names(rank);
        let rhs = build::apply(source, indices.iter().map(|index| build::name(index)).collect());
        self.statements.push(statement(target, &indices, Expr { span, ..rhs }, Vec::new(), span));
    }

    /// Lowers `C = concat(A, B)` to a comprehension that selects by the last index.
    fn concat(&mut self, names: Option<&Names>, call: &ast::Call) {
        let parts: Vec<String> = call
            .args
            .iter()
            .filter_map(|arg| build::as_name(&self.substituted(names, arg)).map(str::to_owned))
            .collect();
        let (Some(target), Some(first)) = (call.targets.first(), parts.first()) else { return };
        let rank = self.scope.tensor(first).map_or(0, |tensor| tensor.shape.len());
        let Some(last) = rank.checked_sub(1) else { return };
        let indices = self.index_names(rank);
        let mut ends: Vec<Expr> = Vec::new();
        for part in &parts {
            let extent = self.extent(part, last);
            ends.push(match ends.last() {
                Some(start) => build::add(start.clone(), extent),
                None => extent,
            });
        }
        let read = |place: usize| {
            let mut subscripts: Vec<Expr> = indices.iter().map(|i| build::name(i)).collect();
            if let Some(start) = place.checked_sub(1).map(|before| &ends[before]) {
                subscripts[last] =
                    build::arith(ArithOp::Sub, build::name(&indices[last]), start.clone());
            }
            Expr { span: call.args[place].span, ..build::apply(&parts[place], subscripts) }
        };
        let mut rhs = read(parts.len() - 1);
        for place in (0..parts.len() - 1).rev() {
            let inside =
                build::compare(CompareOp::Lt, build::name(&indices[last]), ends[place].clone());
            rhs = build::select(inside, read(place), rhs);
        }
        let extents = (0..last).map(|dim| self.extent(first, dim)).chain(ends.last().cloned());
        let ranges: Vec<(String, Expr)> = indices.iter().cloned().zip(extents).collect();
        let target = renamed(names, target).name;
        self.statements.push(statement(&target, &indices, rhs, ranges, call.span));
    }

    /// Fresh index names for a generated statement.
    fn index_names(&mut self, rank: usize) -> Vec<String> {
        let letters = ["i", "j", "k", "l", "m", "n"];
        let named = (0..rank).map(|dim| match letters.get(dim) {
            Some(letter) => (*letter).to_owned(),
            None => format!("i{dim}"),
        });
        let clash = |name: &String| {
            self.scope.tensors.contains_key(name) || self.scope.sizes.contains(name)
        };
        let (free, clashing): (Vec<String>, Vec<String>) = named.partition(|name| !clash(name));
        let others: Vec<String> = clashing.iter().map(|name| self.scope.fresh(name)).collect();
        free.into_iter().chain(others).collect()
    }
}

/// `target(indices) = rhs where ...`
pub(crate) fn statement(
    target: &str,
    indices: &[String],
    rhs: Expr,
    ranges: Vec<(String, Expr)>,
    span: Span,
) -> Comprehension {
    let constraint = |(var, hi): (String, Expr)| RangeConstraint {
        var: build::ident(&var),
        lo: build::int(0),
        hi,
        span,
    };
    Comprehension {
        target: Ident { name: target.to_owned(), span },
        indices: indices.iter().map(|index| build::ident(index)).collect(),
        op: AssignOp::Assign,
        position: false,
        rhs,
        scan: None,
        scatter: Vec::new(),
        constraints: ranges.into_iter().map(constraint).collect(),
        span,
    }
}

fn renamed(names: Option<&Names>, ident: &Ident) -> Ident {
    let new = names.and_then(|names| names.get(&ident.name)).and_then(build::as_name);
    Ident { name: new.unwrap_or(&ident.name).to_owned(), span: ident.span }
}

/// Converts a constant argument to its parameter's type: `scale / 2` is a floating-point division
/// even if `scale` is 1.
fn constant(arg: Expr, dtype: DType) -> Expr {
    if dtype.is_float() { build::apply(dtype.name(), vec![arg]) } else { arg }
}
