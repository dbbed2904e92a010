//! [`Place`]: where an input of a call on a device is.

/// Where an input of a call on a device is.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// In the memory of this process: its value is copied.
    Host(*const u8),
    /// In the memory of the device, at this address.
    Device(u64),
}
