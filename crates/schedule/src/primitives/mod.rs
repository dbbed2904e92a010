//! Schedule primitives: one file and one registry line each.
//!
//! A primitive rewrites a [`LoopNest`] into an equivalent one, or refuses. Loops are identified by
//! the stage whose store they surround and by their variable. If an outer stage has a loop of the
//! same name, the name means the inner one; `i'` is the next one around it.

mod bind;
mod cache_read;
mod cache_write;
mod compute_at;
mod compute_with;
mod expand;
mod factor;
mod find;
mod footprint;
mod fuse;
mod independent;
mod inline;
mod layout;
mod localize;
mod pad;
mod parallel;
mod phases;
mod plain;
mod prefetch;
mod prepare;
mod privatize;
mod rebase;
mod reduction_init;
mod renaming;
mod reorder;
mod rfactor;
mod segment;
mod slide;
mod split;
mod tensorize;
mod unroll;
mod vectorize;
mod winograd;

use std::fmt;

pub use bind::{Bind, ThreadAxis};
pub use cache_read::CacheRead;
pub use cache_write::CacheWrite;
pub use compute_at::ComputeAt;
pub use compute_with::ComputeWith;
pub use expand::Expand;
pub use factor::Factor;
pub use find::{loops_of, stages, store_of};
pub use fuse::Fuse;
pub use inline::Inline;
pub use layout::{LayoutText, Part, SetLayout};
pub use pad::Pad;
pub use parallel::Parallel;
pub use phases::Phases;
pub use prefetch::SetPrefetch;
pub use privatize::Privatize;
pub use rebase::Rebase;
pub use reorder::Reorder;
pub use rfactor::Rfactor;
pub use segment::Segment;
pub use slide::Slide;
pub use split::{Split, Tail};
pub use tensorize::Tensorize;
pub use unroll::Unroll;
pub use vectorize::{MAX_LANES, Vectorize};
pub use winograd::{Winograd, winograd_choices};

pub(crate) use reduction_init::latest;
pub(crate) use renaming::Renaming;

use crate::nest::LoopNest;
use crate::refusal::Refusal;
use crate::words::Words;

/// The part of a nest that a primitive needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The trees of the stages that it names. Readers are not affected.
    Stage,
    /// Also all nodes that mention the buffer of the stage.
    Readers,
    /// The whole nest.
    Nest,
}

/// The interface of all primitives.
trait Rule: fmt::Display + Sized {
    /// Whether sums stay those of the program, up to their order.
    fn is_exact(&self) -> bool {
        true
    }

    /// The part of a nest that it needs.
    fn reach(&self) -> Reach {
        Reach::Nest
    }

    /// The other stage that it names.
    fn other_stage(&self) -> Option<&str> {
        None
    }

    /// Parses the arguments after the keyword.
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal>;

    /// Rewrites the nest, or refuses; a refusal may leave the nest half rewritten.
    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal>;

    /// The same step for a nest that differs only in names.
    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal>;
}

macro_rules! primitives {
    ($($keyword:literal $variant:ident($rule:ty) $doc:literal;)*) => {
        /// A primitive with its arguments.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Primitive {
            $(#[doc = $doc] $variant($rule),)*
        }

        impl Primitive {
            /// The keywords of all primitives.
            pub const KEYWORDS: &'static [&'static str] = &[$($keyword),*];

            /// The effects of the primitives, by keyword, in one line each.
            pub const SUMMARIES: &'static [(&'static str, &'static str)] = &[$(($keyword, $doc)),*];

            /// The keyword of the primitive.
            #[must_use]
            pub fn keyword(&self) -> &'static str {
                match self { $(Primitive::$variant(_) => $keyword),* }
            }

            /// Whether sums stay those of the program, up to their order: rounding errors then have
            /// the same bound as the program's own.
            #[must_use]
            pub fn is_exact(&self) -> bool {
                match self { $(Primitive::$variant(rule) => rule.is_exact()),* }
            }

            pub(crate) fn reach(&self) -> Reach {
                match self { $(Primitive::$variant(rule) => rule.reach()),* }
            }

            pub(crate) fn other_stage(&self) -> Option<&str> {
                match self { $(Primitive::$variant(rule) => rule.other_stage()),* }
            }

            pub(crate) fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
                let keyword = words.take();
                match keyword {
                    $(Some($keyword) => <$rule>::parse(words).map(Primitive::$variant),)*
                    _ => Err(unknown(keyword)),
                }
            }

            pub(crate) fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
                match self { $(Primitive::$variant(rule) => rule.apply(stage, nest)),* }
            }

            pub(crate) fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
                match self {
                    $(Primitive::$variant(rule) => rule.renamed(names).map(Primitive::$variant),)*
                }
            }
        }

        impl fmt::Display for Primitive {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Primitive::$variant(rule) => rule.fmt(f)),* }
            }
        }

        $(impl From<$rule> for Primitive {
            fn from(rule: $rule) -> Self {
                Primitive::$variant(rule)
            }
        })*
    };
}

primitives! {
    "split" Split(Split) "splits a loop into a nest of loops";
    "fuse" Fuse(Fuse) "fuses two nested loops into one";
    "reorder" Reorder(Reorder) "reorders nested loops";
    "unroll" Unroll(Unroll) "unrolls a loop";
    "vectorize" Vectorize(Vectorize) "maps the iterations of a loop to vector lanes";
    "parallel" Parallel(Parallel) "distributes the iterations of a loop over workers";
    "bind" Bind(Bind) "maps the iterations of a loop to GPU blocks or threads";
    "tensorize" Tensorize(Tensorize) "turns loops into one tensor core operation of a warp";
    "inline" Inline(Inline) "recomputes a stage at every read";
    "compute_at" ComputeAt(ComputeAt) "computes a stage inside a loop of its reader";
    "compute_with" ComputeWith(ComputeWith) "fuses the loops of two independent stages";
    "slide" Slide(Slide) "computes a stage in a sliding window inside a loop of its reader";
    "cache_read" CacheRead(CacheRead) "copies the part of a tensor that a loop reads";
    "cache_write" CacheWrite(CacheWrite) "accumulates results in a local buffer and writes them once";
    "layout" Layout(SetLayout) "changes the memory layout of a tensor";
    "rfactor" Rfactor(Rfactor) "turns a reduction loop into a dimension of partial results";
    "privatize" Privatize(Privatize) "gives each iteration of a reduction loop its own copy of the result";
    "segment" Segment(Segment) "splits a recurrence into segments that can run in parallel";
    "pad" Pad(Pad) "replaces a guarded read by a read of a padded copy";
    "phases" Phases(Phases) "splits a strided reduction into one dense loop nest per phase";
    "factor" Factor(Factor) "moves loop-invariant factors out of a sum";
    "rebase" Rebase(Rebase) "computes a softmax with block-wise maxima (online softmax)";
    "prefetch" Prefetch(SetPrefetch) "prefetches the data of a later iteration";
    "expand" Expand(Expand) "materializes a constant that is read at computed positions";
    "winograd" Winograd(Winograd) "computes a convolution with Winograd's minimal filtering";
}

fn unknown(keyword: Option<&str>) -> Refusal {
    let known = format!("the primitives are {}", Primitive::KEYWORDS.join(", "));
    match keyword {
        Some(word) => Refusal::new(format!("there is no primitive `{word}`")).help(known),
        None => Refusal::new("expected a primitive, but the line ends").help(known),
    }
}
