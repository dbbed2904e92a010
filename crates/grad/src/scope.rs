//! Name resolution and value types of an inlined definition.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::builtin::{Builtin, CONSTANTS, Signature};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

/// A tensor of an inlined definition.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    /// The symbolic extents, where known.
    pub(crate) shape: Vec<Option<Expr>>,
}

/// The names of an inlined definition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) tensors: BTreeMap<String, Tensor>,
    pub(crate) sizes: BTreeSet<String>,
    /// Names that are in use.
    taken: BTreeSet<String>,
}

/// The meaning of `name(arguments)`.
pub(crate) enum Application<'e> {
    /// A read of a tensor (of a scalar, without subscripts).
    Read(&'e str, &'e [Expr]),
    /// A scalar function.
    Call(Builtin, &'e [Expr]),
    /// A conversion.
    Cast(DType, &'e Expr),
}

/// The type of a value, as far as derivatives need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Bool,
    /// An integer, with or without a type.
    Int,
    /// An untyped floating-point literal.
    AnyFloat,
    /// A number of a floating-point type.
    Float(DType),
}

impl ValueKind {
    fn join(self, other: ValueKind) -> ValueKind {
        match (self, other) {
            (ValueKind::Float(_), _) => self,
            (_, ValueKind::Float(_)) => other,
            (ValueKind::AnyFloat, _) | (_, ValueKind::AnyFloat) => ValueKind::AnyFloat,
            _ => self,
        }
    }

    fn of(dtype: DType) -> ValueKind {
        match dtype {
            DType::Bool => ValueKind::Bool,
            dtype if dtype.is_float() => ValueKind::Float(dtype),
            _ => ValueKind::Int,
        }
    }
}

impl Scope {
    /// A fresh name similar to this one; it is then taken.
    pub(crate) fn fresh(&mut self, like: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{like}_{number}"));
        let free = |name: &String| self.is_free(name);
        let found = std::iter::once(like.to_owned()).chain(numbered).find(free);
        let name = found.unwrap_or_default();
        self.take(&name);
        name
    }

    /// Marks a name as used.
    pub(crate) fn take(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// Whether a name is unused.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        !self.taken.contains(name) && !is_reserved(name)
    }

    /// The tensor of a name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The element type of a tensor.
    pub(crate) fn dtype(&self, name: &str) -> DType {
        self.tensor(name).map_or(DType::Float, |tensor| tensor.dtype)
    }

    /// Whether a bare name is an index variable.
    pub(crate) fn is_variable(&self, name: &str) -> bool {
        !self.tensors.contains_key(name)
            && !self.sizes.contains(name)
            && !CONSTANTS.iter().any(|(constant, _)| *constant == name)
    }

    /// Whether the language allows a name for a variable.
    pub(crate) fn may_be_variable(&self, name: &str) -> bool {
        !is_reserved(name)
    }

    /// Resolves a name or an application; `None` for variables, sizes and constants.
    pub(crate) fn applied<'e>(&self, expr: &'e Expr) -> Option<Application<'e>> {
        match &expr.kind {
            ExprKind::Name(name) if self.tensors.contains_key(name) => {
                Some(Application::Read(name, &[]))
            }
            ExprKind::Apply(callee, args) if self.tensors.contains_key(&callee.name) => {
                Some(Application::Read(&callee.name, args))
            }
            ExprKind::Apply(callee, args) => match (DType::from_name(&callee.name), &args[..]) {
                (Some(dtype), [arg]) => Some(Application::Cast(dtype, arg)),
                _ => Some(Application::Call(Builtin::from_name(&callee.name)?, args)),
            },
            _ => None,
        }
    }

    /// The kind of a value.
    pub(crate) fn kind(&self, expr: &Expr) -> ValueKind {
        let joined = |args: &[Expr]| args.iter().map(|arg| self.kind(arg)).reduce(ValueKind::join);
        match (&expr.kind, self.applied(expr)) {
            (_, Some(Application::Read(name, _))) => {
                self.tensor(name).map_or(ValueKind::Int, |tensor| ValueKind::of(tensor.dtype))
            }
            (_, Some(Application::Cast(dtype, _))) => ValueKind::of(dtype),
            (_, Some(Application::Call(builtin, args))) => match builtin.signature() {
                Signature::FloatTest => ValueKind::Bool,
                Signature::Numeric | Signature::Integer => joined(args).unwrap_or(ValueKind::Int),
                Signature::Float => {
                    joined(args).unwrap_or(ValueKind::AnyFloat).join(ValueKind::AnyFloat)
                }
            },
            (ExprKind::Name(name), None) => match CONSTANTS.iter().any(|(c, _)| c == name) {
                true => ValueKind::AnyFloat,
                false => ValueKind::Int,
            },
            (ExprKind::Float(_), _) => ValueKind::AnyFloat,
            (ExprKind::Bool(_) | ExprKind::Compare(..) | ExprKind::Logic(..), _) => ValueKind::Bool,
            (ExprKind::Unary(_, a), _) => self.kind(a),
            (ExprKind::Arith(_, a, b) | ExprKind::Select(_, a, b), _) => {
                self.kind(a).join(self.kind(b))
            }
            (ExprKind::Int(_) | ExprKind::DimOf(..) | ExprKind::Apply(..), _) => ValueKind::Int,
        }
    }
}

fn is_reserved(name: &str) -> bool {
    DType::from_name(name).is_some()
        || Builtin::from_name(name).is_some()
        || CONSTANTS.iter().any(|(constant, _)| *constant == name)
        || ["def", "where", "const", "true", "false", "in", "concat"].contains(&name)
}
