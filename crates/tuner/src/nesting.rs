//! The nesting of TOML, whose parser uses the stack for each level.

/// The most levels that are read.
const MOST_LEVELS: usize = 100;

/// The position of a bracket that is nested too deep. Brackets in strings count, too.
#[must_use]
pub fn nested_too_deep(text: &str) -> Option<usize> {
    let mut level = 0usize;
    text.bytes().position(|byte| {
        match byte {
            b'[' | b'{' => level += 1,
            b']' | b'}' => level = level.saturating_sub(1),
            _ => {}
        }
        level > MOST_LEVELS
    })
}
