//! Calls replaced by the statements of what they call.
//!
//! Nothing is known of shapes yet, so the sizes of a callee become sizes of its arguments: in a
//! call `C = matmul(X, Y)` the callee's `M` becomes `X.0`. Where the callee's signature says one
//! name twice, an [`Agreement`] remembers that two sizes must be equal.

use std::collections::{HashMap, HashSet};

use super::site::{CallId, CallSite, Site};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{self, Arg, Comprehension, Def, Dim, Expr, Int, Stmt, Symbol};
use crate::source::Span;

/// The most statements that calls may expand to.
const MAX_STEPS: usize = 20_000;

/// A definition without calls.
#[derive(Debug)]
pub(super) struct Flat<'a> {
    /// The tensors of the definition, then those of its callees.
    pub(super) tensors: Vec<hir::Tensor>,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) agreements: Vec<Agreement>,
    /// The calls that were replaced.
    pub(super) calls: Vec<CallSite>,
}

/// What happens next.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A statement, and where it comes from.
    Compute(Comprehension, Site<'a>),
    /// A tensor that a callee updates starts out as the one that was passed in.
    Alias { target: Symbol, source: Symbol },
}

/// Two sizes that must be equal.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) rule: Rule,
    /// The call of the definition that asks for it.
    pub(super) call: Option<CallId>,
    pub(super) first: Int,
    pub(super) first_span: Span,
    pub(super) second: Int,
    pub(super) second_span: Span,
}

/// Why two sizes must be equal.
#[derive(Debug)]
pub(super) enum Rule {
    /// The signature of the callee says a name twice.
    Size { callee: String, name: String },
    /// The signature of the callee has a number.
    Literal { callee: String },
    /// `concat` joins along the last dimension only.
    Concat,
}

/// What the names of a definition stand for after a call.
struct Substitution {
    tensors: Vec<Binding>,
    sizes: Vec<Int>,
}

#[derive(Clone)]
enum Binding {
    Tensor(Symbol),
    /// A number for a scalar parameter of this type.
    Int(Int, DType),
    Float(f64, DType),
}

/// A definition whose statements are being copied.
struct Frame<'a> {
    def: &'a Def,
    next: usize,
    /// The call that is being replaced.
    call: Option<CallId>,
    /// `None` for the outermost definition, whose names stand for themselves.
    names: Option<Substitution>,
}

/// Whether the calls of a definition expand to more statements than a program may have.
pub(super) fn is_too_long(def: &Def) -> bool {
    def.expanded > MAX_STEPS
}

/// Expands all calls of a definition, without recursion: a text may call thousands deep.
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
    let mut frames = vec![Frame { def, next: 0, call: None, names: None }];
    while let Some(frame) = frames.last_mut() {
        let frame_def = frame.def;
        let Some(stmt) = frame_def.body.get(frame.next) else {
            frames.pop();
            continue;
        };
        frame.next += 1;
        match stmt {
            Stmt::Comprehension(written) => {
                let names = frame.names.as_ref();
                let stmt = names.map_or_else(|| written.clone(), |n| n.comprehension(written));
                let site = Site { def: frame_def, written, call: frame.call };
                flattener.joins(&stmt, frame.call);
                flattener.flat.steps.push(Step::Compute(stmt, site));
            }
            Stmt::Call(call) => {
                // Callees with errors do not get this far.
                let Some(callee) = defs.get(call.callee).and_then(Option::as_ref) else { continue };
                let names = flattener.enter(frame, call, callee);
                let id = CallId(flattener.flat.calls.len());
                flattener.flat.calls.push(CallSite { span: call.span, outer: frame.call });
                frames.push(Frame { def: callee, next: 0, call: Some(id), names: Some(names) });
            }
        }
        if flattener.flat.steps.len() > MAX_STEPS || frames.len() > MAX_STEPS {
            return Err(too_long(def, frames.first()));
        }
    }
    Ok(flattener.flat)
}

/// The error points at the call of the outermost definition that was being replaced.
fn too_long(def: &Def, outermost: Option<&Frame<'_>>) -> Diagnostic {
    let message = format!("calls in `{}` expand to more than {MAX_STEPS} statements", def.name);
    let position = outermost.map_or(0, |frame| frame.next.saturating_sub(1));
    let span = match def.body.get(position) {
        Some(Stmt::Call(call)) => call.span,
        Some(Stmt::Comprehension(stmt)) => stmt.span,
        None => def.span,
    };
    Diagnostic::new(Code::ProgramTooLong, span, message)
        .here("too many from here on")
        .help("split it into programs that are run one after the other")
}

struct Flattener<'a> {
    flat: Flat<'a>,
    taken: HashSet<String>,
    counters: HashMap<String, u32>,
}

impl Flattener<'_> {
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
                    Binding::Int(int, tensor.dtype)
                }
                Arg::Float(value) => Binding::Float(*value, tensor.dtype),
            });
            tensors.push(match (argument, target_of(symbol)) {
                (Some(Binding::Tensor(source)), Some(target)) => {
                    if source != target {
                        self.flat.steps.push(Step::Alias { target, source });
                    }
                    Binding::Tensor(target)
                }
                (Some(binding), _) => binding,
                (None, Some(target)) => Binding::Tensor(target),
                (None, None) => Binding::Tensor(self.new_tensor(callee, tensor)),
            });
        }
        let sizes = self.sizes(call, callee, &tensors, frame.call);
        Substitution { tensors, sizes }
    }

    /// A tensor of a callee, under a name that no other tensor has.
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
        // Every size stands in the type of a parameter, so every one is bound.
        sizes.into_iter().map(|size| size.map_or(Int::Literal(1), |(int, _)| int)).collect()
    }
}

impl Flattener<'_> {
    /// What a `concat` joins must agree in all dimensions but the last.
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
            // Only scalars are bound to numbers, and their reads are replaced in `expr` and `int`.
            Binding::Int(..) | Binding::Float(..) => symbol,
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
                Binding::Int(int, _) => int.clone(),
                Binding::Float(..) => int.clone(),
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
                Binding::Int(int, dtype) => Expr::Int(int.clone(), Some(*dtype), *span),
                Binding::Float(value, dtype) => Expr::Float(*value, Some(*dtype)),
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
