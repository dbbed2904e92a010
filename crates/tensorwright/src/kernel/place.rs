//! [`Place`]: the location of a device call's input.

/// The location of a device call's input.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// In host memory: its value is copied.
    Host(*const u8),
    /// In device memory, at this address.
    Device(u64),
}
