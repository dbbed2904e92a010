//! [`Renaming`]: translates names between nests that differ only in names.

use super::find::{
    expect_fresh, find_buffer, find_loop, find_store, loops_on, stages, store_at, store_number,
    store_path,
};
use crate::nest::{Loop, LoopNest};
use crate::refusal::Refusal;
use crate::words::{OUTER, without_marks};

/// Two nests that differ only in names, and the stage of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renaming<'n> {
    from: &'n LoopNest,
    to: &'n LoopNest,
    stage: &'n str,
}

impl<'n> Renaming<'n> {
    pub(crate) fn new(from: &'n LoopNest, to: &'n LoopNest, stage: &'n str) -> Self {
        Self { from, to, stage }
    }

    /// The new name of a stage.
    pub(crate) fn stage(&self, name: &str) -> Result<String, Refusal> {
        find_store(self.from, name)?;
        let number = store_number(self.from, name);
        number.and_then(|number| stage_name(self.to, number)).ok_or_else(differ)
    }

    /// The new name of a tensor.
    pub(crate) fn tensor(&self, name: &str) -> Result<String, Refusal> {
        let id = find_buffer(self.from, name)?;
        let buffer = self.to.buffers.get(id.0 as usize).ok_or_else(differ)?;
        Ok(buffer.name.clone())
    }

    /// The new name of a loop of the step's stage.
    pub(crate) fn own_loop(&self, name: &str) -> Result<String, Refusal> {
        self.loop_of(self.stage, name)
    }

    /// The new names of loops of the step's stage.
    pub(crate) fn own_loops(&self, names: &[String]) -> Result<Vec<String>, Refusal> {
        names.iter().map(|name| self.own_loop(name)).collect()
    }

    /// The new name of a loop of a stage.
    pub(crate) fn loop_of(&self, stage: &str, name: &str) -> Result<String, Refusal> {
        let depth = find_loop(self.from, stage, name)?.len() - 1;
        let number = store_number(self.from, stage).ok_or_else(differ)?;
        let path = store_path(self.to, number).ok_or_else(differ)?;
        let loops = loops_on(self.to, &path);
        let plain = loops.get(depth).map(|l| self.to.var_name(l.var)).ok_or_else(differ)?;
        // A name means the innermost loop of that name, unless marks count outwards.
        let hidden = |l: &&&Loop| self.to.var_name(l.var) == plain;
        let marks = loops[depth + 1..].iter().filter(hidden).count();
        Ok(format!("{plain}{}", OUTER.to_string().repeat(marks)))
    }

    /// Names that the user gave to new loops: a prefix that is the old loop's name becomes its new
    /// name.
    pub(crate) fn derived(given: &[String], from: &str, to: &str) -> Vec<String> {
        let root = |name: &str| without_marks(name).0.split('.').next().map(str::to_owned);
        let (from, to) = (root(from).unwrap_or_default(), root(to).unwrap_or_default());
        let derive = |name: &String| match name.strip_prefix(from.as_str()) {
            Some(rest) if rest.starts_with('.') => format!("{to}{rest}"),
            _ => name.clone(),
        };
        given.iter().map(derive).collect()
    }

    /// Names for new loops of the step's stage: the preferred ones, unless they are taken.
    pub(crate) fn new_loops(&self, wanted: Vec<String>) -> Result<Vec<String>, Refusal> {
        let stage = self.stage(self.stage)?;
        let path = find_store(self.to, &stage)?;
        let own = Some(store_at(self.to, &path)?.stage());
        let loops = loops_on(self.to, &path);
        let own = loops.into_iter().filter(|l| l.stage == own);
        let mut taken: Vec<String> = own.map(|l| self.to.var_name(l.var).to_owned()).collect();
        let mut free = |name: String| {
            let others = (2u32..).map(|number| format!("{name}_{number}"));
            let free = std::iter::once(name.clone()).chain(others).find(|it| !taken.contains(it));
            taken.extend(free.clone());
            free
        };
        let names: Option<Vec<String>> = wanted.into_iter().map(&mut free).collect();
        let names = names.ok_or_else(differ)?;
        expect_fresh(self.to, &stage, &names)?;
        Ok(names)
    }
}

/// The name of the stage of a store, given its position in textual order.
fn stage_name(nest: &LoopNest, number: usize) -> Option<String> {
    stages(nest).into_iter().nth(number)
}

fn differ() -> Refusal {
    Refusal::new("the loops of the two programs differ in more than names")
}
