//! `tensorwright list`

use std::io::Write;

use tensorwright::{Def, Signature};

use crate::args::{Format, ListArgs};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Lists the definitions of a file.
pub(crate) fn run(args: &ListArgs) -> Outcome {
    let format = args.output.format;
    let module = files::module(&args.file).in_format(format)?;
    if format == Format::Json {
        let defs: Vec<serde_json::Value> = module.defs().map(|def| json(&def)).collect();
        return Ok(report::json(&serde_json::json!({ "defs": defs }))?);
    }
    let mut out = crate::terminal::out();
    for def in module.defs() {
        let join = |list: Vec<Signature>| {
            list.iter().map(Signature::to_string).collect::<Vec<String>>().join(", ")
        };
        writeln!(out, "{}({}) -> ({})", def.name(), join(def.params()), join(def.results()))?;
        let sizes: Vec<&str> = def.sizes().into_iter().chain(def.integer_scalars()).collect();
        let sizes = if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") };
        writeln!(out, "    line {}; sizes: {sizes}", def.line())?;
    }
    Ok(())
}

fn json(def: &Def<'_>) -> serde_json::Value {
    let signature = |s: &Signature| {
        serde_json::json!({
            "name": s.name,
            "dtype": s.dtype,
            "dims": s.dims,
            "const": s.is_const,
            "updated": s.updated,
        })
    };
    serde_json::json!({
        "name": def.name(),
        "line": def.line(),
        "statements": def.statements(),
        "sizes": def.sizes(),
        "integer_scalars": def.integer_scalars(),
        "params": def.params().iter().map(signature).collect::<Vec<_>>(),
        "results": def.results().iter().map(signature).collect::<Vec<_>>(),
    })
}
