//! `tensorwright grad`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tensorwright::grad::{Forward, Gradient, Input, Output};

use crate::args::{Format, OutputArgs};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Print the gradient of a definition as source text
///
/// The result is an ordinary definition: check, run, compile or tune it. It takes the parameters
/// that it needs and the gradients `d_...` of the results, and returns the gradients of the inputs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright grad examples/kernels/gemm.tc --def gemm
  tensorwright grad examples/kernels/conv2d.tc --def conv2d_padded --wrt weight -o conv2d_grad.tc
  tensorwright grad examples/kernels/softmax.tc --def softmax --saving
  tensorwright run conv2d_grad.tc --size B=1,IP=3,OP=4,H=8,W=9,KH=3,KW=3,s=2,p=1,out_h=4,out_w=5")]
pub(crate) struct GradArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The definition; optional if the file has only one
    #[arg(long = "def", value_name = "NAME")]
    def: Option<String>,

    /// The inputs to differentiate by [default: all that have a gradient]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    wrt: Vec<String>,

    /// Reuse values of the forward pass instead of recomputing them where that pays; prints the
    /// forward pass that returns them first
    #[arg(long)]
    saving: bool,

    /// The output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: OutputArgs,
}

/// Prints or writes the gradient of a definition.
pub(crate) fn run(args: &GradArgs) -> Outcome {
    let format = args.format.format;
    let module = files::module(&args.file).in_format(format)?;
    let def = super::chosen_def(&module, args.def.as_deref()).in_format(format)?;
    let wrt: Vec<&str> = args.wrt.iter().map(String::as_str).collect();
    let (forward, gradient) = match args.saving {
        true => {
            let training = module.training(def.name(), &wrt).in_format(format)?;
            (training.forward().cloned(), training.gradient().clone())
        }
        false => (None, module.grad(def.name(), &wrt).in_format(format)?),
    };
    let text = match &forward {
        Some(forward) => format!("{}\n{}", forward.source(), gradient.source()),
        None => gradient.source().to_owned(),
    };
    if let Some(path) = &args.output {
        files::write_bytes(path, text.as_bytes()).in_format(format)?;
    }
    match format {
        Format::Json => report::json(&json(forward.as_ref(), &gradient))?,
        Format::Text if args.output.is_none() => write!(crate::terminal::out(), "{text}")?,
        Format::Text => {}
    }
    Ok(())
}

fn json(forward: Option<&Forward>, gradient: &Gradient) -> serde_json::Value {
    let input = |input: &Input| match input {
        Input::Cotangent { name, of } => serde_json::json!({ "name": name, "gradient_of": of }),
        Input::Value(name) => serde_json::json!({ "name": name }),
        Input::Saved { name, place } => {
            serde_json::json!({ "name": name, "forward_result": place })
        }
    };
    let output =
        |output: &Output| serde_json::json!({ "name": output.name, "gradient_of": output.of });
    let mut json = serde_json::json!({
        "def": gradient.name(),
        "source": gradient.source(),
        "inputs": gradient.inputs().iter().map(input).collect::<Vec<_>>(),
        "outputs": gradient.outputs().iter().map(output).collect::<Vec<_>>(),
    });
    if let Some(forward) = forward {
        json["forward"] = serde_json::json!({ "def": forward.name(), "source": forward.source() });
    }
    json
}
