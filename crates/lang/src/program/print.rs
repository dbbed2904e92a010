//! Prints programs as source text, and index expressions.

use std::collections::{BTreeSet, HashSet};

use super::names::similar;
use super::{Atom, Axis, AxisId, Combine, Expr, Index, Program, Read, Scalar, Stage, TensorId};
use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::ops::{ArithOp, AssignOp, CompareOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident};
use crate::syntax::{print_def, print_expr};

/// The program as a `def` that binds to the same program without any sizes. A stage that updates a
/// tensor under the same name becomes a call of a separate `def`.
pub(super) fn program_text(program: &Program) -> String {
    let program = &program.as_printed();
    let names = program.tensors.iter().map(|tensor| tensor.name.clone());
    let axes = program.stages.iter().flat_map(|stage| stage.axes.iter().map(|it| it.name.clone()));
    let mut taken: HashSet<String> = names.chain(axes).chain([program.name.clone()]).collect();
    let mut updates = Vec::new();
    let mut body = Vec::with_capacity(program.stages.len());
    for stage in &program.stages {
        let renamed = stage
            .base
            .filter(|base| program.tensor(*base).name != program.tensor(stage.output).name);
        body.push(match renamed {
            Some(base) => {
                let update = update(program, stage, base, similar("update", &mut taken));
                let call = call(program, stage, &update);
                updates.push(update);
                call
            }
            None => ast::Stmt::Comprehension(stmt(program, stage, true)),
        });
    }
    let parts = updates.iter().chain([&def(program, body)]).map(print_def).collect::<Vec<_>>();
    parts.join("\n")
}

/// A `def` of one statement that updates its first parameter.
fn update(program: &Program, stage: &Stage, base: TensorId, name: String) -> ast::Def {
    let mut others = BTreeSet::new();
    stage.body.walk_reads(&mut |read| {
        others.insert(read.tensor);
    });
    others.remove(&base);
    let params = [base].into_iter().chain(others);
    let target = ident(&program.tensor(base).name);
    let body = ast::Comprehension { target: target.clone(), ..stmt(program, stage, true) };
    ast::Def {
        name: ident(&name),
        params: params.map(|id| ast::Param { is_const: false, ..param(program, id) }).collect(),
        returns: vec![target],
        body: vec![ast::Stmt::Comprehension(body)],
        span: Span::default(),
    }
}

/// The call of a stage's `def`, with arguments named like its parameters.
fn call(program: &Program, stage: &Stage, callee: &ast::Def) -> ast::Stmt {
    let args = callee.params.iter().map(|param| expr(ExprKind::Name(param.name.name.clone())));
    ast::Stmt::Call(ast::Call {
        targets: vec![ident(&program.tensor(stage.output).name)],
        callee: callee.name.clone(),
        args: args.collect(),
        span: Span::default(),
    })
}

/// Prints an expression, with names for axes and tensors.
#[must_use]
pub fn expr_text(
    expr: &Expr,
    axis: &impl Fn(AxisId) -> String,
    tensor: &impl Fn(TensorId) -> String,
    dtype: &impl Fn(TensorId) -> DType,
) -> String {
    print_expr(&Names { axis, tensor, dtype, own: None }.expr(expr, true))
}

/// Prints an index expression, with names for axes and tensors.
#[must_use]
pub fn index_text(
    index: &Index,
    axis: &impl Fn(AxisId) -> String,
    tensor: &impl Fn(TensorId) -> String,
) -> String {
    // Types only decide whether a conversion inside a product of data is printed; either is
    // readable.
    let names = Names { axis, tensor, dtype: &|_| DType::Int32, own: None };
    print_expr(&names.index(index))
}

impl Stage {
    /// Prints the statement of the stage, with the names of the program.
    #[must_use]
    pub fn text(&self, program: &Program) -> String {
        let stmt = ast::Stmt::Comprehension(stmt(program, self, false));
        crate::syntax::print_stmt(&stmt)
    }
}

fn ident(name: &str) -> Ident {
    Ident { name: name.to_owned(), span: Span::default() }
}

fn expr(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}

fn param(program: &Program, id: TensorId) -> ast::Param {
    let tensor = program.tensor(id);
    ast::Param {
        is_const: tensor.is_const,
        dtype: tensor.dtype,
        dims: tensor.shape.iter().map(|e| ast::Dim::Literal(*e, Span::default())).collect(),
        name: ident(&tensor.name),
        span: Span::default(),
    }
}

fn def(program: &Program, body: Vec<ast::Stmt>) -> ast::Def {
    let params = program.input_ids().map(|id| param(program, id));
    let returns = program.outputs.iter().map(|output| ident(&program.tensor(*output).name));
    ast::Def {
        name: ident(&program.name),
        params: params.collect(),
        returns: returns.collect(),
        body,
        span: Span::default(),
    }
}

fn stmt(program: &Program, stage: &Stage, ranges: bool) -> ast::Comprehension {
    let names = Names {
        axis: &|axis: AxisId| match axis.size() {
            // A program does not know the names of sizes that vary.
            Some(number) => format!("N{number}"),
            None => stage.axis(axis).name.clone(),
        },
        tensor: &|id: TensorId| program.tensor(id).name.clone(),
        dtype: &|id: TensorId| program.tensor(id).dtype,
        own: stage.scan.as_ref().map(|_| stage.output),
    };
    let op = match stage.combine {
        Combine::Assign => AssignOp::Assign,
        Combine::Reduce(op) => AssignOp::Reduce { op, initialize: true },
        Combine::Accumulate(op) => AssignOp::Reduce { op, initialize: false },
    };
    let constraint = |axis: &Axis| ast::RangeConstraint {
        var: ident(&axis.name),
        lo: integer(i128::from(axis.lo)),
        hi: integer(i128::from(axis.hi)),
        span: Span::default(),
    };
    let scan = stage.scan.as_ref().map(|scan| ast::ScanClause {
        var: ident(&stage.axis(scan.axis).name),
        start: names.expr(&scan.start, false),
        span: Span::default(),
    });
    let scatter = stage.scatter.iter().map(|it| ast::ScatterClause {
        var: ident(&stage.axis(it.axis).name),
        at: names.index(&it.at),
        span: Span::default(),
    });
    let axes = if ranges { stage.axes.as_slice() } else { &[] };
    let mut rhs = names.expr(stage.term(), false);
    if ranges {
        rhs = unused(stage).fold(rhs, use_in);
    }
    ast::Comprehension {
        target: ident(&program.tensor(stage.output).name),
        indices: stage.axes[..stage.spatial()].iter().map(|axis| ident(&axis.name)).collect(),
        op,
        position: false,
        rhs,
        scan,
        scatter: scatter.collect(),
        constraints: axes.iter().map(constraint).collect(),
        span: Span::default(),
    }
}

/// The axes that the statement does not use: they only determine the number of terms.
fn unused(stage: &Stage) -> impl Iterator<Item = &Axis> {
    let is_used = move |id: AxisId| {
        let is_it = |axis: AxisId| axis == id;
        let by_scan = stage.scan.iter().any(|scan| scan.axis == id || scan.start.mentions(&is_it));
        let by_scatter = stage.scatter.iter().any(|it| it.axis == id || it.at.mentions(&is_it));
        by_scan || by_scatter || stage.term().mentions(&is_it)
    };
    let axes = (0..).map(AxisId).zip(&stage.axes).skip(stage.spatial());
    axes.filter(move |(id, _)| !is_used(*id)).map(|(_, axis)| axis)
}

/// An equal expression that uses an axis: a range needs a variable that the statement uses.
fn use_in(value: ast::Expr, axis: &Axis) -> ast::Expr {
    let name = expr(ExprKind::Name(axis.name.clone()));
    let nothing = expr(ExprKind::Arith(ArithOp::Mul, Box::new(integer(0)), Box::new(name)));
    let always = ExprKind::Compare(CompareOp::Eq, Box::new(nothing), Box::new(integer(0)));
    let otherwise = Box::new(value.clone());
    expr(ExprKind::Select(Box::new(expr(always)), Box::new(value), otherwise))
}

/// An integer as index arithmetic; the language has no negative literals.
fn integer(value: i128) -> ast::Expr {
    match u64::try_from(value) {
        Ok(value) => expr(ExprKind::Int(value)),
        Err(_) if value == i128::from(i64::MIN) => {
            let most = integer(value + 1);
            let one = Box::new(integer(1));
            expr(ExprKind::Arith(ArithOp::Sub, Box::new(most), one))
        }
        Err(_) => negative(integer(-value)),
    }
}

fn negative(operand: ast::Expr) -> ast::Expr {
    expr(ExprKind::Unary(UnaryOp::Neg, Box::new(operand)))
}

fn float(dtype: DType, value: f64) -> ast::Expr {
    if value.is_sign_negative() {
        return negative(float(dtype, -value));
    }
    if value.is_nan() {
        return expr(ExprKind::Name("NAN".to_owned()));
    }
    if value.is_infinite() {
        return expr(ExprKind::Name("INFINITY".to_owned()));
    }
    // The shortest number that rounds to the same value of the type.
    let short: f64 = match dtype {
        DType::Double => value,
        _ => (value as f32).to_string().parse().unwrap_or(value),
    };
    let same = super::round_float(dtype, short).to_bits() == value.to_bits();
    expr(ExprKind::Float(if same { short } else { value }))
}

/// The names of axes and tensors.
struct Names<'a, A, T, D> {
    axis: &'a A,
    tensor: &'a T,
    dtype: &'a D,
    /// The output of a recurrence; the guards of its self-reads are not printed.
    own: Option<TensorId>,
}

impl<A, T, D> Names<'_, A, T, D>
where
    A: Fn(AxisId) -> String,
    T: Fn(TensorId) -> String,
    D: Fn(TensorId) -> DType,
{
    fn index(&self, index: &Index) -> ast::Expr {
        let constant = i128::from(index.constant_term());
        let mut sum: Option<ast::Expr> = None;
        // Positive terms first: `i - 1` and not `-1 + i`.
        let (positive, negative_terms): (Vec<_>, Vec<_>) =
            index.terms().iter().partition(|term| term.coefficient > 0);
        for term in positive {
            sum = Some(add(sum, ArithOp::Add, self.term(&term.atom, i128::from(term.coefficient))));
        }
        if constant > 0 || sum.is_none() && negative_terms.is_empty() {
            sum = Some(add(sum, ArithOp::Add, integer(constant)));
        }
        for term in negative_terms {
            let magnitude = -i128::from(term.coefficient);
            sum = Some(add(sum, ArithOp::Sub, self.term(&term.atom, magnitude)));
        }
        if constant < 0 && !index.terms().is_empty() {
            let magnitude =
                u64::try_from(-constant).map_or(integer(constant), |c| expr(ExprKind::Int(c)));
            sum = Some(add(sum, ArithOp::Sub, magnitude));
        }
        sum.unwrap_or_else(|| integer(0))
    }

    fn term(&self, atom: &Atom, coefficient: i128) -> ast::Expr {
        let atom = self.atom(atom);
        if coefficient == 1 {
            return atom;
        }
        expr(ExprKind::Arith(ArithOp::Mul, Box::new(integer(coefficient)), Box::new(atom)))
    }

    fn atom(&self, atom: &Atom) -> ast::Expr {
        let binary = |op, index: &Index, divisor: i64| {
            let divisor = Box::new(integer(i128::from(divisor)));
            expr(ExprKind::Arith(op, Box::new(self.index(index)), divisor))
        };
        let call = |name: &str, a: &Index, b: &Index| {
            expr(ExprKind::Apply(ident(name), vec![self.index(a), self.index(b)]))
        };
        match atom {
            Atom::Axis(axis) => expr(ExprKind::Name((self.axis)(*axis))),
            Atom::Div(index, divisor) => binary(ArithOp::Div, index, *divisor),
            Atom::Mod(index, divisor) => binary(ArithOp::Rem, index, *divisor),
            Atom::Min(a, b) => call(Builtin::Min.name(), a, b),
            Atom::Max(a, b) => call(Builtin::Max.name(), a, b),
            Atom::Product(inner, factor) => {
                let factor = expr(ExprKind::Name((self.axis)(*factor)));
                expr(ExprKind::Arith(ArithOp::Mul, Box::new(self.index(inner)), Box::new(factor)))
            }
            Atom::Value(value) => self.nonlinear(value),
        }
    }

    /// A value inside index arithmetic. Products and quotients of index arithmetic are 64-bit
    /// arithmetic on converted operands; the conversions are implicit.
    fn nonlinear(&self, value: &Expr) -> ast::Expr {
        match value {
            Expr::Arith(op, a, b) if self.is_product(*op, a, b) => {
                let (a, b) = (Box::new(self.nonlinear(a)), Box::new(self.nonlinear(b)));
                expr(ExprKind::Arith(*op, a, b))
            }
            Expr::Const(scalar) if scalar.dtype() == DType::Int64 => integer(scalar.as_integer()),
            Expr::Index(index, DType::Int64) => self.index(index),
            Expr::Cast(DType::Int64, operand) if self.is_index_type(operand) => {
                self.converted(operand)
            }
            value => self.converted(value),
        }
    }

    /// Whether index arithmetic would make this product or quotient: others are sums of multiples.
    fn is_product(&self, op: ArithOp, a: &Expr, b: &Expr) -> bool {
        let is_constant = |value: &Expr| matches!(value, Expr::Const(_));
        let is_nonlinear = match op {
            ArithOp::Mul => !is_constant(a) && !is_constant(b),
            ArithOp::Div | ArithOp::Rem => !is_constant(b),
            ArithOp::Add | ArithOp::Sub => false,
        };
        is_nonlinear && a.dtype(self.dtype) == DType::Int64
    }

    /// A value that index arithmetic converts. Without a written conversion, its own arithmetic
    /// would be that of indices, which does not wrap around.
    fn converted(&self, value: &Expr) -> ast::Expr {
        let is_arithmetic = match value {
            Expr::Arith(..) | Expr::Unary(..) => true,
            Expr::Call(builtin, _) => matches!(builtin, Builtin::Min | Builtin::Max),
            _ => false,
        };
        let printed = self.expr(value, false);
        if is_arithmetic && self.is_index_type(value) {
            let name = ident(DType::Int64.name());
            return expr(ExprKind::Apply(name, vec![printed]));
        }
        printed
    }

    fn is_index_type(&self, value: &Expr) -> bool {
        let dtype = value.dtype(self.dtype);
        dtype.is_integer() && dtype != DType::UInt64
    }

    fn is_own(&self, value: &Expr) -> bool {
        matches!(value, Expr::Read(read) if self.own == Some(read.tensor))
    }

    /// Whether a value determines its type, so that a literal beside it needs no conversion.
    fn has_type(&self, value: &Expr) -> bool {
        match value {
            Expr::Const(scalar) => scalar.dtype() == DType::Bool,
            Expr::Index(..) | Expr::Read(_) | Expr::Cast(..) => true,
            Expr::Compare(..) | Expr::CompareIndex(..) | Expr::Logic(..) => true,
            Expr::Unary(_, a) => self.has_type(a),
            Expr::Arith(_, a, b) | Expr::Select(_, a, b) => self.has_type(a) || self.has_type(b),
            Expr::Call(_, args) => args.iter().any(|arg| self.has_type(arg)),
        }
    }

    /// The operands of an operator: literals need no conversion where another operand gives the
    /// type.
    fn operands<'e>(
        &self,
        operands: impl IntoIterator<Item = &'e Expr>,
        bare: bool,
    ) -> Vec<ast::Expr> {
        let operands: Vec<&Expr> = operands.into_iter().collect();
        let bare = bare || operands.iter().any(|operand| self.has_type(operand));
        operands.into_iter().map(|operand| self.expr(operand, bare)).collect()
    }

    fn two(&self, a: &Expr, b: &Expr, bare: bool) -> (Box<ast::Expr>, Box<ast::Expr>) {
        let mut operands = self.operands([a, b], bare).into_iter();
        let mut next = || Box::new(operands.next().unwrap_or_else(|| integer(0)));
        (next(), next())
    }

    /// A value; `bare` says that its type is clear from the context.
    fn expr(&self, value: &Expr, bare: bool) -> ast::Expr {
        let conversion =
            |dtype: DType, operand| expr(ExprKind::Apply(ident(dtype.name()), vec![operand]));
        match value {
            Expr::Const(scalar) => self.constant(*scalar, bare),
            Expr::Index(index, dtype) => conversion(*dtype, self.index(index)),
            Expr::Read(read) => self.read(read),
            Expr::Unary(op, a) => expr(ExprKind::Unary(*op, Box::new(self.expr(a, bare)))),
            Expr::Arith(op, a, b) => {
                let (a, mut b) = self.two(a, b, bare);
                if matches!(op, ArithOp::Div | ArithOp::Rem) {
                    respell_zero(&mut b);
                }
                expr(ExprKind::Arith(*op, a, b))
            }
            Expr::Compare(op, a, b) => {
                let (a, b) = self.two(a, b, false);
                expr(ExprKind::Compare(*op, a, b))
            }
            Expr::CompareIndex(op, a, b) => {
                expr(ExprKind::Compare(*op, Box::new(self.index(a)), Box::new(self.index(b))))
            }
            Expr::Logic(op, a, b) => {
                let (a, b) = self.two(a, b, false);
                expr(ExprKind::Logic(*op, a, b))
            }
            Expr::Select(_, read, _) if self.is_own(read) => self.expr(read, bare),
            Expr::Select(condition, a, b) => {
                let (a, b) = self.two(a, b, bare);
                expr(ExprKind::Select(Box::new(self.expr(condition, false)), a, b))
            }
            Expr::Call(builtin, args) => {
                // Unconverted integer arguments would be index arithmetic, which is folded.
                expr(ExprKind::Apply(ident(builtin.name()), self.operands(args, false)))
            }
            Expr::Cast(dtype, a) => conversion(*dtype, self.expr(a, false)),
        }
    }

    fn read(&self, read: &Read) -> ast::Expr {
        let name = (self.tensor)(read.tensor);
        if read.subscripts.is_empty() {
            return expr(ExprKind::Name(name));
        }
        let subscripts = read.subscripts.iter().map(|subscript| self.index(subscript)).collect();
        expr(ExprKind::Apply(ident(&name), subscripts))
    }

    fn constant(&self, scalar: Scalar, bare: bool) -> ast::Expr {
        let dtype = scalar.dtype();
        let literal = match dtype {
            DType::Bool => return expr(ExprKind::Bool(scalar.as_integer() != 0)),
            dtype if dtype.is_float() => float(dtype, scalar.as_f64()),
            // Beyond the largest literal: prints the number that wraps around to it.
            DType::UInt64 if scalar.as_integer() > i128::from(i64::MAX) => {
                let below = scalar.as_integer() - (1i128 << 64);
                let difference =
                    ExprKind::Arith(ArithOp::Sub, Box::new(integer(0)), Box::new(integer(-below)));
                return expr(ExprKind::Apply(ident(dtype.name()), vec![expr(difference)]));
            }
            _ => integer(scalar.as_integer()),
        };
        if bare { literal } else { expr(ExprKind::Apply(ident(dtype.name()), vec![literal])) }
    }
}

/// Prints a zero divisor as an expression: a literal zero is rejected, a size expression that is
/// zero is not.
fn respell_zero(divisor: &mut ast::Expr) {
    match &mut divisor.kind {
        ExprKind::Int(0) => {
            let zeros = vec![integer(0), integer(0)];
            divisor.kind = ExprKind::Apply(ident(Builtin::Max.name()), zeros);
        }
        ExprKind::Apply(callee, args) if DType::from_name(&callee.name).is_some() => {
            args.iter_mut().for_each(respell_zero);
        }
        _ => {}
    }
}

fn add(sum: Option<ast::Expr>, op: ArithOp, term: ast::Expr) -> ast::Expr {
    match (sum, op) {
        (None, ArithOp::Sub) => negative(term),
        (None, _) => term,
        (Some(sum), op) => expr(ExprKind::Arith(op, Box::new(sum), Box::new(term))),
    }
}
