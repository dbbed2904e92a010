//! The levels of the loops of each kind of target, as tables.
//!
//! A level is a role of a loop: the loop over cache blocks, the lanes of vectors. Plans use levels
//! to say where stages are computed, and loops are named after them: `y.block`, `x.lanes`.

/// A level of a target, by its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

/// The levels of a kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    names: &'static [&'static str],
}

macro_rules! levels {
    ($($target:ident $module:ident $what:literal { $($level:ident $name:literal $doc:literal;)* })*) => {
        impl Levels {
            $(#[doc = $what] pub const $target: Self = Self { names: &[$($name),*] };)*
        }
        $(#[doc = $what] pub mod $module {
            use super::Level;
            #[repr(u8)]
            #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
            enum Row { $($level),* }
            $(#[doc = concat!("The level `", $name, "`: ", $doc, ".")]
            pub const $level: Level = Level(Row::$level as u8);)*
        })*
    };
}

levels! {
    CPU cpu "The levels of processors." {
        AROUND "around" "whole loops around everything else";
        PARALLEL "parallel" "tiles of workers";
        CACHE "cache" "tiles whose data stays in a cache";
        PACK "pack" "one iteration, in which operands are packed that all blocks share";
        BLOCK "block" "blocks of rows whose data stays in a cache";
        ROW "row" "rows, one after another, in which other stages are computed";
        TERM_BLOCKS "blocks" "blocks of terms whose operands stay in a cache";
        TILE "tile" "register tiles along the rows";
        PANEL "panel" "register tiles along the vectors";
        PHASE "phase" "results whose reads have a constant stride";
        TERMS "terms" "the terms of a sum";
        WRITTEN "written" "the terms of a sum that are unrolled";
        ROWS "rows" "the rows of a register tile";
        VECTORS "vectors" "the vectors of a register tile";
        LANES "lanes" "the lanes of a vector";
    }
}

impl Levels {
    /// The name of a level; empty if the target has no such level.
    #[must_use]
    pub fn name(self, level: Level) -> &'static str {
        self.names.get(usize::from(level.0)).copied().unwrap_or_default()
    }
}
