//! Inlines all calls of a definition.
//!
//! Shapes are not known yet, so the sizes of a callee become sizes of its arguments: in a call `C =
//! matmul(X, Y)` the callee's `M` becomes `X.0`. Where the callee's signature repeats a name, an
//! [`Agreement`] records that two sizes must be equal.

use std::collections::{HashMap, HashSet};

use super::site::{CallId, CallSite, Site};
use crate::diagnostic::Diagnostic;
use crate::dtype::DType;
use crate::hir::{self, Arg, Comprehension, Def, Dim, Expr, Int, Stmt, Symbol};
use crate::inline::{self, CalleeTensor, MAX_STATEMENTS};
use crate::source::Span;

/// A definition with all calls inlined.
#[derive(Debug)]
pub(super) struct Flat<'a> {
    /// The tensors of the definition, then those of its callees.
    pub(super) tensors: Vec<hir::Tensor>,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) agreements: Vec<Agreement>,
    /// The inlined calls.
    pub(super) calls: Vec<CallSite>,
}

impl Flat<'_> {
    /// Adds the call stack to an error: the innermost calls and the outermost.
    pub(super) fn with_calls(&self, mut error: Diagnostic, call: Option<CallId>) -> Diagnostic {
        const SHOWN: usize = 2;
        let chain = std::iter::successors(call, |call| self.calls[call.0].outer);
        let calls: Vec<Span> = chain.map(|call| self.calls[call.0].span).collect();
        for (depth, span) in calls.iter().enumerate() {
            if depth < SHOWN || depth + 1 == calls.len() {
                error = error.label(*span, if depth == 0 { "in this call" } else { "from here" });
            }
        }
        error
    }
}

/// A step of the inlined definition.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A statement, and its origin.
    Compute(Box<Comprehension>, Site<'a>),
    /// A tensor that a callee updates starts as a copy of the argument.
    Alias { target: Symbol, source: Symbol },
}

/// Two sizes that must be equal.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) rule: Rule,
    /// The call that requires it.
    pub(super) call: Option<CallId>,
    pub(super) first: Int,
    pub(super) first_span: Span,
    pub(super) second: Int,
    pub(super) second_span: Span,
}

/// Why two sizes must be equal.
#[derive(Debug)]
pub(super) enum Rule {
    /// The signature of the callee repeats a name.
    Size { callee: String, name: String },
    /// The signature of the callee has a number.
    Literal { callee: String },
    /// `concat` joins along the last dimension only.
    Concat,
}

/// The substitution for the names of a callee.
struct Substitution {
    /// The call being inlined.
    call: CallId,
    tensors: Vec<Binding>,
    sizes: Vec<Int>,
}

type Binding = inline::Binding<Symbol, Number>;
type Frame<'a> = inline::Frame<'a, Def, Substitution>;

/// A number for a scalar parameter of this type.
#[derive(Clone)]
enum Number {
    Int(Int, DType),
    Float(f64, DType),
}

/// Whether inlining would exceed the statement limit.
pub(super) fn is_too_long(def: &Def) -> bool {
    def.expanded > MAX_STATEMENTS
}

/// Inlines all calls of a definition.
pub(super) fn flatten<'a>(defs: &'a [Option<Def>], def: &'a Def) -> Result<Flat<'a>, Diagnostic> {
    let mut flattener = Flattener {
        flat: Flat {
            tensors: def.tensors.clone(),
            steps: Vec::new(),
            agreements: Vec::new(),
            calls: Vec::new(),
        },
        taken: def.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
        counters: HashMap::new(),
    };
    let visit = |frame: &Frame<'a>, stmt: &'a Stmt| match stmt {
        Stmt::Comprehension(written) => {
            flattener.comprehension(frame, written);
            None
        }
        // Callees with errors are not bound.
        Stmt::Call(call) => {
            let callee = defs.get(call.callee)?.as_ref()?;
            Some(Frame::called(callee, flattener.enter(frame, call, callee)))
        }
    };
    inline::walk(def, |def| def.body.as_slice(), visit).map_err(|at| {
        let span = match at {
            Stmt::Call(call) => call.span,
            Stmt::Comprehension(stmt) => stmt.span,
        };
        inline::too_long(&def.name, span)
    })?;
    Ok(flattener.flat)
}

struct Flattener<'a> {
    flat: Flat<'a>,
    taken: HashSet<String>,
    counters: HashMap<String, u32>,
}

impl<'a> Flattener<'a> {
    /// Copies a statement.
    fn comprehension(&mut self, frame: &Frame<'a>, written: &'a Comprehension) {
        let names = frame.names.as_ref();
        let call = names.map(|names| names.call);
        let stmt = names.map_or_else(|| written.clone(), |names| names.comprehension(written));
        self.joins(&stmt, call);
        let site = Site { def: frame.def, written, call };
        self.flat.steps.push(Step::Compute(Box::new(stmt), site));
    }

    /// Binds the names of a callee to arguments, targets and new tensors.
    fn enter(&mut self, frame: &Frame<'_>, call: &hir::Call, callee: &Def) -> Substitution {
        let outer = |symbol: Symbol| match &frame.names {
            None => Binding::Tensor(symbol),
            Some(names) => names.tensors[symbol.0 as usize].clone(),
        };
        let target_of = |symbol: Symbol| {
            let position = callee.returns.iter().position(|result| *result == symbol)?;
            match outer(*call.targets.get(position)?) {
                Binding::Tensor(target) => Some(target),
                _ => None,
            }
        };
        let mut tensors = Vec::with_capacity(callee.tensors.len());
        for (number, tensor) in callee.tensors.iter().enumerate() {
            let symbol = Symbol(number as u32);
            let argument = call.args.get(number).filter(|_| number < callee.params);
            let argument = argument.map(|argument| match argument {
                Arg::Tensor(symbol, _) => outer(*symbol),
                Arg::Int(int) => {
                    let names = frame.names.as_ref();
                    let int = names.map_or_else(|| int.clone(), |names| names.int(int));
                    Binding::Number(Number::Int(int, tensor.dtype))
                }
                Arg::Float(value) => Binding::Number(Number::Float(*value, tensor.dtype)),
            });
            tensors.push(match inline::meaning(argument, target_of(symbol)) {
                CalleeTensor::Given(binding) => binding,
                CalleeTensor::Updated { target, source } => {
                    self.flat.steps.push(Step::Alias { target, source });
                    Binding::Tensor(target)
                }
                CalleeTensor::Own => Binding::Tensor(self.new_tensor(callee, tensor)),
            });
        }
        let outer = frame.names.as_ref().map(|names| names.call);
        let sizes = self.sizes(call, callee, &tensors, outer);
        let id = CallId(self.flat.calls.len());
        self.flat.calls.push(CallSite { span: call.span, outer });
        Substitution { call: id, tensors, sizes }
    }

    /// A local tensor of a callee, under a fresh name.
    fn new_tensor(&mut self, callee: &Def, tensor: &hir::Tensor) -> Symbol {
        let stem = format!("{}_{}", callee.name, tensor.name);
        let counter = self.counters.entry(stem.clone()).or_insert(0);
        let name = loop {
            *counter += 1;
            let name = if *counter == 1 { stem.clone() } else { format!("{stem}_{counter}") };
            if self.taken.insert(name.clone()) {
                break name;
            }
        };
        self.flat.tensors.push(hir::Tensor { name, ..tensor.clone() });
        Symbol(self.flat.tensors.len() as u32 - 1)
    }

    /// The sizes of the callee as sizes of its arguments.
    fn sizes(
        &mut self,
        call: &hir::Call,
        callee: &Def,
        tensors: &[Binding],
        outer: Option<CallId>,
    ) -> Vec<Int> {
        let name = || callee.name.clone();
        let mut sizes: Vec<Option<(Int, Span)>> = vec![None; callee.sizes.len()];
        for (number, param) in callee.tensors[..callee.params].iter().enumerate() {
            let Binding::Tensor(symbol) = tensors[number] else { continue };
            let span = match call.args.get(number) {
                Some(Arg::Tensor(_, span)) => *span,
                _ => call.span,
            };
            for (dim, size) in param.dims.iter().enumerate() {
                let extent = Int::DimOf(symbol, dim as u32);
                let (rule, first, first_span) = match size {
                    Dim::Literal(value) => {
                        (Rule::Literal { callee: name() }, Int::Literal(*value), param.span)
                    }
                    Dim::Size(id) => match &sizes[id.0 as usize] {
                        None => {
                            sizes[id.0 as usize] = Some((extent, span));
                            continue;
                        }
                        Some((first, span)) => {
                            let size = callee.sizes[id.0 as usize].name.clone();
                            (Rule::Size { callee: name(), name: size }, first.clone(), *span)
                        }
                    },
                };
                self.flat.agreements.push(Agreement {
                    rule,
                    call: outer,
                    first,
                    first_span,
                    second: extent,
                    second_span: span,
                });
            }
        }
        // Every size occurs in the type of a parameter, so every one is bound.
        sizes.into_iter().map(|size| size.map_or(Int::Literal(1), |(int, _)| int)).collect()
    }
}

impl Flattener<'_> {
    /// Requires the operands of a `concat` to agree in all dimensions but the last.
    fn joins(&mut self, stmt: &Comprehension, call: Option<CallId>) {
        let Some(((first, first_span), others)) = stmt.joins.split_first() else { return };
        for (second, second_span) in others {
            self.flat.agreements.extend((0..stmt.rank as u32 - 1).map(|dim| Agreement {
                rule: Rule::Concat,
                call,
                first: Int::DimOf(*first, dim),
                first_span: *first_span,
                second: Int::DimOf(*second, dim),
                second_span: *second_span,
            }));
        }
    }
}

impl Substitution {
    fn symbol(&self, symbol: Symbol) -> Symbol {
        match &self.tensors[symbol.0 as usize] {
            Binding::Tensor(symbol) => *symbol,
            // Only scalars are bound to numbers; `expr` and `int` replace their reads.
            Binding::Number(_) => symbol,
        }
    }

    fn comprehension(&self, stmt: &Comprehension) -> Comprehension {
        let mut stmt = stmt.clone();
        stmt.target = self.symbol(stmt.target);
        for (lo, hi, _) in stmt.vars.iter_mut().filter_map(|var| var.range.as_mut()) {
            *lo = self.int(lo);
            *hi = self.int(hi);
        }
        stmt.rhs = self.expr(&stmt.rhs);
        if let Some(scan) = &mut stmt.scan {
            scan.start = self.expr(&scan.start);
        }
        for scatter in &mut stmt.scatter {
            scatter.at = self.int(&scatter.at);
        }
        for (part, _) in &mut stmt.joins {
            *part = self.symbol(*part);
        }
        stmt
    }

    fn int(&self, int: &Int) -> Int {
        let both = |a: &Int, b: &Int| (Box::new(self.int(a)), Box::new(self.int(b)));
        match int {
            Int::Literal(_) | Int::Var(_) => int.clone(),
            Int::Size(size) => self.sizes[size.0 as usize].clone(),
            Int::DimOf(symbol, dim) => Int::DimOf(self.symbol(*symbol), *dim),
            Int::Scalar(symbol, span) => match &self.tensors[symbol.0 as usize] {
                Binding::Tensor(symbol) => Int::Scalar(*symbol, *span),
                Binding::Number(Number::Int(int, _)) => int.clone(),
                Binding::Number(Number::Float(..)) => int.clone(),
            },
            Int::Arith(op, a, b, span) => {
                let (a, b) = both(a, b);
                Int::Arith(*op, a, b, *span)
            }
            Int::Min(a, b) => {
                let (a, b) = both(a, b);
                Int::Min(a, b)
            }
            Int::Max(a, b) => {
                let (a, b) = both(a, b);
                Int::Max(a, b)
            }
            Int::Value(value) => Int::Value(Box::new(self.expr(value))),
        }
    }

    fn boxed(&self, expr: &Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn expr(&self, expr: &Expr) -> Expr {
        match expr {
            Expr::Float(..) | Expr::Bool(_) => expr.clone(),
            Expr::Int(int, dtype, span) => Expr::Int(self.int(int), *dtype, *span),
            Expr::Read(symbol, subscripts, span) => match &self.tensors[symbol.0 as usize] {
                Binding::Tensor(symbol) => {
                    Expr::Read(*symbol, subscripts.iter().map(|s| self.int(s)).collect(), *span)
                }
                Binding::Number(Number::Int(int, dtype)) => {
                    Expr::Int(int.clone(), Some(*dtype), *span)
                }
                Binding::Number(Number::Float(value, dtype)) => Expr::Float(*value, Some(*dtype)),
            },
            Expr::Unary(op, a) => Expr::Unary(*op, self.boxed(a)),
            Expr::Arith(op, a, b) => Expr::Arith(*op, self.boxed(a), self.boxed(b)),
            Expr::Compare(op, a, b) => Expr::Compare(*op, self.boxed(a), self.boxed(b)),
            Expr::CompareInt(op, a, b) => Expr::CompareInt(*op, self.int(a), self.int(b)),
            Expr::Logic(op, a, b) => Expr::Logic(*op, self.boxed(a), self.boxed(b)),
            Expr::Select(c, a, b) => Expr::Select(self.boxed(c), self.boxed(a), self.boxed(b)),
            Expr::Call(builtin, args) => {
                Expr::Call(*builtin, args.iter().map(|arg| self.expr(arg)).collect())
            }
            Expr::Cast(dtype, a) => Expr::Cast(*dtype, self.boxed(a)),
        }
    }
}
