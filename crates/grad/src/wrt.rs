//! The parameters to differentiate with respect to.

use tensorwright_lang::diagnostic::{Code, Diagnostic, nearest};
use tensorwright_lang::syntax::ast::{Def, Param};

/// The parameters to differentiate with respect to.
#[derive(Debug)]
pub(crate) struct WrtParams {
    /// Their names, in the order of the signature.
    pub(crate) names: Vec<String>,
    /// Whether the caller named them; then each must have a gradient.
    pub(crate) named: bool,
}

/// The named parameters, or all of a floating-point type.
pub(crate) fn parameters(def: &Def, wrt: &[&str]) -> Result<WrtParams, Diagnostic> {
    for name in wrt {
        match def.params.iter().find(|param| param.name.name == *name) {
            None => return Err(unknown(def, name)),
            Some(param) if !param.dtype.is_float() => return Err(not_a_fraction(param)),
            Some(_) => {}
        }
    }
    let is_wanted = |param: &&Param| match wrt {
        [] => param.dtype.is_float(),
        names => names.contains(&param.name.name.as_str()),
    };
    let names = def.params.iter().filter(is_wanted).map(|param| param.name.name.clone());
    Ok(WrtParams { names: names.collect(), named: !wrt.is_empty() })
}

fn unknown(def: &Def, name: &str) -> Diagnostic {
    let message = format!("`{}` has no parameter `{name}`", def.name.name);
    let diagnostic = Diagnostic::new(Code::NoGradient, def.name.span, message).here("defined here");
    let names: Vec<&str> = def.params.iter().map(|param| param.name.name.as_str()).collect();
    match (nearest(name, names.iter().copied()), names.as_slice()) {
        (Some(near), _) => diagnostic.help(format!("did you mean `{near}`?")),
        (None, []) => diagnostic.help("it has no parameters at all"),
        (None, names) => diagnostic.help(format!("its parameters are {}", names.join(", "))),
    }
}

fn not_a_fraction(param: &Param) -> Diagnostic {
    let name = &param.name.name;
    let message = format!("`{name}` is of type `{}`, which has no gradient", param.dtype);
    Diagnostic::new(Code::NoGradient, param.span, message)
        .here("not a floating-point type")
        .help("leave it out; only parameters of floating-point types have gradients")
}

/// The error for a parameter that no result depends on differentiably.
pub(crate) fn independent(def: &Def, name: &str) -> Diagnostic {
    let param = def.params.iter().find(|param| param.name.name == name);
    let message = format!("no result of `{}` has a derivative by `{name}`", def.name.name);
    Diagnostic::new(Code::NoGradient, param.map_or(def.name.span, |param| param.span), message)
        .here("does not reach a result of a floating-point type")
        .note("conversions to integers, comparisons, conditions, subscripts and functions such as `floor` have no derivative")
        .help("leave it out; its gradient is zero everywhere")
}

/// The error if no result depends differentiably on any parameter.
pub(crate) fn nothing(def: &Def) -> Diagnostic {
    let message = format!("`{}` has no gradient", def.name.name);
    Diagnostic::new(Code::NoGradient, def.name.span, message)
        .here("no result of a floating-point type depends on an input of one")
        .note("conversions to integers, comparisons, conditions, subscripts and functions such as `floor` have no derivative")
        .help("ask for the gradient of a definition that computes fractions from fractions")
}
