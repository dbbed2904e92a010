//! `store`: how results whose rows are not along the vectors are stored.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::MAX_LANES;
use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of};
use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::{StoreBy, Tiling};

/// How results are stored.
#[derive(Debug)]
pub(super) struct StoreKnob;

const CHOICES: &[StoreBy] = &[StoreBy::Direct, StoreBy::Transposed];

/// Whether some vectors are not along the rows of the result, and the reduction stores its sums
/// itself.
pub(crate) fn is_open(group: &Group) -> bool {
    let turned = group.vectors.iter().any(|vector| match *vector {
        Vector::Spatial { axis, .. } => group.write.spatial[axis] != Some(1),
        _ => false,
    });
    turned && group.contiguous.is_some() && group.is_reduction() && group.epilogue_of.is_none()
}

impl Knob for StoreKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let name = |choice: &StoreBy| match choice {
            StoreBy::Direct => "direct",
            StoreBy::Transposed => "transposed",
        };
        match is_open(group) {
            true => one("store", Categorical::new(CHOICES.iter().map(name))),
            false => Vec::new(),
        }
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        tiling.store = value.choice(CHOICES, StoreBy::Direct);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(CHOICES, &tiling.store)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("store", has_row)]
    }
}

/// A transposed tile has a row of at least a vector to store.
fn has_row(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    if tiling.store == StoreBy::Direct {
        return None;
    }
    let row = group.contiguous?;
    let is_vector = matches!(tiling.vector, Vector::Spatial { axis, .. } if axis == row);
    let rows = tiling.register(row);
    let no_row = !matches!(tiling.vector, Vector::Spatial { .. }) || is_vector;
    (no_row || !(2..=MAX_LANES).contains(&rows)).then(|| {
        format!("the register tile has {rows} iterations along the rows of the result, too few to transpose")
    })
}
