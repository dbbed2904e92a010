//! The result: source text, and what its parameters and results mean.

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
    /// A parameter of the differentiated definition, under its own name.
    Value(String),
    /// A forward value that the caller saved.
    Saved {
        /// The name of the parameter.
        name: String,
        /// Its position among the outputs of [`Training`]'s forward pass, which start with the
        /// results.
        place: usize,
    },
    /// The gradient of a result: the derivative of the loss with respect to it.
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
    /// The parameter whose gradient it is.
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

    /// Its parameters in order: those of the original that it uses, saved forward values, then the
    /// gradients of results.
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

/// A forward pass and a gradient that reuses its saved values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Training {
    pub(crate) forward: Option<Forward>,
    pub(crate) gradient: Gradient,
}

/// A definition that returns its results, followed by the values saved for the gradient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    pub(crate) source: String,
    pub(crate) name: String,
}

impl Training {
    /// The definition that returns the saved values; `None` if the original returns all of them.
    #[must_use]
    pub fn forward(&self) -> Option<&Forward> {
        self.forward.as_ref()
    }

    /// The gradient.
    #[must_use]
    pub fn gradient(&self) -> &Gradient {
        &self.gradient
    }
}

impl Forward {
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
}
