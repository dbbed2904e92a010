//! The error analysis of a program as a program.
//!
//! [`run`](crate::run) carries a bound beside every number, one element at a time. [`bounding`] writes the same
//! analysis down as stages: next to each tensor, whose values are computed in `double`, there is one with the bounds
//! of its elements. Compiled like any other program it runs at the speed of compiled code, so that results of any size
//! can be compared element by element, each within its own bound.
//!
//! ```text
//! C(m,n) +=! A(m,k) * B(k,n)          in float, K terms
//!
//! v(m,n) +=! A(m,k) * B(k,n)          in double
//! s(m,n) +=! |A(m,k)| * |B(k,n)|
//! e(m,n)   = (u + c + ...) s(m,n)     c = k u / (1 + k u), k = K - 1, and the rounding of the store
//! ```
//!
//! Any correct evaluation of the program, as [`tolerance`](crate::tolerance) has it, ends within `e` of `v`. Where a
//! rule of that analysis has no short counterpart, the bound is infinite: nothing is guessed here either.

mod build;
mod call;
mod enclosure;
mod expr;
mod running;
mod scatter;
mod stages;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Program, TensorId};

use crate::buffer::{Buffer, BufferError};
use crate::element::Value;
use crate::output::Output;

/// The analysis of a program, and where its results are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorAnalysis {
    /// The analysis. It has the inputs of the program it was made of; its outputs are the tensors below.
    pub program: Program,
    /// One per output of the program, in order.
    pub outputs: Vec<BoundedOutput>,
}

/// An output of a program in its analysis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BoundedOutput {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// The name of the values: in `double` if it is of a floating-point type, in its type otherwise.
    pub values: String,
    /// The name of the bounds, in `double`; without, all values are exact.
    pub bounds: Option<String>,
}

impl BoundedOutput {
    /// The output in its own type, from what the analysis computed: like that of [`run`](crate::run), with tolerances
    /// that include what rounding the values to the type does to them.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn output(&self, values: &Buffer, bounds: Option<&Buffer>) -> Result<Output, BufferError> {
        let value = |position| values.get(position).unwrap_or(Value::Float(f64::NAN));
        let buffer = Buffer::from_fn(self.dtype, values.shape(), value)?;
        let bounds = bounds.and_then(Buffer::as_f64);
        let tolerance = (0..buffer.len()).map(|position| {
            let rounding = match buffer.get(position) {
                Some(stored) if self.dtype.is_float() => value(position).distance(stored),
                _ => 0.0,
            };
            let bound = bounds.and_then(|bounds| bounds.get(position)).copied().unwrap_or(0.0);
            // Far more than what rounding does to the bounds themselves.
            let bound = (bound + rounding) * (1.0 + 1e-6);
            if bound.is_nan() { f64::INFINITY } else { bound }
        });
        let tolerance = tolerance.collect();
        Ok(Output { name: self.name.clone(), buffer, tolerance })
    }
}

/// Writes the error analysis of a program as a program. `None` if it has no statements, or index arithmetic that cannot be
/// rebuilt.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_reference::bounding::bounding;
/// use tensorwright_reference::{random_inputs, run};
///
/// let text = "def norm(float(N) A) -> (B) { S() +=! A(n) * A(n)\n B(n) = A(n) / sqrt(S() + 1e-5) }";
/// let program = Module::parse("norm.tc", text)?.bind("norm", [("N", 100)])?;
/// let inputs = random_inputs(&program, 1)?;
///
/// let analysis = bounding(&program).ok_or("no analysis")?;
/// let results = run(&analysis.program, &inputs).map_err(|e| e.message)?;
/// let of = |name: &str| results.output(name).map(|output| &output.buffer);
/// let bounded = &analysis.outputs[0];
/// let values = of(&bounded.values).ok_or("no values")?;
/// let output = bounded.output(values, bounded.bounds.as_deref().and_then(of))?;
///
/// // What the interpreter computes is within its bounds, which are about as close as its own.
/// let direct = &run(&program, &inputs).map_err(|e| e.message)?.outputs[0];
/// assert_eq!(output.mismatch(&direct.buffer), None);
/// for (bound, tolerance) in output.tolerance.iter().zip(&direct.tolerance) {
///     assert!((0.9..1.5).contains(&(bound / tolerance)), "{bound} {tolerance}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn bounding(program: &Program) -> Option<ErrorAnalysis> {
    let mut analysis = stages::analysis(program)?;
    let mut outputs = Vec::new();
    analysis.made.outputs.clear();
    for id in &program.outputs {
        let place = id.0 as usize;
        let tensor = program.tensor(*id);
        let mut publish = |id: TensorId| {
            analysis.made.outputs.push(id);
            analysis.made.tensor(id).name.clone()
        };
        outputs.push(BoundedOutput {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            values: publish(analysis.values[place]),
            bounds: analysis.errors[place].map(publish),
        });
    }
    Some(ErrorAnalysis { program: analysis.made, outputs })
}
