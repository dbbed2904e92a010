//! Substitutes the solutions of subscript equations for index variables.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ArithOp;
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::bounds::{Bounds, Ranges};
use crate::build;
use crate::poly::{IndexSum, Poly};
use crate::scope::{Application, Scope, ValueKind};
use crate::tree;

/// The solution for a variable: `numerator`, or `numerator / divisor` where the division is exact.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) var: String,
    /// Whether it was on the left side of its statement.
    pub(crate) spatial: bool,
    pub(crate) numerator: Poly,
    pub(crate) divisor: Option<Poly>,
}

/// A subscript and the index that it equals.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptEquality {
    pub(crate) subscript: Poly,
    pub(crate) index: Poly,
}

/// Substitutes solutions for variables.
pub(crate) struct Substitute<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) ranges: &'a Ranges,
    pub(crate) solutions: &'a [Solution],
    pub(crate) known: &'a [SubscriptEquality],
    /// The type to which an index variable is converted when it is used as a floating-point value.
    pub(crate) dtype: DType,
}

impl Substitute<'_> {
    fn is_concerned(&self, expr: &Expr) -> bool {
        self.solutions.iter().any(|solution| tree::mentions(expr, &solution.var))
    }

    /// A value or a condition.
    pub(crate) fn value(&self, expr: &Expr) -> Expr {
        if !self.is_concerned(expr) {
            return expr.clone();
        }
        match (self.scope.applied(expr), &expr.kind) {
            (Some(Application::Read(name, subscripts)), _) => {
                build::apply(name, subscripts.iter().map(|s| self.index(s)).collect())
            }
            (Some(Application::Cast(dtype, arg)), _) => {
                build::apply(dtype.name(), vec![self.side(arg)])
            }
            (_, ExprKind::Compare(op, a, b)) => build::compare(*op, self.side(a), self.side(b)),
            _ if self.scope.kind(expr) == ValueKind::Int => self.fraction(expr),
            _ => tree::map_children(expr, &mut |child| self.value(child)),
        }
    }

    /// The operand of a comparison or conversion: integers stay index arithmetic.
    fn side(&self, expr: &Expr) -> Expr {
        match self.scope.kind(expr) {
            ValueKind::Int => self.index(expr),
            _ => self.value(expr),
        }
    }

    /// Index arithmetic as a floating-point value: a rounding integer quotient must be converted
    /// explicitly.
    fn fraction(&self, expr: &Expr) -> Expr {
        let index = self.index(expr);
        if tree::rounds(&index) { build::apply(self.dtype.name(), vec![index]) } else { index }
    }

    /// Index arithmetic.
    pub(crate) fn index(&self, expr: &Expr) -> Expr {
        if !self.is_concerned(expr) {
            return expr.clone();
        }
        if let Some(renamed) = self.renamed(expr) {
            return renamed;
        }
        let sum = Poly::of(expr);
        for SubscriptEquality { subscript, index } in self.known {
            let Some(difference) = sum.minus(subscript) else { continue };
            if !self.solutions.iter().any(|solution| difference.mentions(&solution.var))
                && let Some(equal) = index.plus(&difference)
            {
                return equal.to_expr();
            }
        }
        self.poly(&sum).map_or_else(|| expr.clone(), |sum| sum.to_expr())
    }

    /// The original expression, if only variables were renamed.
    fn renamed(&self, expr: &Expr) -> Option<Expr> {
        let mut concerned = self.solutions.iter().filter(|s| tree::mentions(expr, &s.var));
        let is_name = |solution: &Solution| {
            solution.divisor.is_none() && build::as_name(&solution.numerator.to_expr()).is_some()
        };
        concerned.all(is_name).then(|| {
            tree::rename(expr, &|name| {
                let solution = self.solutions.iter().find(|solution| solution.var == name)?;
                build::as_name(&solution.numerator.to_expr()).map(str::to_owned)
            })
        })
    }

    /// A sum of products.
    pub(crate) fn poly(&self, sum: &Poly) -> Option<Poly> {
        let mut result = Poly::default();
        for term in sum.terms() {
            let mut product = Poly::constant(term.coefficient);
            let mut exact: Vec<&Solution> = Vec::new();
            for atom in &term.atoms {
                let name = build::as_name(&atom.expr);
                let solution = self.solutions.iter().find(|s| Some(s.var.as_str()) == name);
                let factor = match solution {
                    Some(solution) if solution.divisor.is_some() => {
                        exact.push(solution);
                        continue;
                    }
                    Some(solution) => solution.numerator.clone(),
                    None => self.atom(&atom.expr)?,
                };
                product = product.times(&factor)?;
            }
            for solution in exact {
                product = times_quotient(&product, solution)?;
            }
            result = result.plus(&product)?;
        }
        Some(result)
    }

    /// An atom.
    fn atom(&self, expr: &Expr) -> Option<Poly> {
        if !self.is_concerned(expr) {
            return Some(Poly::atom(expr.clone()));
        }
        match &expr.kind {
            ExprKind::Arith(op @ (ArithOp::Div | ArithOp::Rem), a, b) => {
                let (a, b) = (self.poly(&Poly::of(a))?, self.poly(&Poly::of(b))?);
                match op {
                    ArithOp::Div => self.quotient(&a, &b),
                    _ => self.remainder(&a, &b),
                }
            }
            _ => match self.scope.applied(expr) {
                Some(Application::Read(..) | Application::Cast(..)) => {
                    Some(Poly::atom(self.value(expr)))
                }
                _ => Some(Poly::atom(tree::map_children(expr, &mut |child| self.index(child)))),
            },
        }
    }

    fn bounds(&self) -> Bounds<'_> {
        Bounds { scope: self.scope, ranges: self.ranges }
    }

    /// `a / b`, rounded down: multiples of `b` come out of it.
    pub(crate) fn quotient(&self, a: &Poly, b: &Poly) -> Option<Poly> {
        let (multiple, rest) = a.split_by(b);
        if rest.terms().is_empty() || self.bounds().is_below(&rest, b) {
            return Some(multiple);
        }
        if multiple.terms().is_empty() {
            return Some(Poly::atom(build::div(a.to_expr(), b.to_expr())));
        }
        multiple.plus(&Poly::atom(build::div(rest.to_expr(), b.to_expr())))
    }

    /// `a % b`: multiples of `b` vanish.
    pub(crate) fn remainder(&self, a: &Poly, b: &Poly) -> Option<Poly> {
        let (_, rest) = a.split_by(b);
        if rest.terms().is_empty() || self.bounds().is_below(&rest, b) {
            return Some(rest);
        }
        Some(Poly::atom(build::arith(ArithOp::Rem, rest.to_expr(), b.to_expr())))
    }
}

/// A product times a variable that is an exact quotient: `s * ((x - k) / s)` is `x - k`.
fn times_quotient(product: &Poly, solution: &Solution) -> Option<Poly> {
    let Solution { numerator, divisor, .. } = solution;
    let divisor = divisor.as_ref()?;
    let (multiple, rest) = product.split_by(divisor);
    let quotient = Poly::atom(build::div(numerator.to_expr(), divisor.to_expr()));
    multiple.times(numerator)?.plus(&rest.times(&quotient)?)
}
