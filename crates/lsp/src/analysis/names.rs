//! Name resolution for editors.

use std::collections::{HashMap, HashSet};

use tensorwright_lang::builtin::{Builtin, CONSTANTS};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{
    CONCAT, Comprehension, Def, Dim, Expr, ExprKind, Function, Ident, Module, Stmt,
};
use tensorwright_lang::syntax::prelude;

/// The entity that a name refers to. Definitions and statements are numbered in source order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entity {
    Def {
        def: usize,
    },
    Tensor {
        def: usize,
        name: String,
    },
    Size {
        def: usize,
        name: String,
    },
    Index {
        def: usize,
        stmt: usize,
        name: String,
    },
    /// A function of the text.
    Function {
        function: usize,
    },
    /// A parameter of a function.
    Parameter {
        function: usize,
        name: String,
    },
    /// A function of the prelude.
    Prelude(&'static Function),
    Builtin(Builtin),
    Concat,
    Constant(&'static str, f64),
    Conversion(DType),
}

/// An occurrence of a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Occurrence {
    pub(super) span: Span,
    pub(super) entity: Entity,
}

/// All resolved names of a text, in source order.
pub(super) fn occurrences(module: &Module) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let defs = defs_by_name(module);
    let functions = Functions { module, defs: &defs };
    for (number, function) in module.functions.iter().enumerate() {
        functions.occurrences(number, function, &mut found);
    }
    for (number, def) in module.defs.iter().enumerate() {
        let (scope, found) = (Scope::of(def), &mut found);
        Walk { defs: &defs, functions: &functions, number, scope, found }.def(def);
    }
    found.sort_by_key(|occurrence| occurrence.span);
    found
}

/// The number of each definition; of duplicates, the first counts.
pub(super) fn defs_by_name(module: &Module) -> HashMap<&str, usize> {
    let defs = module.defs.iter().enumerate().rev();
    defs.map(|(number, def)| (def.name.name.as_str(), number)).collect()
}

/// The occurrence at or directly before an offset.
pub(super) fn at(occurrences: &[Occurrence], offset: u32) -> Option<&Occurrence> {
    let before = occurrences.partition_point(|occurrence| occurrence.span.start <= offset);
    let last = occurrences[..before].last()?;
    (offset <= last.span.end).then_some(last)
}

/// Where an entity is defined.
pub(super) fn definition(module: &Module, entity: &Entity) -> Option<Span> {
    match entity {
        Entity::Def { def } => Some(module.defs.get(*def)?.name.span),
        Entity::Tensor { def, name } => tensor(module.defs.get(*def)?, name),
        Entity::Size { def, name } => {
            let sizes = size_names(module.defs.get(*def)?);
            Some(sizes.into_iter().find(|size| size.name == *name)?.span)
        }
        Entity::Index { def, stmt, name } => match module.defs.get(*def)?.body.get(*stmt)? {
            Stmt::Comprehension(stmt) => index(stmt, name),
            Stmt::Call(_) => None,
        },
        Entity::Function { function } => Some(module.functions.get(*function)?.name.span),
        Entity::Parameter { function, name } => {
            let params = &module.functions.get(*function)?.params;
            Some(params.iter().find(|param| param.name == *name)?.span)
        }
        Entity::Builtin(_)
        | Entity::Prelude(_)
        | Entity::Concat
        | Entity::Constant(..)
        | Entity::Conversion(_) => None,
    }
}

pub(super) fn tensor(def: &Def, name: &str) -> Option<Span> {
    let params = def.params.iter().map(|param| &param.name);
    let mut all = params.chain(def.body.iter().flat_map(targets)).chain(&def.returns);
    Some(all.find(|ident| ident.name == name)?.span)
}

/// Where a variable occurs on the left side, or has its range, or occurs first.
fn index(stmt: &Comprehension, name: &str) -> Option<Span> {
    let ranges = stmt.constraints.iter().map(|constraint| &constraint.var);
    let ident = stmt.indices.iter().chain(ranges).find(|ident| ident.name == name);
    ident.map(|ident| ident.span).or_else(|| stmt.rhs.first_mention(name))
}

/// The tensors written by a statement.
pub(super) fn targets(stmt: &Stmt) -> &[Ident] {
    match stmt {
        Stmt::Comprehension(stmt) => std::slice::from_ref(&stmt.target),
        Stmt::Call(call) => &call.targets,
    }
}

/// The sizes of a signature, once per occurrence.
pub(super) fn size_names(def: &Def) -> Vec<&Ident> {
    let dims = def.params.iter().flat_map(|param| &param.dims);
    dims.filter_map(|dim| match dim {
        Dim::Name(name) => Some(name),
        Dim::Literal(..) => None,
    })
    .collect()
}

/// The names of a definition other than index variables.
pub(super) struct Scope<'a> {
    tensors: HashSet<&'a str>,
    sizes: HashSet<&'a str>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(def: &'a Def) -> Self {
        let params = def.params.iter().map(|param| &param.name);
        let tensors = params.chain(def.body.iter().flat_map(targets)).chain(&def.returns);
        Self {
            tensors: tensors.map(|ident| ident.name.as_str()).collect(),
            sizes: size_names(def).into_iter().map(|ident| ident.name.as_str()).collect(),
        }
    }

    pub(super) fn is_tensor(&self, name: &str) -> bool {
        self.tensors.contains(name)
    }

    /// Whether a bare name is an index variable, that is, nothing else.
    pub(super) fn is_index(&self, name: &str) -> bool {
        !self.is_tensor(name) && !self.sizes.contains(name) && constant(name).is_none()
    }
}

fn constant(name: &str) -> Option<(&'static str, f64)> {
    CONSTANTS.into_iter().find(|(constant, _)| *constant == name)
}

/// The functions of a text and of the prelude.
struct Functions<'a> {
    module: &'a Module,
    defs: &'a HashMap<&'a str, usize>,
}

impl Functions<'_> {
    /// The entity of a function name that no tensor hides.
    fn entity(&self, name: &str) -> Option<Entity> {
        if let Some(dtype) = DType::from_name(name) {
            return Some(Entity::Conversion(dtype));
        }
        let own = self.module.functions.iter().position(|it| it.name.name == name);
        if let Some(function) = own {
            return Some(Entity::Function { function });
        }
        if let Some(builtin) = Builtin::from_name(name) {
            return Some(Entity::Builtin(builtin));
        }
        let mut prelude = prelude().iter().filter(|_| !self.defs.contains_key(name));
        prelude.find(|function| function.name.name == name).map(Entity::Prelude)
    }

    /// Collects the occurrences in a function.
    fn occurrences(&self, number: usize, function: &Function, found: &mut Vec<Occurrence>) {
        let mut add = |span, entity| found.push(Occurrence { span, entity });
        add(function.name.span, Entity::Function { function: number });
        let parameter = |name: &str| Entity::Parameter { function: number, name: name.to_owned() };
        for param in &function.params {
            add(param.span, parameter(&param.name));
        }
        let mut open = vec![&function.body];
        while let Some(expr) = open.pop() {
            open.extend(expr.operands());
            match &expr.kind {
                ExprKind::Name(name) if function.params.iter().any(|it| it.name == *name) => {
                    add(expr.span, parameter(name));
                }
                ExprKind::Name(name) => {
                    if let Some((constant, value)) = constant(name) {
                        add(expr.span, Entity::Constant(constant, value));
                    }
                }
                ExprKind::Apply(callee, _) => {
                    if let Some(entity) = self.entity(&callee.name) {
                        add(callee.span, entity);
                    }
                }
                _ => {}
            }
        }
    }
}

struct Walk<'a> {
    defs: &'a HashMap<&'a str, usize>,
    functions: &'a Functions<'a>,
    /// The number of the definition.
    number: usize,
    scope: Scope<'a>,
    found: &'a mut Vec<Occurrence>,
}

impl Walk<'_> {
    fn add(&mut self, span: Span, entity: Entity) {
        self.found.push(Occurrence { span, entity });
    }

    fn tensor(&mut self, ident: &Ident) {
        let entity = Entity::Tensor { def: self.number, name: ident.name.clone() };
        self.add(ident.span, entity);
    }

    fn def(&mut self, def: &Def) {
        self.add(def.name.span, Entity::Def { def: self.number });
        for size in size_names(def) {
            self.add(size.span, Entity::Size { def: self.number, name: size.name.clone() });
        }
        for name in def.params.iter().map(|param| &param.name).chain(&def.returns) {
            self.tensor(name);
        }
        for (number, stmt) in def.body.iter().enumerate() {
            targets(stmt).iter().for_each(|target| self.tensor(target));
            match stmt {
                Stmt::Comprehension(stmt) => self.comprehension(number, stmt),
                Stmt::Call(call) => {
                    self.callee(&call.callee);
                    call.args.iter().for_each(|arg| self.expr(number, arg));
                }
            }
        }
    }

    fn callee(&mut self, callee: &Ident) {
        match self.defs.get(callee.name.as_str()) {
            _ if callee.name == CONCAT => self.add(callee.span, Entity::Concat),
            Some(def) => self.add(callee.span, Entity::Def { def: *def }),
            None => {}
        }
    }

    fn comprehension(&mut self, number: usize, stmt: &Comprehension) {
        stmt.indices.iter().for_each(|index| self.name(number, &index.name, index.span));
        self.expr(number, &stmt.rhs);
        if let Some(scan) = &stmt.scan {
            self.name(number, &scan.var.name, scan.var.span);
            self.expr(number, &scan.start);
        }
        for scatter in &stmt.scatter {
            self.name(number, &scatter.var.name, scatter.var.span);
            self.expr(number, &scatter.at);
        }
        for constraint in &stmt.constraints {
            self.name(number, &constraint.var.name, constraint.var.span);
            self.expr(number, &constraint.lo);
            self.expr(number, &constraint.hi);
        }
    }

    fn expr(&mut self, stmt: usize, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.name(stmt, name, expr.span),
            ExprKind::DimOf(tensor, _) => self.tensor(tensor),
            ExprKind::Apply(callee, _) => self.applied(callee),
            _ => {}
        }
        expr.operands().into_iter().for_each(|operand| self.expr(stmt, operand));
    }

    fn applied(&mut self, callee: &Ident) {
        if self.scope.is_tensor(&callee.name) {
            self.tensor(callee);
        } else if let Some(entity) = self.functions.entity(&callee.name) {
            self.add(callee.span, entity);
        }
    }

    fn name(&mut self, stmt: usize, name: &str, span: Span) {
        let (def, name) = (self.number, name.to_owned());
        let entity = if self.scope.tensors.contains(name.as_str()) {
            Entity::Tensor { def, name }
        } else if self.scope.sizes.contains(name.as_str()) {
            Entity::Size { def, name }
        } else if let Some((constant, value)) = constant(&name) {
            Entity::Constant(constant, value)
        } else {
            Entity::Index { def, stmt, name }
        };
        self.add(span, entity);
    }
}
