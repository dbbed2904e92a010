//! Identifiers: what a name in the source text is called in C and in Rust.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::program::TensorId;
use tensorwright_schedule::interface::{alphanumeric, identifier};
use tensorwright_schedule::nest::BufferId;
use tensorwright_schedule::{Interface, LoopNest};

/// Words that Rust keeps for itself, and names that the generated module uses.
const RESERVED_IN_RUST: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return \
    self static struct super trait true try type typeof union unsafe unsized use virtual where \
    while yield \
    bool char f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 usize str std core \
    buffers bytes check finish kernel lines pointer prepare_kernel prepared status workspace";

/// The names of the buffers of a nest in C.
#[derive(Debug)]
pub(crate) struct Names {
    buffers: BTreeMap<BufferId, String>,
    taken: BTreeSet<String>,
}

impl Names {
    /// Names the parameters.
    pub(crate) fn of_parameters(interface: &Interface) -> Self {
        let taken = BTreeSet::from([interface.symbol.clone()]);
        let mut names = Self { buffers: BTreeMap::new(), taken };
        interface.parameters.iter().for_each(|parameter| names.add(parameter.id, &parameter.name));
        names
    }

    /// Names the buffers; parameters come first, so that theirs stay what they are.
    pub(crate) fn of(nest: &LoopNest, interface: &Interface) -> Self {
        let mut names = Self::of_parameters(interface);
        let all = (0..).map(TensorId).zip(&nest.buffers);
        all.for_each(|(id, buffer)| names.add(id, &buffer.name));
        names
    }

    /// Names the buffers of a program for a device, whose language keeps more words for itself.
    pub(crate) fn for_device(nest: &LoopNest, interface: &Interface, reserved: &str) -> Self {
        let mut taken: BTreeSet<String> = reserved.split_whitespace().map(str::to_owned).collect();
        taken.insert(interface.symbol.clone());
        let mut names = Self { buffers: BTreeMap::new(), taken };
        interface.parameters.iter().for_each(|parameter| names.add(parameter.id, &parameter.name));
        let all = (0..).map(TensorId).zip(&nest.buffers);
        all.for_each(|(id, buffer)| names.add(id, &buffer.name));
        names
    }

    fn add(&mut self, id: BufferId, name: &str) {
        if self.buffers.contains_key(&id) {
            return;
        }
        let name = unique(&identifier(name), |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        self.buffers.insert(id, name);
    }

    /// The name of a buffer.
    pub(crate) fn buffer(&self, id: BufferId) -> &str {
        self.buffers.get(&id).map_or("unknown", String::as_str)
    }

    /// A name for a variable that is neither that of a buffer nor in scope.
    pub(crate) fn variable(&self, wanted: &str, in_scope: impl Fn(&str) -> bool) -> String {
        unique(&identifier(wanted), |name| self.taken.contains(name) || in_scope(name))
    }
}

/// Names as identifiers that C leaves to programs, all different.
#[must_use]
pub fn c_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    distinct(names, |name, taken| unique(&identifier(name), taken))
}

/// Names as identifiers of Rust in snake case, all different.
#[must_use]
pub fn rust_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    distinct(names, |name, taken| rust_identifier(name, taken))
}

fn distinct<'n>(
    names: impl IntoIterator<Item = &'n str>,
    identifier: impl Fn(&str, &dyn Fn(&str) -> bool) -> String,
) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let new = identifier(name, &|other| taken.iter().any(|name| name == other));
        taken.push(new);
    }
    taken
}

/// A name as an identifier of Rust in snake case, other than those for which `taken` holds.
pub(crate) fn rust_identifier(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let lower = alphanumeric(name).to_lowercase();
    let lower = if lower.starts_with('_') { format!("k{lower}") } else { lower };
    let reserved = |name: &str| RESERVED_IN_RUST.split_whitespace().any(|word| word == name);
    unique(&lower, |name| reserved(name) || taken(name))
}

/// The wanted name, or the first of `wanted_2`, `wanted_3`, ... that is not taken.
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
        assert_eq!(rust_identifier("gen", |_| false), "gen_2");
    }
}
