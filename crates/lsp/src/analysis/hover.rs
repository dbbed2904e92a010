//! Hover texts for names.

mod index;
mod tensor;

use tensorwright_lang::builtin::{Builtin, Signature as Takes};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::{ast, print_function};

use super::names::{self, Entity};
use super::samples::Sample;
use super::{Analysis, size_comments::SizeComment};

/// A hover text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hover {
    /// The name.
    pub span: Span,
    /// The text, as Markdown.
    pub markdown: String,
}

/// The summary of `concat`.
pub(super) const CONCAT_SUMMARY: &str = "joins tensors along their last dimension";

impl Analysis {
    /// The hover text of the name at an offset.
    #[must_use]
    pub fn hover(&self, offset: u32) -> Option<Hover> {
        let occurrence = names::at(&self.names, offset)?;
        let markdown = match &occurrence.entity {
            Entity::Def { def } => self.def_hover(*def)?,
            Entity::Tensor { def, name } => self.tensor_hover(*def, name)?,
            Entity::Size { def, name } => self.size_hover(*def, name)?,
            Entity::Index { def, stmt, name } => self.index_hover(*def, *stmt, name)?,
            Entity::Function { function } => self.function_hover(*function)?,
            Entity::Parameter { function, name } => {
                let function = &self.tree.functions.get(*function)?.name.name;
                format!("{}\nA parameter of `{function}`.", code(name))
            }
            Entity::Prelude(function) => {
                format!("{}\nA function of the prelude.", code(print_function(function).trim_end()))
            }
            Entity::Builtin(builtin) => builtin_hover(*builtin),
            Entity::Concat => {
                format!("{}\n`concat` {CONCAT_SUMMARY}.", code("c = concat(a, b, ...)"))
            }
            Entity::Constant(name, value) => code(&format!("{name} = {value}")),
            Entity::Conversion(dtype) => conversion_hover(*dtype),
        };
        Some(Hover { span: occurrence.span, markdown: markdown.trim_end().to_owned() })
    }

    fn def_hover(&self, number: usize) -> Option<String> {
        let tree = self.tree.defs.get(number)?;
        let mut text = match self.signature(number) {
            Some(signature) => code(&signature),
            None => code(&format!("def {}", tree.name.name)),
        };
        let comment = comment_above(self.text(), tree.span.start as usize);
        if !comment.is_empty() {
            text += &format!("\n{comment}\n");
        }
        Some(text)
    }

    fn function_hover(&self, number: usize) -> Option<String> {
        let function = self.tree.functions.get(number)?;
        let text = code(print_function(function).trim_end());
        let comment = comment_above(self.text(), function.span.start as usize);
        Some(if comment.is_empty() { text } else { format!("{text}\n{comment}\n") })
    }

    /// `def f(float(N) A) -> (float(N) B)`
    fn signature(&self, number: usize) -> Option<String> {
        let def = self.def(number)?;
        let shaped = |list: Vec<tensorwright_lang::Signature>| {
            let texts = list.into_iter().map(|t| self.with_shape(number, t).to_string());
            texts.collect::<Vec<String>>().join(", ")
        };
        let params: Vec<String> = def.params().iter().map(ToString::to_string).collect();
        Some(format!("def {}({}) -> ({})", def.name(), params.join(", "), shaped(def.results())))
    }

    fn size_hover(&self, number: usize, name: &str) -> Option<String> {
        let def = self.tree.defs.get(number)?;
        let mut places = Vec::new();
        for param in &def.params {
            for (dimension, dim) in param.dims.iter().enumerate() {
                if matches!(dim, ast::Dim::Name(ident) if ident.name == name) {
                    places.push(format!("dimension {dimension} of `{}`", param.name.name));
                }
            }
        }
        let value = self.given.get(&number).and_then(|given| given.sizes.get(name));
        let value = value.map_or(String::new(), |value| format!(" = {value}"));
        let title = code(&format!("{name}{value}"));
        Some(format!("{title}\nA size of `{}`: {}.\n", def.name.name, places.join(", ")))
    }

    /// The sample for the sizes in a comment.
    fn given_sample(&self, number: usize) -> Option<&Sample> {
        let SizeComment { sizes, .. } = self.given.get(&number)?;
        self.inferred(number)?.samples.iter().find(|sample| sample.sizes == *sizes)
    }
}

/// A fenced code block.
fn code(text: &str) -> String {
    format!("```tensorwright\n{text}\n```\n")
}

/// The comment directly above an offset.
fn comment_above(text: &str, place: usize) -> String {
    let before = text.get(..place).unwrap_or_default();
    let Some((above, indent)) = before.rsplit_once('\n') else { return String::new() };
    if !indent.trim().is_empty() {
        return String::new();
    }
    let comments = above.lines().rev().map(str::trim).take_while(|line| line.starts_with('#'));
    let lines = comments.map(|line| line.trim_start_matches('#').trim());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("sizes:")).collect();
    lines.into_iter().rev().collect::<Vec<&str>>().join("\n")
}

fn builtin_hover(builtin: Builtin) -> String {
    let args = match builtin.arity() {
        1 => "x",
        2 => "x, y",
        _ => "x, y, z",
    };
    let types = match builtin.signature() {
        Takes::Float => "Its arguments have one floating-point type, which it returns.",
        Takes::Numeric => "Its arguments have one type of numbers, which it returns.",
        Takes::FloatTest => "Its argument has a floating-point type, and it returns a `bool`.",
        Takes::Integer => "Its arguments have one type of integers, which it returns.",
    };
    let title = code(&format!("{}({args})", builtin.name()));
    format!("{title}\n{}.\n\n{types}\n", capitalised(builtin.summary()))
}

/// With a capital first letter, unless it starts with a formula.
fn capitalised(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    match text.chars().next() {
        Some(first) if word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic()) => {
            first.to_uppercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

fn conversion_hover(dtype: DType) -> String {
    format!("{}\nConverts a value to `{dtype}`.\n", code(&format!("{dtype}(x)")))
}
