//! Maps names of the source text to C and Rust identifiers.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::program::TensorId;
use tensorwright_schedule::interface::{Argument, Function, Number, alphanumeric, identifier};
use tensorwright_schedule::nest::BufferId;
use tensorwright_schedule::{Interface, LoopNest};

/// Reserved words of Rust, and names that the generated module uses.
const RESERVED_IN_RUST: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return \
    self static struct super trait true try type typeof union unsafe unsized use virtual where \
    while yield \
    bool char f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 usize str std core \
    buffers bytes check check_scalar finish kernel lines pointer prepare_kernel prepared runs_here status workspace";

/// Suffixes of generated functions and of the macro.
const ENDS: [&str; 11] = [
    "INTERFACE",
    "interface",
    "target",
    "runs_here",
    "has_all",
    "allocate",
    "call",
    "run",
    "workspace_bytes",
    "prepared_bytes",
    "prepare",
];

/// Suffixes of further functions of kernels whose sizes vary.
const SIZED_ENDS: [&str; 4] = ["allows", "times", "plus", "distances"];

/// The names of the buffers of a nest in C.
#[derive(Debug)]
pub(crate) struct Names {
    buffers: BTreeMap<BufferId, String>,
    /// The names of scalars without a buffer, by position in the definition.
    fixed: BTreeMap<usize, String>,
    taken: BTreeSet<String>,
}

impl Names {
    /// Names the parameters.
    pub(crate) fn of_parameters(interface: &Interface) -> Self {
        let symbol = &interface.symbol;
        let ends = ENDS.iter().map(|end| format!("{symbol}_{end}"));
        let kernels = [Function::Compute, Function::Prepare].map(|one| interface.function(one));
        let mut taken: BTreeSet<String> = ends.chain(kernels).chain([symbol.clone()]).collect();
        if interface.is_sized() {
            taken.extend(SIZED_ENDS.iter().map(|end| format!("{symbol}_{end}")));
            taken.insert("strides".to_owned());
        }
        Self::avoiding(interface, taken)
    }

    /// Names the sizes that vary, as parameters beside those of the definition.
    pub(crate) fn sizes(&self, interface: &Interface) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for number in &interface.numbers {
            if let Number::Size { name, .. } = number {
                let is_taken = |name: &str| names.iter().any(|known| known == name);
                names.push(self.variable(name, is_taken));
            }
        }
        names
    }

    /// Names the parameters, those of the definition first: additions by a schedule must not change
    /// their names.
    fn avoiding(interface: &Interface, taken: BTreeSet<String>) -> Self {
        let mut names = Self { buffers: BTreeMap::new(), fixed: BTreeMap::new(), taken };
        for argument in interface.signature() {
            match argument {
                Argument::Passed(parameter) => names.add(parameter.id, &parameter.name),
                Argument::Fixed(scalar) => {
                    let name = names.take(&scalar.name);
                    names.fixed.insert(scalar.place, name);
                }
            }
        }
        interface.parameters.iter().for_each(|parameter| names.add(parameter.id, &parameter.name));
        names
    }

    /// Names the buffers; parameters come first, so that their names are stable.
    pub(crate) fn of(nest: &LoopNest, interface: &Interface) -> Self {
        let mut names = Self::of_parameters(interface);
        let all = (0..).map(TensorId).zip(&nest.buffers);
        all.for_each(|(id, buffer)| names.add(id, &buffer.name));
        names
    }

    /// Names the buffers of a device program, whose language has more reserved words.
    pub(crate) fn for_device(nest: &LoopNest, interface: &Interface, reserved: &str) -> Self {
        let mut taken: BTreeSet<String> = reserved.split_whitespace().map(str::to_owned).collect();
        taken.insert(interface.symbol.clone());
        let mut names = Self::avoiding(interface, taken);
        let all = (0..).map(TensorId).zip(&nest.buffers);
        all.for_each(|(id, buffer)| names.add(id, &buffer.name));
        names
    }

    fn add(&mut self, id: BufferId, name: &str) {
        if self.buffers.contains_key(&id) {
            return;
        }
        let name = self.take(name);
        self.buffers.insert(id, name);
    }

    fn take(&mut self, name: &str) -> String {
        let name = unique(&identifier(name), |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        name
    }

    /// The name of a scalar without a buffer.
    pub(crate) fn fixed(&self, place: usize) -> &str {
        self.fixed.get(&place).map_or("unknown", String::as_str)
    }

    /// The name of a buffer.
    pub(crate) fn buffer(&self, id: BufferId) -> &str {
        self.buffers.get(&id).map_or("unknown", String::as_str)
    }

    /// A variable name that is not used by a buffer or in scope.
    pub(crate) fn variable(&self, wanted: &str, in_scope: impl Fn(&str) -> bool) -> String {
        unique(&identifier(wanted), |name| self.taken.contains(name) || in_scope(name))
    }
}

/// Distinct identifiers that the C standard leaves to programs.
#[must_use]
pub fn c_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let new = unique(&identifier(name), |other| taken.iter().any(|name| name == other));
        taken.push(new);
    }
    taken
}

/// Distinct snake-case Rust identifiers. Names that are already in snake case never change,
/// whatever comes before them.
#[must_use]
pub fn rust_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let is_snake = |name: &&&str| !name.contains(|c: char| c.is_ascii_uppercase());
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut given: Vec<Option<String>> = vec![None; names.len()];
    for snake in [true, false] {
        for (name, given) in names.iter().zip(&mut given).filter(|(n, _)| is_snake(n) == snake) {
            let new = rust_identifier(name, |other| taken.contains(other));
            taken.insert(new.clone());
            *given = Some(new);
        }
    }
    given.into_iter().flatten().collect()
}

/// A snake-case Rust identifier for which `taken` is false.
pub(crate) fn rust_identifier(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let lower = alphanumeric(name).to_lowercase();
    let lower = if lower.starts_with('_') { format!("k{lower}") } else { lower };
    let is_reserved = RESERVED_IN_RUST.split_whitespace().any(|word| word == lower);
    let lower = if is_reserved { lower + "_" } else { lower };
    unique(&lower, taken)
}

/// The preferred name, or the first of `wanted_2`, `wanted_3`, ... that is free.
fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 1_u64;
    while taken(&name) {
        number += 1;
        name = format!("{wanted}_{number}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_avoid_what_rust_keeps_for_itself() {
        assert_eq!(rust_identifier("A", |name| name == "a"), "a_2");
        assert_eq!(rust_identifier("gen", |_| false), "gen_");
        let names = ["B", "H", "b", "fn", "h", "H2", "self", "crate", "type"];
        let expected = ["b_2", "h_2", "b", "fn_", "h", "h2", "self_", "crate_", "type_"];
        assert_eq!(rust_names(names), expected);
    }
}
