//! What comes out: the text of a definition, and what its parameters and results stand for.

/// A definition that computes gradients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gradient {
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
}

/// A parameter of a [`Gradient`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A parameter of the definition that was differentiated, under its own name.
    Value(String),
    /// The gradient of a result: the derivative of what is minimised by that result.
    Cotangent {
        /// The name of the parameter.
        name: String,
        /// The result that it belongs to.
        of: String,
    },
}

/// A result of a [`Gradient`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The parameter of which it is the gradient.
    pub of: String,
}

impl Gradient {
    /// The text: a comment and the definition.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name of the definition.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters in order: those of the original that it needs, then the gradients of results.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Its results in order.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }
}
