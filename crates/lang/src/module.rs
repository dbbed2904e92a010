//! A checked source text, the entry point of the crate.

use std::collections::BTreeMap;
use std::fmt;

use crate::bind;
use crate::check;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity, nearest};
use crate::dtype::DType;
use crate::hir;
use crate::nonlinear;
use crate::program::{Program, SizeValue, SizedProgram};
use crate::source::{Source, Span};
use crate::syntax::{self, Expansion};

/// The most inlined statements in the search for undetermined ranges.
const STRUCTURE_BUDGET: usize = 20_000;

/// A source text whose definitions have no errors that can be found without sizes; those of
/// [`Module::parse_partly`] may have some.
///
/// ```
/// use tensorwright_lang::Module;
///
/// let module = Module::parse(
///     "matmul.tc",
///     "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
/// )?;
/// let program = module.def("matmul")?.bind([("M", 4), ("K", 5), ("N", 6)])?;
/// assert_eq!(program.analysis().flops, 2 * 4 * 5 * 6);
/// # Ok::<(), tensorwright_lang::diagnostic::Diagnostics>(())
/// ```
#[derive(Debug, Clone)]
pub struct Module {
    source: Source,
    /// By number; those with errors, and their callers, are `None`.
    defs: Vec<Option<hir::Def>>,
    /// The names of all definitions, by their numbers.
    names: Vec<String>,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
}

/// A definition of a [`Module`].
#[derive(Debug, Clone, Copy)]
pub struct Def<'m> {
    module: &'m Module,
    def: &'m hir::Def,
}

/// A parameter or a result of a definition, as known without sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents in source text: names or numbers for a parameter, `_` for a result.
    pub dims: Vec<String>,
    /// Whether it is a `const` parameter.
    pub is_const: bool,
    /// Whether it is both: the caller supplies it and the program updates it.
    pub updated: bool,
}

/// Prints a parameter: `const float(M,K) A`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = if self.is_const { "const " } else { "" };
        match self.dims.as_slice() {
            [] => write!(f, "{constant}{} {}", self.dtype, self.name),
            dims => write!(f, "{constant}{}({}) {}", self.dtype, dims.join(","), self.name),
        }
    }
}

impl Module {
    /// Parses and checks a text; `name` is what diagnostics call it.
    ///
    /// # Errors
    /// All errors that can be found without sizes, and the warnings with them.
    pub fn parse(name: &str, text: &str) -> Result<Module, Diagnostics> {
        Module::parse_source(Source::new(name, text))
    }

    /// Like [`Module::parse`], for bytes that may not be UTF-8.
    ///
    /// # Errors
    /// As [`Module::parse`], and for bytes that are not UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Module, Diagnostics> {
        Module::parse_source(syntax::source_from_bytes(name, bytes)?)
    }

    /// Like [`Module::parse_bytes`], but errors in unused definitions do not matter, unless the
    /// text as a whole cannot be parsed.
    ///
    /// ```
    /// use tensorwright_lang::Module;
    ///
    /// let text = b"def good(float(N) x) -> (y) { y(i) = x(i) } def bad(float(N) x) -> (y) { y(i) = z(i) }";
    /// let module = Module::parse_partly("two.tc", text)?;
    /// assert!(module.def("good").is_ok() && module.def("bad").is_err());
    /// assert_eq!(module.broken(), ["bad"]);
    /// # Ok::<(), tensorwright_lang::diagnostic::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Texts that are not UTF-8 or too large, and errors of syntax.
    pub fn parse_partly(name: &str, bytes: &[u8]) -> Result<Module, Diagnostics> {
        Module::read(syntax::source_from_bytes(name, bytes)?)
    }

    fn parse_source(source: Source) -> Result<Module, Diagnostics> {
        let module = Module::read(source)?;
        if module.errors.is_empty() { Ok(module) } else { Err(module.errors()) }
    }

    fn read(source: Source) -> Result<Module, Diagnostics> {
        let (mut ast, mut diagnostics) = syntax::parse(&source);
        let mut functions = Expansion::default();
        if diagnostics.is_empty() {
            functions = syntax::expand(&mut ast);
            diagnostics.append(&mut functions.diagnostics);
        }
        // Consequences of a syntax error are not reported.
        if !diagnostics.is_empty() {
            diagnostics.iter_mut().for_each(|diagnostic| functions.explain(diagnostic));
            return Err(Diagnostics::new(source, diagnostics));
        }
        let (mut defs, mut diagnostics) = check::check(&ast);
        let mut budget = STRUCTURE_BUDGET;
        let mut broken: Vec<bool> = defs.iter().map(Option::is_none).collect();
        for (number, def) in defs.iter().enumerate() {
            let Some(def) = def else { continue };
            let found = bind::check_structure(&defs, def, &mut budget);
            broken[number] = found.iter().any(is_error);
            diagnostics.extend(found);
        }
        check::spread(&ast, &mut broken);
        for (def, broken) in defs.iter_mut().zip(&broken) {
            *def = def.take().filter(|_| !broken);
        }
        diagnostics.iter_mut().for_each(|diagnostic| functions.explain(diagnostic));
        let names = ast.defs.iter().map(|def| def.name.name.clone()).collect();
        let (errors, warnings) = diagnostics.into_iter().partition(is_error);
        Ok(Module { source, defs, names, warnings, errors })
    }

    /// The text.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The warnings.
    #[must_use]
    pub fn warnings(&self) -> Diagnostics {
        Diagnostics::new(self.source.clone(), self.warnings.clone())
    }

    /// The errors and warnings; there are errors only after [`Module::parse_partly`].
    #[must_use]
    pub fn errors(&self) -> Diagnostics {
        let all = self.errors.iter().chain(&self.warnings).cloned();
        Diagnostics::new(self.source.clone(), all.collect())
    }

    /// The names of the unusable definitions: those with errors, and their callers.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        let named = self.names.iter().zip(&self.defs);
        named.filter(|(_, def)| def.is_none()).map(|(name, _)| name.as_str()).collect()
    }

    /// The definitions, in source order.
    pub fn defs(&self) -> impl Iterator<Item = Def<'_>> {
        self.defs.iter().flatten().map(|def| Def { module: self, def })
    }

    /// The definition of a name.
    ///
    /// # Errors
    /// If there is none, or if it has errors or calls a definition that has some.
    pub fn def(&self, name: &str) -> Result<Def<'_>, Diagnostics> {
        if self.broken().contains(&name) {
            return Err(self.errors());
        }
        if let Some(def) = self.defs().find(|def| def.name() == name) {
            return Ok(def);
        }
        let names: Vec<&str> = self.defs().map(|def| def.def.name.as_str()).collect();
        let message = format!("{} has no `def {name}`", self.source.name());
        let diagnostic = Diagnostic::without_place(Code::NoSuchDef, message);
        let diagnostic = match (nearest(name, names.iter().copied()), names.as_slice()) {
            (Some(near), _) => diagnostic.help(format!("did you mean `{near}`?")),
            (None, []) => diagnostic.help("it has no definitions at all"),
            (None, names) => diagnostic.help(format!("it has {}", names.join(", "))),
        };
        Err(Diagnostics::new(self.source.clone(), vec![diagnostic]))
    }

    /// Binds a definition to sizes: [`Module::def`] and [`Def::bind`] in one.
    ///
    /// # Errors
    /// As those.
    pub fn bind<N: Into<String>>(
        &self,
        def: &str,
        sizes: impl IntoIterator<Item = (N, i64)>,
    ) -> Result<Program, Diagnostics> {
        self.def(def)?.bind(sizes)
    }

    /// Binds a definition to sizes of which some vary: [`Module::def`] and [`Def::bind_sized`] in
    /// one.
    ///
    /// # Errors
    /// As those.
    pub fn bind_sized<N: Into<String>>(
        &self,
        def: &str,
        sizes: impl IntoIterator<Item = (N, SizeValue)>,
    ) -> Result<SizedProgram, Diagnostics> {
        self.def(def)?.bind_sized(sizes)
    }
}

impl<'m> Def<'m> {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &'m str {
        &self.def.name
    }

    /// Its span.
    #[must_use]
    pub fn span(&self) -> Span {
        self.def.span
    }

    /// The checked definition.
    #[cfg(test)]
    pub(crate) fn hir(&self) -> &hir::Def {
        self.def
    }

    /// The module that it belongs to.
    #[must_use]
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The names of the sizes in its signature.
    #[must_use]
    pub fn sizes(&self) -> Vec<&'m str> {
        self.def.sizes.iter().map(|size| size.name.as_str()).collect()
    }

    /// The sizes that occur in a quotient, a remainder, a minimum or a maximum of a range, so that
    /// extents depend on them nonlinearly. Extents that follow from subscripts alone do not count.
    #[must_use]
    pub fn nonlinear_sizes(&self) -> Vec<&'m str> {
        let found = nonlinear::nonlinear(&self.module.defs, self.def);
        found.into_iter().map(|size| self.def.sizes[size.0 as usize].name.as_str()).collect()
    }

    /// The integer scalars among its parameters: they may be bound together with the sizes, and
    /// must be where they shape the program (as strides do).
    #[must_use]
    pub fn integer_scalars(&self) -> Vec<&'m str> {
        let params = self.def.tensors[..self.def.params].iter();
        params.filter(|p| bind::is_static(p)).map(|p| p.name.as_str()).collect()
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> Vec<Signature> {
        self.def.tensors[..self.def.params].iter().map(|p| self.declared(p)).collect()
    }

    /// All tensors: the parameters, then the computed ones.
    #[must_use]
    pub fn tensors(&self) -> Vec<Signature> {
        let made = self.def.tensors[self.def.params..].iter().map(made);
        self.params().into_iter().chain(made).collect()
    }

    fn declared(&self, param: &hir::Tensor) -> Signature {
        let text = |dim: &hir::Dim| match dim {
            hir::Dim::Size(size) => self.def.sizes[size.0 as usize].name.clone(),
            hir::Dim::Literal(extent) => extent.to_string(),
        };
        signature(param, param.dims.iter().map(text).collect())
    }

    /// The results.
    #[must_use]
    pub fn results(&self) -> Vec<Signature> {
        let results = self.def.returns.iter().map(|result| &self.def.tensors[result.0 as usize]);
        results.map(made).collect()
    }

    /// The results that are not parameters but that the caller supplies: their first statement
    /// reads them or accumulates into them.
    #[must_use]
    pub fn updated(&self) -> Vec<Signature> {
        let made_here =
            self.def.returns.iter().filter(|result| result.0 as usize >= self.def.params);
        let tensors = made_here.map(|result| &self.def.tensors[result.0 as usize]);
        tensors.filter(|tensor| tensor.updated).map(made).collect()
    }

    /// The number of statements before inlining.
    #[must_use]
    pub fn statements(&self) -> usize {
        self.def.body.len()
    }

    /// Binds the sizes (and integer scalars) to numbers, inlines calls, and infers all ranges.
    ///
    /// # Errors
    /// Missing or unknown sizes, empty ranges, reads out of bounds, and sizes that disagree.
    pub fn bind<N: Into<String>>(
        &self,
        sizes: impl IntoIterator<Item = (N, i64)>,
    ) -> Result<Program, Diagnostics> {
        let sizes: BTreeMap<String, i64> =
            sizes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let Module { source, defs, .. } = self.module;
        bind::bind(source, defs, self.def, &sizes)
            .map_err(|list| Diagnostics::new(source.clone(), list))
    }

    /// Binds the sizes to numbers or to ranges of values, and infers all ranges as functions of the
    /// sizes that vary.
    ///
    /// ```
    /// use tensorwright_lang::Module;
    /// use tensorwright_lang::program::{SizeRange, SizeValue};
    ///
    /// let text = "def f(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }";
    /// let module = Module::parse("pairs.tc", text)?;
    /// let n = SizeValue::Varies(SizeRange { least: 1, most: 4096, likely: 512, multiple: 1 });
    /// let sized = module.bind_sized("f", [("N", n)])?;
    /// assert_eq!(sized.shape(sized.general.outputs[0], &[100]), [99]);
    /// assert_eq!(sized.conditions_text(), ["N >= 2"]);
    /// assert!(sized.check(&[1]).is_err());
    /// # Ok::<(), tensorwright_lang::diagnostic::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// As [`Def::bind`] for the likely sizes; and sizes that cannot vary, because ranges are no
    /// function of them that can be proven.
    pub fn bind_sized<N: Into<String>>(
        &self,
        sizes: impl IntoIterator<Item = (N, SizeValue)>,
    ) -> Result<SizedProgram, Diagnostics> {
        let sizes: BTreeMap<String, SizeValue> =
            sizes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let Module { source, defs, .. } = self.module;
        bind::bind_sized(source, defs, self.def, &sizes)
            .map_err(|list| Diagnostics::new(source.clone(), list))
    }
}

impl Def<'_> {
    /// Infers sizes from the shapes of inputs, together with those in `given`. Unknown inputs are
    /// ignored here; running the program reports them.
    ///
    /// # Errors
    /// If shapes disagree with each other, with `given`, or with the signature.
    pub fn sizes_from_shapes<'s>(
        &self,
        shapes: impl IntoIterator<Item = (&'s str, &'s [i64])>,
        given: &BTreeMap<String, i64>,
    ) -> Result<BTreeMap<String, i64>, Diagnostics> {
        let mut sizes = given.clone();
        let mut origin: BTreeMap<&str, Span> = BTreeMap::new();
        let mut errors = Vec::new();
        for (name, shape) in shapes {
            let params = &self.def.tensors[..self.def.params];
            let Some(param) = params.iter().find(|param| param.name == name) else { continue };
            if shape.len() != param.rank {
                errors.push(wrong_rank(param, shape));
                continue;
            }
            for (dim, extent) in param.dims.iter().zip(shape) {
                let hir::Dim::Size(size) = dim else { continue };
                let size = self.def.sizes[size.0 as usize].name.as_str();
                let known = *sizes.entry(size.to_owned()).or_insert(*extent);
                if known != *extent {
                    errors.push(disagreement(size, known, *extent, param, origin.get(size)));
                }
                origin.entry(size).or_insert(param.span);
            }
        }
        if errors.is_empty() {
            return Ok(sizes);
        }
        Err(Diagnostics::new(self.module.source.clone(), errors))
    }
}

fn wrong_rank(param: &hir::Tensor, shape: &[i64]) -> Diagnostic {
    let message = format!(
        "the input `{}` has the shape {}, and {} {} declared",
        param.name,
        shape_text(shape),
        param.rank,
        if param.rank == 1 { "dimension is" } else { "dimensions are" }
    );
    let diagnostic = Diagnostic::new(Code::InputShape, param.span, message).here("declared here");
    match reshaped(shape, param.rank) {
        Some(advice) => diagnostic.help(advice),
        None => diagnostic,
    }
}

/// The help for an input of the wrong rank.
fn reshaped(shape: &[i64], rank: usize) -> Option<String> {
    if rank == 0 {
        return Some("give a single number".to_owned());
    }
    if shape.len() <= rank {
        let ones = std::iter::repeat_n(1, rank - shape.len());
        let whole: Vec<i64> = ones.chain(shape.iter().copied()).collect();
        return Some(format!("reshape it to {} first", shape_text(&whole)));
    }
    let (folded, rest) = shape.split_at(shape.len() - rank + 1);
    let product = folded.iter().try_fold(1_i64, |all, extent| all.checked_mul(*extent))?;
    let whole: Vec<i64> = std::iter::once(product).chain(rest.iter().copied()).collect();
    let whole = shape_text(&whole);
    let back = "and the result back, if the definition treats its rows alike";
    Some(format!("reshape it to {whole} before the call, {back}"))
}

fn shape_text(shape: &[i64]) -> String {
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    match extents.as_slice() {
        [only] => format!("({only},)"),
        extents => format!("({})", extents.join(", ")),
    }
}

fn disagreement(
    size: &str,
    known: i64,
    extent: i64,
    param: &hir::Tensor,
    origin: Option<&Span>,
) -> Diagnostic {
    let message =
        format!("the size `{size}` is {known}, and the input `{}` makes it {extent}", param.name);
    let diagnostic =
        Diagnostic::new(Code::SizesDisagree, param.span, message).here(format!("{extent} here"));
    match origin {
        Some(span) => diagnostic.label(*span, format!("{known} here")),
        None => diagnostic.note(format!("`{size}={known}` was given")),
    }
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity() == Severity::Error
}

/// A computed tensor, whose extents are unknown without sizes.
fn made(tensor: &hir::Tensor) -> Signature {
    signature(tensor, vec!["_".to_owned(); tensor.rank])
}

fn signature(tensor: &hir::Tensor, dims: Vec<String>) -> Signature {
    Signature {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        dims,
        is_const: tensor.is_const,
        updated: tensor.updated,
    }
}
