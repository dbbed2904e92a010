//! Scalars on the command line: `--input eps=1e-5`.

use tensorwright::{Buffer, DType, Def, Value};

/// The value that `text` gives to the scalar parameter `name`; `None` if `name` is not a scalar or
/// its type cannot hold the value, in which case the text is a file name.
pub(super) fn scalar(def: &Def<'_>, name: &str, text: &str) -> Option<Buffer> {
    let parameter = def.params().into_iter().find(|parameter| parameter.name == name)?;
    if !parameter.dims.is_empty() {
        return None;
    }
    let value = value(parameter.dtype, text)?;
    Buffer::from_fn(parameter.dtype, &[], |_| value).ok()
}

fn value(dtype: DType, text: &str) -> Option<Value> {
    let integer = match text {
        _ if dtype.is_float() => return text.parse().ok().map(Value::Float),
        "true" if dtype == DType::Bool => 1,
        "false" if dtype == DType::Bool => 0,
        _ => text.parse().ok()?,
    };
    let value = Value::Integer(integer);
    (value.convert(dtype) == value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_type() {
        assert_eq!(value(DType::Float, "1e-5"), Some(Value::Float(1e-5)));
        assert_eq!(value(DType::Int8, "-128"), Some(Value::Integer(-128)));
        assert_eq!(value(DType::Bool, "true"), Some(Value::Integer(1)));
        for (dtype, text) in [
            (DType::Int8, "128"),
            (DType::UInt8, "-1"),
            (DType::Int32, "1.5"),
            (DType::Bool, "2"),
            (DType::Float, "eps.npy"),
        ] {
            assert_eq!(value(dtype, text), None, "{text}");
        }
    }
}
