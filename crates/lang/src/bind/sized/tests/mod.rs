//! Programs with sizes that vary, against the concrete programs at many sizes.

mod agree;
mod examples;
mod messages;
mod programs;
mod random;
