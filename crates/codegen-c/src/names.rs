//! Identifiers: what a name in the source text is called in C and in Rust.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::program::TensorId;
use tensorwright_schedule::LoopNest;
use tensorwright_schedule::nest::BufferId;

/// Words that mean something in C or C++ (headers are for both), macros of the headers that the
/// code includes or that compilers define, functions that it calls, and names that it uses itself.
const RESERVED: &str = "\
    auto break case char const continue default do double else enum extern float for goto if \
    inline int long register restrict return short signed sizeof static struct switch typedef \
    union unsigned void volatile while \
    alignas alignof and and_eq asm atomic bitand bitor bool catch class compl concept consteval \
    constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast \
    explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or \
    or_eq private protected public reinterpret_cast requires static_assert static_cast template \
    this thread_local throw true try typeid typename typeof using virtual wchar_t xor xor_eq \
    errno far i386 linux main near signgam stderr stdin stdout unix \
    abort abs calloc div exit free labs malloc memcpy memset rand realloc size_t ssize_t \
    fabs fmin fmax fpclassify isnormal isgreater isless isunordered nearbyint signbit \
    rsqrt sigmoid clamp \
    EOF I INFINITY HUGE_VAL HUGE_VALF NAN NULL RAND_MAX MB_CUR_MAX \
    begin buffers code context end error memory parameter pool prepared status task worker workers workspace";

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
    /// Names the buffers; parameters come first, so that theirs stay what they are.
    pub(crate) fn of(nest: &LoopNest) -> Self {
        let mut names = Self { buffers: BTreeMap::new(), taken: BTreeSet::from([symbol(nest)]) };
        let all = (0..nest.buffers.len() as u32).map(TensorId);
        for id in nest.parameters.iter().copied().chain(all) {
            let Some(buffer) = nest.buffers.get(id.0 as usize) else { continue };
            if names.buffers.contains_key(&id) {
                continue;
            }
            let name = unique(&identifier(&buffer.name), |name| names.taken.contains(name));
            names.taken.insert(name.clone());
            names.buffers.insert(id, name);
        }
        names
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

/// The symbol that a nest exports.
///
/// It is the name of the nest if that is an identifier which C leaves to programs.
#[must_use]
pub fn symbol(nest: &LoopNest) -> String {
    identifier(&nest.name)
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

/// A name as an identifier that C leaves to programs.
fn identifier(name: &str) -> String {
    let mut text = alphanumeric(name);
    if text.starts_with("tw_") || text.starts_with('_') || text.ends_with("_t") {
        text.insert(0, 'k');
    }
    if is_reserved(&text) { text + "_" } else { text }
}

/// A name as an identifier of Rust in snake case, other than those for which `taken` holds.
pub(crate) fn rust_identifier(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let lower = alphanumeric(name).to_lowercase();
    let lower = if lower.starts_with('_') { format!("k{lower}") } else { lower };
    let reserved = |name: &str| RESERVED_IN_RUST.split_whitespace().any(|word| word == name);
    unique(&lower, |name| reserved(name) || taken(name))
}

fn alphanumeric(name: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(one).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() {
        format!("k{text}")
    } else {
        text
    }
}

fn is_reserved(name: &str) -> bool {
    let function = |builtin: &Builtin| {
        name.strip_prefix(builtin.name()).is_some_and(|rest| matches!(rest, "" | "f" | "l"))
    };
    RESERVED.split_whitespace().any(|word| word == name)
        || Builtin::ALL.iter().any(function)
        || ["INT", "UINT", "FP_", "M_", "EXIT_"].iter().any(|prefix| {
            name.starts_with(prefix) && !name.contains(|c: char| c.is_ascii_lowercase())
        })
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
    fn identifiers_avoid_what_c_and_rust_keep_for_themselves() {
        let table = [
            ("gemm", "gemm"),
            ("k.0", "k_0"),
            ("2d", "k2d"),
            ("", "k"),
            ("float", "float_"),
            ("new", "new_"),
            ("expf", "expf_"),
            ("tw_check", "ktw_check"),
            ("_Bool", "k_Bool"),
            ("int_t", "kint_t"),
            ("INT8_MAX", "INT8_MAX_"),
            ("Input", "Input"),
            ("gewicht\u{e4}", "gewicht_"),
        ];
        for (name, expected) in table {
            assert_eq!(identifier(name), expected);
        }
        assert_eq!(rust_identifier("A", |name| name == "a"), "a_2");
        assert_eq!(rust_identifier("gen", |_| false), "gen_2");
    }
}
