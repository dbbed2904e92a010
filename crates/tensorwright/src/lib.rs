//! You write the mathematics of a tensor operator or an image pipeline; Tensorwright works out
//! the rest.
//!
//! A text of one or more `def`s is [parsed and checked](Module::parse), one of them is
//! [bound to sizes](Def::bind), and the resulting [`Program`] can be [explained](Program::explain),
//! [compiled](Program::compile) to a fast [`Kernel`], and
//! [run on the reference interpreter](Program::run_reference).
//!
//! ```
//! use tensorwright::{Buffer, Inputs, Module};
//!
//! let module = Module::parse(
//!     "matmul.tc",
//!     "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
//! )?;
//! let program = module.def("matmul")?.bind([("M", 2), ("K", 3), ("N", 1)])?;
//!
//! let inputs = Inputs::from([
//!     ("A".to_owned(), Buffer::from_f32(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?),
//!     ("B".to_owned(), Buffer::from_f32(&[3, 1], vec![1.0, 0.0, -1.0])?),
//! ]);
//! let kernel = program.compile().build()?;
//! let outputs = kernel.run(&inputs)?;
//! assert_eq!(outputs.get("C").and_then(Buffer::as_f32), Some(&[-2.0, -2.0][..]));
//!
//! // The reference is slow, and says how far from it a correct kernel may be.
//! let reference = program.run_reference(&inputs)?;
//! let c = reference.output("C").ok_or("no output C")?;
//! assert_eq!(outputs.get("C").and_then(|kernel| c.mismatch(kernel)), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How the loops run is said by a [schedule](schedule::schedule): the default one, or one that is
//! [given](KernelBuilder::schedule_text). A schedule can make a kernel fast or slow, never wrong.
//!
//! Whatever is wrong with a text comes back as [`Diagnostics`]: every problem with a code, its
//! place, and what to do about it. Their `Display` shows the lines of the text.
//!
//! ```
//! let error = tensorwright::Module::parse(
//!     "pool.tc",
//!     "def pool(float(H,W) in) -> (out) { out(i,j) max=! in(2*i + kh, 2*j + kw) }",
//! )
//! .unwrap_err();
//! assert!(error.to_string().contains("where kh in 0:2"));
//! ```

pub use tensorwright_kernel::*;

/// The examples of the README, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the guide's chapter on Rust, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../guide/src/rust.md")]
struct Guide;
