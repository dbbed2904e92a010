//! Printing and parsing are inverses, up to spans.

use tensorwright_random::SplitMix;

use super::*;
use crate::dtype::DType;
use crate::ops::{AssignOp, ReductionOp, UnaryOp};
use crate::source::{Source, Span};
use crate::syntax::ast::{Call, Ident, ScanClause, ScatterClause};
use crate::syntax::parse;

fn parsed(text: &str) -> Module {
    let (module, diagnostics) = parse(&Source::new("t", text));
    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:?}");
    module
}

/// Clears all spans, so that trees can be compared.
fn without_spans(module: &mut Module) {
    for function in &mut module.functions {
        function.span = Span::default();
        forget(std::iter::once(&mut function.name).chain(&mut function.params));
        expr_without_spans(&mut function.body);
    }
    for def in &mut module.defs {
        def.span = Span::default();
        forget(std::iter::once(&mut def.name).chain(&mut def.returns));
        for param in &mut def.params {
            param.span = Span::default();
            forget([&mut param.name]);
            for dim in &mut param.dims {
                match dim {
                    Dim::Name(name) => forget([name]),
                    Dim::Literal(_, span) => *span = Span::default(),
                }
            }
        }
        def.body.iter_mut().for_each(stmt_without_spans);
    }
}

fn forget<'a>(idents: impl IntoIterator<Item = &'a mut Ident>) {
    idents.into_iter().for_each(|ident| ident.span = Span::default());
}

fn stmt_without_spans(stmt: &mut Stmt) {
    match stmt {
        Stmt::Comprehension(c) => {
            c.span = Span::default();
            forget(std::iter::once(&mut c.target).chain(&mut c.indices));
            expr_without_spans(&mut c.rhs);
            if let Some(scan) = &mut c.scan {
                scan.span = Span::default();
                forget([&mut scan.var]);
                expr_without_spans(&mut scan.start);
            }
            for scatter in &mut c.scatter {
                scatter.span = Span::default();
                forget([&mut scatter.var]);
                expr_without_spans(&mut scatter.at);
            }
            for constraint in &mut c.constraints {
                constraint.span = Span::default();
                forget([&mut constraint.var]);
                expr_without_spans(&mut constraint.lo);
                expr_without_spans(&mut constraint.hi);
            }
        }
        Stmt::Call(call) => {
            call.span = Span::default();
            forget(std::iter::once(&mut call.callee).chain(&mut call.targets));
            call.args.iter_mut().for_each(expr_without_spans);
        }
    }
}

fn expr_without_spans(expr: &mut Expr) {
    expr.span = Span::default();
    match &mut expr.kind {
        ExprKind::DimOf(ident, _) => forget([ident]),
        ExprKind::Apply(ident, args) => {
            forget([ident]);
            args.iter_mut().for_each(expr_without_spans);
        }
        ExprKind::Unary(_, x) => expr_without_spans(x),
        ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
            expr_without_spans(a);
            expr_without_spans(b);
        }
        ExprKind::Select(a, b, c) => [a, b, c].into_iter().for_each(|x| expr_without_spans(x)),
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Name(_) => {}
    }
}

/// `text` prints as itself.
#[track_caller]
fn canonical(text: &str) {
    assert_eq!(print_module(&parsed(text)), text);
}

/// The right side of a statement, printed.
fn reprinted(expr: &str) -> String {
    let module = parsed(&format!("def f() -> (o) {{ o() = {expr} }}"));
    let Stmt::Comprehension(c) = &module.defs[0].body[0] else { panic!("{expr}") };
    print_expr(&c.rhs)
}

#[test]
fn definitions_print_as_they_are_written() {
    canonical(
        "def mm(float(M, K) A, const float(K, 3) 2B, int32 s) -> (C, D) {
  C(m, n) +=! A(m, k) * 2B(k, n) where k in 0:K
  D(m) max= C(m, n) + A.0
  x, y = f(C, 1.0)
  I = concat(C, D)
}

def g() -> (o) {
}
",
    );
}

#[test]
fn long_lines_are_broken() {
    let long = "a".repeat(60);
    canonical(&format!(
        "def f(\n    float(N) {long},\n    float(N) b{long}\n) -> (o) {{\n  \
         o(i) = {long}(i) * 2\n    where i in 0:{long}.0\n}}\n"
    ));
}

#[test]
fn long_right_sides_are_broken_before_operators() {
    let long = |name: char| name.to_string().repeat(35);
    let (a, b, c) = (long('a'), long('b'), long('c'));
    canonical(&format!(
        "def f() -> (o) {{
  o(i) = {a}(i) == 0 && {b}(i) == 0
      && {c}(i) == 0
      ? {a}(i)
      : {b}(i) - {c}(i)
    where i in 0:4
  o(i) = {a}(i) + {b}(i)
      - {c}(i)
}}
"
    ));
}

#[test]
fn parentheses_are_printed_where_they_are_needed() {
    for (text, printed) in [
        ("((a))+(b)", "a + b"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("(a+b)*c/(d*e)", "(a + b) * c / (d * e)"),
        ("-(a+b)", "-(a + b)"),
        ("-(-a)", "--a"),
        ("!(a&&b)||c", "!(a && b) || c"),
        ("a<b==c<d", "a < b == c < d"),
        ("a<(b==c)", "a < (b == c)"),
        ("(a?b:c)?d:e", "(a ? b : c) ? d : e"),
        ("a?(b?c:d):(e?f:g)", "a ? b ? c : d : e ? f : g"),
        ("(a?b:c)+1", "(a ? b : c) + 1"),
        ("exp((a))", "exp(a)"),
        ("1.0f+1e-5+2.+.5+1e300", "1.0 + 1e-5 + 2.0 + 0.5 + 1e300"),
        ("0x10+true", "16 + true"),
    ] {
        assert_eq!(reprinted(text), printed);
        assert_eq!(reprinted(printed), printed);
    }
}

#[test]
fn a_ternary_in_the_lower_end_of_a_range_keeps_its_parentheses() {
    canonical("def f() -> (o) {\n  o(i) = i where i in (a ? 0 : 1):a ? 2 : 3, j in 0 || 1:2\n}\n");
}

/// A generator of trees.
struct Random(SplitMix);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn several<T>(&mut self, least: usize, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.below(3)).map(|_| item(self)).collect()
    }

    fn ident(&mut self) -> Ident {
        let name = self.pick(&["a", "B", "in", "2LUT", "1e", "_", "whereabouts", "x1", "minimum"]);
        Ident { name: name.to_owned(), span: Span::default() }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        let kind = match self.below(if depth == 0 { 5 } else { 12 }) {
            0 => ExprKind::Int(self.next() >> self.below(64)),
            1 => ExprKind::Float(self.float()),
            2 => ExprKind::Bool(self.below(2) == 0),
            3 => ExprKind::Name(self.ident().name),
            4 => ExprKind::DimOf(self.ident(), self.below(9) as u32),
            5 => {
                let callee = self.pick(&["exp", "float", "A", "in", "min"]).to_owned();
                let callee = Ident { name: callee, span: Span::default() };
                ExprKind::Apply(callee, self.several(0, |r| r.expr(depth - 1)))
            }
            6 => ExprKind::Unary(self.pick(&[UnaryOp::Neg, UnaryOp::Not]), self.boxed(depth)),
            7 => {
                let ops = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Ge];
                ExprKind::Compare(self.pick(&ops), self.boxed(depth), self.boxed(depth))
            }
            8 => {
                let op = self.pick(&[LogicOp::And, LogicOp::Or]);
                ExprKind::Logic(op, self.boxed(depth), self.boxed(depth))
            }
            9 => ExprKind::Select(self.boxed(depth), self.boxed(depth), self.boxed(depth)),
            _ => {
                let ops = [ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Div, ArithOp::Rem];
                ExprKind::Arith(self.pick(&ops), self.boxed(depth), self.boxed(depth))
            }
        };
        Expr { kind, span: Span::default() }
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth - 1))
    }

    fn float(&mut self) -> f64 {
        let any = f64::from_bits(self.next() & !(1 << 63));
        if any.is_finite() { any } else { 1.0 }
    }

    fn stmt(&mut self) -> Stmt {
        if self.below(4) == 0 {
            let callee = Ident { name: "f".to_owned(), span: Span::default() };
            let targets = self.several(1, Self::ident);
            let args = self.several(0, |r| r.expr(2));
            return Stmt::Call(Call { targets, callee, args, span: Span::default() });
        }
        let reductions =
            [ReductionOp::Sum, ReductionOp::Product, ReductionOp::Min, ReductionOp::Max];
        let op = match self.below(3) {
            0 => AssignOp::Assign,
            n => AssignOp::Reduce { op: self.pick(&reductions), initialize: n == 1 },
        };
        Stmt::Comprehension(Comprehension {
            target: self.ident(),
            indices: self.several(0, Self::ident),
            op,
            position: matches!(
                op,
                AssignOp::Reduce { op: ReductionOp::Min | ReductionOp::Max, initialize: true }
            ) && self.below(2) == 0,
            rhs: self.expr(5),
            scan: (self.below(4) == 0).then(|| ScanClause {
                var: self.ident(),
                start: self.expr(2),
                span: Span::default(),
            }),
            scatter: match self.below(4) {
                0 => self.several(1, |r| ScatterClause {
                    var: r.ident(),
                    at: r.expr(2),
                    span: Span::default(),
                }),
                _ => Vec::new(),
            },
            constraints: self.several(0, |r| RangeConstraint {
                var: r.ident(),
                lo: r.expr(2),
                hi: r.expr(2),
                span: Span::default(),
            }),
            span: Span::default(),
        })
    }

    fn param(&mut self) -> Param {
        Param {
            is_const: self.below(2) == 0,
            dtype: self.pick(&DType::ALL),
            dims: self.several(0, |r| match r.below(2) {
                0 => Dim::Name(r.ident()),
                _ => Dim::Literal((r.next() >> 1) as i64, Span::default()),
            }),
            name: self.ident(),
            span: Span::default(),
        }
    }

    fn function(&mut self) -> Function {
        Function {
            name: self.ident(),
            params: self.several(1, Self::ident),
            body: self.expr(3),
            span: Span::default(),
        }
    }

    fn def(&mut self) -> Def {
        Def {
            name: self.ident(),
            params: self.several(0, Self::param),
            returns: self.several(1, Self::ident),
            body: self.several(0, Self::stmt),
            span: Span::default(),
        }
    }
}

#[test]
fn random_trees_survive_printing() {
    for seed in 0..3000 {
        let mut random = Random(SplitMix::new(seed));
        let module = Module {
            functions: random.several(0, Random::function),
            defs: random.several(0, Random::def),
        };
        let text = print_module(&module);
        let mut again = parsed(&text);
        without_spans(&mut again);
        assert_eq!(again, module, "seed {seed}\n{text}");
    }
}
