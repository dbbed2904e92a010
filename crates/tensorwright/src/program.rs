//! Programs: definitions bound to sizes.

use std::collections::BTreeMap;
use std::fmt;

use tensorwright_lang::program as ir;
use tensorwright_reference as reference;

use crate::{Analysis, Buffer, Code, Diagnostic, Diagnostics, ProgramHash, Run};

/// The inputs of a run, by name.
pub type Inputs = BTreeMap<String, Buffer>;

/// A definition bound to sizes: every range is known, every read is proven in bounds or marked for
/// a run-time check.
///
/// It prints as source text with all sizes and ranges filled in; that text parses and binds to a
/// program with the same [hash](Program::hash).
#[derive(Debug, Clone)]
pub struct Program {
    ir: ir::Program,
}

impl Program {
    pub(crate) fn new(ir: ir::Program) -> Self {
        Self { ir }
    }

    /// The name of the definition.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.ir.name
    }

    /// The inputs, in order.
    #[must_use]
    pub fn inputs(&self) -> &[ir::Tensor] {
        &self.ir.tensors[..self.ir.inputs]
    }

    /// The outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> Vec<&ir::Tensor> {
        self.ir.outputs.iter().map(|output| self.ir.tensor(*output)).collect()
    }

    /// The stages and tensors, for tools.
    #[must_use]
    pub fn ir(&self) -> &ir::Program {
        &self.ir
    }

    /// A hash of the text without names, comments and layout.
    #[must_use]
    pub fn hash(&self) -> ProgramHash {
        self.ir.hash()
    }

    /// The same program with positional names: `v_0`, `v_1` for tensors and `i_0`, `i_1` for axes,
    /// the same for all programs with one [hash](Program::hash). Records and other processes use
    /// these names.
    #[must_use]
    pub fn canonically_named(&self) -> Self {
        Self { ir: self.ir.canonically_named() }
    }

    /// The same program with its printed names: those of its text, except names that would clash in
    /// one scope after inlining.
    #[must_use]
    pub fn as_printed(&self) -> Self {
        Self { ir: self.ir.as_printed() }
    }

    /// Loops, trip counts, connections, arithmetic and memory traffic.
    #[must_use]
    pub fn analysis(&self) -> Analysis {
        self.ir.analysis()
    }

    /// The same program without `const` inputs: all may change between calls.
    #[must_use]
    pub fn with_changing_inputs(&self) -> Self {
        let mut ir = self.ir.clone();
        ir.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
        Self { ir }
    }

    /// The reductions that end earlier in `smaller`, if this program is otherwise the same. [With
    /// guards](Program::guarded), this program then computes `smaller`, whatever its inputs hold
    /// beyond those of `smaller`.
    ///
    /// ```
    /// # use tensorwright::Module;
    /// let module = Module::parse("t.tc", "def total(float(N) x) -> (y) { y() +=! x(i) }")?;
    /// let (large, small) = (module.def("total")?.bind([("N", 8)])?, module.def("total")?.bind([("N", 5)])?);
    /// let guards = large.guards_for(&small).expect("nothing but the end of a range differs");
    /// let guarded = large.guarded(&guards).expect("no subscript overflows");
    /// assert_eq!(guarded.inputs().len(), 2);
    /// # Ok::<(), tensorwright::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// The reason why it does not, as the end of a sentence.
    pub fn guards_for(&self, smaller: &Self) -> Result<Vec<ir::ReductionGuard>, &'static str> {
        self.ir.guards_for(&smaller.ir)
    }

    /// The same program with an additional `int32` input per guard: the end of that reduction.
    /// `None` if index arithmetic overflows.
    #[must_use]
    pub fn guarded(&self, guards: &[ir::ReductionGuard]) -> Option<Self> {
        self.ir.guarded(guards).map(Self::new)
    }

    /// The same program with empty ranges for some stages, by number: they keep the previous
    /// values.
    #[must_use]
    pub fn without_points(&self, stages: &[(usize, ir::EmptyRange)]) -> Self {
        Self::new(self.ir.without_points(stages))
    }

    /// The same program with an input whose axes have these `strides` (in elements), and how many
    /// elements before the first one its pointer has to point. Memory before the first element is
    /// never read. `None` if the strides are impossible.
    ///
    /// ```
    /// # use tensorwright::Module;
    /// let module = Module::parse("t.tc", "def twice(float(N,D) x) -> (y) { y(n,d) = 2 * x(n,d) }")?;
    /// let program = module.def("twice")?.bind([("N", 3), ("D", 4)])?;
    /// let (strided, before) = program.with_strides(0, &[10, 1]).expect("rows of ten");
    /// assert_eq!((strided.inputs()[0].shape.as_slice(), before), (&[3, 10][..], 6));
    /// assert!(program.with_strides(0, &[3, 1]).is_none());
    /// # Ok::<(), tensorwright::Diagnostics>(())
    /// ```
    #[must_use]
    pub fn with_strides(&self, input: usize, strides: &[i64]) -> Option<(Self, i64)> {
        let id = ir::TensorId(u32::try_from(input).ok()?);
        self.ir.with_strides(id, strides).map(|(ir, before)| (Self::new(ir), before))
    }

    /// The number of innermost iterations of all stages, which the reference interpreter executes
    /// one by one.
    #[must_use]
    pub fn iterations(&self) -> u128 {
        self.ir.stages.iter().map(ir::Stage::iterations).fold(0, u128::saturating_add)
    }

    /// Random inputs that depend only on the seed and the names of the inputs. Integers used as
    /// subscripts are drawn within bounds.
    ///
    /// # Errors
    /// If an input is too large to allocate.
    pub fn random_inputs(&self, seed: u64) -> Result<Inputs, Diagnostics> {
        reference::random_inputs(&self.ir, seed).map_err(|error| {
            let error = Diagnostic::without_place(Code::TooLarge, error.to_string());
            self.diagnostics(error.help("use smaller sizes"))
        })
    }

    /// Runs the program on the reference interpreter: slow, with checked reads and sums in higher
    /// precision. Each output has the error bound of an evaluation in its own type.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs, and out-of-bounds data subscripts.
    pub fn run_reference(&self, inputs: &Inputs) -> Result<Run, Diagnostics> {
        reference::run(&self.ir, inputs).map_err(|error| self.diagnostics(error))
    }

    pub(crate) fn diagnostics(&self, error: Diagnostic) -> Diagnostics {
        Diagnostics::new(self.ir.source.clone(), vec![error])
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ir.fmt(f)
    }
}
