//! Element types, and typed tensors and operands.

use crate::Rng;

/// An element type, with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Integer(&'static str),
    Float(&'static str),
}

/// Every type: how often it is drawn, and an alias.
const TYPES: [(Type, usize, Option<&str>); 13] = [
    // `float` more often, as in real programs.
    (Type::Float("float"), 6, Some("float32")),
    (Type::Float("double"), 1, Some("float64")),
    (Type::Float("half"), 1, Some("float16")),
    (Type::Float("bfloat16"), 1, None),
    (Type::Bool, 1, None),
    (Type::Integer("int8"), 1, None),
    (Type::Integer("int16"), 1, None),
    (Type::Integer("int32"), 1, Some("int")),
    (Type::Integer("int64"), 1, None),
    (Type::Integer("uint8"), 1, Some("byte")),
    (Type::Integer("uint16"), 1, None),
    (Type::Integer("uint32"), 1, None),
    (Type::Integer("uint64"), 1, None),
];

/// The names of types, with aliases.
pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.into_iter().flat_map(|(dtype, _, alias)| [dtype.name()].into_iter().chain(alias))
}

impl Type {
    pub(super) fn random(rng: &mut Rng) -> Type {
        let mut drawn = rng.index(TYPES.iter().map(|(_, times, _)| times).sum());
        for (dtype, times, _) in TYPES {
            if drawn < times {
                return dtype;
            }
            drawn -= times;
        }
        Type::Bool
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
            Type::Integer("int32"),
            Type::Integer("int32"),
            Type::Integer("int64"),
            Type::Integer("uint8"),
            Type::Integer("int16"),
        ];
        *rng.pick(&INDEX)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Type::Float(_))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Integer(name) | Type::Float(name) => name,
        }
    }

    /// The name or an alias.
    pub(super) fn spelled(self, rng: &mut Rng) -> &'static str {
        let row = TYPES.iter().find(|(dtype, ..)| *dtype == self);
        match row.and_then(|(_, _, alias)| *alias) {
            Some(alias) if rng.percent(30) => alias,
            _ => self.name(),
        }
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
