//! [`Plain`]: unscheduled stages, the input and output of rewritings.

use tensorwright_lang::program::{Index, Rewrite, Scalar};

use crate::nest::{Loop, LoopKind, LoopNest, Node, Ranges, Role, Store, Var, for_each_store};
use crate::refusal::Refusal;

use super::find::{find_store, loops_on, store_at};
use super::prepare::chain;

/// A stage in canonical form: a chain of its own loops around its store.
pub(super) struct Plain {
    /// The position in the body of the nest.
    position: usize,
    /// The loops, outermost first.
    pub(super) loops: Vec<(Var, i64, Role)>,
    /// The store.
    pub(super) store: Store,
}

impl Plain {
    /// The stage of a name.
    pub(super) fn of(nest: &LoopNest, stage: &str) -> Result<Self, Refusal> {
        let path = find_store(nest, stage)?;
        let store = store_at(nest, &path)?.clone();
        let loops = loops_on(nest, &path);
        let is_plain = |l: &&Loop| {
            l.kind == LoopKind::Serial
                && l.stage == Some(store.stage())
                && l.body.len() == 1
                && l.locals.is_empty()
                && !l.peel
                && !l.overlaps
        };
        if !loops.iter().all(is_plain) {
            return Err(Refusal::new(format!("the loops of `{stage}` are scheduled already"))
                .help("rewrite a stage first, then schedule its loops"));
        }
        let loops = loops.iter().map(|l| (l.var, l.extent, l.role)).collect();
        Ok(Self { position: path.first().copied().unwrap_or_default(), loops, store })
    }

    /// The ranges of its loops.
    pub(super) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        self.loops.iter().for_each(|(var, extent, _)| ranges.insert(*var, *extent));
        ranges
    }

    /// The position of a loop with this name and role.
    pub(super) fn find(
        &self,
        nest: &LoopNest,
        stage: &str,
        name: &str,
        wanted: Role,
    ) -> Result<usize, Refusal> {
        let named = |(var, ..): &(Var, i64, Role)| nest.var_name(*var) == name;
        let kind = match wanted {
            Role::Spatial => "loop over results",
            Role::Reduce => "reduction loop",
            Role::Scan => "loop of a recurrence",
        };
        let place = self.loops.iter().position(|l| named(l) && l.2 == wanted);
        place.ok_or_else(|| {
            let candidates = self.loops.iter().filter(|(.., role)| *role == wanted);
            let known: Vec<String> =
                candidates.map(|(var, ..)| format!("`{}`", nest.var_name(*var))).collect();
            let refusal = Refusal::new(format!("`{stage}` has no {kind} `{name}`"));
            match known.as_slice() {
                [] => refusal.help(format!("it has no {kind} at all")),
                known => refusal.help(format!("there is {}", known.join(", "))),
            }
        })
    }

    /// Puts the changed stage back, preceded by stages that it reads.
    pub(super) fn replace(self, nest: &mut LoopNest, before: Vec<Node>) {
        let made = before.into_iter().chain([chain(&self.loops, self.store)]);
        nest.body.splice(self.position..=self.position, made);
    }

    /// Replaces the stage by two: another stage at the same position, and one that computes the
    /// result from it as late as possible, before the first stage that needs it. So no other node
    /// separates the first one from stages that may share its loops.
    pub(super) fn exchange_early_and_late(self, nest: &mut LoopNest, early: Node, late: Node) {
        let mut made = Vec::new();
        for_each_store(std::slice::from_ref(&late), &mut |store| {
            made.push(store.buffer);
            made.extend(store.reads().iter().map(|(_, read)| read.tensor));
        });
        let touches = |node: &Node| {
            let mut found = false;
            for_each_store(std::slice::from_ref(node), &mut |store| {
                found |= made.contains(&store.buffer) || store.does_read(self.store.buffer);
            });
            found
        };
        let after = nest.body.iter().enumerate().skip(self.position + 1);
        let needed = after.filter(|(_, node)| touches(node)).map(|(place, _)| place).next();
        let place = needed.unwrap_or(nest.body.len());
        nest.body.insert(place, late);
        nest.body[self.position] = early;
    }

    /// Replaces the stage by other stages.
    pub(super) fn exchange(self, nest: &mut LoopNest, by: Vec<Node>) {
        nest.body.splice(self.position..=self.position, by);
    }
}

/// Replaces variables by indices.
pub(super) struct Renamed(pub(super) Vec<(Var, Index)>);

impl Rewrite for Renamed {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let new = self.0.iter().find(|(old, _)| *old == axis);
        Some(new.map_or_else(|| Index::axis(axis), |(_, new)| new.clone()))
    }
}

/// Replaces loops by copies with new variables, and returns the mapping.
pub(super) fn own_loops(
    nest: &mut LoopNest,
    loops: impl IntoIterator<Item = (Var, i64, Role)>,
) -> (Vec<(Var, i64, Role)>, Renamed) {
    let (mut own, mut renamed) = (Vec::new(), Renamed(Vec::new()));
    for (var, extent, role) in loops {
        let new = nest.add_var(nest.var_name(var).to_owned());
        renamed.0.push((var, Index::axis(new)));
        own.push((new, extent, role));
    }
    (own, renamed)
}

/// Whether a constant is zero, of either sign.
pub(super) fn is_zero(scalar: Scalar) -> bool {
    if scalar.dtype().is_float() { scalar.as_f64() == 0.0 } else { scalar.as_integer() == 0 }
}
