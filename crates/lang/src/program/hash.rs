//! The canonical program hash, independent of names, comments and layout.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{Atom, Combine, Expr, Index, Program};
use crate::dtype::DType;

/// A hash of everything in a program except names and places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramHash([u8; 16]);

impl ProgramHash {
    /// The hash as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Program {
    /// The canonical hash. It covers tensors (types, shapes, `const`), stages (axes with their
    /// ranges, combiners, bodies) and the order of inputs and outputs; it ignores only names,
    /// comments and layout. It is stable between versions unless the change log says otherwise.
    #[must_use]
    pub fn hash(&self) -> ProgramHash {
        Writer { hasher: Sha256::new(), numbers: true }.hash(self)
    }

    /// The hash of the program without its numbers: equal for a definition bound to other sizes,
    /// unless a size determines which statements or guards exist.
    ///
    /// Bound sizes (in shapes, ranges, strides, offsets and constants) are indistinguishable from
    /// numbers of the text. So programs that differ in a constant of the text belong to one family
    /// too. That suits the purpose of families: to transfer good schedules between programs.
    #[must_use]
    pub fn family_hash(&self) -> ProgramHash {
        Writer { hasher: Sha256::new(), numbers: false }.hash(self)
    }
}

/// Feeds a hasher with a prefix code of the program: every node writes a tag and every list its
/// length, so that different programs write different streams.
struct Writer {
    hasher: Sha256,
    /// Whether numbers that may come from sizes are included.
    numbers: bool,
}

impl Writer {
    fn hash(mut self, program: &Program) -> ProgramHash {
        self.program(program);
        let digest = self.hasher.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        ProgramHash(bytes)
    }

    fn tag(&mut self, tag: &str) {
        self.hasher.update(tag.as_bytes());
        self.hasher.update([0]);
    }

    fn int(&mut self, value: i128) {
        self.hasher.update(value.to_le_bytes());
    }

    /// A number that may come from a size, unlike the numbers of tensors and axes.
    fn number(&mut self, value: i128) {
        if self.numbers {
            self.int(value);
        }
    }

    fn length(&mut self, length: usize) {
        self.int(length as i128);
    }

    fn dtype(&mut self, dtype: DType) {
        self.tag(dtype.name());
    }

    fn program(&mut self, program: &Program) {
        self.tag(if self.numbers { "tensorwright program 1" } else { "tensorwright family 1" });
        self.length(program.tensors.len());
        for tensor in &program.tensors {
            self.dtype(tensor.dtype);
            self.int(i128::from(tensor.is_const));
            self.length(tensor.shape.len());
            tensor.shape.iter().for_each(|extent| self.number(i128::from(*extent)));
        }
        self.length(program.inputs);
        self.length(program.outputs.len());
        program.outputs.iter().for_each(|output| self.int(i128::from(output.0)));
        self.length(program.stages.len());
        for stage in &program.stages {
            self.int(i128::from(stage.output.0));
            self.int(stage.base.map_or(-1, |base| i128::from(base.0)));
            let (tag, op) = match stage.combine {
                Combine::Assign => ("assign", ""),
                Combine::Reduce(op) => ("reduce", op.symbol()),
                Combine::Accumulate(op) => ("accumulate", op.symbol()),
            };
            self.tag(tag);
            self.tag(op);
            self.length(stage.spatial());
            self.length(stage.axes.len());
            for axis in &stage.axes {
                self.number(i128::from(axis.lo));
                self.number(i128::from(axis.hi));
            }
            // The start is part of the body.
            if let Some(scan) = &stage.scan {
                self.tag(if scan.backwards { "scan backwards" } else { "scan" });
                self.int(i128::from(scan.axis.0));
            }
            // Positions are part of the body, too.
            if !stage.scatter.is_empty() {
                self.tag("scatter");
                self.length(stage.scatter.len());
                stage.scatter.iter().for_each(|it| self.int(i128::from(it.axis.0)));
            }
            self.expr(&stage.body);
        }
    }

    fn index(&mut self, index: &Index) {
        self.tag("index");
        self.number(i128::from(index.constant_term()));
        self.length(index.terms().len());
        for term in index.terms() {
            self.number(i128::from(term.coefficient));
            match &term.atom {
                Atom::Axis(axis) => {
                    self.tag("axis");
                    self.int(i128::from(axis.0));
                }
                Atom::Div(inner, divisor) => self.division("div", inner, *divisor),
                Atom::Mod(inner, divisor) => self.division("mod", inner, *divisor),
                Atom::Min(a, b) => self.indices("min", a, b),
                Atom::Max(a, b) => self.indices("max", a, b),
                Atom::Product(inner, factor) => {
                    self.tag("product");
                    self.int(i128::from(factor.0));
                    self.index(inner);
                }
                Atom::Value(expr) => {
                    self.tag("value");
                    self.expr(expr);
                }
            }
        }
    }

    fn division(&mut self, tag: &str, inner: &Index, divisor: i64) {
        self.tag(tag);
        self.number(i128::from(divisor));
        self.index(inner);
    }

    fn indices(&mut self, tag: &str, a: &Index, b: &Index) {
        self.tag(tag);
        self.index(a);
        self.index(b);
    }

    fn exprs<'a>(&mut self, tag: &str, op: &str, operands: impl IntoIterator<Item = &'a Expr>) {
        self.tag(tag);
        self.tag(op);
        operands.into_iter().for_each(|operand| self.expr(operand));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Const(scalar) => {
                self.tag("const");
                self.dtype(scalar.dtype());
                if scalar.dtype().is_float() {
                    self.number(i128::from(scalar.as_f64().to_bits()));
                } else {
                    self.number(scalar.as_integer());
                }
            }
            Expr::Index(index, dtype) => {
                self.tag("from index");
                self.dtype(*dtype);
                self.index(index);
            }
            Expr::Read(read) => {
                self.tag("read");
                self.int(i128::from(read.tensor.0));
                self.length(read.subscripts.len());
                read.subscripts.iter().for_each(|subscript| self.index(subscript));
            }
            Expr::Unary(op, a) => self.exprs("unary", op.symbol(), [&**a]),
            Expr::Arith(op, a, b) => self.exprs("arith", op.symbol(), [&**a, &**b]),
            Expr::Compare(op, a, b) => self.exprs("compare", op.symbol(), [&**a, &**b]),
            Expr::CompareIndex(op, a, b) => {
                self.tag("compare index");
                self.indices(op.symbol(), a, b);
            }
            Expr::Logic(op, a, b) => self.exprs("logic", op.symbol(), [&**a, &**b]),
            Expr::Select(c, a, b) => self.exprs("select", "", [&**c, &**a, &**b]),
            Expr::Call(builtin, args) => self.exprs("call", builtin.name(), args),
            Expr::Cast(dtype, a) => self.exprs("cast", dtype.name(), [&**a]),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Module;

    #[test]
    fn a_family_has_all_sizes_of_a_computation() {
        let conv = "def conv(float(C,H) I, float(O,C,K) W) -> (R) {
                      R(o,h) +=! I(c,2*h + k) * W(o,c,k) where h in 0:(H-K)/2
                      R(o,h) = R(o,h) / float(C)
                    }";
        let bound = |text: &str, sizes: [(&str, i64); 4]| {
            let module = Module::parse("test.tc", text).unwrap();
            module.bind("conv", sizes.map(|(name, size)| (name.to_owned(), size))).unwrap()
        };
        let small = bound(conv, [("C", 3), ("H", 17), ("O", 4), ("K", 3)]);
        let large = bound(conv, [("C", 64), ("H", 56), ("O", 128), ("K", 5)]);
        assert_eq!(small.family_hash(), large.family_hash());
        assert_ne!(small.hash(), large.hash());
        assert_ne!(small.hash(), small.family_hash());
        let other = bound(&conv.replace("+=!", "max=!"), [("C", 3), ("H", 17), ("O", 4), ("K", 3)]);
        assert_ne!(small.family_hash(), other.family_hash());
    }
}
