#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright_lang::Module;

use super::*;
use crate::dag::Dag;

fn blur() -> Dag {
    let text = "def f(float(H,W) in) -> (out) {
        bx(y,x) = in(y,x) + in(y,x+1)
        by(y,x) = bx(y,x) * 2
        out(y,x) = by(y,x) + by(y+1,x) + by(y+2,x)
    }";
    Dag::new(&Module::parse("t.tc", text).unwrap().bind("f", [("H", 66), ("W", 65)]).unwrap())
}

fn tiling(first: usize, tiles: &[[i64; 2]]) -> Arc<Tiling> {
    Arc::new(Tiling { first, tiles: tiles.iter().map(|tile| tile.to_vec()).collect() })
}

fn fused(level: usize) -> State {
    State::default()
        .with(2, Decision::Root(Some(tiling(0, &[[16, 64], [4, 64], [1, 16]]))))
        .with(1, Decision::Inline)
        .with(0, Decision::At { consumer: 2, level, tiling: tiling(level + 1, &[[1, 16]]) })
}

#[test]
fn regions_are_what_tiles_need() {
    let dag = blur();
    for (level, region, executions) in [(0, [18, 64], 4.0), (1, [6, 64], 16.0)] {
        let state = fused(level);
        let members = Layout::new(&dag, &state).members(2);
        assert_eq!(members.len(), 2);
        assert_eq!(
            (members[1].region.as_slice(), members[1].executions),
            (&region[..], executions)
        );
    }
}

#[test]
fn hashes_see_as_deep_as_they_are_told() {
    let (a, b) = (fused(0), fused(1));
    let hash = |state: &State, depth| state.structural_hash(3, depth);
    assert_eq!(hash(&a, 0), hash(&b, 0));
    assert_ne!(hash(&a, 1), hash(&b, 1));
    let other = a.with(2, Decision::Root(Some(tiling(0, &[[32, 64], [4, 64], [1, 16]]))));
    assert_eq!(hash(&a, 3), hash(&other, 3));
    assert_ne!(hash(&a, 4), hash(&other, 4));
}

#[test]
fn hashes_are_those_of_the_decisions_that_count() {
    let tiles = Decision::Root(Some(tiling(0, &[[16, 64], [4, 64], [1, 16]])));
    let twice = State::default()
        .with(2, Decision::Root(None))
        .with(1, Decision::Root(None))
        .with(2, tiles.clone())
        .with(1, Decision::Inline);
    let once = State::default().with(1, Decision::Inline).with(2, tiles);
    for depth in 0..=6 {
        assert_eq!(twice.structural_hash(3, depth), once.structural_hash(3, depth));
        assert_ne!(twice.structural_hash(3, depth), fused(0).structural_hash(3, depth));
    }
}

#[test]
fn later_decisions_replace_earlier_ones() {
    let state = fused(0).with(0, Decision::Inline);
    assert_eq!(state.decision(0), Some(&Decision::Inline));
    assert!(Layout::new(&blur(), &state).members(2).len() == 1);
}

#[test]
fn long_lists_are_dropped_without_a_deep_stack() {
    let mut state = State::default();
    for stage in 0..500_000 {
        state = state.with(stage, Decision::Inline);
    }
    drop(state);
}
