#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright_lang::Module;

use super::*;
use crate::levels::{Level, LevelKind};

fn dag(body: &str) -> Dag {
    let text = format!("def f(float(H,W) in) -> (out) {{ {body} }}");
    Dag::new(&Module::parse("t.tc", &text).unwrap().bind("f", [("H", 514), ("W", 512)]).unwrap())
}

/// Synthetic levels: blocks, threads and serial loops, as on a GPU.
fn blocks_and_threads() -> Levels {
    let level = |name, kind, bytes, sizes: &[i64]| Level {
        name,
        kind,
        bytes,
        inner: sizes.to_vec(),
        outer: sizes.to_vec(),
        is_optional: false,
        iterations: (1, i64::MAX),
        is_shared: false,
    };
    let list = vec![
        level("block", LevelKind::Parallel, 48 << 10, &[16, 32, 64]),
        level("thread", LevelKind::Parallel, 256, &[1, 2, 4]),
        level("serial", LevelKind::Body, 4, &[1]),
    ];
    Levels { list, least_parallel: 160, worth_sharing: 1 << 12 }
}

#[test]
fn levels_of_another_target_are_searched_by_the_same_code() {
    let dag = dag("bx(y,x) = in(y,x) * in(y,x)\nout(y,x) = bx(y,x) + bx(y+2,x)");
    let levels = blocks_and_threads();
    let space = Space { dag: &dag, levels: &levels, recompute: 4.0 };
    let root = space.locations(&State::default(), 1, true);
    assert_eq!(root.len(), 1);
    let tiled = space.tilings(&root[0], 1);
    // Blocks of 64x64 leave too little parallelism.
    assert!(tiled.len() > 40 && tiled.len() < 81, "{}", tiled.len());
    let places = space.locations(&tiled[0], 0, true);
    let is_at = |state: &&State, wanted: usize| matches!(state.decision(0), Some(Decision::At { level, .. }) if *level == wanted);
    assert!(places.iter().any(|state| is_at(&state, 0)), "in a block");
    assert!(places.iter().any(|state| is_at(&state, 1)), "in a thread");
    assert!(places.iter().any(|state| state.decision(0) == Some(&Decision::Inline)));
    assert!(places.iter().any(|state| state.decision(0) == Some(&Decision::Root(None))));
}

#[test]
fn what_is_read_in_place_is_inlined() {
    let dag = dag("a(y,x) = in(y,x) + in(y+1,x)\nout(y,x) = a(y,x) * 2");
    let levels = blocks_and_threads();
    let space = Space { dag: &dag, levels: &levels, recompute: 4.0 };
    let root = space.locations(&State::default(), 1, true);
    let places = space.locations(&space.tilings(&root[0], 1)[0], 0, true);
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].decision(0), Some(&Decision::Inline));
}
