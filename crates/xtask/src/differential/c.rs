//! The C code generator, optionally with sanitizers.

use std::process::Command;

use tensorwright_codegen_c::{EmitOptions, emit_with};

use super::batch::{Toolchain, Translated};
use super::failure::Suspect;
use super::pair::Pair;

const FLAGS: [&str; 4] = ["-std=c99", "-O0", "-ffp-contract=fast", "-w"];
const SANITIZE: [&str; 3] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"];

/// The C compiler of this machine.
pub(crate) struct C {
    /// Whether sanitizers check memory and undefined behaviour.
    pub(crate) sanitize: bool,
}

impl Toolchain for C {
    fn suspect(&self) -> Suspect {
        Suspect::C
    }

    fn translate(&self, pair: &Pair, number: usize) -> Result<Translated, String> {
        let source =
            emit_with(&pair.nest, EmitOptions::poisoned()).map_err(|error| error.to_string())?;
        Ok(Translated { code: own_names(&source.code, number), object: None })
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new("cc");
        command.args(FLAGS).args(if self.sanitize { &SANITIZE[..] } else { &[] });
        command
    }

    fn runner(&self) -> &[&'static str] {
        &[]
    }
}

/// The code with unique helper names, for several kernels in one file.
fn own_names(code: &str, number: usize) -> String {
    let own = code.replace("tw_", &format!("tw{number}_"));
    let shared = ["pool", "task"];
    shared
        .iter()
        .fold(own, |text, name| text.replace(&format!("tw{number}_{name}"), &format!("tw_{name}")))
}
