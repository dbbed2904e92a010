//! Reads example sizes from comments.
//!
//! ```text
//! # sizes: M=64, N=32
//! # tensorwright run gemm.tc --def gemm --size M=64,N=32,K=16
//! ```
//!
//! The first form belongs to the enclosing definition, or else to the next one.

use std::collections::{BTreeMap, HashMap};

use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::Module;

use super::names::defs_by_name;
use super::poly::Values;

/// The sizes of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizeComment {
    /// The comment.
    pub(super) span: Span,
    pub(super) sizes: Values,
    /// Whether it is a command, which may leave sizes to its inputs.
    pub(super) is_command: bool,
}

/// The sizes from comments, by definition; the first comment of a definition counts.
pub(super) fn size_comments(text: &str, module: &Module) -> BTreeMap<usize, SizeComment> {
    let defs = defs_by_name(module);
    let mut found: BTreeMap<usize, SizeComment> = BTreeMap::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(hash) = line.find('#') {
            let comment = line[hash..].trim_end();
            let span = Span::new((start + hash) as u32, (start + hash + comment.len()) as u32);
            if let Some((def, given)) = comment_sizes(comment, span, module, &defs) {
                found.entry(def).or_insert(given);
            }
        }
        start += line.len();
    }
    found
}

/// The sizes of a comment, and the number of its definition.
fn comment_sizes(
    comment: &str,
    span: Span,
    module: &Module,
    defs: &HashMap<&str, usize>,
) -> Option<(usize, SizeComment)> {
    let text = comment.trim_start_matches('#').trim();
    if let Some(list) = text.strip_prefix("sizes:") {
        let def = module.defs.partition_point(|def| def.span.end <= span.start);
        let given = SizeComment { span, sizes: pairs(list)?, is_command: false };
        return (def < module.defs.len()).then_some((def, given));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let option = |name: &str| words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    let sizes = pairs(option("--size")?)?;
    let def = match option("--def") {
        Some(name) => *defs.get(name)?,
        None if module.defs.len() == 1 => 0,
        None => return None,
    };
    Some((def, SizeComment { span, sizes, is_command: true }))
}

/// Parses `M=64, N=32`; `None` if any part is malformed.
fn pairs(list: &str) -> Option<Values> {
    let pair = |text: &str| {
        let (name, value) = text.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    list.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_lang::source::Source;
    use tensorwright_lang::syntax::parse;

    fn found(text: &str) -> Vec<String> {
        let (module, _) = parse(&Source::new("t", text));
        let line = |(def, given): (&usize, &SizeComment)| {
            let name = &module.defs[*def].name.name;
            let comment = &text[given.span.start as usize..given.span.end as usize];
            format!("{name} {:?} from {comment:?}", given.sizes)
        };
        size_comments(text, &module).iter().map(line).collect()
    }

    const F: &str = "def f(float(N) A) -> (B) { B(i) = A(i) }";

    #[test]
    fn a_comment_belongs_to_the_definition_around_it_or_the_next() {
        let text = format!(
            "# sizes: N=4\n{F}\ndef g(float(N) A) -> (B) {{\n  # sizes: N = 5 , M=2\r\n  B(i) = A(i) }}\n# sizes: N=6\n"
        );
        assert_eq!(
            found(&text),
            [
                r##"f {"N": 4} from "# sizes: N=4""##,
                r##"g {"M": 2, "N": 5} from "# sizes: N = 5 , M=2""##,
            ]
        );
    }

    #[test]
    fn a_command_names_its_definition() {
        let text = format!("#   $ tensorwright run f.tc --def f --size N=8\n{F} # --size N=9");
        assert_eq!(
            found(&text),
            [r##"f {"N": 8} from "#   $ tensorwright run f.tc --def f --size N=8""##]
        );
    }

    #[test]
    fn other_comments_give_nothing() {
        for comment in [
            "# sizes: see below",
            "# sizes: N=4,",
            "# sizes: N=x",
            "# --size",
            "# --def g --size N=1",
        ] {
            assert_eq!(found(&format!("{comment}\n{F}")), [""; 0], "{comment}");
        }
    }
}
