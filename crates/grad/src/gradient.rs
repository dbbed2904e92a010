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
    /// A value of the forward pass that its caller has kept.
    Saved {
        /// The name of the parameter.
        name: String,
        /// Its place among what the forward pass of a [`Training`] returns: the results come first.
        place: usize,
    },
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

    /// Its parameters in order: those of the original that it needs, values of the forward pass that were kept, then the
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

/// A forward pass, and a gradient that takes some of its values instead of computing them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Training {
    pub(crate) forward: Option<Forward>,
    pub(crate) gradient: Gradient,
}

/// A definition that returns its results and then values that its gradient takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    pub(crate) source: String,
    pub(crate) name: String,
}

impl Training {
    /// The definition that returns what the gradient takes; `None` if the original one does.
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
