//! Moves barriers out of conditions.
//!
//! ```text
//! if (m.0 <= 1) {                                  if (m.0 <= 1) { thread.x for t { P(t) = A(..); } }
//!   thread.x for t { P(t) = A(..); }               if (m.0 > 1) { thread.x for t { if (..) P(t) = A(..); } }
//!   barrier;                                       barrier;
//!   thread.x for n { C(n) = P(..); }               if (m.0 <= 1) { thread.x for n { C(n) = P(..); } }
//! }                                          ->    if (m.0 > 1) { thread.x for n { if (..) C(n) = P(..); } }
//! if (m.0 > 1) {
//!   thread.x for t { if (..) P(t) = A(..); }
//!   barrier;
//!   thread.x for n { if (..) C(n) = P(..); }
//! }
//! ```
//!
//! All threads of a block agree on conditions around thread loops, so OpenCL and CUDA allow both
//! forms. PoCL (3.1 at least) turns the regions between barriers into loops over work items, and
//! its regions are wrong if a barrier is in a conditional next to other branches or loops: kernels
//! then hang, write out of bounds, or jump to nowhere. It also assumes that all work items run a
//! loop if a uniform branch leads to it, even if a divergent branch leads to it too. So no
//! condition combines one on blocks and one on threads with "or".

use super::interior::negated;
use crate::nest::{Body, Guard, Loop, Node};
use tensorwright_lang::program::Index;

/// Moves barriers out of all guards.
pub(super) fn converge(nodes: Body) -> Body {
    let mut all = Vec::with_capacity(nodes.len());
    let mut nodes = nodes.into_iter().peekable();
    while let Some(node) = nodes.next() {
        match node {
            Node::Guard(guard) if guard.body.iter().any(holds_barrier) => {
                let mut ways = vec![guard];
                while let Some(Node::Guard(other)) =
                    nodes.next_if(|next| is_another_way(next, &ways))
                {
                    ways.push(other);
                }
                for way in &mut ways {
                    way.body = converge(std::mem::take(&mut way.body));
                }
                all.extend(apart(ways));
            }
            Node::Loop(mut l) => {
                l.body = converge(std::mem::take(&mut l.body));
                all.push(Node::Loop(l));
            }
            other => all.push(other),
        }
    }
    all.into()
}

/// Whether a node is a barrier or holds one.
pub(super) fn holds_barrier(node: &Node) -> bool {
    match node {
        Node::Barrier => true,
        Node::Loop(l) => l.body.iter().any(holds_barrier),
        Node::Guard(guard) => guard.body.iter().any(holds_barrier),
        Node::Store(_) | Node::Prefetch(_) => false,
    }
}

/// Whether a node is a guard with barriers that excludes all others.
fn is_another_way(node: &Node, ways: &[Guard]) -> bool {
    let Node::Guard(guard) = node else { return false };
    guard.body.iter().any(holds_barrier)
        && ways.iter().all(|way| exclude(&way.conditions, &guard.conditions))
}

/// Whether at most one of two lists of conditions holds.
pub(super) fn exclude(a: &[Index], b: &[Index]) -> bool {
    let not_all =
        |these: &[Index], others: &[Index]| negated(these).is_some_and(|not| others.contains(&not));
    let one_of = |condition: &Index| negated(std::slice::from_ref(condition));
    not_all(a, b) || not_all(b, a) || a.iter().filter_map(one_of).any(|not| b.contains(&not))
}

/// The contents of a guard, split at its barriers.
#[derive(Default)]
struct Phases {
    /// The work between joints, one more than there are joints. It holds no barrier.
    work: Vec<Vec<Node>>,
    joints: Vec<Joint>,
}

/// A synchronization point of all threads.
enum Joint {
    Barrier,
    /// A loop with barriers in it.
    Loop(Loop),
}

impl Phases {
    fn of(nodes: Body) -> Self {
        let (mut phases, mut open) = (Self::default(), Vec::new());
        for node in nodes {
            let joint = match node {
                Node::Barrier => Joint::Barrier,
                Node::Loop(l) if l.body.iter().any(holds_barrier) => Joint::Loop(l),
                work => {
                    open.push(work);
                    continue;
                }
            };
            phases.work.push(std::mem::take(&mut open));
            phases.joints.push(joint);
        }
        phases.work.push(open);
        phases
    }

    /// Whether both have the same joints in the same order.
    fn are_like(&self, other: &Self) -> bool {
        self.joints.len() == other.joints.len()
            && self.joints.iter().zip(&other.joints).all(|(a, b)| match (a, b) {
                (Joint::Barrier, Joint::Barrier) => true,
                (Joint::Loop(a), Joint::Loop(b)) => {
                    (a.var, a.extent, a.kind) == (b.var, b.extent, b.kind) && a.locals == b.locals
                }
                _ => false,
            })
    }
}

/// The work between barriers, and the conditions under which it runs.
type Guarded = (Vec<Index>, Phases);

/// Turns exclusive guards into guards around the work between barriers. Guards with the same
/// barriers share them; others follow each other.
fn apart(ways: Vec<Guard>) -> Vec<Node> {
    let (mut groups, mut all): (Vec<Vec<Guarded>>, _) = (Vec::new(), Vec::new());
    for Guard { conditions, body } in ways {
        let phases = Phases::of(body);
        match groups.last_mut() {
            Some(group) if group[0].1.are_like(&phases) => group.push((conditions, phases)),
            _ => groups.push(vec![(conditions, phases)]),
        }
    }
    for group in groups {
        let (conditions, phases): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        all.extend(shared(&conditions, phases));
    }
    all
}

/// The work of several guards around their shared joints.
fn shared(conditions: &[Vec<Index>], ways: Vec<Phases>) -> Vec<Node> {
    let mut all = Vec::new();
    let (mut work, mut joints): (Vec<_>, Vec<_>) =
        ways.into_iter().map(|way| (way.work.into_iter(), way.joints.into_iter())).unzip();
    loop {
        for (conditions, work) in conditions.iter().zip(&mut work) {
            all.extend(work.next().and_then(|nodes| guarded(conditions, nodes)));
        }
        let mut joint = joints.iter_mut().filter_map(Iterator::next);
        match joint.next() {
            None => return all,
            Some(Joint::Barrier) => {
                joint.for_each(drop);
                all.push(Node::Barrier);
            }
            Some(Joint::Loop(mut l)) => {
                let mut bodies = vec![std::mem::take(&mut l.body)];
                bodies.extend(joint.filter_map(|joint| match joint {
                    Joint::Loop(l) => Some(l.body),
                    Joint::Barrier => None,
                }));
                let ways = conditions.iter().zip(bodies);
                let ways =
                    ways.map(|(conditions, body)| Guard { conditions: conditions.clone(), body });
                l.body = apart(ways.collect()).into();
                all.push(Node::Loop(l));
            }
        }
    }
}

/// Nodes under conditions; `None` if there are no nodes. Nested guards become one.
fn guarded(conditions: &[Index], mut nodes: Vec<Node>) -> Option<Node> {
    let mut conditions = conditions.to_vec();
    if let [Node::Guard(inner)] = nodes.as_mut_slice() {
        conditions.append(&mut inner.conditions);
        nodes = std::mem::take(&mut inner.body).into_iter().collect();
    }
    (!nodes.is_empty()).then(|| Node::Guard(Guard { conditions, body: nodes.into() }))
}
