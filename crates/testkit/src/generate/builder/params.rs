//! Parameters of generated defs and their declarations.

use super::Builder;
use crate::generate::Scale;
use crate::generate::typed::{Atom, Tensor, Type};

/// A parameter of the def under construction.
#[derive(Debug, Clone)]
pub(in crate::generate) struct Param {
    pub(in crate::generate) name: String,
    /// Its whole declaration, such as `const float(N0,4) A0`.
    pub(super) declaration: String,
    pub(in crate::generate) kind: ParamKind,
}

/// What a caller must pass for a parameter.
#[derive(Debug, Clone)]
pub(in crate::generate) enum ParamKind {
    /// A tensor.
    Tensor(Tensor),
    /// A tensor of subscripts below a bound.
    Index(Tensor, i64),
    /// A scalar used only in values.
    Scalar(Type),
    /// An integer scalar that shapes the program, and its value.
    Shaping(i64),
}

impl Builder {
    /// A dimension of an input: a literal, a new size, or an existing size of that value.
    fn dimension(&mut self, extent: i64) -> String {
        if self.rng.percent(20) {
            self.uses("literal dimension");
            return extent.to_string();
        }
        let same: Vec<String> =
            self.sizes.iter().filter(|size| size.1 == extent).map(|size| size.0.clone()).collect();
        if !same.is_empty() && self.rng.percent(60) {
            return self.rng.pick(&same).clone();
        }
        let name = self.fresh("N");
        self.sizes.push((name.clone(), extent));
        name
    }

    /// A new input.
    pub(in crate::generate) fn input(&mut self, dtype: Type, shape: &[i64]) -> Tensor {
        let tensor = self.declare_input(dtype, shape);
        let kind = ParamKind::Tensor(tensor.clone());
        if let Some(param) = self.params.last_mut() {
            param.kind = kind;
        }
        self.tensors.push(tensor.clone());
        tensor
    }

    /// A new input whose elements are subscripts below a bound. Nothing else reads it.
    pub(in crate::generate) fn index_input(
        &mut self,
        dtype: Type,
        shape: &[i64],
        bound: i64,
    ) -> Tensor {
        let tensor = self.declare_input(dtype, shape);
        if let Some(param) = self.params.last_mut() {
            param.kind = ParamKind::Index(tensor.clone(), bound);
        }
        tensor
    }

    fn declare_input(&mut self, dtype: Type, shape: &[i64]) -> Tensor {
        let name = match self.rng.index(20) {
            0 if !self.params.iter().any(|param| param.name == "in") => {
                self.uses("odd name");
                "in".to_owned()
            }
            1 => {
                self.uses("odd name");
                let name = self.fresh("LUT");
                format!("2{name}")
            }
            _ => self.fresh("A"),
        };
        let dims: Vec<String> = shape.iter().map(|extent| self.dimension(*extent)).collect();
        let constants = match self.scale {
            Scale::Small => 15,
            // Only these can change their layout.
            Scale::Tileable => 40,
        };
        let constant = if !dims.is_empty() && self.rng.percent(constants) { "const " } else { "" };
        if !constant.is_empty() {
            self.uses("const input");
        }
        if dtype == Type::Bool {
            self.uses("bool tensor");
        }
        let spelled = dtype.spelled(&mut self.rng);
        let tensor = Tensor { name: name.clone(), dtype, shape: shape.to_vec() };
        let declaration = match dims.is_empty() {
            true => format!("{spelled} {name}"),
            false => format!("{constant}{spelled}({}) {name}", dims.join(",")),
        };
        let kind = ParamKind::Tensor(tensor.clone());
        self.params.push(Param { name, declaration, kind });
        tensor
    }

    /// A new scalar parameter for use in values.
    pub(in crate::generate) fn scalar(&mut self, dtype: Type) -> Atom {
        self.uses("scalar");
        let name = self.fresh("a");
        let declaration = format!("{} {name}", dtype.spelled(&mut self.rng));
        self.params.push(Param { name: name.clone(), declaration, kind: ParamKind::Scalar(dtype) });
        Atom::new(name, dtype)
    }

    /// A new integer scalar that shapes the program; its value is given like a size.
    pub(in crate::generate) fn shaping_scalar(&mut self, value: i64) -> String {
        let name = self.fresh("s");
        let declaration = format!("{} {name}", self.rng.pick(&["int", "int32"]));
        self.params.push(Param {
            name: name.clone(),
            declaration,
            kind: ParamKind::Shaping(value),
        });
        name
    }
}
