//! Parser for sizes on the command line: `M=128,N=1..512@1,64,512`.

use std::collections::BTreeMap;
use std::str::FromStr;

use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tensorwright_package::Sizes;
use tensorwright_tuner::Extent;

/// The sizes of one `--size`.
#[derive(Debug, Clone)]
pub(crate) struct SizeList(Vec<(String, Extent)>);

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
fn size(text: &str) -> Result<(String, Extent), String> {
    let (name, value) = split(text, "M=128")?;
    let extent = match value.contains("..") {
        true => value.parse()?,
        false => Extent::Exact(value.parse().map_err(|_| {
            format!(
                "`{value}` is not a whole number; write a size as NAME=NUMBER, such as {name}=128"
            )
        })?),
    };
    Ok((name.to_owned(), extent))
}

/// All sizes of a command line, at most one of them a range.
pub(crate) fn ranged(lists: &[SizeList]) -> Result<Sizes, Diagnostics> {
    let mut extents: BTreeMap<String, Extent> = BTreeMap::new();
    for (name, extent) in lists.iter().flat_map(|list| &list.0) {
        if let Some(before) = extents.insert(name.clone(), extent.clone()) {
            let message = format!("`{name}` is given twice: {before} and {extent}");
            return Err(problem(Code::InvalidSize, message, "give every size once"));
        }
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
            "give it one number; `run` and the manifest of `package` take ranges",
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
}
