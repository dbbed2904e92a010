//! [`Operator`]: a function of a package, with all its sizes.

use tensorwright::ir::TensorId;
use tensorwright::schedule::canonical;
use tensorwright::schedule::interface::in_order;
use tensorwright::schedule::nest::Owner;
use tensorwright::{DType, Def, Precision, Program};
use tensorwright_codegen_c::{c_names, rust_names};
use tensorwright_tuner::SizeRange;

use crate::buckets::{Buckets, Layout, Padding};

/// A function of a package.
#[derive(Debug)]
pub(crate) struct Operator {
    /// The name without that of the package.
    pub(crate) name: String,
    /// The name in Rust.
    pub(crate) rust_name: String,
    /// The names of the values in its cases: the sizes of the definition, then the integer scalars
    /// that select kernels.
    pub(crate) sizes: Vec<Name>,
    /// How many of them are sizes of the definition; the others are parameters.
    extents: usize,
    /// The parameters of the definition, in order.
    pub(crate) parameters: Vec<Parameter>,
    /// The supported sizes; the first match is used.
    pub(crate) cases: Vec<Case>,
}

/// A name in all target languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) c: String,
    pub(crate) rust: String,
}

/// A tensor or a scalar that a function takes.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    /// Its number in the programs; `None` if it is bound there.
    pub(crate) id: Option<TensorId>,
    pub(crate) dtype: DType,
    pub(crate) is_output: bool,
    pub(crate) is_const: bool,
    /// Whether it is an integer that selects the kernel together with the sizes.
    pub(crate) is_selector: bool,
    pub(crate) rank: usize,
    /// The declared extents; `None` for results, whose extents are inferred.
    pub(crate) declared: Option<Vec<String>>,
}

/// Supported sizes of a function.
#[derive(Debug)]
pub(crate) struct Case {
    /// The values, in the order of [`Operator::sizes`]; zero for the dynamic one.
    pub(crate) sizes: Vec<i64>,
    /// The dynamic size, if there is one.
    pub(crate) varying: Option<Varying>,
    /// The programs of the kernels: one, or one per bucket.
    pub(crate) programs: Vec<(i64, Program)>,
    /// The layouts of the parameters.
    pub(crate) layouts: Vec<Layout>,
    /// The threads of the schedules.
    pub(crate) threads: usize,
    /// The precision.
    pub(crate) precision: Precision,
}

/// The dynamic size of a case.
#[derive(Debug)]
pub(crate) struct Varying {
    /// Its index among the sizes.
    pub(crate) place: usize,
    pub(crate) range: SizeRange,
    /// Its buckets, including their programs.
    pub(crate) buckets: Buckets,
}

impl Operator {
    /// An operator with the signature of a definition; `program` is the definition for some sizes.
    pub(crate) fn new(name: &str, def: &Def<'_>, program: &Program) -> Self {
        let parameters = parameters(def, program);
        let sizes = def.sizes();
        let texts: Vec<&str> =
            parameters.iter().map(|parameter| parameter.name.text.as_str()).collect();
        let c = c_names(sizes.iter().chain(&texts).copied());
        let rust = names_in_rust(&sizes, &texts);
        let name_of = |number: usize, text: &str| Name {
            text: text.to_owned(),
            c: c[number].clone(),
            rust: rust[number].clone(),
        };
        let mut names: Vec<Name> =
            sizes.iter().enumerate().map(|(number, size)| name_of(number, size)).collect();
        let extents = names.len();
        let named = |(number, parameter): (usize, Parameter)| {
            let name = name_of(extents + number, &parameter.name.text);
            Parameter { name, ..parameter }
        };
        let parameters: Vec<Parameter> = parameters.into_iter().enumerate().map(named).collect();
        names.extend(parameters.iter().filter(|p| p.id.is_none()).map(|p| p.name.clone()));
        let rust_name = rust_names([name]).pop().unwrap_or_default();
        Self {
            name: name.to_owned(),
            rust_name,
            sizes: names,
            extents,
            parameters,
            cases: Vec::new(),
        }
    }

    /// The sizes that functions take in addition to parameters.
    pub(crate) fn extents(&self) -> &[Name] {
        &self.sizes[..self.extents]
    }

    /// The parameters that select the kernel, together with the sizes.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_selector)
    }

    /// The parameters of the preparation.
    pub(crate) fn prepares(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_const || parameter.is_selector)
    }

    /// The extents of a parameter, in terms of sizes where possible: `float(B, I)`.
    pub(crate) fn shape_of(&self, parameter: &Parameter) -> String {
        let extents: Vec<String> = match &parameter.declared {
            Some(declared) => declared.clone(),
            None => (0..parameter.rank).map(|place| self.extent(parameter, place)).collect(),
        };
        let c = |extent: &String| {
            let size = self.sizes.iter().find(|size| size.text == *extent);
            size.map_or_else(|| extent.clone(), |size| size.c.clone())
        };
        match extents.is_empty() {
            true => parameter.dtype.to_string(),
            false => {
                let extents: Vec<String> = extents.iter().map(c).collect();
                format!("{}({})", parameter.dtype, extents.join(", "))
            }
        }
    }

    /// An extent of a result: a size that equals it in all programs, a number, or `_`.
    fn extent(&self, parameter: &Parameter, place: usize) -> String {
        let mut found: Vec<(Vec<i64>, i64)> = Vec::new();
        for case in &self.cases {
            for (bucket, program) in &case.programs {
                let mut sizes = case.sizes.clone();
                if let Some(size) = case.varying.as_ref().and_then(|it| sizes.get_mut(it.place)) {
                    *size = *bucket;
                }
                let shape = parameter.id.map(|id| &program.ir().tensor(id).shape);
                let extent = shape.and_then(|shape| shape.get(place));
                found.extend(extent.map(|extent| (sizes, *extent)));
            }
        }
        let is_size =
            |number: &usize| found.iter().all(|(sizes, extent)| sizes.get(*number) == Some(extent));
        let sizes: Vec<usize> = (0..self.sizes.len()).filter(is_size).collect();
        let Some((_, first)) = found.first() else { return "_".to_owned() };
        match sizes.as_slice() {
            [one] => self.sizes[*one].text.clone(),
            _ if found.iter().all(|(_, extent)| extent == first) => first.to_string(),
            _ => "_".to_owned(),
        }
    }

    /// The Rust name of the structure with prepared constants.
    pub(crate) fn structure(&self) -> String {
        let capital = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        let words: String = self.rust_name.split('_').map(capital).collect();
        format!("{words}Prepared")
    }

    /// Whether inputs can be prepared before calls.
    pub(crate) fn has_constants(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.is_const)
    }
}

/// The parameters of a definition, with their source names.
fn parameters(def: &Def<'_>, program: &Program) -> Vec<Parameter> {
    let (nest, declared, selectors) =
        (canonical(program.ir()), def.params(), def.integer_scalars());
    let named = |text: &str| Name { text: text.to_owned(), c: String::new(), rust: String::new() };
    let dims = |text: &str| {
        let found = declared.iter().find(|signature| signature.name == text);
        found.map(|signature| signature.dims.clone())
    };
    let passed = |id: &TensorId| {
        let buffer = nest.buffer(*id);
        let is_output = buffer.owner == Owner::Output;
        Parameter {
            name: named(&buffer.name),
            id: Some(*id),
            dtype: buffer.dtype,
            is_output,
            is_const: nest.constants.contains(id),
            is_selector: !is_output && selectors.contains(&buffer.name.as_str()),
            rank: buffer.shape.len(),
            declared: dims(&buffer.name),
        }
    };
    in_order(nest.parameters.iter().map(passed), &nest.fixed, |scalar| Parameter {
        name: named(&scalar.name),
        id: None,
        dtype: scalar.dtype,
        is_output: false,
        is_const: scalar.is_const,
        is_selector: true,
        rank: 0,
        declared: dims(&scalar.name),
    })
}

/// The Rust names of sizes and parameters. A size that differs from a parameter only in case gets
/// the prefix `size_`.
fn names_in_rust(sizes: &[&str], parameters: &[&str]) -> Vec<String> {
    let taken = rust_names(parameters.iter().copied());
    let size = |size: &&str| match taken.contains(&size.to_lowercase()) {
        true => format!("size_{size}"),
        false => (*size).to_owned(),
    };
    let sizes: Vec<String> = sizes.iter().map(size).collect();
    rust_names(sizes.iter().map(String::as_str).chain(parameters.iter().copied()))
}

impl Parameter {
    /// Whether it is a scalar passed by value.
    pub(crate) fn is_scalar_input(&self) -> bool {
        self.rank == 0 && !self.is_output
    }

    /// The layout of one element.
    fn as_scalar(&self) -> Layout {
        Layout { rows: 1, step: self.dtype.bytes(), varies: false }
    }
}

impl Case {
    /// A case with fixed sizes.
    pub(crate) fn exact(
        operator: &Operator,
        sizes: Vec<i64>,
        program: Program,
        threads: usize,
    ) -> Self {
        let layout = |p: &Parameter| match p.id {
            Some(id) => Layout::of(program.ir().tensor(id), None),
            None => p.as_scalar(),
        };
        let layouts = operator.parameters.iter().map(layout).collect();
        let (programs, precision) = (vec![(0, program)], Precision::default());
        Self { sizes, varying: None, programs, layouts, threads, precision }
    }

    /// A case with a range for one size.
    pub(crate) fn varying(
        operator: &Operator,
        sizes: Vec<i64>,
        place: usize,
        buckets: Buckets,
        threads: usize,
    ) -> Self {
        let layout = |p: &Parameter| p.id.map_or(p.as_scalar(), |id| buckets.layout(id));
        let layouts = operator.parameters.iter().map(layout).collect();
        let (range, programs) = (buckets.range.clone(), buckets.list.clone());
        let (varying, precision) = (Some(Varying { place, range, buckets }), Precision::default());
        Self { sizes, varying, programs, layouts, threads, precision }
    }

    /// The padding of parameters.
    pub(crate) fn padding(&self) -> Padding {
        self.varying.as_ref().map_or(Padding::Zero, |varying| varying.buckets.variation.padding)
    }

    /// The sizes as text: `M=64, N=1..512`.
    pub(crate) fn words(&self, names: &[Name]) -> String {
        let one = |(place, name): (usize, &Name)| match &self.varying {
            Some(varying) if varying.place == place => {
                let range = &varying.range;
                format!("{}={}..{}", name.text, range.first, range.last)
            }
            _ => format!("{}={}", name.text, self.sizes.get(place).copied().unwrap_or_default()),
        };
        names.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }
}
