//! [`Fpga`]: an FPGA target.

/// An FPGA, described by the bounds of a design (FlexTensor, section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fpga {
    /// The name.
    pub name: String,
    /// The multipliers that a design may use.
    pub multipliers: i64,
    /// The bytes of on-chip memory.
    pub memory: i64,
    /// The bandwidth of off-chip memory, in bytes per second.
    pub bandwidth: i64,
}
