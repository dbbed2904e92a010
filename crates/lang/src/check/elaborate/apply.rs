//! Resolves `name(arguments)`: a conversion, a scalar function, or a tensor read.

use super::{Elaborator, mismatch};
use crate::builtin::{Builtin, Signature};
use crate::check::coerce;
use crate::check::scope::Entity;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{Expr, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, Ident};
use crate::syntax::prelude;

use super::int::{index_builtin, is_index_builtin};

impl<'a> Elaborator<'_, 'a> {
    pub(super) fn apply(
        &mut self,
        expr: &'a ast::Expr,
        callee: &'a Ident,
        args: &'a [ast::Expr],
    ) -> Option<(Expr, Ty)> {
        if let Some(dtype) = DType::from_name(&callee.name) {
            let [operand] = args else {
                self.argument_count(callee, 1, args.len());
                return None;
            };
            return Some((self.convert(dtype, operand)?, Ty::Typed(dtype)));
        }
        match self.scope.names.get(callee.name.as_str()) {
            Some(Entity::Tensor(symbol)) => {
                let symbol = *symbol;
                return self.read(symbol, callee.span, expr.span, args);
            }
            Some(Entity::Size(_)) => {
                let message = format!("`{}` is a size, not a tensor", callee.name);
                self.report(
                    Diagnostic::new(Code::NotATensor, callee.span, message)
                        .here("a size has no subscripts")
                        .help(format!("write `{}` alone for its value", callee.name)),
                );
                return None;
            }
            None => {}
        }
        match Builtin::from_name(&callee.name) {
            Some(builtin) => self.call(builtin, callee, args, expr.span),
            None => {
                let diagnostic = self.unknown_function(callee);
                self.report(diagnostic);
                None
            }
        }
    }

    fn unknown_function(&self, callee: &Ident) -> Diagnostic {
        let name = callee.name.as_str();
        if self.var(name).is_some() {
            let message = format!("`{name}` is an index variable, not a tensor");
            return Diagnostic::new(Code::NotATensor, callee.span, message)
                .here("an index variable has no subscripts");
        }
        if self.scope.defs.contains_key(name) {
            let message = format!("`{name}` is a `def` and cannot be part of an expression");
            return Diagnostic::new(Code::UnknownFunction, callee.span, message)
                .here("not a function of numbers")
                .help(format!(
                    "call it in a statement of its own, `t = {name}(...)`, then read `t(...)`"
                ));
        }
        let message = format!("there is no tensor or function `{name}`");
        let diagnostic = Diagnostic::new(Code::UnknownFunction, callee.span, message);
        if let Some(help) = reduction_help(name) {
            return diagnostic.here("not known").help(help);
        }
        let tensors = self.scope.tensors.iter().map(|tensor| tensor.name.as_str());
        let functions = prelude().iter().map(|function| function.name.name.as_str());
        let known =
            tensors.chain(Builtin::ALL.iter().map(|builtin| builtin.name())).chain(functions);
        match self.scope.suggest(name, known) {
            Some(near) => diagnostic
                .here("not known")
                .help(format!("did you mean `{near}`?"))
                .fix(callee.span, near),
            None => diagnostic.here("not known").help(
                "tensors are parameters or stand on the left of an earlier statement; \
                 the functions are listed in the language reference",
            ),
        }
    }

    fn argument_count(&mut self, callee: &Ident, expected: usize, found: usize) {
        let plural = if expected == 1 { "" } else { "s" };
        let message =
            format!("`{}` takes {expected} argument{plural}, and {found} are given", callee.name);
        let message = message.replace("and 1 are", "and 1 is");
        let mut diagnostic = Diagnostic::new(Code::WrongArgumentCount, callee.span, message)
            .here(format!("takes {expected} argument{plural}"));
        if matches!(callee.name.as_str(), "min" | "max") && found > expected {
            let name = &callee.name;
            diagnostic = diagnostic.help(format!("nest it: `{name}(a, {name}(b, c))`"));
        }
        self.report(diagnostic);
    }

    fn convert(&mut self, dtype: DType, operand: &'a ast::Expr) -> Option<Expr> {
        let (value, ty) = self.value(operand)?;
        match ty {
            Ty::Typed(from) if from == dtype => Some(value),
            Ty::Typed(_) => Some(Expr::Cast(dtype, Box::new(value))),
            Ty::AnyInt if !dtype.is_integer() && dtype != DType::Bool => {
                // An explicitly converted quotient is unambiguous: `float(i / 2)`.
                coerce::settle(self.scope, value, dtype, operand.span)
            }
            Ty::AnyInt if dtype == DType::Bool => {
                let value = coerce::settle(self.scope, value, DType::Int64, operand.span)?;
                Some(Expr::Cast(dtype, Box::new(value)))
            }
            Ty::AnyInt => coerce::settle(self.scope, value, dtype, operand.span),
            Ty::AnyFloat | Ty::Unknown if dtype.is_float() => {
                coerce::settle(self.scope, value, dtype, operand.span)
            }
            Ty::AnyFloat | Ty::Unknown => {
                let value = coerce::settle(self.scope, value, DType::Double, operand.span)?;
                Some(Expr::Cast(dtype, Box::new(value)))
            }
        }
    }

    fn call(
        &mut self,
        builtin: Builtin,
        callee: &'a Ident,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<(Expr, Ty)> {
        if args.len() != builtin.arity() {
            self.argument_count(callee, builtin.arity(), args.len());
            return None;
        }
        let values: Vec<_> = args.iter().map(|arg| self.value(arg)).collect();
        let mut values = values.into_iter().collect::<Option<Vec<(Expr, Ty)>>>()?;
        for ((_, ty), arg) in values.iter().zip(args) {
            if let (Some(operator), Ty::Typed(DType::Bool)) = (builtin.operator(), *ty) {
                self.report(bits_of_bool(builtin, operator, arg.span));
                return None;
            }
            self.numeric(*ty, arg.span)?;
        }
        if is_index_builtin(builtin)
            && values.iter().all(|(value, _)| matches!(value, Expr::Int(_, None, _)))
        {
            let ints = values.into_iter().filter_map(|(value, _)| match value {
                Expr::Int(int, ..) => Some(int),
                _ => None,
            });
            let int = index_builtin(builtin, ints.collect())?;
            return Some((Expr::Int(int, None, span), Ty::AnyInt));
        }
        let mut ty = values.iter().map(|(_, ty)| *ty).reduce(Ty::join)?;
        if builtin.signature() == Signature::Integer {
            if !ty.is_integer() {
                self.report(bits_of_fraction(builtin, span));
                return None;
            }
            if ty == Ty::AnyInt {
                ty = Ty::Typed(DType::Int64);
            }
        } else if builtin.signature() != Signature::Numeric {
            if ty.is_integer() && ty != Ty::AnyInt {
                let message = format!("`{}` is a function of floating-point numbers", callee.name);
                self.report(
                    Diagnostic::new(Code::NeedsFloat, span, message)
                        .here(format!("the argument is {}", coerce::describe(ty)))
                        .help(format!("convert it: `{}(float(...))`", callee.name)),
                );
                return None;
            }
            if ty == Ty::AnyInt {
                ty = Ty::AnyFloat;
            }
        }
        for ((value, from), arg) in values.iter_mut().zip(args) {
            match ty {
                Ty::Typed(dtype) => {
                    if let Ty::Typed(other) = *from
                        && other != dtype
                    {
                        let what = format!("the arguments of `{}`", callee.name);
                        let first = (dtype, &args[0]);
                        let diagnostic = mismatch(first, (other, arg), &what);
                        self.report(diagnostic);
                        return None;
                    }
                    let taken = std::mem::replace(value, Expr::Bool(false));
                    *value = coerce::coerce(self.scope, taken, *from, dtype, arg.span)?;
                }
                Ty::AnyFloat => coerce::no_integer_division(self.scope, value, *from, arg.span)?,
                _ => {}
            }
        }
        let args = values.into_iter().map(|(value, _)| value).collect();
        let result =
            if builtin.signature() == Signature::FloatTest { Ty::Typed(DType::Bool) } else { ty };
        if builtin.signature() == Signature::FloatTest && ty == Ty::AnyFloat {
            let call = coerce::settle(self.scope, Expr::Call(builtin, args), DType::Float, span)?;
            return Some((call, result));
        }
        Some((Expr::Call(builtin, args), result))
    }
}

/// `(a > 0) & (b > 0)`
fn bits_of_bool(builtin: Builtin, operator: &str, span: Span) -> Diagnostic {
    let instead = match builtin {
        Builtin::BitAnd => "conditions are joined by `&&`",
        Builtin::BitOr => "conditions are joined by `||`",
        Builtin::BitXor => "conditions differ where `a != b`",
        Builtin::BitNot => "a condition is negated by `!`",
        _ => "convert it: `int32(...)`",
    };
    Diagnostic::new(Code::NotNumeric, span, format!("`{operator}` is for integers"))
        .here("this is a `bool`")
        .help(instead)
}

/// `x ^ 2`
fn bits_of_fraction(builtin: Builtin, span: Span) -> Diagnostic {
    let operator = builtin.operator().unwrap_or(builtin.name());
    let instead = match builtin {
        Builtin::BitXor => "powers are written `pow(x, y)`",
        Builtin::ShiftLeft => "multiply by a power of two: `x * exp2(y)`",
        Builtin::ShiftRight => "divide by a power of two: `x * exp2(-y)`",
        _ => "convert to an integer first: `int32(...)`",
    };
    Diagnostic::new(Code::NeedsInteger, span, format!("`{operator}` is for integers"))
        .here("these are fractions")
        .help(instead)
}

/// The replacement for whole-tensor functions of array libraries.
pub(in crate::check) fn reduction_help(name: &str) -> Option<&'static str> {
    Some(match name {
        "sum" | "reduce_sum" | "dot" | "matmul" | "einsum" => {
            "sums are statements: `s() +=! A(i)`, or `C(m,n) +=! A(m,k) * B(k,n)` over `k`"
        }
        "mean" | "average" | "avg" => {
            "means are statements: `s() +=! A(i)`, then `m() = s / N` with the number of terms"
        }
        "prod" | "product" => "products are statements: `p() *=! A(i)`",
        "amax" | "maximum" | "any" => {
            "maxima are statements: `m() max=! A(i)`; `max(a, b)` is for two numbers"
        }
        "amin" | "minimum" | "all" => {
            "minima are statements: `m() min=! A(i)`; `min(a, b)` is for two numbers"
        }
        "argmax" | "argmin" => {
            "positions are statements: `at(m) argmax=! A(m,n)`, or `argmin=!`, over `n`"
        }
        "scatter" | "scatter_add" | "index_add" | "bincount" | "histogram" => {
            "data say where values go in a clause: `count(b) +=! 1 scatter b = bin(i) where b in 0:B`"
        }
        "gather" | "take" | "embedding" | "index_select" => {
            "a subscript may be read from a tensor: `y(i,d) = table(token(i), d)`"
        }
        "cumsum" | "cumprod" | "cummax" | "scan" => {
            "what depends on the element before is a recurrence: `y(t) = y(t-1) + x(t) scan t from 0`"
        }
        "softmax" => {
            "it is three statements: `m(i) max=! x(i,j)`, `e(i,j) = exp(x(i,j) - m(i))`, `s(i) +=! e(i,j)`; then `e(i,j) / s(i)`"
        }
        "if" => "choose by a condition: `condition ? a : b`",
        "not" => "a condition is negated by `!`: `!(a < b)`",
        "cat" | "stack" => "`concat` is a statement of its own: `C = concat(A, B)`",
        _ => return None,
    })
}
