//! `tensorwright lsp`

use std::io::{BufReader, stdin, stdout};

use tensorwright_lsp::Ending;

use crate::args::LspArgs;
use crate::failure::{Failure, Outcome};

/// Runs the language server until the editor closes it.
pub(crate) fn run(_args: &LspArgs) -> Outcome {
    match tensorwright_lsp::serve(BufReader::new(stdin()), stdout()) {
        Ok(Ending::Clean) => Ok(()),
        // The protocol asks for an exit code of 1.
        Ok(Ending::Abrupt) => Err(Failure::Reported),
        Err(error) => {
            eprintln!("the conversation with the editor failed: {error}");
            Err(Failure::Reported)
        }
    }
}
