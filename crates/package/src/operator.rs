//! [`Operator`]: a function of a package, with all sizes that it is for.

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
    /// What it is called, without the name of the package.
    pub(crate) name: String,
    /// The same in Rust.
    pub(crate) rust_name: String,
    /// What its cases have values for: the sizes of the definition, then those of its integer scalars that are given
    /// with them.
    pub(crate) sizes: Vec<Name>,
    /// How many of them are sizes of the definition. The others are parameters.
    extents: usize,
    /// The parameters of the definition, in its order.
    pub(crate) parameters: Vec<Parameter>,
    /// What it can be called with; the first that fits is used.
    pub(crate) cases: Vec<Case>,
}

/// A name as the languages have it.
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
    /// Its number in the programs; none if it is a number there.
    pub(crate) id: Option<TensorId>,
    pub(crate) dtype: DType,
    pub(crate) is_output: bool,
    pub(crate) is_const: bool,
    /// Whether it is an integer that can be given with the sizes, and so says with them which kernel is called.
    pub(crate) is_selector: bool,
    pub(crate) rank: usize,
    /// The extents as the text declares them; none for results, whose extents follow.
    pub(crate) declared: Option<Vec<String>>,
}

/// Sizes that a function can be called with.
#[derive(Debug)]
pub(crate) struct Case {
    /// The numbers, in the order of [`Operator::sizes`]; zero for the one that varies.
    pub(crate) sizes: Vec<i64>,
    /// The size that varies, if there is one.
    pub(crate) varying: Option<Varying>,
    /// The programs of the kernels: one, or one per bucket.
    pub(crate) programs: Vec<(i64, Program)>,
    /// How the parameters lie in memory.
    pub(crate) layouts: Vec<Layout>,
    /// The threads that schedules are for.
    pub(crate) threads: usize,
    /// With which numbers its sums may be computed.
    pub(crate) precision: Precision,
}

/// The size of a case that varies.
#[derive(Debug)]
pub(crate) struct Varying {
    /// Its place among the sizes.
    pub(crate) place: usize,
    pub(crate) range: SizeRange,
    /// What is known of it; also knows the programs.
    pub(crate) buckets: Buckets,
}

impl Operator {
    /// An operator whose signature is that of a definition; `program` is the definition for some sizes.
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

    /// The sizes that functions take besides parameters.
    pub(crate) fn extents(&self) -> &[Name] {
        &self.sizes[..self.extents]
    }

    /// The parameters that say, with the sizes, which kernel is called.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_selector)
    }

    /// The parameters that preparing takes.
    pub(crate) fn prepares(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_const || parameter.is_selector)
    }

    /// The extents of a parameter, in terms of sizes as far as that is certain: `float(B, I)`.
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

    /// An extent of a result: the size that it is in all programs, a number, or `_` where it is neither.
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

    /// The name of the structure with prepared constants in Rust.
    pub(crate) fn structure(&self) -> String {
        let capital = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        let words: String = self.rust_name.split('_').map(capital).collect();
        format!("{words}Prepared")
    }

    /// Whether inputs can be prepared ahead of calls.
    pub(crate) fn has_constants(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.is_const)
    }
}

/// The parameters of a definition, which have no other names yet than in the text.
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

/// The names of sizes and parameters in Rust. A size that differs from a parameter in capital letters alone is called after what
/// it is.
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
    /// Whether it is a number that is passed by value.
    pub(crate) fn is_scalar_input(&self) -> bool {
        self.rank == 0 && !self.is_output
    }

    /// The layout of one element.
    fn as_scalar(&self) -> Layout {
        Layout { rows: 1, step: self.dtype.bytes(), varies: false }
    }
}

impl Case {
    /// Numbers for all sizes.
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

    /// A range for one size.
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

    /// What parameters are padded with.
    pub(crate) fn padding(&self) -> Padding {
        self.varying.as_ref().map_or(Padding::Zero, |varying| varying.buckets.variation.padding)
    }

    /// The sizes in words: `M=64, N=1..512`.
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
