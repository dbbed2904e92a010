//! Reference results of a program, computed once for all schedules.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tensorwright_lang::diagnostic::Code;
use tensorwright_lang::program::Program;
use tensorwright_reference::{Buffer, Run};

use super::inputs::Inputs;

/// Inputs with their reference results.
pub(crate) struct Answer {
    /// The bytes of each input, in the order of the program.
    pub(crate) inputs: Vec<Vec<u8>>,
    /// `None` if the reference reads out of bounds.
    pub(crate) expected: Option<Run>,
}

/// An answer, or why there is none.
type Answered = Result<Rc<Answer>, String>;

/// Cached answers for one program; most schedules need the same one.
pub(crate) struct Oracle {
    program: Rc<Program>,
    answers: RefCell<Vec<(Inputs, Answered)>>,
}

impl Oracle {
    /// An empty cache for a program.
    pub(crate) fn new(program: Rc<Program>) -> Self {
        Self { program, answers: RefCell::default() }
    }

    /// The answer for inputs.
    pub(crate) fn answer(&self, inputs: Inputs) -> Answered {
        let known = self.answers.borrow().iter().find(|(known, _)| *known == inputs).cloned();
        if let Some((_, answer)) = known {
            return answer;
        }
        let answer = answer(&self.program, inputs).map(Rc::new);
        self.answers.borrow_mut().push((inputs, answer.clone()));
        answer
    }
}

fn answer(program: &Program, inputs: Inputs) -> Result<Answer, String> {
    let buffers: BTreeMap<String, Buffer> = inputs.buffers(program)?;
    let expected = match tensorwright_reference::run(program, &buffers) {
        Ok(run) => Some(run),
        Err(diagnostic) if diagnostic.code == Code::IndexOutOfBounds => None,
        Err(diagnostic) => return Err(diagnostic.message),
    };
    let names = program.tensors.iter().take(program.inputs).map(|tensor| &tensor.name);
    let bytes = |name| buffers.get(name).map(Buffer::to_bytes).unwrap_or_default();
    Ok(Answer { inputs: names.map(bytes).collect(), expected })
}
