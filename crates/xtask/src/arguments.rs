//! Parser for command arguments: flags, and names with values.

use std::str::FromStr;

/// Calls `set` with every flag, and with every other name and its value.
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

/// Parses a number with optional underscores: `1_000_000`.
pub(crate) fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.replace('_', "").parse().map_err(|_| format!("{name} needs a number, not `{value}`"))
}

/// The error for an unknown option.
pub(crate) fn unknown(name: &str) -> String {
    format!("no option {name}")
}
