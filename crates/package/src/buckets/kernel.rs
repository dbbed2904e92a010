//! [`BucketedKernel`]: in-process kernels for a dynamic size.

use std::collections::BTreeMap;

use tensorwright::ir::TensorId;
use tensorwright::{
    Buffer, Code, Def, Diagnostic, Diagnostics, Goal, Inputs, Kernel, Program, Target,
};
use tensorwright_policy::DefaultSchedule;
use tensorwright_tuner::SizeRange;

use super::layout::Slice;
use super::{Buckets, Layout, Ranged, Run, costs, covers};
use crate::level::unavailable;

/// The results of a call, by name.
pub type Results = BTreeMap<String, Buffer>;

/// A definition compiled for every value of one of its sizes.
///
/// ```
/// use std::collections::BTreeMap;
/// use tensorwright::{Target, Module};
/// use tensorwright_package::buckets::BucketedKernel;
/// use tensorwright_tuner::SizeRange;
///
/// let text = "def scale(float(N) A) -> (B) { B(i) = 2 * A(i) }";
/// let module = Module::parse("scale.tc", text)?;
/// let range = SizeRange::new(1, 40, vec![8, 40])?;
/// let native = Target::native()?;
/// let kernel = BucketedKernel::new(&module.def("scale")?, &BTreeMap::new(), "N", &range, &native)?;
///
/// let inputs = [("A".to_owned(), vec![1.0f32; 11].into())].into();
/// let outputs = kernel.run(11, &inputs)?;
/// assert_eq!(outputs["B"].as_f32(), Some(&[2.0; 11][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BucketedKernel {
    /// The name of the size.
    name: String,
    range: SizeRange,
    /// The buckets, in ascending order.
    values: Vec<i64>,
    kernels: Vec<Kernel>,
    /// How other values are computed; `None` if every value has a kernel.
    between: Option<Between>,
}

/// How values without a kernel are computed.
#[derive(Debug)]
struct Between {
    buckets: Buckets,
    covers: Vec<Vec<Run>>,
}

impl BucketedKernel {
    /// Compiles kernels for a range of the size `name`; the other sizes are `fixed`.
    ///
    /// # Errors
    /// Sizes that do not bind, a size that cannot be dynamic, and compile errors.
    pub fn new(
        def: &Def<'_>,
        fixed: &BTreeMap<String, i64>,
        name: &str,
        range: &SizeRange,
        target: &Target,
    ) -> Result<Self, Diagnostics> {
        let ranged = Ranged::of(def, fixed, name, range)?;
        let goal = Goal::new(target.clone()).on_this_machine();
        let build = |(_, program): &(i64, Program)| {
            let untuned = DefaultSchedule::of(program.ir(), &goal).map_err(|e| unavailable(&e))?;
            let builder = program.compile().target(target.clone()).schedule(untuned.schedule);
            Ok((builder.build()?, untuned.cycles))
        };
        let built: Result<Vec<(Kernel, f64)>, Diagnostics> =
            ranged.list().iter().map(build).collect();
        let (kernels, cycles): (Vec<Kernel>, Vec<f64>) = built?.into_iter().unzip();
        let values: Vec<i64> = ranged.list().iter().map(|(value, _)| *value).collect();
        let between = match ranged {
            Ranged::Each(_) => None,
            Ranged::Covered(buckets) => {
                let (kind, costs) = (buckets.variation.kind, costs(&buckets, &cycles));
                Some(Between { covers: covers(range.first, &values, kind, &costs), buckets })
            }
        };
        Ok(Self { name: name.to_owned(), range: range.clone(), values, kernels, between })
    }

    /// The buckets.
    #[must_use]
    pub fn buckets(&self) -> &[i64] {
        &self.values
    }

    /// The buckets whose kernels compute a value, in execution order; empty outside of the range.
    #[must_use]
    pub fn cover(&self, value: i64) -> Vec<i64> {
        if self.kernel(value).is_some() {
            return vec![value];
        }
        let place = usize::try_from(value - self.range.first).ok();
        let covers = self.between.as_ref().map(|between| &between.covers);
        let cover = place.zip(covers).and_then(|(place, covers)| covers.get(place));
        let each = |run: &Run| std::iter::repeat_n(self.values[run.bucket], run.count);
        cover.map(|runs| runs.iter().flat_map(each).collect()).unwrap_or_default()
    }

    /// The kernel of a bucket.
    #[must_use]
    pub fn kernel(&self, bucket: i64) -> Option<&Kernel> {
        self.kernels.get(self.values.binary_search(&bucket).ok()?)
    }

    /// The factor by which rounding errors may exceed those of the program's own sums, for any
    /// value.
    #[must_use]
    pub fn error_growth(&self) -> f64 {
        let growth = self.kernels.iter().map(|kernel| kernel.lowered().error_growth());
        growth.fold(1.0, f64::max)
    }

    /// Runs for a value of the size. Slices are copied.
    ///
    /// # Errors
    /// A value outside of the range, missing or invalid inputs, and out-of-bounds data subscripts.
    pub fn run(&self, value: i64, inputs: &Inputs) -> Result<Results, Diagnostics> {
        if let Some(kernel) = self.kernel(value) {
            return Ok(kernel.run(inputs)?.into_iter().collect());
        }
        let cover = self.cover(value);
        let (Some(between), Some(largest)) = (&self.between, self.kernels.last()) else {
            return Err(self.problem(Code::InvalidSize, self.outside(value)));
        };
        if cover.is_empty() {
            return Err(self.problem(Code::InvalidSize, self.outside(value)));
        }
        let tensors = Tensors::of(between, largest.program(), value);
        let given = tensors.given(inputs).map_err(|text| self.problem(Code::InputShape, text))?;
        let mut results = tensors.results();
        let mut begin = 0;
        for bucket in cover {
            // The last slice ends with the tensors; one longer than the tensors is padded.
            let at = if begin + bucket <= value { begin } else { (value - bucket).max(0) };
            let slice = Slice { value: value as usize, at: at as usize, bucket: bucket as usize };
            let kernel = self.kernel(bucket).unwrap_or(largest);
            tensors.run(kernel, slice, &given, &mut results)?;
            begin = at + bucket;
        }
        tensors.finish(results).map_err(|text| self.problem(Code::TooLarge, text))
    }

    fn outside(&self, value: i64) -> String {
        format!("`{}` is {value}, and the kernels are for {}", self.name, self.range)
    }

    fn problem(&self, code: Code, message: String) -> Diagnostics {
        let source = self.kernels.first().map(|kernel| kernel.program().ir().source.clone());
        let source = source.unwrap_or_else(|| tensorwright::Source::new(&self.name, ""));
        Diagnostics::new(source, vec![Diagnostic::without_place(code, message)])
    }
}

/// The inputs and outputs of a call for a value without a kernel.
struct Tensors<'a> {
    between: &'a Between,
    program: &'a Program,
    value: i64,
    layouts: Vec<Layout>,
}

impl<'a> Tensors<'a> {
    fn of(between: &'a Between, program: &'a Program, value: i64) -> Self {
        Self { between, program, value, layouts: between.buckets.layouts() }
    }

    /// The shape of a tensor for a value.
    fn shape(&self, id: TensorId, value: i64) -> Vec<i64> {
        let mut shape = self.program.ir().tensor(id).shape.clone();
        let dimension = self.between.buckets.variation.dimensions.get(id.0 as usize).copied();
        if let Some(extent) = dimension.flatten().and_then(|dimension| shape.get_mut(dimension)) {
            *extent = value;
        }
        shape
    }

    /// The bytes of the inputs, in order.
    fn given(&self, inputs: &Inputs) -> Result<Vec<Vec<u8>>, String> {
        let ir = self.program.ir();
        let one = |id: TensorId| {
            let (tensor, shape) = (ir.tensor(id), self.shape(id, self.value));
            let given = inputs.get(&tensor.name);
            let given = given.ok_or_else(|| format!("input `{}` is missing", tensor.name))?;
            if given.dtype() == tensor.dtype && given.shape() == shape {
                return Ok(given.to_bytes());
            }
            let expected = format!("a {} of shape {shape:?}", tensor.dtype);
            Err(format!("input `{}` is a {}, and not {expected}", tensor.name, given.type_text()))
        };
        ir.input_ids().map(one).collect()
    }

    /// Memory for the outputs, in order.
    fn results(&self) -> Vec<Vec<u8>> {
        let layouts = self.layouts.iter().skip(self.program.ir().inputs);
        layouts.map(|layout| vec![0; layout.bytes(self.value as usize)]).collect()
    }

    /// Runs the kernel of a bucket on a slice.
    fn run(
        &self,
        kernel: &Kernel,
        slice: Slice,
        given: &[Vec<u8>],
        results: &mut [Vec<u8>],
    ) -> Result<(), Diagnostics> {
        let ir = self.program.ir();
        let padding = self.between.buckets.variation.padding;
        let mut inputs = Inputs::new();
        for ((id, bytes), layout) in ir.input_ids().zip(given).zip(&self.layouts) {
            let tensor = ir.tensor(id);
            let shape = self.shape(id, slice.bucket as i64);
            let part = match layout.varies {
                true => {
                    Buffer::from_bytes(tensor.dtype, &shape, &layout.gather(bytes, slice, padding))
                }
                false => Buffer::from_bytes(tensor.dtype, &shape, bytes),
            };
            // Inputs that cannot be copied stay missing, which the kernel reports.
            inputs.extend(part.ok().map(|part| (tensor.name.clone(), part)));
        }
        let outputs = kernel.run(&inputs)?;
        let layouts = self.layouts.iter().skip(ir.inputs);
        for (((_, output), result), layout) in outputs.iter().zip(results).zip(layouts) {
            match layout.varies {
                true => layout.scatter(&output.to_bytes(), slice, result),
                false => result.copy_from_slice(&output.to_bytes()),
            }
        }
        Ok(())
    }

    /// The results as tensors.
    fn finish(&self, results: Vec<Vec<u8>>) -> Result<Results, String> {
        let ir = self.program.ir();
        let one = |(id, bytes): (&TensorId, Vec<u8>)| {
            let (tensor, shape) = (ir.tensor(*id), self.shape(*id, self.value));
            let buffer = Buffer::from_bytes(tensor.dtype, &shape, &bytes);
            Ok((tensor.name.clone(), buffer.map_err(|error| error.to_string())?))
        };
        ir.outputs.iter().zip(results).map(one).collect()
    }
}
