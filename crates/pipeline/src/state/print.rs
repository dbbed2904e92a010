//! Prints a state as text.

use std::fmt::Write as _;

use crate::dag::{Dag, extents};
use crate::levels::Levels;

use super::{Decision, State, Tiling};

impl State {
    /// The decisions, one line per stage, outputs first.
    #[must_use]
    pub fn text(&self, dag: &Dag, levels: &Levels) -> String {
        let mut text = String::new();
        let tiles = |tiling: &Tiling| {
            let each: Vec<String> = tiling.tiles.iter().map(|tile| extents(tile)).collect();
            each.join(" > ")
        };
        for (stage, found) in self.decisions(dag.stages.len()).into_iter().enumerate().rev() {
            let name = &dag.stages[stage].name;
            let words = match found.map(|(decision, _)| decision) {
                None => "undecided".to_owned(),
                Some(Decision::Inline) => "inline".to_owned(),
                Some(Decision::Root(None)) => "root".to_owned(),
                Some(Decision::Root(Some(tiling))) => format!("root {}", tiles(tiling)),
                Some(Decision::At { consumer, level, tiling }) => {
                    let level = levels.list.get(*level).map_or("", |level| level.name);
                    format!("at {} {level} {}", dag.stages[*consumer].name, tiles(tiling))
                }
            };
            let _ = writeln!(text, "{name}: {words}");
        }
        text
    }
}
