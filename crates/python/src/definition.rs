//! A definition, its parameters, and the user's choices for all its calls.

use std::collections::BTreeMap;
use std::fmt;

use tensorwright::{DType, Def, Module, Precision, Target};
use tensorwright_records::Location;

/// A definition of a text, with its choices.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) module: Module,
    pub(crate) signature: Signature,
    pub(crate) choices: Choices,
}

/// The sizes of a definition, by name.
pub(crate) type Sizes = BTreeMap<String, i64>;

/// The user's choices for all calls of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) threads: usize,
    pub(crate) precision: Precision,
    pub(crate) db: Option<Location>,
    pub(crate) target: Target,
    pub(crate) dynamic: Dynamic,
    /// The most kernels in the cache.
    pub(crate) kernels: usize,
}

/// Which sizes are dynamic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dynamic {
    /// None: each set of shapes has its own kernel.
    Never,
    /// All.
    All,
    /// These, and those seen with several values.
    Found(Vec<String>),
}

/// The parameters of a definition, followed by the results that its first statement accumulates
/// into, which the caller has to supply as well.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: String,
    /// The name in messages.
    title: String,
    pub(crate) params: Vec<Param>,
    pub(crate) sizes: Vec<String>,
}

/// A parameter of a definition.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) rank: usize,
    pub(crate) is_const: bool,
    pub(crate) is_integer_scalar: bool,
    text: String,
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Signature {
    pub(crate) fn new(def: &Def<'_>, title: String) -> Self {
        let scalars = def.integer_scalars();
        let param = |found: tensorwright::Signature| {
            let dims = found.dims.join(",");
            let shape = if found.dims.is_empty() { String::new() } else { format!("({dims})") };
            let constant = if found.is_const { "const " } else { "" };
            Param {
                text: format!("{constant}{}{shape} {}", found.dtype, found.name),
                rank: found.dims.len(),
                dtype: found.dtype,
                is_const: found.is_const,
                is_integer_scalar: scalars.contains(&found.name.as_str()),
                name: found.name,
            }
        };
        Self {
            name: def.name().to_owned(),
            title,
            params: def.params().into_iter().chain(def.updated()).map(param).collect(),
            sizes: def.sizes().into_iter().map(str::to_owned).collect(),
        }
    }

    /// The parameters as source text.
    pub(crate) fn text(&self) -> String {
        let params: Vec<&str> = self.params.iter().map(|param| param.text.as_str()).collect();
        params.join(", ")
    }

    /// A message about a call.
    pub(crate) fn says(&self, message: &str) -> String {
        format!("{}: {message}", self.title)
    }
}
