//! [`Stages`]: the stages that a plan is about.

use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{LoopNest, Role};
use tensorwright_schedule::placement::{reader_names, store_of};

/// A stage, by its place in [`Stages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageId(pub(crate) u32);

/// An axis of a stage, by its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AxisId(pub u16);

/// Stages of a nest, before their loops are scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stages {
    list: Vec<Stage>,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its axes, in the order of its loops.
    pub axes: Vec<Axis>,
    /// The stages among [`Stages`] that read it.
    pub readers: Vec<StageId>,
}

/// An axis of a stage: a loop of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its extent.
    pub extent: i64,
    /// Whether it is an axis of the results, of terms or of a recurrence.
    pub role: Role,
}

impl Stages {
    /// Some stages of a nest, in the order of the nest. Names that are not there are left out.
    #[must_use]
    pub fn of<'a>(nest: &LoopNest, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut own: Vec<(usize, &str)> = Vec::new();
        let all = tensorwright_schedule::primitives::stages(nest);
        for name in names {
            let place = all.iter().position(|other| other == name);
            own.extend(place.map(|place| (place, name)));
        }
        own.sort_unstable();
        own.dedup();
        let id = |name: &str| own.iter().position(|(_, other)| *other == name);
        let stage = |(_, name): &(usize, &str)| {
            let accesses = Accesses::of(nest, name)?;
            let store = store_of(nest, name)?;
            let readers = reader_names(nest, store.buffer);
            let ids = readers.iter().filter_map(|reader| id(reader));
            let ids: Vec<StageId> = ids.map(|place| StageId(place as u32)).collect();
            let axis = |axis: tensorwright_schedule::access::Axis| Axis {
                name: axis.name,
                extent: axis.extent,
                role: axis.role,
            };
            Some(Stage {
                name: (*name).to_owned(),
                axes: accesses.axes.into_iter().map(axis).collect(),
                readers: ids,
            })
        };
        Self { list: own.iter().filter_map(stage).collect() }
    }

    /// The stages with their numbers, in the order of the nest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (StageId, &Stage)> {
        self.list.iter().enumerate().map(|(place, stage)| (StageId(place as u32), stage))
    }

    /// The number of stages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A stage.
    #[must_use]
    pub fn get(&self, id: StageId) -> Option<&Stage> {
        self.list.get(id.0 as usize)
    }

    /// The name of a stage; empty if there is no such stage.
    #[must_use]
    pub fn name(&self, id: StageId) -> &str {
        self.get(id).map_or("", |stage| stage.name.as_str())
    }

    /// The stage with a name, and its number.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<(StageId, &Stage)> {
        self.iter().find(|(_, stage)| stage.name == name)
    }
}

impl Stage {
    /// The axes of a role, with their numbers.
    pub fn of_role(&self, role: Role) -> impl DoubleEndedIterator<Item = (AxisId, &Axis)> {
        let all = self.axes.iter().enumerate();
        all.filter(move |(_, axis)| axis.role == role).map(|(at, axis)| (AxisId(at as u16), axis))
    }

    /// The axis with a name.
    #[must_use]
    pub fn axis(&self, name: &str) -> Option<AxisId> {
        self.axes.iter().position(|axis| axis.name == name).map(|at| AxisId(at as u16))
    }
}
