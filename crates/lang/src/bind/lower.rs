//! Lowers checked statements to program expressions, with sizes that are known or vary.

use super::proofs::{Proofs, nonaffine_value};
use super::shapes::Shapes;
use super::simplify::{self, boolean};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir;
use crate::ops::{ArithOp, UnaryOp};
use crate::program::{AxisId, Expr, Index, Location, Read, Scalar, TensorId};
use crate::source::Span;

/// The environment for lowering a statement. Tensors keep the numbers of their symbols.
pub(super) struct Lowering<'a> {
    pub(super) tensors: &'a [hir::Tensor],
    /// The number of tensors that are parameters.
    pub(super) params: usize,
    /// The integer scalars that have a value.
    pub(super) scalars: &'a [Option<i64>],
    pub(super) extents: Extents<'a>,
    /// Whether conditions that are constant for these sizes are folded, which decides what is read.
    pub(super) fold: bool,
}

/// The sizes of the definition, and the known shapes, which include all that the statement asks for.
#[derive(Clone, Copy)]
pub(super) enum Extents<'a> {
    /// Numbers.
    Known { sizes: &'a [i64], shapes: &'a Shapes<i64> },
    /// Functions of sizes that vary.
    Varying { sizes: &'a [Index], shapes: &'a Shapes<Index>, proofs: &'a Proofs<'a> },
}

impl Extents<'_> {
    fn size(&self, size: hir::SizeId) -> Index {
        match self {
            Extents::Known { sizes, .. } => Index::constant(sizes[size.0 as usize]),
            Extents::Varying { sizes, .. } => sizes[size.0 as usize].clone(),
        }
    }

    fn extent(&self, symbol: hir::Symbol, dimension: u32) -> Option<Index> {
        let dimension = dimension as usize;
        match self {
            Extents::Known { shapes, .. } => {
                shapes.of(symbol)?.get(dimension).copied().map(Index::constant)
            }
            Extents::Varying { shapes, .. } => shapes.of(symbol)?.get(dimension).cloned(),
        }
    }
}

/// The use of index arithmetic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A subscript or the end of a range: affine. Scalars have values.
    Subscript,
    /// A position of a scatter: affine, and integer scalars without a value are read at run time.
    Position,
    /// A value or a condition: as a position, and not always affine.
    Value,
}

type Lowered<T> = Result<T, Diagnostic>;

impl Lowering<'_> {
    /// A constant.
    pub(super) fn constant(&self, int: &hir::Int, span: Span) -> Lowered<i64> {
        self.extent(int, span)?.as_constant().ok_or_else(|| overflow(span))
    }

    /// A number, or a function of sizes.
    pub(super) fn extent(&self, int: &hir::Int, span: Span) -> Lowered<Index> {
        self.int(int, span, Role::Subscript)
    }

    /// Index arithmetic that may depend on data.
    pub(super) fn index(&self, int: &hir::Int, span: Span) -> Lowered<Index> {
        self.int(int, span, Role::Position)
    }

    /// The facts about sizes that vary.
    fn proofs(&self) -> Option<&Proofs<'_>> {
        match &self.extents {
            Extents::Known { .. } => None,
            Extents::Varying { proofs, .. } => Some(proofs),
        }
    }

    fn dtype(&self, symbol: TensorId) -> DType {
        self.tensors[symbol.0 as usize].dtype
    }

    /// Index arithmetic in normal form.
    fn int(&self, int: &hir::Int, span: Span, role: Role) -> Lowered<Index> {
        match int {
            hir::Int::Literal(value) => Ok(Index::constant(*value)),
            hir::Int::Size(size) => Ok(self.extents.size(*size)),
            hir::Int::DimOf(symbol, dim) => {
                self.extents.extent(*symbol, *dim).ok_or_else(|| overflow(span))
            }
            hir::Int::Var(var) => Ok(Index::axis(AxisId(var.0))),
            hir::Int::Scalar(symbol, span) => match self.scalars[symbol.0 as usize] {
                Some(value) => Ok(Index::constant(value)),
                None if role != Role::Subscript => Ok(Index::value(Expr::Read(Read {
                    tensor: TensorId(symbol.0),
                    subscripts: Vec::new(),
                    checked: Vec::new(),
                    place: Location(*span),
                }))),
                None => Err(self.missing_scalar(*symbol, *span)),
            },
            hir::Int::Arith(op, lhs, rhs, span) => {
                let (lhs, rhs) = (self.int(lhs, *span, role)?, self.int(rhs, *span, role)?);
                self.arith(*op, lhs, rhs, *span, role)
            }
            hir::Int::Min(a, b) => Ok(self.int(a, span, role)?.min(self.int(b, span, role)?)),
            hir::Int::Max(a, b) => Ok(self.int(a, span, role)?.max(self.int(b, span, role)?)),
            hir::Int::Value(value) => Ok(match self.unwidened(self.expr(value)?) {
                Expr::Index(index, DType::Int64) => index,
                Expr::Const(scalar) if i64::try_from(scalar.as_integer()).is_ok() => {
                    Index::constant(scalar.as_integer() as i64)
                }
                value => match self.proofs() {
                    Some(proofs) => self.value_of_sizes(proofs, value, span, role)?,
                    None => Index::value(value),
                },
            }),
        }
    }

    /// A value that may depend on sizes alone, and is then a number once they are known.
    fn value_of_sizes(
        &self,
        proofs: &Proofs<'_>,
        value: Expr,
        span: Span,
        role: Role,
    ) -> Lowered<Index> {
        if let Expr::Index(index, dtype) = &value
            && proofs.is_of_sizes(index)
            && let Some((lo, hi)) = dtype.integer_range()
            && proofs.interval(index).within(lo, hi + 1)
        {
            return Ok(index.clone());
        }
        let mut has_data = false;
        value.walk_reads(&mut |_| has_data = true);
        let is_axis = |axis: AxisId| axis.size().is_none();
        let is_size = |axis: AxisId| axis.size().is_some();
        if role != Role::Value && !has_data && !value.mentions(&is_axis) && value.mentions(&is_size)
        {
            return Err(nonaffine_value(proofs, &value, span));
        }
        Ok(Index::value(value))
    }

    /// Drops conversions to `int64` that change nothing.
    fn unwidened(&self, value: Expr) -> Expr {
        match value {
            Expr::Cast(DType::Int64, inner) if self.is_index_type(&inner) => self.unwidened(*inner),
            value => value,
        }
    }

    fn is_index_type(&self, value: &Expr) -> bool {
        let dtype = value.dtype(&|symbol| self.dtype(symbol));
        dtype.is_integer() && dtype != DType::UInt64
    }

    fn missing_scalar(&self, symbol: hir::Symbol, span: Span) -> Diagnostic {
        let tensor = &self.tensors[symbol.0 as usize];
        let name = &tensor.name;
        if symbol.0 as usize >= self.params {
            let message = format!("`{name}` is computed, and its value is needed before that");
            return Diagnostic::new(Code::MissingScalar, span, message)
                .here("needed here to infer ranges")
                .label(tensor.span, "computed here")
                .help("use a parameter such as `int s` or a constant in its place");
        }
        let message = format!("the scalar `{name}` shapes the program and has no value");
        Diagnostic::new(Code::MissingScalar, span, message)
            .here("needed here to infer ranges")
            .label(tensor.span, "declared here")
            .help(format!("give it a value together with the sizes, for example `{name}=2`"))
    }

    fn arith(&self, op: ArithOp, lhs: Index, rhs: Index, span: Span, role: Role) -> Lowered<Index> {
        let result = match (op, lhs.as_constant(), rhs.as_constant()) {
            (ArithOp::Add, ..) => lhs.add(&rhs),
            (ArithOp::Sub, ..) => lhs.sub(&rhs),
            (ArithOp::Mul, Some(factor), _) => rhs.scale(factor),
            (ArithOp::Mul, _, Some(factor)) => lhs.scale(factor),
            (ArithOp::Div | ArithOp::Rem, _, Some(divisor)) if divisor <= 0 => {
                return Err(bad_divisor(divisor, span));
            }
            (ArithOp::Div, _, Some(divisor)) => lhs.div(divisor),
            (ArithOp::Rem, _, Some(divisor)) => Some(lhs.rem(divisor)),
            (ArithOp::Mul | ArithOp::Div | ArithOp::Rem, ..) => {
                let is_affine = role != Role::Value;
                match self.proofs().map(|proofs| proofs.nonaffine(op, &lhs, &rhs, span, is_affine))
                {
                    Some(Err(error)) => return Err(error),
                    Some(Ok(Some(product))) => Some(product),
                    Some(Ok(None)) | None => {
                        let (lhs, rhs) =
                            (self.value_of(lhs, DType::Int64), self.value_of(rhs, DType::Int64));
                        Some(Index::value(Expr::Arith(op, Box::new(lhs), Box::new(rhs))))
                    }
                }
            }
        };
        let is_small = |index: &Index| match self.proofs() {
            None => index.is_small(),
            Some(proofs) => proofs.is_small(index),
        };
        result.filter(is_small).ok_or_else(|| overflow(span))
    }

    /// Converts an index expression to a value of a type.
    fn value_of(&self, index: Index, dtype: DType) -> Expr {
        if let Some(value) = index.as_constant() {
            return Expr::Const(constant(dtype, i128::from(value)));
        }
        match index.into_value() {
            Ok(value) if value.dtype(&|symbol| self.dtype(symbol)) == dtype => value,
            Ok(value) => Expr::Cast(dtype, Box::new(value)),
            Err(index) => Expr::Index(index, dtype),
        }
    }

    pub(super) fn expr(&self, expr: &hir::Expr) -> Lowered<Expr> {
        Ok(match expr {
            hir::Expr::Float(value, dtype) => {
                Expr::Const(Scalar::float(dtype.unwrap_or(DType::Float), *value))
            }
            hir::Expr::Int(int, dtype, span) => {
                let index = self.int(int, *span, Role::Value)?;
                self.value_of(index, dtype.unwrap_or(DType::Int32))
            }
            hir::Expr::Bool(value) => boolean(*value),
            hir::Expr::Read(symbol, subscripts, span) => {
                if let Some(value) = self.scalars[symbol.0 as usize] {
                    let dtype = self.tensors[symbol.0 as usize].dtype;
                    return Ok(Expr::Const(constant(dtype, i128::from(value))));
                }
                let subscript = |subscript| self.int(subscript, *span, Role::Subscript);
                let subscripts: Lowered<Vec<Index>> = subscripts.iter().map(subscript).collect();
                Expr::Read(Read {
                    tensor: TensorId(symbol.0),
                    subscripts: subscripts?,
                    checked: Vec::new(),
                    place: Location(*span),
                })
            }
            hir::Expr::Unary(UnaryOp::Neg, a) => match self.expr(a)? {
                Expr::Const(scalar) if scalar.dtype().is_float() => {
                    Expr::Const(Scalar::float(scalar.dtype(), -scalar.as_f64()))
                }
                Expr::Const(scalar) => {
                    Expr::Const(Scalar::integer(scalar.dtype(), -scalar.as_integer()))
                }
                a => Expr::Unary(UnaryOp::Neg, Box::new(a)),
            },
            hir::Expr::Unary(UnaryOp::Not, a) => match self.expr(a)? {
                Expr::Const(scalar) => boolean(scalar.as_integer() == 0),
                a => Expr::Unary(UnaryOp::Not, Box::new(a)),
            },
            hir::Expr::Arith(op, a, b) => simplify::arith(*op, self.expr(a)?, self.expr(b)?),
            hir::Expr::Compare(op, a, b) => Expr::Compare(*op, self.boxed(a)?, self.boxed(b)?),
            hir::Expr::CompareInt(op, a, b) => {
                let span = Span::default();
                let (a, b) = (self.int(a, span, Role::Value)?, self.int(b, span, Role::Value)?);
                match self.proofs().and_then(|proofs| proofs.decides(*op, &a, &b)) {
                    Some(holds) => boolean(holds),
                    None if self.fold => simplify::compare_index(*op, a, b),
                    None => Expr::CompareIndex(*op, a, b),
                }
            }
            hir::Expr::Logic(op, a, b) => simplify::logic(*op, self.expr(a)?, self.expr(b)?),
            hir::Expr::Select(c, a, b) => {
                simplify::select(self.expr(c)?, self.expr(a)?, self.expr(b)?)
            }
            hir::Expr::Call(builtin, args) => {
                let args: Lowered<Vec<Expr>> = args.iter().map(|arg| self.expr(arg)).collect();
                Expr::Call(*builtin, args?)
            }
            hir::Expr::Cast(dtype, a) => Expr::Cast(*dtype, self.boxed(a)?),
        })
    }

    fn boxed(&self, expr: &hir::Expr) -> Lowered<Box<Expr>> {
        Ok(Box::new(self.expr(expr)?))
    }
}

pub(super) fn constant(dtype: DType, value: i128) -> Scalar {
    if dtype.is_float() {
        Scalar::float(dtype, value as f64)
    } else {
        Scalar::integer(dtype, value)
    }
}

fn bad_divisor(divisor: i64, span: Span) -> Diagnostic {
    if divisor == 0 {
        return Diagnostic::new(Code::DivisionByZero, span, "division by zero")
            .here("the divisor is zero for these sizes");
    }
    let message = format!("the divisor is {divisor}, and must be positive in index arithmetic");
    Diagnostic::new(Code::NonPositiveDivisor, span, message)
        .here("too small for these sizes")
        .help("write `-(a / b)` for a negative divisor `-b`")
}

fn overflow(span: Span) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, span, "this index arithmetic overflows 64 bits")
        .here("too large for these sizes")
        .help("use smaller sizes or factors")
}
