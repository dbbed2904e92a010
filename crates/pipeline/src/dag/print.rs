//! A graph as text.

use std::fmt;

use super::{Dag, Source, Stage};

/// Extents as text: `32x64`.
pub(crate) fn extents(of: &[i64]) -> String {
    let each: Vec<String> = of.iter().map(ToString::to_string).collect();
    if each.is_empty() { "1".to_owned() } else { each.join("x") }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {} of {} bytes", self.name, extents(&self.spatial), self.element_bytes)?;
        if !self.reduce.is_empty() {
            write!(f, ", {} terms", extents(&self.reduce))?;
        }
        write!(f, ", {} operations", self.operations)?;
        if self.is_output {
            f.write_str(", result")?;
        }
        self.fixed.map_or(Ok(()), |why| write!(f, ", scheduled by rules: {why}"))
    }
}

impl fmt::Display for Dag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for stage in &self.stages {
            writeln!(f, "{stage}")?;
            for edge in &stage.edges {
                let name = match edge.source {
                    Source::Stage(of) => self.stages.get(of).map(|stage| &stage.name),
                    Source::Input(of) => self.inputs.get(of).map(|input| &input.name),
                };
                let name = name.map_or("", String::as_str);
                writeln!(f, "  <- {name}  {}, {} reads", edge.footprint, edge.reads)?;
            }
        }
        Ok(())
    }
}
