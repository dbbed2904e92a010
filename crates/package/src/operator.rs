//! [`Operator`]: a function of a package, with all sizes that it is for.

use tensorwright_codegen_c::{c_names, rust_names};
use tensorwright_kernel::ir::TensorId;
use tensorwright_kernel::schedule::canonical;
use tensorwright_kernel::schedule::nest::Owner;
use tensorwright_kernel::{DType, Precision, Program, Signature};
use tensorwright_tuner::SizeRange;

use crate::buckets::{Buckets, Layout, Padding};

/// A function of a package.
#[derive(Debug)]
pub(crate) struct Operator {
    /// What it is called, without the name of the package.
    pub(crate) name: String,
    /// The same in Rust.
    pub(crate) rust_name: String,
    /// The sizes that it takes.
    pub(crate) sizes: Vec<Name>,
    /// The tensors and scalars that it takes.
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
    /// Its number in the program.
    pub(crate) id: TensorId,
    pub(crate) dtype: DType,
    pub(crate) is_output: bool,
    pub(crate) is_const: bool,
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
    /// An operator whose signature is that of a program.
    pub(crate) fn new(
        name: &str,
        sizes: &[String],
        program: &Program,
        declared: &[Signature],
    ) -> Self {
        let nest = canonical(program.ir());
        let parameter = |id: &TensorId| (*id, nest.buffer(*id));
        let parameters: Vec<_> = nest.parameters.iter().map(parameter).collect();
        let buffers = parameters.iter().map(|(_, buffer)| buffer.name.as_str());
        let all: Vec<&str> = sizes.iter().map(String::as_str).chain(buffers).collect();
        let names =
            all.iter().zip(c_names(all.iter().copied())).zip(rust_names(all.iter().copied()));
        let names = names.map(|((text, c), rust)| Name { text: (*text).to_owned(), c, rust });
        let mut names: Vec<Name> = names.collect();
        let of_parameters = names.split_off(sizes.len());
        let parameters =
            parameters.into_iter().zip(of_parameters).map(|((id, buffer), name)| Parameter {
                declared: declared
                    .iter()
                    .find(|signature| signature.name == name.text)
                    .map(|signature| signature.dims.clone()),
                name,
                id,
                dtype: buffer.dtype,
                is_output: buffer.owner == Owner::Output,
                is_const: nest.constants.contains(&id),
                rank: buffer.shape.len(),
            });
        let rust_name = rust_names([name]).pop().unwrap_or_default();
        Self {
            name: name.to_owned(),
            rust_name,
            sizes: names,
            parameters: parameters.collect(),
            cases: Vec::new(),
        }
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
                let shape = &program.ir().tensor(parameter.id).shape;
                found.extend(shape.get(place).map(|extent| (sizes, *extent)));
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

    /// Whether inputs can be prepared ahead of calls.
    pub(crate) fn has_constants(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.is_const)
    }
}

impl Parameter {
    /// Whether it is a number that is passed by value.
    pub(crate) fn is_scalar_input(&self) -> bool {
        self.rank == 0 && !self.is_output
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
        let layout = |p: &Parameter| Layout::of(program.ir().tensor(p.id), None);
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
        let layout = |p: &Parameter| buckets.layout(p.id);
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
