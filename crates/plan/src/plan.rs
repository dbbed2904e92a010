//! [`Plan`]: a persistent map from stages to decisions.

use std::sync::Arc;

use tensorwright_schedule::nest::Table;

use crate::placement::Placement;
use crate::stages::StageId;
use crate::tiling::Tiling;

/// The decisions about a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePlan {
    /// Where it is computed.
    pub placement: Placement,
    /// Its loops.
    pub tiling: Tiling,
}

/// The decisions about the stages of a program. Stages without one are left as they are.
///
/// A copy with one decision changed shares all others.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_plan::{Placement, Plan, StagePlan, Stages, Tiling};
/// use tensorwright_schedule::canonical;
///
/// let text = "def f(float(N) a) -> (c) { b(i) = 2 * a(i) \n c(i) = b(i) + 1 }";
/// let program = Module::parse("f.tc", text)?.bind("f", [("N", 64)])?;
/// let stages = Stages::of(&canonical(&program), ["b", "c"]);
/// let (b, _) = stages.named("b").ok_or("no stage")?;
/// let inline = StagePlan { placement: Placement::Inline, tiling: Tiling::default() };
/// let empty = Plan::default();
/// let one = empty.with(b, inline.clone());
/// assert_eq!(one.get(b), Some(&inline));
/// assert!(empty.get(b).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Plan {
    decisions: Table<Option<Arc<StagePlan>>>,
}

impl Plan {
    /// The plan with one decision changed.
    #[must_use]
    pub fn with(&self, stage: StageId, decision: StagePlan) -> Self {
        let mut changed = self.clone();
        let place = stage.0 as usize;
        while changed.decisions.len() <= place {
            changed.decisions.push(None);
        }
        changed.decisions[place] = Some(Arc::new(decision));
        changed
    }

    /// The decision about a stage.
    #[must_use]
    pub fn get(&self, stage: StageId) -> Option<&StagePlan> {
        self.decisions.get(stage.0 as usize)?.as_deref()
    }

    /// All decisions, in the order of stages.
    pub fn iter(&self) -> impl Iterator<Item = (StageId, &StagePlan)> {
        let all = self.decisions.iter().enumerate();
        all.filter_map(|(at, decision)| Some((StageId(at as u32), decision.as_deref()?)))
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Plan {}
