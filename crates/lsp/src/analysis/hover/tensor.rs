//! Hover text of a tensor: type, shape and role.

use tensorwright_lang::Signature;

use super::code;
use crate::analysis::{Analysis, names};

impl Analysis {
    pub(super) fn tensor_hover(&self, number: usize, name: &str) -> Option<String> {
        let def = self.tree.defs.get(number)?;
        let param = def.params.iter().find(|param| param.name.name == name);
        let is_result = def.returns.iter().any(|result| result.name == name);
        let checked = self.def(number);
        let known = checked.and_then(|def| def.tensors().into_iter().find(|t| t.name == name));
        let updated = known.as_ref().is_some_and(|tensor| tensor.updated);
        let title = match (known, param) {
            (Some(tensor), _) => self.with_shape(number, tensor).to_string(),
            (None, Some(param)) => self.source.slice(param.span).to_owned(),
            (None, None) => name.to_owned(),
        };
        let (what, more) = match (param, is_result) {
            (Some(param), false) if param.is_const => {
                ("An input", "; its values do not change from call to call")
            }
            (Some(_), false) => ("An input", ""),
            (Some(_), true) => ("An input", " that is also a result"),
            (None, true) if updated => ("A result", "; the caller supplies its first values"),
            (None, true) => ("A result", ""),
            (None, false) => ("An intermediate tensor", ""),
        };
        let mut text = format!("{}\n{what} of `{}`{more}.\n", code(&title), def.name.name);
        let tensor = self.given_sample(number).zip(names::tensor(def, name));
        if let Some((sample, tensor)) = tensor
            .and_then(|(sample, declared)| Some((sample, sample.tensor(declared)?)))
            .filter(|(_, tensor)| !tensor.shape.is_empty())
        {
            let extents: Vec<String> = tensor.shape.iter().map(i64::to_string).collect();
            let (shape, bytes) = (extents.join(" x "), tensor.bytes());
            text += &format!("\nFor {}: {shape}, {bytes} bytes.\n", sample.sizes_text());
        }
        Some(text)
    }

    /// A tensor with symbolic extents, where formulas hold for all sizes.
    pub(super) fn with_shape(&self, number: usize, mut tensor: Signature) -> Signature {
        let inferred = self.inferred(number);
        for (dimension, dim) in tensor.dims.iter_mut().enumerate().filter(|(_, dim)| *dim == "_") {
            let extent = inferred.and_then(|known| known.extents.extent(&tensor.name, dimension));
            if let Some(extent) = extent.filter(|extent| !extent.basis.sampled) {
                *dim = extent.to_string();
            }
        }
        tensor
    }
}
