//! Compiles kernels whose sizes vary, and calls them at many sizes in one process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use tensorwright_codegen_c::{EmitOptions, POOL, emit_with, memory_type};
use tensorwright_lang::Module;
use tensorwright_lang::program::{Program, SizeRange, SizeValue, SizedProgram, TensorId};
use tensorwright_reference::{Buffer, Run, random_inputs, run};
use tensorwright_schedule::interface::{Argument, Number};
use tensorwright_schedule::{Interface, LoweredNest, Schedule, canonical_sized, lower};
use tensorwright_testkit::Rng;

use super::{build_harness, scratch};

/// The byte that fills the gaps between rows.
const GAP: u8 = 0xA5;

/// A kernel for a range of sizes.
pub(crate) struct SizedCase {
    module: Module,
    def: String,
    pub(crate) program: SizedProgram,
    nest: LoweredNest,
    pub(crate) interface: Interface,
    /// The numbers that are compiled in.
    known: Vec<(String, i64)>,
}

/// A size that varies from 1 on.
pub(crate) fn up_to(most: i64, likely: i64) -> SizeValue {
    SizeValue::Varies(SizeRange { least: 1, most, likely, multiple: 1 })
}

impl SizedCase {
    /// A definition with values of sizes, under a schedule. Its kernel has the name.
    pub(crate) fn new(name: &str, text: &str, sizes: &[(&str, SizeValue)], schedule: &str) -> Self {
        let module = Module::parse("test.tc", text).unwrap_or_else(|errors| panic!("{errors}"));
        let def = module.defs().next().unwrap().name().to_owned();
        let program = module.bind_sized(&def, sizes.iter().copied());
        let program = program.unwrap_or_else(|errors| panic!("{errors}"));
        let nest = Schedule::parse(schedule).unwrap().apply(canonical_sized(&program).unwrap());
        let nest = lower(nest.unwrap_or_else(|refusal| panic!("{refusal:?}"))).unwrap();
        let known = sizes.iter().filter_map(|(name, value)| match value {
            SizeValue::Known(value) => Some(((*name).to_owned(), *value)),
            SizeValue::Varies(_) => None,
        });
        let known = known.collect();
        Self::lowered(name, module, def, program, nest, known)
    }

    /// The kernel of a lowered nest.
    pub(crate) fn lowered(
        name: &str,
        module: Module,
        def: String,
        program: SizedProgram,
        nest: LoweredNest,
        known: Vec<(String, i64)>,
    ) -> Self {
        let nest = nest.named(name);
        let interface = Interface::of(&nest);
        Self { module, def, program, nest, interface, known }
    }

    /// The C text.
    pub(crate) fn code(&self) -> String {
        emit_with(&self.nest, EmitOptions::default()).unwrap().code
    }

    /// Sizes near the edges of tiles and ranges.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Vec<i64> {
        let mut draw = |below: i64| rng.below(below.max(1) as u64) as i64;
        let one = |size: &tensorwright_lang::program::Size| {
            let SizeRange { least, most, likely, multiple } = size.range;
            let value = match draw(5) {
                0 => least + draw(4),
                1 => likely,
                2 => 16 * (1 + draw(3)) + draw(3) - 1,
                3 => most,
                _ => least + draw(most - least + 1),
            };
            (value / multiple * multiple).clamp(least, most)
        };
        self.program.sizes.iter().map(one).collect()
    }

    /// The program at sizes; `None` if it is not defined for them.
    fn at(&self, sizes: &[i64]) -> Option<Program> {
        self.program.check(sizes).ok()?;
        let named = self.program.sizes.iter().zip(sizes).map(|(s, value)| (s.name.clone(), *value));
        let known = self.known.iter().cloned();
        self.module.bind(&self.def, named.chain(known)).ok()
    }

    /// The functions that the harness calls.
    fn adapters(&self, declarations: &mut String) -> String {
        let name = &self.interface.symbol;
        let sizes = self.program.sizes.len();
        let mut given: Vec<String> = (0..sizes).map(|n| format!("sizes[{n}]")).collect();
        let list = format!("{}, workers", given.join(", "));
        let mut kinds = vec!["int64_t".to_owned(); sizes];
        writeln!(declarations, "int64_t {name}_workspace_bytes({}, int32_t);", kinds.join(", "))
            .unwrap();
        for (place, argument) in self.interface.signature().iter().enumerate() {
            let kind = memory_type(argument.dtype());
            match argument.is_scalar_input() {
                true => given.push(format!("*(const {kind} *)memory[{place}]")),
                false => given.push(format!("memory[{place}]")),
            }
            kinds.push(match (argument.is_scalar_input(), argument.is_output()) {
                (true, _) => kind.to_owned(),
                (_, true) => format!("{kind} *"),
                (_, false) => format!("const {kind} *"),
            });
        }
        let kinds = kinds.join(", ");
        writeln!(
            declarations,
            "int {name}_run({kinds}, const int64_t *, void *, tw_pool *);\n\
             int {name}_call({kinds});"
        )
        .unwrap();
        format!(
            "static int64_t {name}_bytes(const int64_t *sizes, int32_t workers) {{\n    \
             return {name}_workspace_bytes({list});\n}}\n\
             static int {name}_any(const int64_t *sizes, void **memory, const int64_t *strides,\n    \
             void *workspace, tw_pool *pool) {{\n    \
             if (strides == NULL && workspace == NULL && pool == NULL) {{\n        \
             return {name}_call({0});\n    }}\n    \
             return {name}_run({0}, strides, workspace, pool);\n}}\n",
            given.join(", ")
        )
    }
}

/// The memory of a tensor whose rows may lie apart.
struct Apart {
    /// The bytes of an element.
    size: usize,
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<i64>,
    /// The first element.
    start: usize,
    bytes: Vec<u8>,
}

impl Apart {
    /// Dense memory, or rows with gaps of three elements. Every other dimension goes backwards.
    fn new(size: usize, shape: &[i64], is_dense: bool) -> Self {
        let shape: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
        let (mut strides, mut count, mut start) = (vec![1; shape.len()], 1, 0);
        for (dimension, extent) in shape.iter().enumerate().rev() {
            let is_back = !is_dense && dimension + 1 < shape.len() && dimension % 2 == 0;
            strides[dimension] = if is_back { -(count as i64) } else { count as i64 };
            start += if is_back { count * (extent - 1) } else { 0 };
            count = count * extent + if is_dense { 0 } else { 3 };
        }
        Self { size, shape, strides, start, bytes: vec![GAP; count * size] }
    }

    /// The positions of the elements in bytes, in row-major order.
    fn places(&self) -> Vec<usize> {
        let axes = self.shape.iter().zip(&self.strides);
        let first = vec![self.start as i64];
        let places = axes.fold(first, |places, (extent, stride)| {
            let along = |place: i64| (0..*extent as i64).map(move |n| place + n * stride);
            places.into_iter().flat_map(along).collect()
        });
        places.into_iter().map(|place| place as usize * self.size).collect()
    }

    fn fill(&mut self, elements: &[u8]) {
        for (place, element) in self.places().into_iter().zip(elements.chunks(self.size)) {
            self.bytes[place..place + self.size].copy_from_slice(element);
        }
    }

    /// The elements. The bytes between them must be as they were.
    fn taken(&self, bytes: &[u8]) -> Vec<u8> {
        let (places, mut rest) = (self.places(), bytes.to_vec());
        let mut elements = Vec::new();
        for place in places {
            elements.extend_from_slice(&bytes[place..place + self.size]);
            rest[place..place + self.size].fill(GAP);
        }
        assert!(rest.iter().all(|byte| *byte == GAP), "a gap was written");
        elements
    }
}

/// A call in the file of the harness, and what it has to compute.
struct Call<'c> {
    case: &'c SizedCase,
    sizes: Vec<i64>,
    is_dense: bool,
    tensors: Vec<Apart>,
    /// The program and its results; `None` if the call has to be refused.
    expected: Option<(Program, Run)>,
}

impl<'c> Call<'c> {
    /// A call with random inputs; `None` if the reference fails.
    fn new(case: &'c SizedCase, sizes: Vec<i64>, is_dense: bool, seed: u64) -> Option<Self> {
        // The interface knows the conditions of the program.
        let is_allowed = case.interface.numbers_for(&sizes).is_some();
        assert_eq!(is_allowed, case.program.check(&sizes).is_ok(), "{sizes:?}");
        let Some(program) = case.at(&sizes) else {
            return Some(Self::refused(case, sizes));
        };
        let inputs: BTreeMap<String, Buffer> = random_inputs(&program, seed).unwrap();
        let run = run(&program, &inputs).ok()?;
        let mut tensors = Vec::new();
        for argument in case.interface.signature() {
            let tensor = match argument {
                Argument::Passed(parameter) => program.tensor(TensorId(parameter.id.0)),
                Argument::Fixed(scalar) => {
                    let mut memory = Apart::new(8, &[], true);
                    memory.fill(&scalar.value.to_ne_bytes());
                    tensors.push(memory);
                    continue;
                }
            };
            let mut memory = Apart::new(tensor.dtype.bytes(), &tensor.shape, is_dense);
            if !argument.is_output() {
                memory.fill(&inputs[&tensor.name].to_bytes());
            }
            tensors.push(memory);
        }
        Some(Self { case, sizes, is_dense, tensors, expected: Some((program, run)) })
    }

    /// A call that has to be refused, with hardly any memory.
    fn refused(case: &'c SizedCase, sizes: Vec<i64>) -> Self {
        let one = |_: Argument<'_>| Apart::new(8, &[], true);
        let tensors = case.interface.signature().into_iter().map(one).collect();
        Self { case, sizes, is_dense: true, tensors, expected: None }
    }

    fn strides(&self) -> Vec<i64> {
        let outer =
            |tensor: &Apart| tensor.strides.split_last().map_or(vec![], |(_, o)| o.to_vec());
        self.tensors.iter().flat_map(outer).collect()
    }

    fn write(&self, number: usize, workers: i64, out: &mut Vec<u8>) {
        let mut words = vec![number as i64, i64::from(!self.is_dense), workers];
        words.extend(&self.sizes);
        match self.expected {
            Some(_) => words.extend(self.strides()),
            None => words.extend(std::iter::repeat_n(0, stride_count(&self.case.interface))),
        }
        words.extend(self.tensors.iter().map(|tensor| tensor.bytes.len() as i64));
        words.extend(self.tensors.iter().map(|tensor| (tensor.start * tensor.size) as i64));
        out.extend(words.into_iter().flat_map(i64::to_ne_bytes));
        self.tensors.iter().for_each(|tensor| out.extend(&tensor.bytes));
    }

    /// Compares the results of the harness, and returns those of the other calls.
    fn compare<'b>(&self, results: &'b [u8], what: &str) -> &'b [u8] {
        let (status, mut rest) = results.split_first_chunk::<8>().unwrap();
        let status = i64::from_ne_bytes(*status);
        let interface = &self.case.interface;
        for (argument, tensor) in interface.signature().iter().zip(&self.tensors) {
            let (bytes, others) = rest.split_at(tensor.bytes.len());
            rest = others;
            let Some((program, run)) = &self.expected else {
                assert_eq!(status, -2, "{what}");
                continue;
            };
            assert_eq!(status, 0, "{what}");
            let Argument::Passed(parameter) = argument else { continue };
            let declared = program.tensor(TensorId(parameter.id.0));
            let elements = tensor.taken(bytes);
            let found = Buffer::from_bytes(declared.dtype, &declared.shape, &elements).unwrap();
            if argument.is_output() {
                let growth = self.case.nest.as_nest().rounding_growth;
                let wrong = run.output(&declared.name).unwrap().mismatch_within(&found, growth);
                assert!(wrong.is_none(), "{what}: {}: {wrong:?}", declared.name);
            }
        }
        rest
    }
}

fn stride_count(interface: &Interface) -> usize {
    let is_stride = |number: &&Number| matches!(number, Number::Stride { .. });
    interface.numbers.iter().filter(is_stride).count()
}

/// Calls every kernel at some sizes of its own and at `rounds` random ones, dense and with gaps,
/// without a pool and with workers, under sanitizers. Returns the number of calls that computed.
pub(crate) fn run_sized(
    test: &str,
    cases: &[(SizedCase, Vec<Vec<i64>>)],
    rounds: u64,
    optimization: &'static str,
) -> usize {
    let directory = scratch(test);
    let (mut declarations, mut table) = (String::new(), String::new());
    for (case, _) in cases {
        let name = &case.interface.symbol;
        let source = emit_with(&case.nest, EmitOptions::poisoned());
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        std::fs::write(directory.join(format!("{name}.c")), source.code).unwrap();
        let adapters = case.adapters(&mut declarations);
        declarations += &adapters;
        writeln!(
            table,
            "    {{{name}_any, {name}_bytes, {}, {}, {}}},",
            case.program.sizes.len(),
            stride_count(&case.interface),
            case.interface.signature().len()
        )
        .unwrap();
    }
    let kernels = format!("{declarations}static const kernel kernels[] = {{\n{table}}};\n");
    let main = include_str!("sized.c").replace("/* POOL */", POOL);
    let main = main.replace("/* KERNELS */", &kernels);
    std::fs::write(directory.join("main.c"), main).unwrap();
    let names = cases.iter().map(|(case, _)| case.interface.symbol.as_str());
    build_harness(&directory, names, optimization);

    let (mut calls, mut script) = (Vec::new(), Vec::new());
    for (number, (case, sizes)) in cases.iter().enumerate() {
        let mut rng = Rng::new(number as u64);
        let drawn = (0..rounds).map(|_| case.draw(&mut rng));
        for (round, sizes) in sizes.iter().cloned().chain(drawn).enumerate() {
            let seed = (1000 * number + round) as u64;
            let Some(call) = Call::new(case, sizes, round % 2 == 0, seed) else { continue };
            let workers = [0, 3, 1, 0][round % 4];
            call.write(number, workers, &mut script);
            calls.push(call);
        }
    }
    std::fs::write(directory.join("calls"), script).unwrap();
    let output = Command::new(directory.join("harness")).current_dir(&directory).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let results = std::fs::read(directory.join("results")).unwrap();
    let mut rest = results.as_slice();
    for call in &calls {
        let what =
            format!("{} at {:?}\n{}", call.case.interface.symbol, call.sizes, call.case.nest);
        rest = call.compare(rest, &what);
    }
    calls.iter().filter(|call| call.expected.is_some()).count()
}
