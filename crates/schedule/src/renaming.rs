//! Schedules in the names of another program that differs in names alone.
//!
//! ```text
//! C: split k 8         of C(m,n) +=! A(m,k) * B(k,n) is
//! v_2: split i_2 8     of v_2(i_0,i_1) +=! v_0(i_0,i_2) * v_1(i_2,i_1)
//! ```
//!
//! Both programs are scheduled, step by step. Before each step their nests are equal but for names, so
//! what a step names is found in one nest and spelled as it is called at the same place in the other. Names
//! that primitives derive need no rules of their own then.

use tensorwright_lang::program::Program;

use crate::canonical;
use crate::nest::{Loop, LoopNest};
use crate::primitives::{
    Primitive, expect_fresh, find_buffer, find_loop, find_store, loops_on, store_at, store_number,
    store_path,
};
use crate::refusal::Refusal;
use crate::schedule::{Schedule, ScheduleError, Step};
use crate::words::{ByteRange, OUTER, without_marks};

/// Two nests that differ in names alone, and the stage that a step acts on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renaming<'n> {
    from: &'n LoopNest,
    to: &'n LoopNest,
    stage: &'n str,
}

impl Schedule {
    /// The same schedule of a program that differs from its own in names alone, in the names of that program.
    ///
    /// # Errors
    /// The first step that is refused, which is in the names of `from`; or that the programs compute different things.
    pub fn renamed(&self, from: &Program, to: &Program) -> Result<Schedule, ScheduleError> {
        if from.is_named_like(to) {
            return Ok(self.clone());
        }
        if from.hash() != to.hash() {
            let refusal = Refusal::new("the schedule belongs to another program");
            return Err(ScheduleError { span: ByteRange::default(), step: None, refusal });
        }
        let (mut from, mut to) = (canonical(from), canonical(to));
        let mut renamed = Schedule::default();
        for step in &self.steps {
            let refused = |refusal| step.refused(refusal);
            let other = step.renamed(&from, &to).map_err(refused)?;
            step.rewrite(&mut from)?;
            // What is allowed for one nest is for the other.
            other.primitive.apply(&other.stage, &mut to).map_err(refused)?;
            renamed.steps.push(other);
        }
        Ok(renamed)
    }
}

impl Step {
    /// The step on a nest that differs in names alone from the one that it is made for.
    fn renamed(&self, from: &LoopNest, to: &LoopNest) -> Result<Step, Refusal> {
        let names = Renaming { from, to, stage: &self.stage };
        let stage = match self.primitive {
            Primitive::Layout(_) => names.tensor(&self.stage)?,
            _ => names.stage(&self.stage)?,
        };
        let primitive = self.primitive.renamed(&names)?;
        Ok(Step { stage, primitive, span: ByteRange::default() })
    }
}

impl Renaming<'_> {
    /// What a stage is called.
    pub(crate) fn stage(&self, name: &str) -> Result<String, Refusal> {
        find_store(self.from, name)?;
        let number = store_number(self.from, name);
        number.and_then(|number| stage_name(self.to, number)).ok_or_else(differ)
    }

    /// What a tensor is called.
    pub(crate) fn tensor(&self, name: &str) -> Result<String, Refusal> {
        let id = find_buffer(self.from, name)?;
        let buffer = self.to.buffers.get(id.0 as usize).ok_or_else(differ)?;
        Ok(buffer.name.clone())
    }

    /// What a loop of the stage that the step acts on is called.
    pub(crate) fn own_loop(&self, name: &str) -> Result<String, Refusal> {
        self.loop_of(self.stage, name)
    }

    /// What loops of the stage that the step acts on are called.
    pub(crate) fn own_loops(&self, names: &[String]) -> Result<Vec<String>, Refusal> {
        names.iter().map(|name| self.own_loop(name)).collect()
    }

    /// What a loop of a stage is called.
    pub(crate) fn loop_of(&self, stage: &str, name: &str) -> Result<String, Refusal> {
        let depth = find_loop(self.from, stage, name)?.len() - 1;
        let number = store_number(self.from, stage).ok_or_else(differ)?;
        let path = store_path(self.to, number).ok_or_else(differ)?;
        let loops = loops_on(self.to, &path);
        let plain = loops.get(depth).map(|l| self.to.var_name(l.var)).ok_or_else(differ)?;
        // The innermost loop of a name is meant, unless marks say how many of them lie inside.
        let hidden = |l: &&&Loop| self.to.var_name(l.var) == plain;
        let marks = loops[depth + 1..].iter().filter(hidden).count();
        Ok(format!("{plain}{}", OUTER.to_string().repeat(marks)))
    }

    /// Names that somebody has given to new loops: what begins with the name of the loop that they are made of begins with what
    /// that is called now.
    pub(crate) fn derived(given: &[String], from: &str, to: &str) -> Vec<String> {
        let root = |name: &str| without_marks(name).0.split('.').next().map(str::to_owned);
        let (from, to) = (root(from).unwrap_or_default(), root(to).unwrap_or_default());
        let derive = |name: &String| match name.strip_prefix(from.as_str()) {
            Some(rest) if rest.starts_with('.') => format!("{to}{rest}"),
            _ => name.clone(),
        };
        given.iter().map(derive).collect()
    }

    /// Names for new loops of the stage that the step acts on: those that are wanted, unless loops have them already.
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

/// The name of the stage of a store, by its number in the order of the text.
fn stage_name(nest: &LoopNest, number: usize) -> Option<String> {
    crate::primitives::stages(nest).into_iter().nth(number)
}

fn differ() -> Refusal {
    Refusal::new("the loops of the two programs differ in more than names")
}
