//! [`Amounts`]: the resource use of a stage, per kind of cost.

use std::fmt;
use std::ops::{Index, IndexMut};

use super::Machine;

macro_rules! kinds {
    ($($name:ident $text:literal $about:literal $price:expr;)*) => {
        /// A kind of cost. The terms are those of section 5.2: compute, load, store, parallelism
        /// and working set, the latter as the memory level that bytes come from.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind { $(#[doc = $about] $name,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The cycles per unit, computed from the machine parameters.
            #[must_use]
            pub fn price(self, machine: &Machine) -> f64 {
                let price: fn(&Machine) -> f64 = match self { $(Self::$name => $price,)* };
                price(machine)
            }

            /// The prices of all kinds, in order.
            #[must_use]
            pub fn prices(machine: &Machine) -> Vec<f64> {
                Self::ALL.iter().map(|kind| kind.price(machine)).collect()
            }
        }
    };
}

// One line per kind.
kinds! {
    Issue "issue" "Issue cycles of vector arithmetic and loads." |_| 1.0;
    Gathered "gathered" "Gathered elements." |_| 0.5;
    Bodies "bodies" "Bodies of inner loops." |_| 2.0;
    Terms "terms" "Terms of all elements of a body." |_| 0.5;
    Rows "rows" "Rows." |machine| machine.row;
    Starts "starts" "Computed regions." |machine| machine.start;
    Again "again" "Bytes of a window loaded again from the L2 cache." |machine| 1.0 / machine.l2_bytes;
    LoadedNear "loaded-near" "Bytes loaded from the L2 cache." |machine| 1.0 / machine.l2_bytes;
    LoadedEdge "loaded-edge" "Bytes loaded that other data evicts from the L2 cache." |machine| 2.0 / machine.l2_bytes;
    LoadedFar "loaded-far" "Bytes loaded from beyond the L2 cache." |machine| 1.0 / machine.memory_bytes;
    StoredNear "stored-near" "Bytes stored to the L2 cache." |machine| 1.0 / machine.l2_bytes;
    StoredEdge "stored-edge" "Bytes stored that other data evicts from the L2 cache." |machine| 2.0 / machine.l2_bytes;
    StoredFar "stored-far" "Bytes stored beyond the L2 cache, which are read first." |machine| 1.0 / machine.memory_bytes;
    Launches "launches" "Starts and barriers of parallel loops." |machine| machine.launch;
}

/// The amounts of a stage, kind by kind.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct Amounts([f64; Kind::ALL.len()]);

impl Amounts {
    /// All amounts, in the order of [`Kind::ALL`].
    #[must_use]
    pub fn all(&self) -> &[f64] {
        &self.0
    }

    /// Scales all amounts by a factor.
    #[must_use]
    pub(super) fn times(mut self, factor: f64) -> Self {
        self.0.iter_mut().for_each(|amount| *amount *= factor);
        self
    }
}

impl Index<Kind> for Amounts {
    type Output = f64;

    fn index(&self, kind: Kind) -> &f64 {
        &self.0[kind as usize]
    }
}

impl IndexMut<Kind> for Amounts {
    fn index_mut(&mut self, kind: Kind) -> &mut f64 {
        &mut self.0[kind as usize]
    }
}

impl fmt::Debug for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Kind::ALL.iter().map(|kind| (kind.name(), self[*kind]));
        f.debug_map().entries(named).finish()
    }
}
