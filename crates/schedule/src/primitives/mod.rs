//! The primitives that schedules are made of: one file each, one line each in the registry below.
//!
//! A primitive rewrites a [`LoopNest`] into an equivalent one, or refuses. Loops are named by the
//! stage whose store they surround and by their variable; where an outer stage has a loop of the
//! same name, the inner one is meant; `i'` is the next one around it.

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

/// How much of a nest a primitive has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The trees of the stages that it names. What is made there stays the same for all that read it.
    Stage,
    /// All that mentions the buffer of the stage, too.
    Readers,
    /// Everything.
    Nest,
}

/// What every primitive is.
trait Rule: fmt::Display + Sized {
    /// Whether sums stay those that the program names, up to their order.
    fn is_exact(&self) -> bool {
        true
    }

    /// How much of a nest it has to see.
    fn reach(&self) -> Reach {
        Reach::Nest
    }

    /// The other stage that it names.
    fn other_stage(&self) -> Option<&str> {
        None
    }

    /// Reads what follows the keyword.
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal>;

    /// Rewrites the nest, or refuses; a nest that refuses may be left half rewritten.
    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal>;

    /// The same with the names that a nest has which differs in names alone.
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

            /// What the primitives do, by keyword, in one line each.
            pub const SUMMARIES: &'static [(&'static str, &'static str)] = &[$(($keyword, $doc)),*];

            /// The keyword of the primitive.
            #[must_use]
            pub fn keyword(&self) -> &'static str {
                match self { $(Primitive::$variant(_) => $keyword),* }
            }

            /// Whether sums stay those that the program names, up to their order: rounding errors are
            /// then bounded as the program's own.
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
    "split" Split(Split) "a loop becomes a nest of loops";
    "fuse" Fuse(Fuse) "two nested loops become one";
    "reorder" Reorder(Reorder) "nested loops change places";
    "unroll" Unroll(Unroll) "a loop is written out";
    "vectorize" Vectorize(Vectorize) "a loop becomes the lanes of vectors";
    "parallel" Parallel(Parallel) "a loop is shared by workers";
    "bind" Bind(Bind) "the iterations of a loop are the blocks or the threads of a device";
    "tensorize" Tensorize(Tensorize) "loops are one operation on tiles of matrices, which a warp of a device does together";
    "inline" Inline(Inline) "a stage is computed where it is read, again for every read";
    "compute_at" ComputeAt(ComputeAt) "a stage is computed inside a loop of its reader, as much as is read there";
    "compute_with" ComputeWith(ComputeWith) "a stage is computed in loops that it shares with another one";
    "slide" Slide(Slide) "a stage is computed inside a loop of its reader, and what the iteration before computed is kept";
    "cache_read" CacheRead(CacheRead) "the part of a tensor that a loop reads is copied to a local buffer first";
    "cache_write" CacheWrite(CacheWrite) "results are accumulated in a local buffer and written once";
    "layout" Layout(SetLayout) "a tensor is stored in another order";
    "rfactor" Rfactor(Rfactor) "a loop of a reduction becomes a dimension of partial results";
    "privatize" Privatize(Privatize) "iterations of a loop over terms get copies of the result, which are combined at the end";
    "segment" Segment(Segment) "pieces of a recurrence start from what the pieces before them come to";
    "pad" Pad(Pad) "a read under a condition on its position becomes a read of a padded copy";
    "phases" Phases(Phases) "a loop whose steps meet every so many terms of a reduction is taken apart into loops that meet all of theirs";
    "factor" Factor(Factor) "factors that do not depend on some loops of a sum are taken out of it";
    "rebase" Rebase(Rebase) "exponentials below a maximum are computed below the maximum of a block";
    "prefetch" Prefetch(SetPrefetch) "what a later iteration reads is fetched ahead";
    "expand" Expand(Expand) "a constant that is read at computed positions is put in order ahead of all calls";
    "winograd" Winograd(Winograd) "a sliding sum of products is computed in tiles with fewer multiplications";
}

fn unknown(keyword: Option<&str>) -> Refusal {
    let known = format!("the primitives are {}", Primitive::KEYWORDS.join(", "));
    match keyword {
        Some(word) => Refusal::new(format!("there is no primitive `{word}`")).help(known),
        None => Refusal::new("expected a primitive, but the line ends").help(known),
    }
}
