//! Calls of other defs, and `concat`.

use super::PATTERNS;
use super::builder::{Builder, ParamKind};
use super::typed::{Tensor, Type};
use crate::Rng;

/// A def of one or two patterns, and a statement that calls it.
pub(super) fn call(b: &mut Builder) {
    // One level is enough: callees call nothing.
    if b.is_callee {
        return super::pointwise::map(b);
    }
    let name = b.fresh("f");
    let mut callee = Builder::new(Rng::new(b.rng.next_u64()), b.scale);
    callee.is_callee = true;
    for _ in 0..1 + callee.rng.index(2) {
        let idea = *callee.rng.pick(PATTERNS);
        idea(&mut callee);
    }
    let (text, outputs) = callee.finish_def(&name);
    b.uses("call");
    b.absorb(callee.features());
    b.callees.push(text);

    let kinds: Vec<ParamKind> = callee.params.iter().map(|param| param.kind.clone()).collect();
    let arguments: Vec<String> = kinds.iter().map(|kind| argument(b, kind)).collect();
    let mut targets = Vec::new();
    for output in outputs {
        let target = Tensor { name: b.fresh("T"), ..output };
        b.computes(&target);
        targets.push(target.name);
    }
    let targets = match targets.join(", ") {
        one if targets.len() == 1 => one,
        // A parenthesis at the start of a line is not a call of the name that ends the previous
        // line.
        several => format!("({several})"),
    };
    b.statement(format!("{targets} = {name}({})", arguments.join(", ")));
}

/// The argument for a parameter.
fn argument(b: &mut Builder, kind: &ParamKind) -> String {
    match kind {
        ParamKind::Tensor(tensor) => {
            let passed = match b.existing(tensor.dtype, &tensor.shape) {
                Some(passed) => passed,
                None => b.input(tensor.dtype, &tensor.shape),
            };
            b.mark_read(&passed.name);
            passed.name
        }
        ParamKind::Index(tensor, bound) => b.index_input(tensor.dtype, &tensor.shape, *bound).name,
        // Constants that can be passed are numbers.
        ParamKind::Scalar(dtype) if *dtype == Type::Bool || b.rng.percent(50) => {
            b.scalar(*dtype).text
        }
        ParamKind::Scalar(dtype) => dtype.literal(&mut b.rng),
        ParamKind::Shaping(value) if b.rng.percent(50) => b.shaping_scalar(*value),
        ParamKind::Shaping(value) => value.to_string(),
    }
}

/// `C = concat(A, B, D)`: shapes equal except for the last dimension.
pub(super) fn concat(b: &mut Builder) {
    b.uses("concat");
    let dtype = Type::random(&mut b.rng);
    let rank = b.rng.index(3);
    let leading = b.extents(rank);
    let mut names = Vec::new();
    let mut total = 0;
    for _ in 0..2 + b.rng.index(2) {
        let last = b.rng.range(1, 5);
        total += last;
        let shape: Vec<i64> = leading.iter().copied().chain([last]).collect();
        let part = match b.existing(dtype, &shape) {
            Some(part) => part,
            None => b.input(dtype, &shape),
        };
        b.mark_read(&part.name);
        names.push(part.name);
    }
    let shape: Vec<i64> = leading.iter().copied().chain([total]).collect();
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.statement(format!("{} = concat({})", target.name, names.join(", ")));
    b.computes(&target);
}
