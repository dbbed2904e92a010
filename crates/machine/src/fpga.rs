//! [`Fpga`]: a gate array.

/// A gate array, by what bounds a design on it (FlexTensor, section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fpga {
    /// The name.
    pub name: String,
    /// The multipliers that a design may use.
    pub multipliers: i64,
    /// The bytes of memory on the chip.
    pub memory: i64,
    /// Bytes per second to and from memory outside of it.
    pub bandwidth: i64,
}
