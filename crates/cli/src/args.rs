//! Arguments that subcommands share, and arguments of the small subcommands.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tensorwright::{Precision, Target};
use tensorwright_records::Location;
use tensorwright_search::registry::STRATEGIES;
use tensorwright_tuner::Mode;

use crate::config::default_threads;
use crate::sizes::{SizeList, split};

/// Check files without sizes: syntax, names, types, and ranges that cannot be inferred
///
/// Reports several problems at once, each with a code, a location and a suggestion. Exits with 1 if
/// there is an error.
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

/// Show what a definition computes for given sizes: shapes, inferred ranges, stages, placement,
/// cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright explain examples/kernels/gemm.tc --def gemm --size M=128,N=64,K=32
  tensorwright explain examples/kernels/conv2d.tc --def conv2d_padded \\
      --size B=1,IP=64,H=56,W=56,OP=128,KH=3,KW=3,s=2,p=1
  tensorwright explain blur.tc --def blur3x3 --size H=64,W=64 --text    # as source text")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    /// Print the program as source text with all sizes and ranges filled in
    #[arg(long, conflicts_with = "format")]
    pub(crate) text: bool,

    #[command(flatten)]
    pub(crate) kernel: KernelArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Compile a definition and run it
///
/// Inputs that are not given are random; they depend only on the seed and the input's name. Sizes
/// are inferred from the shapes of given inputs. One size may be a range, such as `N=1..512`: the
/// command then lists the kernels that cover the range instead of running them.
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

    /// Run on the reference interpreter: slow, bounds-checked, sums in high precision
    #[arg(long, conflicts_with_all = ["schedule", "target", "threads", "time", "verify"])]
    pub(crate) reference: bool,

    /// Time the kernel: median, spread, and share of the machine's roofline
    #[arg(long)]
    pub(crate) time: bool,

    /// Compare the results with the reference interpreter; if that takes too long, compare sampled
    /// elements, and check all elements against error bounds
    #[arg(long)]
    pub(crate) verify: bool,

    /// Read an input from a NumPy file, or set a scalar (`eps=1e-5`); may be repeated
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

/// Compile a definition to a file, or print an intermediate representation
///
/// The result needs neither Tensorwright nor LLVM. Sizes may be ranges: one kernel then serves all
/// values, on parts of larger tensors, too. `N=64..4096~512%64` are the multiples of 64, and 512 is
/// to be the fastest. Processors only, with the default schedule or one in a file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit loops
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit asm --target avx2
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit shared -o libgemm.so
  tensorwright compile gemm.tc --def gemm --size M=64,N=64,K=64 --emit c -o gemm.c
  tensorwright compile gemm.tc --def gemm --size M=1..4096~64,N=64,K=64 --emit shared -o libgemm.so")]
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

    /// The C compiler for linking shared libraries
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub(crate) cc: PathBuf,

    #[command(flatten)]
    pub(crate) format: OutputArgs,
}

/// What `compile` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The loop nest that code is generated from
    Loops,
    /// The loop nest before and after every lowering pass
    Passes,
    /// C source; depends only on the C library
    C,
    /// The C header of the kernel
    Header,
    /// OpenCL C device kernels, for a schedule that binds loops to blocks and threads
    Opencl,
    /// CUDA C++ device kernels
    Cuda,
    /// HIP device kernels
    Hip,
    /// PTX, by NVIDIA's compiler, for `--target cuda:sm_80` or another architecture
    Ptx,
    /// SASS: NVIDIA machine code as text, with the registers and shared memory of each kernel
    Sass,
    /// NVIDIA machine code as a cubin file
    Cubin,
    /// Optimised LLVM IR
    Llvm,
    /// Assembly
    Asm,
    /// An object file, with its header
    Object,
    /// A shared library, with its header
    Shared,
    /// A Rust module, with the object file it links
    Rust,
}

/// Print the default schedule of a definition, as a starting point
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

/// Describe this machine: processor, caches, measured peaks, devices
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

/// Run the language server over standard input and output
///
/// Provides diagnostics, hovers, definitions, outlines, completions and quick fixes for `.tc`
/// files. docs/editors.md describes the setup of editors.
#[derive(Debug, Args)]
#[command(after_help = "Example, for Helix, in languages.toml:
  [language-server.tensorwright]
  command = \"tensorwright\"
  args = [\"lsp\"]")]
pub(crate) struct LspArgs {
    /// Ignored; some editors pass it, and there is no other transport
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
    /// The source file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The definition; optional if the file has only one
    #[arg(long = "def", value_name = "NAME")]
    pub(crate) def: Option<String>,

    /// Sizes and integer scalars, such as `M=128,K=64`; may be repeated. `compile` and `run` take
    /// ranges, such as `N=1..512`
    #[arg(long = "size", value_name = "NAME=NUMBER,...")]
    pub(crate) sizes: Vec<SizeList>,
}

/// How a definition is compiled.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// Use the schedule in this file, one step per line, instead of the default one; an empty file
    /// leaves the loops as written
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,

    /// Ignore tuned schedules in the records
    #[arg(long, conflicts_with = "schedule")]
    pub(crate) untuned: bool,

    /// The records to read, instead of the default ones
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) db: Option<Location>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// The help of `--target`.
fn targets() -> String {
    let names = Target::names().join(", ");
    format!("The code-generation target: {names}; `tensorwright machine` lists the devices")
}

/// What a definition is compiled for.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    #[arg(long, value_name = "NAME", default_value = "native", help = targets())]
    pub(crate) target: String,

    /// Threads for parallel loops; one per core unless set
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,

    /// exact: may only reorder sums; fast: also algebraic rewrites that round differently
    /// (Winograd, ...)
    #[arg(long, value_name = "NAME", value_parser = precision())]
    pub(crate) precision: Option<Precision>,

    /// Old name of `--precision exact`
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
    /// Text or JSON
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

/// The names of search strategies, and `others` with their descriptions.
pub(crate) fn strategies(others: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let known = STRATEGIES.iter().map(|strategy| (strategy.name, strategy.summary));
    let words = known.chain(others.iter().copied());
    PossibleValuesParser::new(words.map(|(name, help)| PossibleValue::new(name).help(help)))
}

/// The tuning modes with their descriptions.
pub(crate) fn modes() -> impl TypedValueParser<Value = Mode> {
    let values = Mode::ALL.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Mode>())
}
