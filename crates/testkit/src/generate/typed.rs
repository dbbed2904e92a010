//! Element types, and typed tensors and operands.

use crate::Rng;

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Signed(u8),
    Unsigned(u8),
    Half,
    BFloat16,
    Float,
    Double,
}

const TYPES: [Type; 18] = [
    // `float` more often, as in real programs.
    Type::Float,
    Type::Float,
    Type::Float,
    Type::Float,
    Type::Float,
    Type::Float,
    Type::Double,
    Type::Half,
    Type::BFloat16,
    Type::Bool,
    Type::Signed(8),
    Type::Signed(16),
    Type::Signed(32),
    Type::Signed(64),
    Type::Unsigned(8),
    Type::Unsigned(16),
    Type::Unsigned(32),
    Type::Unsigned(64),
];

impl Type {
    pub(super) fn random(rng: &mut Rng) -> Type {
        *rng.pick(&TYPES)
    }

    /// A random arithmetic type.
    pub(super) fn random_numeric(rng: &mut Rng) -> Type {
        loop {
            let dtype = Self::random(rng);
            if dtype != Type::Bool {
                return dtype;
            }
        }
    }

    /// A random subscript type.
    pub(super) fn random_index(rng: &mut Rng) -> Type {
        const INDEX: [Type; 5] = [
            Type::Signed(32),
            Type::Signed(32),
            Type::Signed(64),
            Type::Unsigned(8),
            Type::Signed(16),
        ];
        *rng.pick(&INDEX)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Type::Half | Type::BFloat16 | Type::Float | Type::Double)
    }

    pub(super) fn name(self) -> String {
        match self {
            Type::Bool => "bool".to_owned(),
            Type::Signed(bits) => format!("int{bits}"),
            Type::Unsigned(bits) => format!("uint{bits}"),
            Type::Half => "half".to_owned(),
            Type::BFloat16 => "bfloat16".to_owned(),
            Type::Float => "float".to_owned(),
            Type::Double => "double".to_owned(),
        }
    }

    /// The name or an alias.
    pub(super) fn spelled(self, rng: &mut Rng) -> String {
        let alias = match self {
            Type::Signed(32) => "int",
            Type::Unsigned(8) => "byte",
            Type::Half => "float16",
            Type::Float => "float32",
            Type::Double => "float64",
            _ => return self.name(),
        };
        if rng.percent(30) { alias.to_owned() } else { self.name() }
    }

    /// A literal that may be combined with any value of this type.
    pub(super) fn literal(self, rng: &mut Rng) -> String {
        match self {
            Type::Bool => (*rng.pick(&["true", "false"])).to_owned(),
            _ if self.is_float() => (*rng.pick(&["0.5", "2.0", "1.5f", ".25", "3", "1e-1"])).into(),
            _ => (*rng.pick(&["1", "2", "3", "5", "0x7"])).to_owned(),
        }
    }

    /// The value outside borders.
    pub(super) fn zero(self) -> &'static str {
        if self == Type::Bool { "false" } else { "0" }
    }
}

/// A tensor that statements may read.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dtype: Type,
    pub(super) shape: Vec<i64>,
}

/// A typed expression that can be an operand: a read, a name or a call.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    pub(super) text: String,
    pub(super) dtype: Type,
    /// Whether other reads determine all its variables, so that it may be evaluated conditionally.
    pub(super) optional: bool,
}

impl Atom {
    pub(super) fn new(text: impl Into<String>, dtype: Type) -> Self {
        Self { text: text.into(), dtype, optional: false }
    }

    pub(super) fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}
