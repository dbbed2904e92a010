//! Export and import: lossless JSON lines, and CSV for spreadsheets.

mod csv;
mod lines;

pub use csv::write_csv;
pub use lines::{BadLine, Imported, MAX_LINE, read_lines, write_lines};
