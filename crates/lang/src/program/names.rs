//! Capture-free names: by position, or from the source where unambiguous.
//!
//! Calls are inlined, so the names of a program come from several scopes: an index of one
//! definition may have the name of another's tensor, and two live versions of a tensor may share a
//! name. A program that is printed to be parsed again needs names that capture nothing:
//!
//! ```text
//! y(i) +=! x(i+s) * w(s)        v_2(i_0) +=! v_0(i_0 + i_1) * v_1(i_1)
//! s() +=! y(i)                  v_3() +=! v_2(i_2)
//! p(i) = y(i) / s               v_4(i_3) = v_2(i_3) / v_3
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Program, Stage, TensorId};
use crate::builtin::{Builtin, CONSTANTS};
use crate::dtype::DType;
use crate::syntax::ast::CONCAT;

/// Reserved words, besides types, functions and constants.
const KEYWORDS: [&str; 5] = ["def", "where", "const", "true", "false"];

impl Program {
    /// The program with positional names: `v_0`, `v_1` for tensors and `i_0`, `i_1` for axes, equal
    /// for all programs of one [hash](Program::hash). The name of the definition is kept.
    #[must_use]
    pub fn canonically_named(&self) -> Program {
        let by_position = |id: TensorId| format!("v_{}", id.0);
        let wanted =
            |id: TensorId, base: Option<&str>| base.map_or_else(|| by_position(id), str::to_owned);
        let tensors = tensor_names(self, &wanted, &mut |id, _| by_position(id));
        let mut axes = 0u32..;
        let mut axis = |_: &str| format!("i_{}", axes.next().unwrap_or_default());
        self.named(tensors, &mut axis)
    }

    /// Whether tensors and axes are named as in a program of the same hash.
    #[must_use]
    pub fn is_named_like(&self, other: &Program) -> bool {
        let tensors = |program: &Program| -> Vec<String> {
            program.tensors.iter().map(|tensor| tensor.name.clone()).collect()
        };
        let same_axes = |(a, b): (&Stage, &Stage)| {
            a.axes.iter().map(|axis| &axis.name).eq(b.axes.iter().map(|axis| &axis.name))
        };
        tensors(self) == tensors(other)
            && self.stages.len() == other.stages.len()
            && self.stages.iter().zip(&other.stages).all(same_axes)
    }

    /// Translates a message about this program to the names of another one of the same hash.
    #[must_use]
    pub fn translated(&self, message: &str, to: &Program) -> String {
        let axes = |program: &Program| -> Vec<String> {
            program.stages.iter().flat_map(|s| s.axes.iter().map(|it| it.name.clone())).collect()
        };
        let tensors = |program: &Program| -> Vec<String> {
            program.tensors.iter().map(|tensor| tensor.name.clone()).collect()
        };
        let names = axes(self).into_iter().zip(axes(to));
        let names: HashMap<String, String> =
            names.chain(tensors(self).into_iter().zip(tensors(to))).collect();
        let mut told = String::with_capacity(message.len());
        let mut rest = message;
        while !rest.is_empty() {
            let part = |c: char| c.is_alphanumeric() || c == '_';
            let word = rest.find(|c| !part(c)).unwrap_or(rest.len());
            told += names.get(&rest[..word]).map_or(&rest[..word], String::as_str);
            let gap = rest[word..].find(part).map_or(rest.len(), |gap| word + gap);
            told += &rest[word..gap];
            rest = &rest[gap..];
        }
        told
    }

    /// The program with the names that it is printed with: those of its source, except names that
    /// would be captured.
    #[must_use]
    pub fn as_printed(&self) -> Program {
        let mut taken: HashSet<String> =
            self.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        taken.extend(self.stages.iter().flat_map(|s| s.axes.iter().map(|axis| axis.name.clone())));
        taken.insert(self.name.clone());
        let wanted = |id: TensorId, _: Option<&str>| self.tensor(id).name.clone();
        let mut fresh = |id: TensorId, _: &str| similar(&self.tensor(id).name, &mut taken);
        let tensors = tensor_names(self, &wanted, &mut fresh);
        let held: HashSet<&str> = tensors.iter().map(String::as_str).collect();
        let mut replaced: BTreeMap<String, String> = BTreeMap::new();
        let axes: Vec<&str> =
            self.stages.iter().flat_map(|s| s.axes.iter().map(|axis| axis.name.as_str())).collect();
        for name in axes {
            let is_clear = !held.contains(name) && name != self.name && !is_reserved(name);
            if !is_clear && !replaced.contains_key(name) {
                replaced.insert(name.to_owned(), similar(name, &mut taken));
            }
        }
        let mut axis =
            |name: &str| replaced.get(name).map_or_else(|| name.to_owned(), String::clone);
        self.named(tensors, &mut axis)
    }

    fn named(&self, tensors: Vec<String>, axis: &mut dyn FnMut(&str) -> String) -> Program {
        let mut named = self.clone();
        for (tensor, name) in named.tensors.iter_mut().zip(tensors) {
            tensor.name = name;
        }
        for it in named.stages.iter_mut().flat_map(|stage| &mut stage.axes) {
            it.name = axis(&it.name);
        }
        named
    }
}

/// A similar name that is unused.
pub(super) fn similar(name: &str, taken: &mut HashSet<String>) -> String {
    let name = (2u64..)
        .map(|number| format!("{name}_{number}"))
        .find(|name| !taken.contains(name) && !is_reserved(name))
        .unwrap_or_default();
    taken.insert(name.clone());
    name
}

fn is_reserved(name: &str) -> bool {
    Builtin::from_name(name).is_some()
        || DType::from_name(name).is_some()
        || CONSTANTS.iter().any(|(constant, _)| *constant == name)
        || name == CONCAT
        || KEYWORDS.contains(&name)
}

/// Names tensors: by `wanted` (from the tensor and the name of its base) where a text with these
/// names means the program, and by `fresh` elsewhere.
fn tensor_names(
    program: &Program,
    wanted: &dyn Fn(TensorId, Option<&str>) -> String,
    fresh: &mut dyn FnMut(TensorId, &str) -> String,
) -> Vec<String> {
    // An input whose name is written must be a result; the others keep their names exclusive.
    let mut kept = vec![false; program.inputs];
    loop {
        let mut scope = Scope { kept: &kept, last: last_uses(program), held: HashMap::new() };
        let names = scope.assign(program, wanted, fresh);
        let lost = |input: &TensorId| {
            let holder = scope.held.get(&names[input.0 as usize]);
            holder.is_some_and(|holder| holder != input && !program.outputs.contains(holder))
        };
        let lost: Vec<TensorId> = program.input_ids().filter(lost).collect();
        if lost.is_empty() {
            return names;
        }
        lost.iter().for_each(|input| kept[input.0 as usize] = true);
    }
}

/// The last stage that uses each tensor; past the end for results.
fn last_uses(program: &Program) -> Vec<usize> {
    let mut last = vec![0; program.tensors.len()];
    for (number, stage) in program.stages.iter().enumerate() {
        stage.body.walk_reads(&mut |read| last[read.tensor.0 as usize] = number);
        stage.base.iter().for_each(|base| last[base.0 as usize] = number);
    }
    program.outputs.iter().for_each(|output| last[output.0 as usize] = usize::MAX);
    last
}

/// The tensor of each name, statement by statement.
struct Scope<'a> {
    kept: &'a [bool],
    last: Vec<usize>,
    held: HashMap<String, TensorId>,
}

impl Scope<'_> {
    fn assign(
        &mut self,
        program: &Program,
        wanted: &dyn Fn(TensorId, Option<&str>) -> String,
        fresh: &mut dyn FnMut(TensorId, &str) -> String,
    ) -> Vec<String> {
        let mut names: Vec<String> = Vec::with_capacity(program.tensors.len());
        for number in 0..program.tensors.len() {
            let id = TensorId(number as u32);
            let made = number.checked_sub(program.inputs).map(|at| (at, &program.stages[at]));
            let base = made.and_then(|(_, stage)| stage.base);
            let name = wanted(id, base.map(|base| names[base.0 as usize].as_str()));
            let is_clear = !is_reserved(&name) && self.may_hold(&name, made);
            let name = if is_clear { name } else { fresh(id, &name) };
            self.held.insert(name.clone(), id);
            names.push(name);
        }
        names
    }

    /// Whether a statement may write to a name: the name must refer to the statement's base, if it
    /// has one, and be dead afterwards.
    fn may_hold(&self, name: &str, made: Option<(usize, &Stage)>) -> bool {
        let Some(before) = self.held.get(name) else { return true };
        let Some((number, stage)) = made else { return false };
        let is_kept = self.kept.get(before.0 as usize).copied().unwrap_or(false);
        let is_start = stage.base.is_none_or(|base| base == *before);
        !is_kept && is_start && self.last[before.0 as usize] <= number
    }
}

#[cfg(test)]
mod tests {
    use crate::Module;
    use crate::program::Program;

    fn bound(text: &str, def: &str, sizes: &[(&str, i64)]) -> Program {
        Module::parse("test.tc", text).unwrap().bind(def, sizes.iter().copied()).unwrap()
    }

    /// Checks that the printed program binds to the same program, with source names and positional
    /// names.
    fn read_again(program: &Program) -> [String; 2] {
        let none: [(&str, i64); 0] = [];
        [program.to_string(), program.canonically_named().to_string()].map(|text| {
            let again = Module::parse("again.tc", &text)
                .and_then(|module| module.def(&program.name)?.bind(none));
            let again = again.unwrap_or_else(|why| panic!("{text}\n{why}"));
            assert_eq!(again.hash(), program.hash(), "{text}");
            text
        })
    }

    const CAPTURE: &str = "
def blur(float(N) x, float(K) w) -> (y) { y(i) +=! x(i+s) * w(s) }
def f(float(N) x, float(K) w) -> (p) {
  y = blur(x, w)
  s() +=! y(i)
  p(i) = y(i) / s
}";

    #[test]
    fn an_index_of_a_callee_is_no_tensor_of_the_caller() {
        let program = bound(CAPTURE, "f", &[("N", 9), ("K", 3)]);
        let [text, canonical] = read_again(&program);
        assert!(text.contains("y(i) +=! x(i + s_2) * w(s_2)"), "{text}");
        assert_eq!(
            canonical,
            "def f(float(9) v_0, float(3) v_1) -> (v_4) {
  v_2(i_0) +=! v_0(i_0 + i_1) * v_1(i_1) where i_0 in 0:7, i_1 in 0:3
  v_3() +=! v_2(i_2) where i_2 in 0:7
  v_4(i_3) = v_2(i_3) / v_3 where i_3 in 0:7
}
"
        );
    }

    #[test]
    fn names_by_position_do_not_depend_on_names() {
        let renamed = "
def g(float(A) f, float(B) i) -> (v_0) { v_0(x) +=! f(x+y) * i(y) }
def f(float(A) i_1, float(B) v_1) -> (v_4) {
  v_2 = g(i_1, v_1)
  i_0() +=! v_2(v_3)
  v_4(i_2) = v_2(i_2) / i_0
}";
        let one = bound(CAPTURE, "f", &[("N", 9), ("K", 3)]);
        let other = bound(renamed, "f", &[("A", 9), ("B", 3)]);
        assert!(!one.is_named_like(&other));
        assert!(one.canonically_named().is_named_like(&other.canonically_named()));
        assert_eq!(read_again(&one)[1], read_again(&other)[1]);
        let message = "`v_2.tile` has no loop `i_1.0`; v_20 has";
        let told = one.canonically_named().translated(message, &one);
        assert_eq!(told, "`y.tile` has no loop `s.0`; v_20 has");
    }

    #[test]
    fn versions_share_a_name_where_nobody_needs_the_earlier_one() {
        let text = "def f(float(N) B) -> (O) {
                      O(i) = B(i)
                      O(i) += B(j) where i in 1:2
                      O(i) = max(O(i), 0)
                    }";
        let [text, canonical] = read_again(&bound(text, "f", &[("N", 4)]));
        assert_eq!(text.matches("O(i) ").count(), 3, "{text}");
        assert!(canonical.contains("v_1(i_1) += v_0(i_2)"), "{canonical}");
        assert!(canonical.contains("v_3(i_3) = max(v_1(i_3), 0.0)"), "{canonical}");
    }

    #[test]
    fn an_index_that_only_counts_terms_keeps_its_range() {
        let text = "def f(float(N) x) -> (O, P) {
                      O(j) max=! uint16(0 * i) where j in 0:N, i in 0:16
                      P() +=! x(j) where i in 0:3
                    }";
        // The second statement does not use `i`, and is rejected; the first one does, although only
        // 0 is left of it.
        assert!(Module::parse("test.tc", text).is_err());
        let text = text.replace("x(j) where", "x(j) + float(i - i) where");
        let [text, _] = read_again(&bound(&text, "f", &[("N", 4)]));
        assert!(text.contains("0 * i == 0 ? uint16(0) : uint16(0)"), "{text}");
    }

    #[test]
    fn what_a_callee_updates_may_be_needed_by_its_caller() {
        let update = "def add(float(N) a, float(N) b) -> (a) { a(i) += b(i) }\n";
        // The argument is an input, a result, a tensor in between, or read afterwards.
        for body in [
            "(z) { z = add(x, y) }",
            "(z, x) { z = add(x, y) x(i) += y(i) }",
            "(z) { t(i) = 2 * x(i) u = add(t, y) z(i) = t(i) + u(i) }",
            "(z) { t(i) = 2 * x(i) u = add(t, y) z(i) = 2 * u(i) }",
            "(z) { t = add(x, y) u = add(t, t) z = add(u, x) }",
            "(x) { x = add(x, y) x = add(x, y) }",
            "(z) { t = add(x, y) t(i) += x(j) where i in 1:2 z = add(t, x) }",
        ] {
            let text = format!("{update}def f(float(N) x, float(N) y) -> {body}");
            read_again(&bound(&text, "f", &[("N", 5)]));
        }
    }

    #[test]
    fn a_divisor_may_come_to_zero() {
        let text = "def f(int16(N) x) -> (y, z) {
                      y(i) = x(i) / max(N - 9, 0)
                      z(i) = int16(i) % int16(max(N - 9, 0)) + x(i)
                    }";
        read_again(&bound(text, "f", &[("N", 5)]));
    }

    #[test]
    fn names_that_calls_make_up_are_none_of_the_language() {
        let text = "def M(float(N) x) -> (y) { PI(i) = 2 * x(i) y(i) = PI(i) + x(i) }
                    def f(float(N) x) -> (z) { z = M(x) }
                    def v_0(float(N) v_2) -> (z) { v_1 = M(v_2) z(v_0) = v_1(v_0) }";
        for def in ["f", "v_0"] {
            read_again(&bound(text, def, &[("N", 5)]));
        }
    }
}
