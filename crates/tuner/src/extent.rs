//! [`Extent`]: a size that is one number or a range.
//!
//! ```text
//! 64                  exactly 64
//! 1..512              every number from 1 to 512, 512 included
//! 1..512@1,16,64,512  the same, with kernels for these four
//! ```

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// The longest range: the program of every number in it is examined.
const MAX_VALUES: i64 = 4096;

/// The syntax, for error messages.
const SYNTAX: &str = "a number such as 64, or a range such as 1..512 or 1..512@1,16,64,512";

/// A fixed or dynamic size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// One number.
    Exact(i64),
    /// A range.
    Range(SizeRange),
}

/// A range of sizes, and the sizes that have kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeRange {
    /// The least.
    pub first: i64,
    /// The greatest.
    pub last: i64,
    /// The sizes that have kernels, in ascending order; empty if not chosen yet.
    pub buckets: Vec<i64>,
}

impl SizeRange {
    /// A range with buckets in any order; none if they are to be chosen.
    ///
    /// # Errors
    /// If the range is empty, not positive or too long, or a bucket is outside of it.
    pub fn new(first: i64, last: i64, mut buckets: Vec<i64>) -> Result<Self, String> {
        if first < 1 || last < first {
            return Err(format!("`{first}..{last}` holds nothing: write a range such as 1..512"));
        }
        if last - first >= MAX_VALUES {
            return Err(format!("`{first}..{last}` is longer than {MAX_VALUES} numbers"));
        }
        buckets.sort_unstable();
        buckets.dedup();
        if let Some(outside) = buckets.iter().find(|bucket| !(first..=last).contains(bucket)) {
            return Err(format!("the bucket {outside} is not in {first}..{last}"));
        }
        if buckets.last().is_some_and(|largest| *largest != last) {
            return Err(format!("the last bucket must be {last}, the end of the range"));
        }
        Ok(Self { first, last, buckets })
    }

    /// Whether a number is in the range.
    #[must_use]
    pub fn contains(&self, value: i64) -> bool {
        (self.first..=self.last).contains(&value)
    }
}

impl Extent {
    /// The number, unless it is a range.
    #[must_use]
    pub fn exact(&self) -> Option<i64> {
        match self {
            Extent::Exact(value) => Some(*value),
            Extent::Range(_) => None,
        }
    }
}

impl From<i64> for Extent {
    fn from(value: i64) -> Self {
        Extent::Exact(value)
    }
}

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let wrong = || format!("`{}` is not a whole number: write {SYNTAX}", text.trim());
            text.trim().parse::<i64>().map_err(|_| wrong())
        };
        let Some((first, rest)) = text.split_once("..") else {
            return number(text).map(Extent::Exact);
        };
        let (last, buckets) = match rest.split_once('@') {
            Some((last, buckets)) => (last, Some(buckets)),
            None => (rest, None),
        };
        let buckets: Result<Vec<i64>, String> =
            buckets.map_or(Ok(Vec::new()), |list| list.split(',').map(number).collect());
        SizeRange::new(number(first)?, number(last)?, buckets?).map(Extent::Range)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Exact(value) => write!(f, "{value}"),
            Extent::Range(range) => range.fmt(f),
        }
    }
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)?;
        let buckets: Vec<String> = self.buckets.iter().map(i64::to_string).collect();
        if buckets.is_empty() { Ok(()) } else { write!(f, "@{}", buckets.join(",")) }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberOrRange;

        impl Visitor<'_> for NumberOrRange {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a range in quotes such as \"1..512\"")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Extent, E> {
                Ok(Extent::Exact(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
                text.parse().map_err(E::custom)
            }
        }

        from.deserialize_any(NumberOrRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_print_as_they_are_written() {
        for text in ["64", "1..512", "1..512@1,16,64,512", "-3"] {
            assert_eq!(text.parse::<Extent>().unwrap().to_string(), text);
        }
        let unordered: Extent = " 2 .. 8 @ 8, 4,4 ".parse().unwrap();
        assert_eq!(unordered.to_string(), "2..8@4,8");
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| text.parse::<Extent>().unwrap_err();
        assert_eq!(
            wrong("ten"),
            "`ten` is not a whole number: write a number such as 64, or a range such as 1..512 or \
             1..512@1,16,64,512"
        );
        assert_eq!(wrong("9..1"), "`9..1` holds nothing: write a range such as 1..512");
        assert_eq!(wrong("0..4"), "`0..4` holds nothing: write a range such as 1..512");
        assert_eq!(wrong("1..9999"), "`1..9999` is longer than 4096 numbers");
        assert_eq!(wrong("1..8@4"), "the last bucket must be 8, the end of the range");
        assert_eq!(wrong("1..8@4,9"), "the bucket 9 is not in 1..8");
        assert_eq!(wrong("1..8@"), wrong(""));
    }
}
