//! The crates `gemm` and `faer` as runners of `bench/run`, for matrix products: `rust-peers gemm|faer THREADS`.
//!
//! Requests and replies are lines of JSON, as in `bench/peers/protocol.py`; samples are taken by the same code
//! as the project's own.
#![allow(dead_code, reason = "sample.rs is shared")]

#[path = "../../../../crates/bench/src/sample.rs"]
mod sample;

mod npy;
mod product;

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::product::{Library, Product};
use crate::sample::samples;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let (Some(name), Some(threads)) = (arguments.get(1), arguments.get(2)) else {
        return Err("usage: rust-peers gemm|faer THREADS".into());
    };
    let library = Library::named(name, threads.parse()?)?;
    let mut server = Server { library, product: None };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        if request["request"] == "quit" {
            break;
        }
        let reply =
            server.answer(&request).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        writeln!(output, "{reply}")?;
        output.flush()?;
    }
    Ok(())
}

/// Samples of calls on the processor, which are timed from outside.
fn timed(seconds: f64, mut call: impl FnMut()) -> Vec<f64> {
    samples(seconds, || {
        call();
        None
    })
}

struct Server {
    library: Library,
    product: Option<Product>,
}

impl Server {
    fn answer(&mut self, request: &Value) -> Result<Value> {
        match request["request"].as_str() {
            Some("build") => self.build(request),
            Some("sample") => {
                let library = &self.library;
                let product = self.product.as_mut().ok_or("nothing is built")?;
                let seconds = request["seconds"].as_f64().ok_or("no seconds")?;
                Ok(json!({ "ns": timed(seconds, || library.compute(product)) }))
            }
            Some("output") => {
                let product = self.product.as_mut().ok_or("nothing is built")?;
                self.library.compute(product);
                let path = request["path"].as_str().ok_or("no path")?;
                npy::write(Path::new(path), product.result())?;
                Ok(json!({}))
            }
            Some("overhead") => {
                let mut one = Product::ones();
                Ok(json!({ "ns": timed(0.005, || self.library.compute(&mut one)) }))
            }
            _ => Err("unknown request".into()),
        }
    }

    fn build(&mut self, request: &Value) -> Result<Value> {
        self.product = None;
        let workload = &request["workload"];
        let directory = Path::new(request["inputs"].as_str().ok_or("no inputs")?);
        let Some(product) = Product::of(workload, directory)? else {
            return Ok(json!({ "unsupported": "not a product of matrices" }));
        };
        self.product = Some(product);
        let (name, version) = (self.library.name(), self.library.version());
        Ok(json!({ "variants": [name], "version": version, "extra": {} }))
    }
}
