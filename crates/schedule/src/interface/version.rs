//! Hashes that distinguish interfaces.

/// The 32-bit FNV-1a hash of a text: the same on every machine.
#[must_use]
pub fn version(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_definition_of_fnv() {
        assert_eq!(
            [version(""), version("a"), version("foobar")],
            [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]
        );
    }
}
