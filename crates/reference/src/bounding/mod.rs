//! Compiles the error analysis of a program into a program.
//!
//! [`run`](crate::run) computes an error bound for every number, one element at a time.
//! [`bounding`] expresses the same analysis as stages: each tensor, computed in `double`, gets a
//! companion tensor of error bounds. Compiled like any other program, it is fast enough to compare
//! results of any size element by element.
//!
//! ```text
//! C(m,n) +=! A(m,k) * B(k,n)          in float, K terms
//!
//! v(m,n) +=! A(m,k) * B(k,n)          in double
//! s(m,n) +=! |A(m,k)| * |B(k,n)|
//! e(m,n)   = (u + c + ...) s(m,n)     c = k u / (1 + k u), k = K - 1, and the rounding of the store
//! ```
//!
//! Any correct evaluation of the program, as defined in [`tolerance`](crate::tolerance), ends
//! within `e` of `v`. Where a rule of that analysis has no short counterpart, the bound is
//! infinite, never a guess.

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

/// The error analysis of a program, and its outputs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorAnalysis {
    /// The analysis program. It has the inputs of the original program and the outputs below.
    pub program: Program,
    /// One per output of the original program, in order.
    pub outputs: Vec<BoundedOutput>,
}

/// An output of the original program in the analysis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BoundedOutput {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// The name of the tensor of values: `double` for a floating-point output, its own type
    /// otherwise.
    pub values: String,
    /// The name of the tensor of bounds, in `double`; `None` if all values are exact.
    pub bounds: Option<String>,
}

impl BoundedOutput {
    /// Converts the results of the analysis to the output's type: like that of [`run`](crate::run),
    /// with tolerances that include the rounding to the type.
    ///
    /// # Errors
    /// If it does not fit in memory.
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
            // A margin far above the rounding errors of the bounds themselves.
            let bound = (bound + rounding) * (1.0 + 1e-6);
            if bound.is_nan() { f64::INFINITY } else { bound }
        });
        let tolerance = tolerance.collect();
        Ok(Output { name: self.name.clone(), buffer, tolerance })
    }
}

/// Builds the error analysis of a program. `None` if the program has no statements, or index
/// arithmetic that cannot be rebuilt.
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
