//! Warnings about sizes that cannot be dynamic.

use tensorwright::Program;
use tensorwright_package::buckets::round_up;

use super::cut::Cut;
use crate::definition::{Definition, Dynamic, Sizes};
use crate::specialised::Specialised;

/// Lists the requested dynamic sizes that cannot be dynamic, with the reasons; `None` if there are
/// none.
pub(super) fn warning(definition: &Definition, program: &Program, sizes: &Sizes) -> Option<String> {
    let known = definition.signature.sizes.iter();
    let named: Vec<&String> = match &definition.choices.dynamic {
        Dynamic::Never => return None,
        Dynamic::All => known.collect(),
        Dynamic::Found(named) => known.filter(|name| named.contains(name)).collect(),
    };
    let one = |name: &&String| {
        let reason = reason(definition, program, sizes, name)?;
        Some(format!("`{name}` cannot be dynamic: {reason}"))
    };
    let all: Vec<String> = named.iter().filter_map(one).collect();
    let each = "each value gets its own kernel";
    let text = format!("{}; {each}", all.join("; "));
    (!all.is_empty()).then(|| definition.signature.says(&text))
}

/// Why no kernel for another value can compute this one.
fn reason(
    definition: &Definition,
    program: &Program,
    sizes: &Sizes,
    name: &str,
) -> Option<&'static str> {
    if definition.choices.target.gpu().is_some() {
        return Some("device kernels have fixed sizes");
    }
    if Cut::of(definition, program, sizes, &[name.to_owned()]).is_some() {
        return None;
    }
    let value = *sizes.get(name)?;
    // A value that rounds to itself serves smaller ones.
    let rounded = round_up(value);
    let other =
        if rounded > value { rounded } else { value.checked_sub(1).filter(|one| *one > 0)? };
    let mut others = sizes.clone();
    others.insert(name.to_owned(), other);
    let Ok(others) = Specialised::program(definition, &others) else {
        return Some("values near this one do not fit the other sizes");
    };
    let (large, small) = if other > value { (&others, program) } else { (program, &others) };
    large.guards_for(small).err()
}
