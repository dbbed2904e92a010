//! The request loop.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;

use tensorwright::{Call, Kernel, npy};

use crate::Options;
use crate::overhead::overhead;
use crate::problem::{self, Result};
use crate::protocol::{Built, Reply, Request, Workload};
use crate::roof::roof;
use crate::sample::samples;

/// The driver's end of the pipes.
struct Driver<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> Driver<R, W> {
    /// The next valid request; `None` at the end.
    fn next(&mut self) -> std::io::Result<Option<Request>> {
        loop {
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match serde_json::from_str(&line) {
                Ok(Request::Quit) => return Ok(None),
                Ok(request) => return Ok(Some(request)),
                Err(error) => self.say(&Reply::Error { error: error.to_string() })?,
            }
        }
    }

    fn say(&mut self, reply: &Reply) -> std::io::Result<()> {
        writeln!(self.output, "{}", serde_json::to_string(reply)?)?;
        self.output.flush()
    }

    /// Replies with the result of a request.
    fn answer(&mut self, reply: Result<Reply>) -> std::io::Result<()> {
        self.say(&reply.unwrap_or_else(|error| Reply::Error { error: error.to_string() }))
    }
}

/// Serves until the driver quits.
pub(crate) fn serve(
    input: impl BufRead,
    output: impl Write,
    options: &Options,
) -> std::io::Result<()> {
    let mut driver = Driver { input, output };
    let mut request = driver.next()?;
    while let Some(current) = request {
        request = match current {
            // A call borrows its kernel, so its loop is nested until the next build.
            Request::Build { workload, inputs } => {
                match with_kernel(&mut driver, &workload, &inputs, options) {
                    Ok(next) => next?,
                    Err(error) => {
                        driver.say(&Reply::Error { error: error.to_string() })?;
                        driver.next()?
                    }
                }
            }
            other => {
                driver.answer(without_kernel(&other, options))?;
                driver.next()?
            }
        };
    }
    Ok(())
}

/// Answers requests that need no kernel.
fn without_kernel(request: &Request, options: &Options) -> Result<Reply> {
    match request {
        Request::Records { workload } => {
            let program = problem::program(workload)?;
            Ok(Reply::Records(problem::tuning(&program, options)?))
        }
        Request::Overhead => Ok(Reply::Samples { ns: overhead()? }),
        Request::Roof { bytes, written } => roof(*bytes, *written, options.threads),
        _ => Err("nothing is built".into()),
    }
}

/// Builds a kernel and serves its requests. The outer error is a failed build, the inner one a lost
/// driver; returns the request that ends the kernel.
fn with_kernel(
    driver: &mut Driver<impl BufRead, impl Write>,
    workload: &Workload,
    directory: &Path,
    options: &Options,
) -> Result<std::io::Result<Option<Request>>> {
    let program = problem::program(workload)?;
    let kernel = problem::kernel(&program, options)?;
    let inputs = problem::inputs(&program, workload, directory)?;
    let mut call = kernel.bind(&inputs)?;
    // The first run checks data-dependent subscripts; later ones have the same data.
    call.run()?;
    let built = Built {
        variants: ["tensorwright"],
        schedule: kernel.schedule().to_string(),
        code: problem::code(&kernel)?,
        error_growth: kernel.lowered().error_growth(),
        compile_s: kernel.compile_times().total().as_secs_f64(),
        tuning: problem::tuning(&program, options)?,
        version: format!("tensorwright {}", env!("CARGO_PKG_VERSION")),
    };
    driver.say(&Reply::Built(built))?;
    Ok(answer_calls(driver, &kernel, &mut call, options))
}

/// Serves until another kernel is requested or the driver quits.
fn answer_calls(
    driver: &mut Driver<impl BufRead, impl Write>,
    kernel: &Kernel,
    call: &mut Call<'_>,
    options: &Options,
) -> std::io::Result<Option<Request>> {
    loop {
        let request = driver.next()?;
        let reply = match &request {
            None | Some(Request::Build { .. }) => return Ok(request),
            Some(Request::Sample { seconds }) => {
                // Worker threads have their own processors, as in all peers.
                let _pin = kernel.pool().and_then(|pool| pool.pin_caller().ok());
                // A device call also fetches its result, which peers leave there; the device clock
                // counts only the kernels.
                let ns = samples(*seconds, || call.run().ok().and_then(|()| call.device_time()));
                Ok(Reply::Samples { ns })
            }
            Some(Request::Output { path }) => output(call, path),
            Some(other) => without_kernel(other, options),
        };
        driver.answer(reply)?;
    }
}

/// Computes once and writes the only output.
fn output(call: &mut Call<'_>, path: &Path) -> Result<Reply> {
    call.run()?;
    let outputs = call.outputs()?;
    let (_, buffer) = outputs.iter().next().ok_or("the definition has no output")?;
    fs::write(path, npy::encode(buffer)?)?;
    Ok(Reply::Done {})
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use tensorwright::Precision;

    use super::{Options, serve};

    fn answers(requests: &str) -> Vec<Value> {
        let options = Options {
            target: "native".to_owned(),
            threads: 1,
            db: None,
            untuned: true,
            precision: Precision::Fast,
        };
        let mut output = Vec::new();
        serve(requests.as_bytes(), &mut output, &options).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn whatever_cannot_be_done_is_an_error_and_not_the_end() {
        let requests = "nonsense\n{\"request\":\"sample\",\"seconds\":1}\n{\"request\":\"build\",\"inputs\":\"x\",\
                        \"workload\":{\"file\":\"absent.tc\",\"def\":\"d\",\"size\":\"\",\"inputs\":{}}}\n\
                        {\"request\":\"overhead\"}\n{\"request\":\"quit\"}\n{\"request\":\"overhead\"}\n";
        let answers = answers(requests);
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert!(answers[..3].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
        assert!(answers[3]["ns"][0].as_f64().is_some_and(|ns| ns > 0.0), "{answers:?}");
    }

    #[test]
    fn a_kernel_is_built_sampled_and_its_result_written() {
        let directory =
            std::env::temp_dir().join(format!("tensorwright-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let source = directory.join("scale.tc");
        std::fs::write(&source, "def scale(float(N) A, float(N) B) -> (C) { C(i) = A(i) - B(i) }")
            .unwrap();
        // Names out of alphabetical order, and a shape that differs only in ones.
        for (name, elements) in [("y", vec![1.5, 2.0]), ("x", vec![0.5, 0.0])] {
            let input = tensorwright::Buffer::from_f32(&[1, 2], elements).unwrap();
            let bytes = tensorwright::npy::encode(&input).unwrap();
            std::fs::write(directory.join(name).with_extension("npy"), bytes).unwrap();
        }
        let result = directory.join("result.npy");
        let workload = format!(
            r#"{{"file": {source:?}, "def": "scale", "size": "N=2", "inputs": {{"y": [1, 2], "x": [1, 2]}}}}"#
        );
        let requests = [
            format!(r#"{{"request": "build", "workload": {workload}, "inputs": {directory:?}}}"#),
            r#"{"request": "sample", "seconds": 0.0}"#.to_owned(),
            format!(r#"{{"request": "output", "path": {result:?}}}"#),
            r#"{"request": "roof", "bytes": 16, "written": 8}"#.to_owned(),
        ];
        let answers = answers(&requests.join("\n"));
        assert_eq!(answers[0]["variants"][0], "tensorwright", "{answers:?}");
        assert_eq!(answers[0]["code"].as_str().map(str::len), Some(64), "{answers:?}");
        assert!(answers[1]["ns"][0].is_number(), "{answers:?}");
        assert!(answers[3]["gflops"].as_f64().is_some_and(|rate| rate > 0.0), "{answers:?}");
        let written = tensorwright::npy::decode(&std::fs::read(&result).unwrap()).unwrap();
        assert_eq!(written.as_f32(), Some(&[1.0, 2.0][..]));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
