//! `vector`: the vectorized loop and the number of lanes.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of};
use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::Tiling;

/// The vectorized loop and the number of lanes.
#[derive(Debug)]
pub(super) struct VectorKnob;

/// The candidate vector loops: the default first.
pub(crate) fn candidates(
    accesses: &Accesses,
    spatial: &[Axis],
    reduce: &[Axis],
    lanes: i64,
) -> Vec<Vector> {
    let mut found: Vec<((bool, bool, bool, i64), Vector)> = Vec::new();
    for (place, axis) in spatial.iter().enumerate() {
        let strided = accesses.strided(axis);
        // One strided tensor may be packed; several are gathered, if results are contiguous.
        let may_pack = strided.len() <= 1;
        let contiguous = accesses.write.stride(axis) == Some(1);
        if axis.extent < 2 || !may_pack && !contiguous {
            continue;
        }
        let score = (strided.is_empty(), may_pack, contiguous, axis.extent.min(lanes));
        let widest = lanes.min(axis.extent.max(2).cast_unsigned().next_power_of_two() as i64);
        for lanes in [widest, widest / 2] {
            if lanes > 1 {
                found.push((score, Vector::Spatial { axis: place, lanes }));
            }
        }
    }
    for (place, axis) in reduce.iter().enumerate() {
        if axis.extent >= lanes && lanes > 1 && accesses.strided(axis).is_empty() {
            let score = (true, true, false, 0);
            found.push((score, Vector::Reduce { axis: place, lanes }));
        }
    }
    // The sort is stable: the wider comes first among equals.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut vectors: Vec<Vector> = found.into_iter().map(|(_, vector)| vector).collect();
    vectors.push(Vector::Scalar);
    vectors
}

impl Knob for VectorKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let name = |vector: &Vector| match *vector {
            Vector::Scalar => "none".to_owned(),
            Vector::Spatial { axis, lanes } => format!("{}:{lanes}", group.spatial[axis].axis.name),
            Vector::Reduce { axis, lanes } => format!("{}:{lanes}", group.reduce[axis].axis.name),
        };
        one("vector", Categorical::new(group.vectors.iter().map(name)))
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, _: usize, value: Value<'_>) {
        let vector = value.choice(&group.vectors, Vector::Scalar);
        tiling.vector = if value.is_free { vector } else { fit(vector, &tiling.spatial) };
    }

    fn write(&self, tiling: &Tiling, group: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(&group.vectors, &tiling.vector)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("vector", whole)]
    }
}

/// In a space without the vector parameter, the tile determines it: fewer lanes, or scalar.
fn fit(vector: Vector, spatial: &[Vec<i64>]) -> Vector {
    let Vector::Spatial { axis, mut lanes } = vector else { return vector };
    let tile = spatial.get(axis).and_then(|parts| parts.last()).copied().unwrap_or(1);
    while lanes > 1 && tile % lanes != 0 {
        lanes /= 2;
    }
    if lanes > 1 { Vector::Spatial { axis, lanes } } else { Vector::Scalar }
}

/// The register tile is a multiple of the lanes.
fn whole(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let Vector::Spatial { axis, lanes } = tiling.vector else { return None };
    let (parts, axis) = (&tiling.spatial[axis], &group.spatial[axis].axis);
    let last = parts.last().copied().unwrap_or(1);
    (parts.len() > 1 && last % lanes != 0).then(|| {
        format!(
            "the innermost {last} iterations of {} are not a multiple of {lanes} lanes",
            axis.name
        )
    })
}
