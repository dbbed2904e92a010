//! Tuning reports: one HTML page made from the records.
//!
//! [`Report::from_store`] gathers; [`render`] writes a self-contained HTML page that works offline
//! and makes no requests. Programs that need only the numbers can serialise the [`Report`].
//!
//! ```
//! use tensorwright_records::{StoreOptions, SqliteStore};
//! use tensorwright_report::{Report, Selection, render};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("records.sqlite3");
//!
//! let store = SqliteStore::open(&path, StoreOptions::default())?;
//! let report = Report::from_store(&store, &Selection::default())?;
//! let page = render(&report);
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | where | what |
//! | --- | --- |
//! | `model.rs` | [`Report`]: the contents of a page |
//! | `gather/` | from the records to a [`Report`], a page of trials in memory at a time |
//! | `curve.rs`, `importance.rs` | best-so-far curves and their medians; what each parameter explains |
//! | `html/` | from a [`Report`] to the page, one file per part |
//! | `live.rs` | the live page of a fleet, which polls its server for data |
//! | `assets/` | style, script, and uPlot, which draws the curves |
//!
//! Everything is bounded: a hundred thousand trials or a hundred keys are downsampled until the
//! page is small enough to send, and the page reports what was left out.

mod curve;
mod downsample;
mod gather;
mod html;
mod importance;
mod live;
mod meta;
mod model;
#[cfg(test)]
mod tests;
mod text;

pub use curve::{Curve, Median};
pub use html::render;
pub use importance::{Effect, Importance, Influence};
pub use live::live_page;
pub use model::{
    Candidate, Crash, Dots, Headline, Line, Outcomes, Proposals, Reason, Report, Roofs, Section,
    Selection, Strategy, Winner,
};
