//! The arguments of a call: tensors and numbers, by position or by name.

use std::collections::BTreeMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple};
use tensorwright::DType;

use crate::definition::{Param, Signature};
use crate::error::Class;
use crate::foreign::{Foreign, Gradients, Library, Refusal};

/// The arguments of a call, in the order of the definition's parameters.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) given: Vec<Option<ArgumentValue>>,
    /// Sizes given by name.
    pub(crate) sizes: BTreeMap<String, i64>,
}

/// One argument.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an allocation for each tensor costs a call more")]
pub(crate) enum ArgumentValue {
    Tensor(Foreign),
    Number(Number),
}

/// A scalar: the bytes of its declared type, and its value if it is an integer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub(crate) bytes: [u8; 8],
    pub(crate) integer: Option<i64>,
}

impl Arguments {
    /// Reads the arguments of a call.
    pub(crate) fn read(
        signature: &Signature,
        positional: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        gradients: Gradients,
    ) -> PyResult<Self> {
        let py = positional.py();
        let params = &signature.params;
        if positional.len() > params.len() {
            let (count, given) = (params.len(), positional.len());
            let message =
                format!("takes {count} arguments ({}), and {given} were given", signature.text());
            return Err(Class::Argument.error(py, signature.says(&message)));
        }
        let mut arguments =
            Self { given: Vec::with_capacity(params.len()), sizes: BTreeMap::new() };
        for (place, object) in positional.iter().enumerate() {
            arguments.given.push(Some(given(signature, place, &object, gradients)?));
        }
        arguments.given.resize_with(params.len(), || None);
        if let Some(named) = named {
            for (name, object) in named {
                arguments.name(signature, &name.extract::<String>()?, &object, gradients)?;
            }
        }
        Ok(arguments)
    }

    /// Handles an argument given by name: a parameter or a size.
    fn name(
        &mut self,
        signature: &Signature,
        name: &str,
        object: &Bound<'_, PyAny>,
        gradients: Gradients,
    ) -> PyResult<()> {
        let py = object.py();
        let refuse = |message: String| Err(Class::Argument.error(py, signature.says(&message)));
        if let Some(place) = signature.params.iter().position(|param| param.name == name) {
            if self.given[place].is_some() {
                return refuse(format!("was given `{name}` twice"));
            }
            self.given[place] = Some(given(signature, place, object, gradients)?);
            return Ok(());
        }
        if !signature.sizes.iter().any(|size| size == name) {
            let sizes = signature.sizes.join(", ");
            return refuse(format!(
                "has no parameter or size `{name}`: its parameters are ({}), its sizes are {sizes}",
                signature.text()
            ));
        }
        match object.extract::<i64>() {
            Ok(size) => self.sizes.insert(name.to_owned(), size),
            Err(_) => return refuse(format!("needs a whole number for the size `{name}`")),
        };
        Ok(())
    }

    /// The first parameter without an argument.
    pub(crate) fn missing<'s>(&self, signature: &'s Signature) -> Option<&'s Param> {
        let mut params = signature.params.iter().zip(&self.given);
        params.find(|(_, given)| given.is_none()).map(|(param, _)| param)
    }

    /// The strides of tensors that are not dense, by parameter.
    pub(crate) fn strides(&self, signature: &Signature) -> BTreeMap<String, Vec<i64>> {
        let mut found = BTreeMap::new();
        for (param, given) in signature.params.iter().zip(&self.given) {
            if let Some(ArgumentValue::Tensor(foreign)) = given
                && let Some(strides) = foreign.strides()
            {
                found.insert(param.name.clone(), strides.to_vec());
            }
        }
        found
    }

    /// The library that makes the results: that of the first tensor that is not frozen.
    pub(crate) fn library(&self, is_frozen: impl Fn(usize) -> bool) -> Library {
        let mut first = Library::Numpy;
        for (place, given) in self.given.iter().enumerate() {
            if let Some(ArgumentValue::Tensor(foreign)) = given {
                first = foreign.library;
                if !is_frozen(place) {
                    break;
                }
            }
        }
        first
    }
}

/// Reads one argument for its parameter.
pub(crate) fn given(
    signature: &Signature,
    place: usize,
    object: &Bound<'_, PyAny>,
    gradients: Gradients,
) -> PyResult<ArgumentValue> {
    let param = &signature.params[place];
    let py = object.py();
    let refuse = |what: String| {
        let message = format!("`{}` ({param}) {what}", param.name);
        Err(Class::Argument.error(py, signature.says(&message)))
    };
    if param.rank == 0
        && let Some(number) = number(param.dtype, object)
    {
        return match number {
            Ok(number) => Ok(ArgumentValue::Number(number)),
            Err(problem) => refuse(problem),
        };
    }
    match Foreign::of(object, gradients) {
        // A tensor without axes, whose value may shape the program.
        Ok(foreign) if param.is_integer_scalar && foreign.extents.as_slice().is_empty() => {
            match object.extract::<i64>().ok().and_then(|value| integer(param.dtype, value)) {
                Some(number) => Ok(ArgumentValue::Number(number)),
                None => Ok(ArgumentValue::Tensor(foreign)),
            }
        }
        Ok(foreign) => Ok(ArgumentValue::Tensor(foreign)),
        Err(Refusal::Raised(error)) => Err(error),
        Err(Refusal::Unfit(problem)) => refuse(problem),
        Err(Refusal::NoTensor) => {
            let class = object.get_type();
            let class = class.name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
            refuse(format!(
                "was given a {class}; pass a NumPy array, a torch tensor, or anything with a buffer or DLPack"
            ))
        }
    }
}

/// Whether an object has a number protocol.
fn converts(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    object.hasattr(intern!(py, "__index__")).unwrap_or(false)
        || object.hasattr(intern!(py, "__float__")).unwrap_or(false)
}

/// A Python number as a scalar; `None` for other objects.
fn number(dtype: DType, object: &Bound<'_, PyAny>) -> Option<Result<Number, String>> {
    let py = object.py();
    // Numbers of other libraries convert themselves; tensors, even those of one element, are tensors.
    let is_number = object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || (converts(object) && !object.hasattr(intern!(py, "__len__")).unwrap_or(true));
    if !is_number {
        return None;
    }
    let integer = object.extract::<i64>().ok();
    let bytes = match dtype {
        DType::Float => object.extract::<f64>().ok().map(|v| padded(&(v as f32).to_ne_bytes())),
        DType::Double => object.extract::<f64>().ok().map(|v| v.to_ne_bytes()),
        DType::Bool => object.extract::<bool>().ok().map(|v| padded(&[u8::from(v)])),
        DType::UInt64 => object.extract::<u64>().ok().map(|v| v.to_ne_bytes()),
        _ => match dtype.narrow_format() {
            Some(format) => {
                object.extract::<f64>().ok().map(|v| low_bytes(dtype, format.encode_f64(v).into()))
            }
            None => {
                integer.and_then(|value| self::integer(dtype, value)).map(|number| number.bytes)
            }
        },
    };
    Some(match bytes {
        Some(bytes) => Ok(Number { bytes, integer }),
        None => Err(format!("cannot be {object}")),
    })
}

/// An integer as a scalar; `None` if it is out of range.
fn integer(dtype: DType, value: i64) -> Option<Number> {
    let (least, most) = dtype.integer_range().filter(|_| dtype.is_integer())?;
    let fits = (least..=most).contains(&i128::from(value));
    fits.then(|| Number { bytes: low_bytes(dtype, value as u64), integer: Some(value) })
}

/// The low bytes of a number, as many as the type has, in memory.
fn low_bytes(dtype: DType, bits: u64) -> [u8; 8] {
    let all = bits.to_ne_bytes();
    let start = if cfg!(target_endian = "big") { all.len() - dtype.bytes() } else { 0 };
    padded(&all[start..start + dtype.bytes()])
}

fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}
