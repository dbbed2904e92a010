//! What subcommands are given: what several share, and all of those whose files have nothing else to say.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tensorwright::{Precision, Target};
use tensorwright_records::Location;
use tensorwright_search::registry::STRATEGIES;
use tensorwright_tuner::Mode;

use crate::config::default_threads;
use crate::sizes::{SizeList, split};

/// Check files without sizes: syntax, names, types, and ranges that nothing can determine
///
/// Every problem comes with a code, its place and what to do about it; several are reported at
/// once. Exits with 1 if there is an error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright check matmul.tc
  tensorwright check --format json examples/kernels/*.tc   # for editors and scripts")]
pub(crate) struct CheckArgs {
    /// The files to check
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show what will be computed for given sizes: shapes, ranges and why, stages, where, cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright explain examples/kernels/gemm.tc --def gemm --size M=128,N=64,K=32
  tensorwright explain examples/kernels/conv2d.tc --def conv2d_padded \\
      --size B=1,IP=64,H=56,W=56,OP=128,KH=3,KW=3,s=2,p=1
  tensorwright explain blur.tc --def blur3x3 --size H=64,W=64 --text    # as source text")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    /// Print the program as source text with every size and range spelled out
    #[arg(long, conflicts_with = "format")]
    pub(crate) text: bool,

    #[command(flatten)]
    pub(crate) kernel: KernelArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Compile a definition and run it
///
/// Inputs that are not given are random, and depend on the seed and the name of the input alone.
/// Sizes that follow from the shapes of given inputs need not be given. One size may be a range, such
/// as `N=1..512`: kernels for some of its values compute all of them, and are listed instead of run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright run examples/kernels/gemm.tc --def gemm --size M=4,N=5,K=6
  tensorwright run matmul.tc --def matmul --input A=a.npy --input B=b.npy --output C=c.npy
  tensorwright run gemm.tc --def gemm --size M=512,N=512,K=512 --schedule gemm.sched --time --verify
  tensorwright run examples/kernels/norm.tc --def rms_norm --size N=3,D=8 --input eps=1e-5
  tensorwright run gemm.tc --def gemm --size M=64,K=64,N=1..512 --verify    # N varies
  tensorwright run gather.tc --def gather --size N=100,A=3,B=4 --reference --seed 7 --format json")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    #[command(flatten)]
    pub(crate) kernel: KernelArgs,

    /// Run on the reference interpreter: slow, every read checked, sums in high precision
    #[arg(long, conflicts_with_all = ["schedule", "target", "threads", "time", "verify"])]
    pub(crate) reference: bool,

    /// Measure: the median time, its spread, and the share of what this machine can do
    #[arg(long)]
    pub(crate) time: bool,

    /// Compare the results with the reference interpreter; if that would take too long, on sampled
    /// elements, and all elements within error bounds of their own
    #[arg(long)]
    pub(crate) verify: bool,

    /// Take an input from a NumPy file, or a scalar as it is (`eps=1e-5`); may be repeated
    #[arg(long = "input", value_name = "NAME=FILE.npy|NUMBER", value_parser = binding)]
    pub(crate) inputs: Vec<(String, PathBuf)>,

    /// Write an output to a NumPy file; may be repeated
    #[arg(long = "output", value_name = "NAME=FILE.npy", value_parser = binding)]
    pub(crate) outputs: Vec<(String, PathBuf)>,

    /// The seed of the random inputs
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Compile a definition for use elsewhere, or look at what becomes of it
///
/// What is written needs neither Tensorwright nor LLVM.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit loops
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit asm --target avx2
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit shared -o libgemm.so
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit c -o gemm.c")]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    #[command(flatten)]
    pub(crate) kernel: KernelArgs,

    /// What to write
    #[arg(long, value_enum)]
    pub(crate) emit: Emit,

    /// The file to write; text goes to standard output without it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The C compiler that links shared libraries
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub(crate) cc: PathBuf,

    #[command(flatten)]
    pub(crate) format: OutputArgs,
}

/// What `compile` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The loops that code is generated from
    Loops,
    /// The loops before and after every step of lowering
    Passes,
    /// C source, with nothing to link but the C library
    C,
    /// The C header of the kernel
    Header,
    /// Kernels of a device in OpenCL C, for a schedule that binds loops to blocks and threads
    Opencl,
    /// The same in CUDA C++
    Cuda,
    /// The same in HIP
    Hip,
    /// What NVIDIA's compiler makes of these for `--target cuda:sm_80` or another architecture: its virtual machine's text
    Ptx,
    /// Machine code of NVIDIA's, as text, with what kernels take of a multiprocessor
    Sass,
    /// Machine code of NVIDIA's, as a file
    Cubin,
    /// LLVM's IR, optimised
    Llvm,
    /// Assembly
    Asm,
    /// An object file, with its header
    Object,
    /// A shared library, with its header
    Shared,
    /// A Rust module, with the object file that it needs
    Rust,
}

/// Print the schedule that a definition has if it is given none, to start from
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright schedule gemm.tc --def gemm --size M=512,N=512,K=512 > gemm.sched
  tensorwright run gemm.tc --def gemm --size M=512,N=512,K=512 --schedule gemm.sched --time")]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    #[command(flatten)]
    pub(crate) kernel: KernelArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Describe this machine: processor, caches, what they can do right now, and devices
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tensorwright machine --format json")]
pub(crate) struct MachineArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// List the definitions of a file with their signatures and sizes
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tensorwright list examples/kernels/conv2d.tc")]
pub(crate) struct ListArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Serve an editor: the language server, over standard input and output
///
/// Diagnostics, hovers, definitions, outlines, completions and quick fixes for `.tc` files.
/// docs/editors.md says how editors are set up.
#[derive(Debug, Args)]
#[command(after_help = "Example, for Helix, in languages.toml:
  [language-server.tensorwright]
  command = \"tensorwright\"
  args = [\"lsp\"]")]
pub(crate) struct LspArgs {
    /// Taken for the sake of editors that pass it: there is no other way to talk
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright completions bash > ~/.local/share/bash-completion/completions/tensorwright
  tensorwright completions zsh > ~/.zfunc/_tensorwright
  tensorwright completions fish > ~/.config/fish/completions/tensorwright.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Which definition, with which sizes.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The definition; may be left out if the file has only one
    #[arg(long = "def", value_name = "NAME")]
    pub(crate) def: Option<String>,

    /// Sizes and integer scalars, such as `M=128,K=64`; may be repeated
    #[arg(long = "size", value_name = "NAME=NUMBER,...")]
    pub(crate) sizes: Vec<SizeList>,
}

/// How a definition is compiled.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// A file with a schedule, one step per line, instead of the default one; an empty file leaves
    /// the loops as they are written
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,

    /// Do not look for a tuned schedule in the records
    #[arg(long, conflicts_with = "schedule")]
    pub(crate) untuned: bool,

    /// The records to look in, instead of the usual ones
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) db: Option<Location>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// The help of `--target`.
fn targets() -> String {
    let names = Target::names().join(", ");
    format!("What code is made for: {names}; `tensorwright machine` lists the devices")
}

/// What a definition is compiled for.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    #[arg(long, value_name = "NAME", default_value = "native", help = targets())]
    pub(crate) target: String,

    /// The threads that parallel loops use; one for each core if nothing says it
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,

    /// exact: sums of the numbers that the text names, in any order; fast: also algorithms that compute
    /// with other numbers and round differently, such as Winograd's
    #[arg(long, value_name = "NAME", value_parser = precision())]
    pub(crate) precision: Option<Precision>,

    /// What `--precision exact` was called when it was not the default
    #[arg(long, hide = true, conflicts_with = "precision")]
    exact: bool,
}

impl TargetArgs {
    /// The precision: exact if none is given.
    pub(crate) fn precision(&self) -> Precision {
        self.precision.unwrap_or_default()
    }
}

/// `exact` or `fast`
pub(crate) fn precision() -> impl TypedValueParser<Value = Precision> {
    let names = Precision::ALL.map(Precision::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Precision>())
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Text for people or JSON for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// `A=file.npy`
fn binding(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = split(text, "A=a.npy")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

/// The names of search strategies, and others with what they mean.
pub(crate) fn strategies(others: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let known = STRATEGIES.iter().map(|strategy| (strategy.name, strategy.summary));
    let words = known.chain(others.iter().copied());
    PossibleValuesParser::new(words.map(|(name, help)| PossibleValue::new(name).help(help)))
}

/// The modes of tuning, with what they do.
pub(crate) fn modes() -> impl TypedValueParser<Value = Mode> {
    let values = Mode::ALL.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Mode>())
}
