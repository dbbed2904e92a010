//! Source texts and their definitions.

use std::collections::BTreeMap;

use tensorwright_grad::{Gradient, Training};
use tensorwright_lang as lang;
use tracing::info_span;

use crate::{Code, Diagnostic, Diagnostics, Inputs, Program, Signature, Source};

/// A checked source text: its definitions have no errors that can be found without sizes.
#[derive(Debug, Clone)]
pub struct Module {
    inner: lang::Module,
}

/// A definition of a [`Module`].
#[derive(Debug, Clone, Copy)]
pub struct Def<'m> {
    inner: lang::Def<'m>,
}

impl Module {
    /// Parses and checks a text; `name` is its name in diagnostics.
    ///
    /// # Errors
    /// All errors that can be found without sizes, together with warnings.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let _span = info_span!("parse", file = name).entered();
        Ok(Self { inner: lang::Module::parse(name, text)? })
    }

    /// Like [`Module::parse`], for the bytes of a file, which may not be UTF-8.
    ///
    /// # Errors
    /// As [`Module::parse`], and for bytes that are not UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        let _span = info_span!("parse", file = name).entered();
        Ok(Self { inner: lang::Module::parse_bytes(name, bytes)? })
    }

    /// Like [`Module::parse_bytes`], for using one definition: errors in others are ignored.
    ///
    /// # Errors
    /// Texts that are not UTF-8 or too large, and syntax errors.
    pub fn parse_partly(name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        let _span = info_span!("parse", file = name).entered();
        Ok(Self { inner: lang::Module::parse_partly(name, bytes)? })
    }

    /// The names of unusable definitions: those with errors, and their callers.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        self.inner.broken()
    }

    /// The text.
    #[must_use]
    pub fn source(&self) -> &Source {
        self.inner.source()
    }

    /// The warnings.
    #[must_use]
    pub fn warnings(&self) -> Diagnostics {
        self.inner.warnings()
    }

    /// The definitions, in the order of the text.
    pub fn defs(&self) -> impl Iterator<Item = Def<'_>> {
        self.inner.defs().map(|inner| Def { inner })
    }

    /// The definition with a name, or without a name the only one. `how` ends the advice to choose
    /// one, such as "with --def".
    ///
    /// # Errors
    /// If there is none with the name, or not exactly one.
    pub fn chosen(&self, name: Option<&str>, how: &str) -> Result<Def<'_>, Diagnostics> {
        if let Some(name) = name {
            return self.def(name);
        }
        if !self.broken().is_empty() {
            return Err(self.inner.errors());
        }
        let mut defs = self.defs();
        if let (Some(only), None) = (defs.next(), defs.next()) {
            return Ok(only);
        }
        let names: Vec<&str> = self.defs().map(|def| def.name()).collect();
        let file = self.source().name();
        let (message, help) = match names.as_slice() {
            [] => (format!("{file} has no definitions"), "write a `def`".to_owned()),
            names => (
                format!("{file} has {} definitions", names.len()),
                format!("choose one {how}: {}", names.join(", ")),
            ),
        };
        let diagnostic = Diagnostic::without_place(Code::NoSuchDef, message).help(help);
        Err(Diagnostics::new(self.source().clone(), vec![diagnostic]))
    }

    /// The definition with a name.
    ///
    /// # Errors
    /// If there is none; the message lists the existing ones.
    pub fn def(&self, name: &str) -> Result<Def<'_>, Diagnostics> {
        Ok(Def { inner: self.inner.def(name)? })
    }

    /// The gradient of a definition with respect to some of its parameters, as the source text of
    /// another definition; with respect to all differentiable ones, if none is named.
    ///
    /// ```
    /// # use tensorwright::Module;
    /// let module = Module::parse("t.tc", "def square(float(N) A) -> (B) { B(i) = A(i) * A(i) }")?;
    /// let gradient = module.grad("square", &["A"])?;
    /// assert!(gradient.source().contains("def square_grad(float(N) A, float(N) d_B) -> (d_A)"));
    /// let program = Module::parse("g.tc", gradient.source())?.def(gradient.name())?.bind([("N", 4)])?;
    /// # Ok::<(), tensorwright::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such definition or parameter, or if something cannot be differentiated.
    pub fn grad(&self, def: &str, wrt: &[&str]) -> Result<Gradient, Diagnostics> {
        tensorwright_grad::grad(&self.inner, def, wrt)
    }

    /// A forward pass and a gradient for training. The forward pass returns values worth saving
    /// after its results, and the gradient takes them instead of recomputing them.
    ///
    /// ```
    /// # use tensorwright::Module;
    /// let text = "def norm(float(N,D) x) -> (y) { s(n) +=! x(n,d) * x(n,d)  y(n,d) = x(n,d) / sqrt(s(n)) }";
    /// let training = Module::parse("t.tc", text)?.training("norm", &[])?;
    /// let forward = training.forward().map(|forward| forward.source()).unwrap_or(text);
    /// assert!(forward.contains("-> (y, s)"));
    /// assert!(training.gradient().source().contains("float(N) s"));
    /// # Ok::<(), tensorwright::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Module::grad`].
    pub fn training(&self, def: &str, wrt: &[&str]) -> Result<Training, Diagnostics> {
        tensorwright_grad::training(&self.inner, def, wrt)
    }
}

impl<'m> Def<'m> {
    pub(crate) fn inner(&self) -> &tensorwright_lang::Def<'m> {
        &self.inner
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'m str {
        self.inner.name()
    }

    /// The one-based line on which it starts.
    #[must_use]
    pub fn line(&self) -> usize {
        self.inner.module().source().line_column(self.inner.span().start).0
    }

    /// The names of the sizes in its signature.
    #[must_use]
    pub fn sizes(&self) -> Vec<&'m str> {
        self.inner.sizes()
    }

    /// The sizes on which extents depend nonlinearly: a range uses them in a quotient, remainder,
    /// minimum or maximum. Excludes extents inferred from subscripts alone.
    #[must_use]
    pub fn nonlinear_sizes(&self) -> Vec<&'m str> {
        self.inner.nonlinear_sizes()
    }

    /// The integer scalars among its parameters: they may be bound like sizes, and must be if they
    /// shape the program (as strides do).
    #[must_use]
    pub fn integer_scalars(&self) -> Vec<&'m str> {
        self.inner.integer_scalars()
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> Vec<Signature> {
        self.inner.params()
    }

    /// The results.
    #[must_use]
    pub fn results(&self) -> Vec<Signature> {
        self.inner.results()
    }

    /// The results that the caller has to supply although they are not parameters: their first
    /// statement reads or accumulates into them.
    #[must_use]
    pub fn updated(&self) -> Vec<Signature> {
        self.inner.updated()
    }

    /// The number of statements, calls not expanded.
    #[must_use]
    pub fn statements(&self) -> usize {
        self.inner.statements()
    }

    /// Binds the sizes (and integer scalars) to numbers, inlines calls, and infers all ranges.
    ///
    /// ```
    /// # use tensorwright::Module;
    /// let module = Module::parse("t.tc", "def f(float(N) A) -> (B) { B(i) = A(i) + A(i+1) }")?;
    /// let program = module.def("f")?.bind([("N", 8)])?;
    /// assert_eq!(program.outputs()[0].shape, [7]);
    /// # Ok::<(), tensorwright::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Missing or unknown sizes, and inconsistencies: empty ranges, out-of-bounds reads,
    /// conflicting sizes.
    pub fn bind<N: Into<String>>(
        &self,
        sizes: impl IntoIterator<Item = (N, i64)>,
    ) -> Result<Program, Diagnostics> {
        let _span = info_span!("bind", def = self.name()).entered();
        Ok(Program::new(self.inner.bind(sizes)?))
    }

    /// The sizes inferred from the shapes of inputs, together with those in `given`.
    ///
    /// # Errors
    /// If shapes disagree with each other, with `given`, or with the signature.
    pub fn sizes_of(
        &self,
        inputs: &Inputs,
        given: &BTreeMap<String, i64>,
    ) -> Result<BTreeMap<String, i64>, Diagnostics> {
        let shapes = inputs.iter().map(|(name, buffer)| (name.as_str(), buffer.shape()));
        self.sizes_of_shapes(shapes, given)
    }

    /// Like [`Def::sizes_of`], for shapes by the names of the inputs.
    ///
    /// # Errors
    /// As [`Def::sizes_of`].
    pub fn sizes_of_shapes<'s>(
        &self,
        shapes: impl IntoIterator<Item = (&'s str, &'s [i64])>,
        given: &BTreeMap<String, i64>,
    ) -> Result<BTreeMap<String, i64>, Diagnostics> {
        self.inner.sizes_from_shapes(shapes, given)
    }
}
