//! The names of a definition and the types of its tensors.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use crate::builtin::{Builtin, CONSTANTS, Signature as BuiltinSignature};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::dtype::DType;
use crate::hir::{Dim, Size, SizeId, Symbol, Tensor, Ty};
use crate::ops::UnaryOp;
use crate::syntax::ast::{self, Expr, ExprKind};

/// The signature of a checked definition.
#[derive(Debug, Clone)]
pub(super) struct Signature {
    /// Type, rank, and whether it is also a result, per parameter.
    pub(super) params: Vec<Tensor>,
    /// Type and rank per result, and whether its initial value comes from the caller.
    pub(super) results: Vec<Tensor>,
}

/// The tensors that already have a type; `None` for all.
type TypedTensors<'k> = Option<&'k [bool]>;

/// The entity of a name, outside statements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entity {
    Tensor(Symbol),
    Size(SizeId),
}

/// The names of one definition. Computed tensors are entered before any statement is checked, so
/// that a read that comes too early is told apart from a misspelled one.
pub(super) struct Scope<'a> {
    pub(super) def: &'a ast::Def,
    pub(super) defs: &'a HashMap<&'a str, usize>,
    pub(super) signatures: &'a [Option<Signature>],
    pub(super) names: HashMap<&'a str, Entity>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) sizes: Vec<Size>,
    pub(super) params: usize,
    results: HashSet<&'a str>,
    /// Per tensor: whether it has a value at the current statement.
    pub(super) assigned: Vec<bool>,
    /// Per tensor: whether some statement reads it.
    pub(super) used: Vec<bool>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Tensors that depend on erroneous ones; see [`super::taint`].
    pub(super) tainted: HashSet<Symbol>,
    /// Tensors and sizes that statements use as index variables; see [`super::taint`].
    pub(super) clashes: HashSet<&'a str>,
    /// The unknown names that were reported, each once.
    pub(super) unknown: HashSet<String>,
    /// The remaining number of messages that may scan the whole module, for instance to compare a
    /// misspelled name with all others; a text full of errors must not take quadratic time.
    suggestions: &'a Cell<u32>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        def: &'a ast::Def,
        defs: &'a HashMap<&'a str, usize>,
        signatures: &'a [Option<Signature>],
        suggestions: &'a Cell<u32>,
    ) -> Self {
        let mut scope = Scope {
            def,
            defs,
            signatures,
            names: HashMap::new(),
            tensors: Vec::new(),
            sizes: Vec::new(),
            params: def.params.len(),
            results: def.returns.iter().map(|result| result.name.as_str()).collect(),
            assigned: Vec::new(),
            used: Vec::new(),
            diagnostics: Vec::new(),
            tainted: HashSet::new(),
            clashes: HashSet::new(),
            unknown: HashSet::new(),
            suggestions,
        };
        scope.enter_params();
        scope.enter_targets();
        scope.infer_types();
        scope.report_clashes();
        scope
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The most likely intended name for a misspelled one.
    pub(super) fn suggest<'n>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        self.may_scan_module().then(|| nearest(name, candidates).map(str::to_owned))?
    }

    /// Whether a message may still scan the module.
    pub(super) fn may_scan_module(&self) -> bool {
        let left = self.suggestions.get().checked_sub(1);
        left.inspect(|left| self.suggestions.set(*left)).is_some()
    }

    pub(super) fn tensor(&self, symbol: Symbol) -> &Tensor {
        &self.tensors[symbol.0 as usize]
    }

    pub(super) fn is_assigned(&self, symbol: Symbol) -> bool {
        self.assigned[symbol.0 as usize]
    }

    pub(super) fn is_result(&self, name: &str) -> bool {
        self.results.contains(name)
    }

    pub(super) fn tensor_named(&self, name: &str) -> Option<Symbol> {
        match self.names.get(name) {
            Some(Entity::Tensor(symbol)) => Some(*symbol),
            _ => None,
        }
    }

    fn enter(&mut self, name: &'a str, tensor: Tensor, assigned: bool) -> Symbol {
        let symbol = Symbol(self.tensors.len() as u32);
        self.names.insert(name, Entity::Tensor(symbol));
        self.tensors.push(tensor);
        self.assigned.push(assigned);
        self.used.push(false);
        symbol
    }

    fn enter_params(&mut self) {
        for param in &self.def.params {
            let dims = param.dims.iter().map(|dim| self.dim(dim)).collect();
            let tensor = Tensor {
                name: param.name.name.clone(),
                dtype: param.dtype,
                rank: param.dims.len(),
                span: param.name.span,
                dims,
                is_const: param.is_const,
                updated: self.is_result(&param.name.name),
            };
            if let Some(before) = self.names.get(param.name.name.as_str()).copied() {
                let diagnostic = self.twice(&param.name, before);
                self.report(diagnostic);
            }
            self.enter(&param.name.name, tensor, true);
        }
    }

    fn twice(&self, name: &ast::Ident, before: Entity) -> Diagnostic {
        let (what, span) = match before {
            Entity::Tensor(symbol) => ("parameter", self.tensor(symbol).span),
            Entity::Size(size) => ("size", self.sizes[size.0 as usize].span),
        };
        let message = format!("the name `{}` is used twice in one signature", name.name);
        Diagnostic::new(Code::DuplicateParameter, name.span, message)
            .here("here it names a parameter")
            .label(span, format!("here it names a {what}"))
            .help("give each parameter and each size a name of its own")
    }

    fn dim(&mut self, dim: &'a ast::Dim) -> Dim {
        let ident = match dim {
            ast::Dim::Literal(extent, span) => {
                if *extent < 1 {
                    self.report(
                        Diagnostic::new(Code::InvalidSize, *span, format!("the size is {extent}"))
                            .here("sizes are at least 1"),
                    );
                }
                return Dim::Literal(*extent);
            }
            ast::Dim::Name(ident) => ident,
        };
        match self.names.get(ident.name.as_str()).copied() {
            Some(Entity::Size(size)) => Dim::Size(size),
            before => {
                if let Some(Entity::Tensor(_)) = before {
                    let message = format!("`{}` is a parameter and cannot be a size", ident.name);
                    self.report(
                        Diagnostic::new(Code::DuplicateParameter, ident.span, message)
                            .here("here it names a size")
                            .help("give each parameter and each size a name of its own"),
                    );
                }
                let size = SizeId(self.sizes.len() as u32);
                self.sizes.push(Size { name: ident.name.clone(), span: ident.span });
                self.names.entry(&ident.name).or_insert(Entity::Size(size));
                Dim::Size(size)
            }
        }
    }

    /// Enters the computed tensors, with the rank of their first statement.
    fn enter_targets(&mut self) {
        for stmt in &self.def.body {
            match stmt {
                ast::Stmt::Comprehension(stmt) => {
                    self.enter_target(&stmt.target, stmt.indices.len(), None);
                }
                ast::Stmt::Call(call) => self.enter_call_targets(call),
            }
        }
    }

    fn enter_call_targets(&mut self, call: &'a ast::Call) {
        if call.callee.name == ast::CONCAT {
            let first = call.args.first().and_then(|arg| match &arg.kind {
                ExprKind::Name(name) => self.tensor_named(name),
                _ => None,
            });
            let rank = first.map_or(0, |symbol| self.tensor(symbol).rank);
            for target in &call.targets {
                let symbol = self.enter_target(target, rank, None);
                self.tainted.extend(symbol.filter(|_| first.is_none()));
            }
            return;
        }
        let callee = self.defs.get(call.callee.name.as_str());
        let signature = callee.and_then(|def| self.signatures[*def].as_ref());
        for (position, target) in call.targets.iter().enumerate() {
            let result = signature.and_then(|signature| signature.results.get(position));
            let (rank, dtype) = result.map_or((0, None), |t| (t.rank, Some(t.dtype)));
            let symbol = self.enter_target(target, rank, dtype);
            self.tainted.extend(symbol.filter(|_| dtype.is_none()));
        }
    }

    /// Enters a tensor unless the name is taken.
    fn enter_target(
        &mut self,
        target: &'a ast::Ident,
        rank: usize,
        dtype: Option<DType>,
    ) -> Option<Symbol> {
        if self.names.contains_key(target.name.as_str()) {
            return None;
        }
        let tensor = Tensor {
            name: target.name.clone(),
            dtype: dtype.unwrap_or(DType::Float),
            rank,
            span: target.span,
            dims: Vec::new(),
            is_const: false,
            updated: false,
        };
        Some(self.enter(&target.name, tensor, false))
    }

    /// Infers the type of every computed tensor from its first statement that has a type; if all
    /// are literals (`C(i) = 0`), it is `int32` or `float`.
    fn infer_types(&mut self) {
        let mut statements: HashMap<Symbol, Vec<&'a Expr>> = HashMap::new();
        for stmt in &self.def.body {
            if let ast::Stmt::Comprehension(stmt) = stmt
                && let Some(symbol) = self.tensor_named(&stmt.target.name)
            {
                let sides = statements.entry(symbol).or_default();
                sides.push(&stmt.rhs);
                sides.extend(stmt.scan.iter().map(|scan| &scan.start));
            }
        }
        let mut known = vec![false; self.tensors.len()];
        known[..self.params].fill(true);
        for stmt in &self.def.body {
            match stmt {
                ast::Stmt::Comprehension(stmt) => {
                    let Some(symbol) = self.tensor_named(&stmt.target.name) else { continue };
                    if known[symbol.0 as usize] {
                        continue;
                    }
                    let sides = statements.remove(&symbol).unwrap_or_default();
                    let mut ty = Ty::AnyInt;
                    for side in sides {
                        ty = match self.type_of(side, Some(&known)) {
                            Ty::Typed(dtype) => {
                                ty = Ty::Typed(dtype);
                                break;
                            }
                            Ty::Unknown => ty,
                            other => ty.join(other),
                        };
                    }
                    self.tensors[symbol.0 as usize].dtype = ty.settle();
                    known[symbol.0 as usize] = true;
                }
                ast::Stmt::Call(call) => {
                    for target in &call.targets {
                        if let Some(symbol) = self.tensor_named(&target.name) {
                            self.settle_concat(call, symbol);
                            known[symbol.0 as usize] = true;
                        }
                    }
                }
            }
        }
    }

    fn settle_concat(&mut self, call: &ast::Call, target: Symbol) {
        if call.callee.name != ast::CONCAT {
            return;
        }
        if let Some(ExprKind::Name(name)) = call.args.first().map(|arg| &arg.kind)
            && let Some(source) = self.tensor_named(name)
        {
            self.tensors[target.0 as usize].dtype = self.tensor(source).dtype;
        }
    }

    /// The type of an expression, without reporting errors. Tensors not in `known` have no type
    /// yet.
    fn type_of(&self, expr: &Expr, known: TypedTensors<'_>) -> Ty {
        let read = |name: &str| match self.names.get(name) {
            Some(Entity::Tensor(symbol)) if known.is_none_or(|k| k[symbol.0 as usize]) => {
                Some(Ty::Typed(self.tensor(*symbol).dtype))
            }
            Some(Entity::Tensor(_)) => Some(Ty::Unknown),
            Some(Entity::Size(_)) => Some(Ty::AnyInt),
            None => None,
        };
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::DimOf(..) => Ty::AnyInt,
            ExprKind::Float(_) => Ty::AnyFloat,
            ExprKind::Bool(_) | ExprKind::Compare(..) | ExprKind::Logic(..) => {
                Ty::Typed(DType::Bool)
            }
            ExprKind::Unary(UnaryOp::Not, _) => Ty::Typed(DType::Bool),
            ExprKind::Unary(UnaryOp::Neg, operand) => self.type_of(operand, known),
            ExprKind::Arith(_, lhs, rhs) => self.type_of(lhs, known).join(self.type_of(rhs, known)),
            ExprKind::Select(_, then, otherwise) => {
                self.type_of(then, known).join(self.type_of(otherwise, known))
            }
            ExprKind::Name(name) => read(name).unwrap_or_else(|| {
                let is_constant = CONSTANTS.iter().any(|(constant, _)| constant == name);
                if is_constant { Ty::AnyFloat } else { Ty::AnyInt }
            }),
            ExprKind::Apply(callee, args) => {
                if let Some(dtype) = DType::from_name(&callee.name) {
                    return Ty::Typed(dtype);
                }
                if let Some(ty) = read(&callee.name) {
                    return ty;
                }
                let Some(builtin) = Builtin::from_name(&callee.name) else { return Ty::Unknown };
                let joined = args
                    .iter()
                    .map(|arg| self.type_of(arg, known))
                    .reduce(Ty::join)
                    .unwrap_or(Ty::Unknown);
                match (builtin.signature(), joined) {
                    (BuiltinSignature::FloatTest, _) => Ty::Typed(DType::Bool),
                    (BuiltinSignature::Float, Ty::AnyInt) => Ty::AnyFloat,
                    (BuiltinSignature::Integer, Ty::AnyInt) => Ty::Typed(DType::Int64),
                    _ => joined,
                }
            }
        }
    }

    /// The type of an expression once all tensors have one.
    pub(super) fn settled_type(&self, expr: &Expr) -> Ty {
        self.type_of(expr, None)
    }
}
