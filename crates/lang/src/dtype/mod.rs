//! The element types of tensors.

mod format;
mod table;

use std::fmt;

pub use format::{FloatFormat, round_to_odd};
use table::TABLE;
pub use table::{DType, Kind, Row};

const ALIASES: usize = {
    let (mut count, mut i) = (0, 0);
    while i < TABLE.len() {
        assert!(TABLE[i].dtype as usize == i, "a row for every variant, in their order");
        count += TABLE[i].aliases.len();
        i += 1;
    }
    count
};

impl DType {
    /// Every type, in the order of declaration.
    pub const ALL: [DType; TABLE.len()] = {
        let (mut all, mut i) = ([DType::Bool; TABLE.len()], 0);
        while i < TABLE.len() {
            all[i] = TABLE[i].dtype;
            i += 1;
        }
        all
    };

    /// The aliases in source text.
    pub const ALIASES: [(&'static str, DType); ALIASES] = {
        let (mut all, mut count, mut i) = ([("", DType::Bool); ALIASES], 0, 0);
        while i < TABLE.len() {
            let mut alias = 0;
            while alias < TABLE[i].aliases.len() {
                all[count] = (TABLE[i].aliases[alias], TABLE[i].dtype);
                (alias, count) = (alias + 1, count + 1);
            }
            i += 1;
        }
        all
    };

    /// The columns of the type.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name in source text, which is also how the type prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The type of a name or an alias.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        let named = |row: &&Row| row.name == name || row.aliases.contains(&name);
        TABLE.iter().find(named).map(|row| row.dtype)
    }

    /// The type of a name in another language.
    #[must_use]
    pub fn from_foreign_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.foreign.contains(&name)).map(|row| row.dtype)
    }

    /// Bytes per element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        let bits = match self.row().kind {
            Kind::Bool => 8,
            Kind::Signed(bits) | Kind::Unsigned(bits) => bits,
            Kind::Float(format) => format.bits(),
        };
        bits as usize / 8
    }

    /// The format of a floating-point type.
    #[must_use]
    pub const fn float_format(self) -> Option<FloatFormat> {
        match self.row().kind {
            Kind::Float(format) => Some(format),
            Kind::Bool | Kind::Signed(_) | Kind::Unsigned(_) => None,
        }
    }

    /// The format of a storage-only type, which is narrower than that of
    /// [`DType::computed_in`].
    #[must_use]
    pub const fn narrow_format(self) -> Option<FloatFormat> {
        if self.is_storage_only() { self.float_format() } else { None }
    }

    /// Whether this is one of the floating-point types.
    #[must_use]
    pub const fn is_float(self) -> bool {
        self.float_format().is_some()
    }

    /// Whether this is one of the integer types; `bool` is not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.row().kind, Kind::Signed(_) | Kind::Unsigned(_))
    }

    /// Whether this is one of the signed integer types.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self.row().kind, Kind::Signed(_))
    }

    /// The smallest and largest value of an integer type (`bool` counts as 0 and 1).
    #[must_use]
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self.row().kind {
            Kind::Bool => Some((0, 1)),
            Kind::Signed(bits) => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Kind::Unsigned(bits) => Some((0, (1 << bits) - 1)),
            Kind::Float(_) => None,
        }
    }

    /// The unit roundoff of a floating-point type: half the distance from 1 to the next number.
    #[must_use]
    pub const fn unit_roundoff(self) -> Option<f64> {
        match self.float_format() {
            Some(format) => Some(format.unit_roundoff()),
            None => None,
        }
    }

    /// The type in which values of this one are computed and summed. Most types are their own;
    /// storage-only floats are widened by a load and rounded by a store.
    #[must_use]
    pub const fn computed_in(self) -> DType {
        self.row().computed_in
    }

    /// Whether this is a storage-only type: [`DType::computed_in`] is another type.
    #[must_use]
    pub const fn is_storage_only(self) -> bool {
        self.computed_in() as usize != self as usize
    }

    /// The letter and size of the type in the header of a `.npy` file, such as `f4`, if NumPy has
    /// the type.
    #[must_use]
    pub fn npy_code(self) -> Option<String> {
        let letter = match self.row().kind {
            Kind::Bool => 'b',
            Kind::Signed(_) => 'i',
            Kind::Unsigned(_) => 'u',
            Kind::Float(_) => 'f',
        };
        self.row().numpy.map(|_| format!("{letter}{}", self.bytes()))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            let text = format!("{:?}", dtype).to_lowercase();
            assert_eq!(text, dtype.name(), "serialised as it is spelled");
        }
        assert!(DType::ALL.is_sorted(), "in the order of declaration");
        assert_eq!(DType::from_name("int"), Some(DType::Int32));
        assert_eq!(DType::from_name("byte"), Some(DType::UInt8));
        assert_eq!(DType::from_name("float128"), None);
        assert_eq!(DType::from_foreign_name("unsigned"), Some(DType::UInt32));
    }

    #[test]
    fn no_two_types_share_a_name() {
        let names = |row: &Row| [&[row.name], row.aliases, row.foreign].concat();
        let mut all: Vec<&str> = TABLE.iter().flat_map(names).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
        let mut torch: Vec<&str> = TABLE.iter().map(|row| row.torch).collect();
        torch.sort_unstable();
        assert!(torch.is_sorted_by(|a, b| a < b), "{torch:?}");
    }

    #[test]
    fn ranges_follow_from_kinds() {
        assert_eq!(DType::Int8.integer_range(), Some((-128, 127)));
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert_eq!(DType::Int64.integer_range(), Some((least, most)));
        assert_eq!(DType::UInt64.integer_range(), Some((0, i128::from(u64::MAX))));
        assert_eq!(DType::Bool.npy_code().as_deref(), Some("b1"));
        assert_eq!(DType::Half.npy_code().as_deref(), Some("f2"));
        assert_eq!(DType::BFloat16.npy_code(), None);
        assert_eq!(DType::BFloat16.unit_roundoff(), Some(1.0 / 256.0));
    }

    #[test]
    fn storage_only_types_are_narrow() {
        for dtype in DType::ALL {
            let wide = dtype.computed_in();
            assert_eq!(wide.computed_in(), wide);
            assert!(wide == dtype || wide == DType::Float, "{dtype}: emitters widen to `float`");
            let Some(format) = dtype.narrow_format() else { continue };
            // The second of two roundings, by `round_to_odd`, is one of at most 22 bits.
            assert!(format.mantissa_bits < 22 && format.exponent_bits <= 8, "{dtype}");
        }
    }
}
