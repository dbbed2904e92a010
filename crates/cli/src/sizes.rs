//! Parser for sizes on the command line.
//!
//! ```text
//! M=128                 128
//! N=1..512              from 1 to 512
//! N=1..512@1,64,512     the same, by kernels for these values
//! N=64..4096~512%64     multiples of 64, by one kernel that is fastest near 512
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use tensorwright::ir::{SizeRange, SizeValue};
use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tensorwright_package::Sizes;
use tensorwright_tuner::Extent;

/// The likely value of a size if none is given, or the nearest one in its range.
const LIKELY: i64 = 512;

/// The sizes of one `--size`.
#[derive(Debug, Clone)]
pub(crate) struct SizeList(Vec<(String, Given)>);

/// The value of a size, or its values.
#[derive(Debug, Clone)]
enum Given {
    /// As in a manifest.
    Extent(Extent),
    /// A range, perhaps too long for a manifest.
    Range {
        /// Without `~` and `%`.
        is_plain: bool,
        range: SizeRange,
    },
}

impl FromStr for SizeList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A number without a name belongs to the preceding buckets.
        let mut pieces: Vec<String> = Vec::new();
        for piece in text.split(',') {
            match pieces.last_mut() {
                Some(last) if last.contains('@') && !piece.contains('=') => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => pieces.push(piece.to_owned()),
            }
        }
        pieces.iter().map(|piece| size(piece)).collect::<Result<_, _>>().map(Self)
    }
}

/// `M=128`
fn size(text: &str) -> Result<(String, Given), String> {
    let (name, value) = split(text, "M=128")?;
    let given = match value.split_once("..") {
        Some(_) if value.contains('@') => Given::Extent(value.parse()?),
        Some((least, rest)) => range(least, rest)?,
        None => Given::Extent(Extent::Exact(value.parse().map_err(|_| {
            format!(
                "`{value}` is not a whole number; write a size as NAME=NUMBER, such as {name}=128"
            )
        })?)),
    };
    Ok((name.to_owned(), given))
}

/// `1..4096~512%64`, without the first number.
fn range(least: &str, rest: &str) -> Result<Given, String> {
    let number = |text: &str| {
        text.trim().parse::<i64>().map_err(|_| {
            format!(
                "`{}` is not a whole number: write a range such as 1..512 or 64..4096~512%64",
                text.trim()
            )
        })
    };
    let (rest, multiple) = match rest.split_once('%') {
        Some((rest, multiple)) => (rest, Some(number(multiple)?)),
        None => (rest, None),
    };
    let (most, likely) = match rest.split_once('~') {
        Some((most, likely)) => (most, Some(number(likely)?)),
        None => (rest, None),
    };
    let (least, most) = (number(least)?, number(most)?);
    if least < 1 || most < least {
        return Err(format!("`{least}..{most}` holds nothing: write a range such as 1..512"));
    }
    let is_plain = likely.is_none() && multiple.is_none();
    let multiple = multiple.unwrap_or(1);
    if multiple < 1 || most / multiple * multiple < least {
        return Err(format!("`{least}..{most}` holds no multiple of {multiple}"));
    }
    let nearest = LIKELY.clamp(least, most);
    // Rounded up, unless that is too much.
    let usual = nearest.saturating_add(multiple - 1) / multiple * multiple;
    let usual = if usual > most { most / multiple * multiple } else { usual };
    let likely = likely.unwrap_or(usual);
    Ok(Given::Range { is_plain, range: SizeRange { least, most, likely, multiple } })
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extent(extent) => extent.fmt(f),
            Self::Range { is_plain, range: SizeRange { least, most, likely, multiple } } => {
                write!(f, "{least}..{most}")?;
                if *is_plain { Ok(()) } else { write!(f, "~{likely}%{multiple}") }
            }
        }
    }
}

/// All sizes of a command line, each once.
fn once(lists: &[SizeList]) -> Result<BTreeMap<String, Given>, Diagnostics> {
    let mut all: BTreeMap<String, Given> = BTreeMap::new();
    for (name, given) in lists.iter().flat_map(|list| &list.0) {
        if let Some(before) = all.insert(name.clone(), given.clone()) {
            let message = format!("`{name}` is given twice: {before} and {given}");
            return Err(problem(Code::InvalidSize, message, "give every size once"));
        }
    }
    Ok(all)
}

/// All sizes of a command line, any of them ranges that one kernel serves; `None` if none is a
/// range.
pub(crate) fn varying(
    lists: &[SizeList],
) -> Result<Option<BTreeMap<String, SizeValue>>, Diagnostics> {
    let mut all = BTreeMap::new();
    let mut varies = false;
    for (name, given) in once(lists)? {
        let value = match given {
            Given::Extent(Extent::Exact(value)) => SizeValue::Known(value),
            Given::Extent(Extent::Range(range)) => {
                let message = format!("`{name}` is {range}, but one kernel serves all values here");
                let help = "leave out `@`; write `~` before the value that should be fastest";
                return Err(problem(Code::VaryingSize, message, help));
            }
            Given::Range { range, .. } => {
                varies = true;
                SizeValue::Varies(range)
            }
        };
        all.insert(name, value);
    }
    Ok(varies.then_some(all))
}

/// All sizes of a command line, at most one of them a range.
pub(crate) fn ranged(lists: &[SizeList]) -> Result<Sizes, Diagnostics> {
    let mut extents: BTreeMap<String, Extent> = BTreeMap::new();
    for (name, given) in once(lists)? {
        let extent = match &given {
            Given::Extent(extent) => extent.clone(),
            Given::Range { is_plain: true, range } => {
                let range = tensorwright_tuner::SizeRange::new(range.least, range.most, Vec::new());
                Extent::Range(range.map_err(|message| {
                    problem(Code::InvalidSize, message, "`compile` takes longer ranges")
                })?)
            }
            Given::Range { is_plain: false, .. } => {
                let message = format!("`{name}` is {given}, and `~` and `%` are for `compile`");
                return Err(problem(Code::VaryingSize, message, "write a range such as 1..512"));
            }
        };
        extents.insert(name, extent);
    }
    Sizes::new(&extents)
        .map_err(|message| problem(Code::VaryingSize, message, "give one of them a number"))
}

/// All sizes of a command line, none of them a range.
pub(crate) fn exact(lists: &[SizeList]) -> Result<BTreeMap<String, i64>, Diagnostics> {
    let sizes = ranged(lists)?;
    match &sizes.varying {
        None => Ok(sizes.fixed),
        Some((name, range)) => Err(problem(
            Code::VaryingSize,
            format!("`{name}` is the range {range}, but this needs a single number"),
            "give it one number; `compile`, `run` and the manifest of `package` take ranges",
        )),
    }
}

fn problem(code: Code, message: String, help: &str) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(code, message).help(help);
    Diagnostics::new(Source::new("--size", ""), vec![diagnostic])
}

/// A name and a value: `M=128`.
pub(crate) fn split<'t>(text: &'t str, example: &str) -> Result<(&'t str, &'t str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim(), value.trim()))
        }
        _ => Err(format!("a name, `=` and a value are needed, such as {example}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_behind_buckets_belong_to_them() {
        let list: SizeList = "M=3,N=1..64@1,16,64,K=5".parse().unwrap();
        let words: Vec<String> =
            list.0.iter().map(|(name, size)| format!("{name}={size}")).collect();
        assert_eq!(words, ["M=3", "N=1..64@1,16,64", "K=5"]);
        assert!("M=3,4".parse::<SizeList>().unwrap_err().contains("such as M=128"));
    }

    #[test]
    fn ranges_have_likely_values_and_multiples() {
        let values = |text: &str| {
            let list: SizeList = text.parse().unwrap();
            let all = varying(&[list]).unwrap().unwrap();
            all.into_values().collect::<Vec<_>>()
        };
        let range = |least, most, likely, multiple| {
            SizeValue::Varies(SizeRange { least, most, likely, multiple })
        };
        assert_eq!(
            values("A=1..4096,B=1..100,C=64..1000000~640%64,D=7"),
            [
                range(1, 4096, 512, 1),
                range(1, 100, 100, 1),
                range(64, 1_000_000, 640, 64),
                SizeValue::Known(7)
            ]
        );
        assert_eq!(values("A=1..500%64"), [range(1, 500, 448, 64)]);
        for (text, message) in [
            ("A=5..3", "holds nothing"),
            ("A=1..x", "`x` is not a whole number"),
            ("A=1..9~y", "`y` is not a whole number"),
            ("A=1..9%16", "`1..9` holds no multiple of 16"),
            ("A=1..9%0", "`1..9` holds no multiple of 0"),
        ] {
            assert!(text.parse::<SizeList>().unwrap_err().contains(message), "{text}");
        }
    }
}
