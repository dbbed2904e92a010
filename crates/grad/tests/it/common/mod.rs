//! Compares gradients with finite differences, in double precision on the reference interpreter.

use std::collections::BTreeMap;

use tensorwright_grad::{Gradient, Input, grad, training};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::{Module, Program};
use tensorwright_reference::{Buffer, run};
use tensorwright_testkit::Rng;
use tensorwright_testkit::token::tokens;

pub(crate) type Buffers = BTreeMap<String, Buffer>;

/// The outcome of a comparison.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// There is no gradient, for this reason.
    Refused(String),
    /// The gradient agrees in this many directions; the others cross a kink.
    Agrees(usize),
}

/// A program and its inputs.
pub(crate) struct Case<'a> {
    pub(crate) text: String,
    pub(crate) def: &'a str,
    pub(crate) sizes: BTreeMap<String, i64>,
    /// Fixed inputs; all others are random.
    pub(crate) inputs: Buffers,
    /// Inputs whose elements are subscripts, with their upper bounds.
    pub(crate) index_inputs: BTreeMap<String, i64>,
    pub(crate) seed: u64,
}

/// Replaces every floating-point type by `double`, and drops the `f` suffix of functions.
pub(crate) fn in_double(text: &str) -> String {
    let mut result = String::new();
    let mut end = 0;
    for token in tokens(text) {
        let start = token.text.as_ptr() as usize - text.as_ptr() as usize;
        result.push_str(&text[end..start]);
        let is_float = DType::from_name(token.text).is_some_and(|dtype| dtype.is_float());
        result.push_str(if is_float { "double" } else { token.text });
        end = start + token.text.len();
    }
    result + &text[end..]
}

/// The number of directions tried.
const DIRECTIONS: usize = 6;

impl Case<'_> {
    /// Compares the gradient with finite differences.
    pub(crate) fn compare(&self) -> Result<Verdict, String> {
        let module = Module::parse("program.tc", &self.text).map_err(|error| error.to_string())?;
        let gradient = match grad(&module, self.def, &[]) {
            Ok(gradient) => gradient,
            Err(error) => return Ok(Verdict::Refused(error.list()[0].message.clone())),
        };
        let program =
            module.bind(self.def, self.sizes.clone()).map_err(|error| error.to_string())?;
        self.compare_with(&module, &program, &gradient)
            .map_err(|error| format!("{error}\n{}\n{}", self.text, gradient.source()))
    }

    fn compare_with(
        &self,
        module: &Module,
        program: &Program,
        gradient: &Gradient,
    ) -> Result<Verdict, String> {
        let mut rng = Rng::of(self.seed, 1);
        let mut inputs = self.inputs.clone();
        for id in program.input_ids() {
            let tensor = program.tensor(id);
            let bound = self.index_inputs.get(&tensor.name).copied();
            let make = || made_up(&mut rng, tensor.dtype, &tensor.shape, bound);
            inputs.entry(tensor.name.clone()).or_insert_with(make);
        }
        let outputs = outputs(program, &inputs)?;
        let mut all = inputs.clone();
        let mut weights = Buffers::new();
        for input in gradient.inputs() {
            if let Input::Cotangent { name, of } = input {
                let shape = outputs[of].shape();
                let weight = made_up(&mut rng, DType::Double, shape, None);
                all.insert(name.clone(), weight.clone());
                weights.insert(of.clone(), weight);
            }
        }
        let gradients = self.gradients(gradient, &all)?;
        self.compare_saved(module, &inputs, &all, gradient, &gradients)?;
        let loss = |inputs: &Buffers| -> Result<f64, String> {
            let outputs = self::outputs(program, inputs)?;
            Ok(weights.iter().map(|(name, weight)| dot(weight, &outputs[name])).sum())
        };
        let mut agreed = 0;
        for direction in 0..DIRECTIONS {
            let along = self.direction(&mut rng, gradient, &inputs, direction);
            let predicted: f64 = gradient
                .outputs()
                .iter()
                .map(|output| dot(&gradients[&output.name], &along[&output.of]))
                .sum();
            let slope = |h: f64| -> Result<f64, String> {
                let there = loss(&moved(&inputs, &along, h))?;
                Ok((there - loss(&moved(&inputs, &along, -h))?) / (2.0 * h))
            };
            let (coarse, fine) = (slope(1e-5)?, slope(2.5e-6)?);
            let scale = 1.0 + predicted.abs() + fine.abs();
            // The effect of rounding alone on differences of results of this size.
            if f64::EPSILON * loss(&inputs)?.abs() / 1e-6 > 1e-5 * scale {
                continue;
            }
            // At a kink the differences disagree; at a pole the gradient is NaN.
            if !scale.is_finite() || (coarse - fine).abs() > 1e-5 * scale {
                continue;
            }
            if (predicted - fine).abs() > 1e-4 * scale {
                return Err(format!(
                    "seed {}, direction {direction}: the gradient says {predicted}, differences say {fine}",
                    self.seed
                ));
            }
            agreed += 1;
        }
        Ok(Verdict::Agrees(agreed))
    }

    /// Compares the gradient that takes saved values with the one that recomputes them.
    fn compare_saved(
        &self,
        module: &Module,
        inputs: &Buffers,
        all: &Buffers,
        gradient: &Gradient,
        gradients: &Buffers,
    ) -> Result<(), String> {
        let training = training(module, self.def, &[]).map_err(|error| error.to_string())?;
        let returned = match training.forward() {
            Some(forward) => self.ran(forward.source(), forward.name(), inputs)?,
            None => self.ran(&self.text, self.def, inputs)?,
        };
        let mut all = all.clone();
        for input in training.gradient().inputs() {
            if let Input::Saved { name, place } = input {
                all.insert(name.clone(), returned[*place].1.clone());
            }
        }
        let saved = self.gradients(training.gradient(), &all)?;
        let pairs = gradient.outputs().iter().zip(training.gradient().outputs());
        for (again, output) in pairs {
            let (again, saved) = (&gradients[&again.name], &saved[&output.name]);
            for place in 0..again.len() {
                let (again, saved) = (again.get_f64(place).unwrap(), saved.get_f64(place).unwrap());
                let is_close = (again - saved).abs() <= 1e-9 * (1.0 + again.abs());
                if !is_close && again.is_finite() {
                    return Err(format!(
                        "seed {}: {}[{place}] is {saved} with saved values and {again} without\n{}",
                        self.seed,
                        output.name,
                        training.gradient().source()
                    ));
                }
            }
        }
        Ok(())
    }

    fn gradients(&self, gradient: &Gradient, inputs: &Buffers) -> Result<Buffers, String> {
        Ok(self.ran(gradient.source(), gradient.name(), inputs)?.into_iter().collect())
    }

    /// The results of a definition, in order.
    fn ran(
        &self,
        text: &str,
        name: &str,
        inputs: &Buffers,
    ) -> Result<Vec<(String, Buffer)>, String> {
        let module = Module::parse("made.tc", text).map_err(|error| error.to_string())?;
        if !module.warnings().is_empty() {
            return Err(module.warnings().to_string());
        }
        let def = module.def(name).map_err(|error| error.to_string())?;
        let known = [def.sizes(), def.integer_scalars()].concat();
        let mut sizes = self.sizes.clone();
        sizes.retain(|name, _| known.contains(&name.as_str()));
        let shapes = inputs.iter().map(|(name, buffer)| (name.as_str(), buffer.shape()));
        let sizes = def.sizes_from_shapes(shapes, &sizes).map_err(|error| error.to_string())?;
        let program = def.bind(sizes).map_err(|error| error.to_string())?;
        let needed = program.input_ids().map(|id| program.tensor(id).name.clone());
        let needed = needed.map(|name| (name.clone(), inputs[&name].clone())).collect();
        ordered(&program, &needed)
    }

    /// Some directions perturb every element, others a single one.
    fn direction(
        &self,
        rng: &mut Rng,
        gradient: &Gradient,
        inputs: &Buffers,
        number: usize,
    ) -> Buffers {
        let moved = gradient.outputs().iter().map(|output| {
            let input = &inputs[&output.of];
            let mut along = made_up(rng, DType::Double, input.shape(), None);
            if number % 2 == 1 {
                let only = rng.index(input.len().max(1));
                let elements = along.as_mut_slice::<f64>().unwrap().iter_mut().enumerate();
                elements
                    .filter(|(place, _)| *place != only)
                    .for_each(|(_, element)| *element = 0.0);
            }
            (output.of.clone(), along)
        });
        moved.collect()
    }
}

fn outputs(program: &Program, inputs: &Buffers) -> Result<Buffers, String> {
    Ok(ordered(program, inputs)?.into_iter().collect())
}

fn ordered(program: &Program, inputs: &Buffers) -> Result<Vec<(String, Buffer)>, String> {
    let run = run(program, inputs).map_err(|error| error.message)?;
    Ok(run.outputs.into_iter().map(|output| (output.name, output.buffer)).collect())
}

fn made_up(rng: &mut Rng, dtype: DType, shape: &[i64], bound: Option<i64>) -> Buffer {
    Buffer::from_fn(dtype, shape, |_| {
        let unit = rng.index(1 << 20) as f64 / f64::from(1 << 20);
        let value = match (dtype, bound) {
            (_, Some(bound)) => (unit * bound as f64).floor(),
            (DType::Bool, _) => (unit * 2.0).floor(),
            (dtype, _) if dtype.is_integer() => (unit * 5.0).floor(),
            _ => 0.25 + 1.5 * unit,
        };
        tensorwright_reference::Value::Float(value).convert(dtype)
    })
    .unwrap()
}

fn moved(inputs: &Buffers, along: &Buffers, by: f64) -> Buffers {
    let mut inputs = inputs.clone();
    for (name, along) in along {
        let elements = inputs.get_mut(name).unwrap().as_mut_slice::<f64>().unwrap();
        let steps = along.as_f64().unwrap();
        elements.iter_mut().zip(steps).for_each(|(element, step)| *element += by * step);
    }
    inputs
}

fn dot(a: &Buffer, b: &Buffer) -> f64 {
    (0..a.len()).map(|place| a.get_f64(place).unwrap() * b.get_f64(place).unwrap()).sum()
}
