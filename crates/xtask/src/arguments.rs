//! Arguments of the commands: flags, and names with values.

use std::str::FromStr;

/// Calls `set` with every flag and nothing, and with every other name and the value after it.
pub(crate) fn read(
    arguments: &[String],
    flags: &[&str],
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = if flags.contains(&name.as_str()) {
            ""
        } else {
            rest.next().ok_or_else(|| format!("{name} needs a value"))?
        };
        set(name, value)?;
    }
    Ok(())
}

/// A number; `1_000_000` is easier to get right than `1000000`.
pub(crate) fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.replace('_', "").parse().map_err(|_| format!("{name} needs a number, not `{value}`"))
}

/// An option that there is not.
pub(crate) fn unknown(name: &str) -> String {
    format!("no option {name}")
}
