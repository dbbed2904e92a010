//! Translates schedules between programs that differ only in names.
//!
//! ```text
//! C: split k 8         of C(m,n) +=! A(m,k) * B(k,n) is
//! v_2: split i_2 8     of v_2(i_0,i_1) +=! v_0(i_0,i_2) * v_1(i_2,i_1)
//! ```
//!
//! Both programs are scheduled, step by step. Before each step their nests are equal up to names,
//! so the names of a step are looked up in one nest and replaced by those at the same position in
//! the other. No rules are needed for names that primitives derive.

use tensorwright_lang::program::Program;

use crate::canonical;
use crate::nest::LoopNest;
use crate::primitives::{Primitive, Renaming};
use crate::refusal::Refusal;
use crate::schedule::{Schedule, ScheduleError, Step};
use crate::words::ByteRange;

impl Schedule {
    /// Translates the schedule to the names of a program that differs only in names.
    ///
    /// # Errors
    /// The first step that is refused, in the names of `from`; or the programs compute different
    /// things.
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
            // A step that is legal for one nest is legal for the other.
            other.primitive.apply(&other.stage, &mut to).map_err(refused)?;
            renamed.steps.push(other);
        }
        Ok(renamed)
    }
}

impl Step {
    /// Translates the step to a nest that differs only in names.
    fn renamed(&self, from: &LoopNest, to: &LoopNest) -> Result<Step, Refusal> {
        let names = Renaming::new(from, to, &self.stage);
        let stage = match self.primitive {
            Primitive::Layout(_) => names.tensor(&self.stage)?,
            _ => names.stage(&self.stage)?,
        };
        let primitive = self.primitive.renamed(&names)?;
        Ok(Step { stage, primitive, span: ByteRange::default() })
    }
}
