//! Messages between parent and children; the crate's documentation has the table.
//!
//! A message is a frame: a mark, the number of the request, the lengths of two parts, then the
//! parts: JSON, and bytes (object files). Mark and number detect garbage that a stray candidate
//! writes to a descriptor. Nothing larger than the limits is read, and no frame can make the reader
//! panic.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tensorwright_outcome::Timing;
use tensorwright_schedule::Interface;

use crate::TimingPlan;
use crate::roofline::Roofline;

/// The first bytes of every frame.
const MARK: [u8; 4] = *b"\xffTW1";

/// The longest JSON part.
const MOST_TEXT: usize = 16 << 20;

/// The longest part of bytes.
const MOST_BYTES: usize = 256 << 20;

/// The bytes of a frame before its parts.
const HEADER: usize = 20;

/// The number in a child's first frame.
pub(crate) const GREETING: u64 = 0;

/// The first message to a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The program as text, in which every size is a number.
    pub(crate) program: String,
    /// The name of its definition.
    pub(crate) def: String,
    /// The expected hash of the parsed text.
    pub(crate) hash: String,
    /// The target of code generation.
    pub(crate) target: String,
    /// The device to run candidates on, if not this processor.
    pub(crate) device: Option<String>,
    /// How many threads kernels use.
    pub(crate) threads: usize,
    /// The processors that the child may use; empty for all.
    pub(crate) processors: Vec<usize>,
    /// The seed of the random inputs.
    pub(crate) seed: u64,
    /// How much memory a candidate may use.
    pub(crate) memory_bytes: u64,
    /// The roofline, if another runner has measured it.
    pub(crate) roofline: Option<Roofline>,
}

/// A request to a builder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BuilderRequest {
    /// Fill the shared file with inputs and expected results.
    Expect,
    /// Build a candidate.
    Build {
        /// Its schedule as text.
        schedule: String,
        /// Whether to stop before machine code, which comes from elsewhere.
        lower_only: bool,
    },
}

/// A builder's answer; an object comes with [`BuilderReply::Built`] as bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BuilderReply {
    /// Ready for requests.
    Ready,
    /// The shared file is filled.
    Expected,
    /// A candidate is built.
    Built(Description),
    /// The schedule is illegal.
    Illegal {
        /// The rule that refuses it.
        rule: String,
        /// Why.
        reason: String,
    },
    /// The request cannot be met.
    Failed(String),
}

/// What a runner needs besides a candidate's code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// Its interface.
    pub(crate) interface: Interface,
    /// The factor by which its rounding errors may exceed those of the program's own sums.
    pub(crate) error_growth: f64,
}

/// A request to a runner. The objects come as bytes, one after the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum RunnerRequest {
    /// Check and time a candidate.
    Run {
        /// Its interface and error growth.
        description: Description,
        /// The best time so far, in seconds.
        best: Option<f64>,
        /// How to time.
        plan: TimingPlan,
    },
    /// Check candidates and time them in turns.
    Compare {
        /// The interface and error growth of each, and the length of its object.
        candidates: Vec<(Description, usize)>,
        /// The time of the comparison.
        budget: Duration,
        /// The time after which no round begins, however few there were.
        limit: Duration,
        /// How to time.
        plan: TimingPlan,
    },
}

/// A runner's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum RunnerReply {
    /// Ready for requests.
    Ready(Roofline),
    /// The code is compiled, if the runner compiles it. Another answer follows.
    Loaded,
    /// Preparation is done; the first call begins. Another answer follows.
    Prepared,
    /// The result is right, timing begins. Another answer follows.
    Checked,
    /// Timed.
    Timed(Verdict, Roofline),
    /// Candidates timed in turns.
    Compared(Vec<Compared>, Roofline),
    /// The runner cannot start.
    Failed(String),
}

/// A runner's verdict on a candidate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// It is right and takes this time.
    Right(Timing),
    /// It is wrong.
    Wrong(String),
    /// It needs more memory than it may have.
    TooLarge(String),
    /// It exceeds a limit of the device.
    OverLimits(String),
    /// The object does not link, or the text does not compile.
    Unlinkable(String),
    /// The device reports a failure: its state cannot be trusted.
    Failed(String),
    /// The device went away.
    Lost(String),
}

impl Verdict {
    /// Whether later candidates in the same process may suffer from it.
    pub(crate) fn is_contagious(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Lost(_))
    }
}

/// A runner's result for a candidate in a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// Its verdict.
    pub(crate) verdict: Verdict,
    /// The seconds of a call in every round; empty if it is not right.
    pub(crate) rounds: Vec<f64>,
}

/// A received frame.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The number of its request.
    pub(crate) number: u64,
    text: Vec<u8>,
    /// The binary part.
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// The JSON part.
    pub(crate) fn message<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.text).map_err(io::Error::from)
    }
}

/// Writes a frame.
pub(crate) fn send(
    to: &mut impl Write,
    number: u64,
    message: &impl Serialize,
    bytes: &[u8],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let too_long = || io::Error::other("a message is too long");
    if text.len() > MOST_TEXT || bytes.len() > MOST_BYTES {
        return Err(too_long());
    }
    let mut frame = Vec::with_capacity(HEADER + text.len() + bytes.len());
    frame.extend_from_slice(&MARK);
    frame.extend_from_slice(&number.to_le_bytes());
    for length in [text.len(), bytes.len()] {
        frame.extend_from_slice(&u32::try_from(length).map_err(|_| too_long())?.to_le_bytes());
    }
    frame.extend_from_slice(&text);
    frame.extend_from_slice(bytes);
    to.write_all(&frame)
}

/// Reads a frame; `None` if the other side is gone, an error for a malformed frame.
pub(crate) fn receive(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut header = [0; HEADER];
    let mut filled = 0;
    while filled < HEADER {
        match from.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(garbage("ends in the middle of a message")),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // It ended before it read everything it was sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
        }
        if !header[..filled.min(MARK.len())].iter().zip(MARK).all(|(byte, mark)| *byte == mark) {
            return Err(garbage("is not a message"));
        }
    }
    let word = |at: usize| -> [u8; 4] { std::array::from_fn(|byte| header[at + byte]) };
    let number = u64::from_le_bytes(std::array::from_fn(|byte| header[4 + byte]));
    let text = part(from, u32::from_le_bytes(word(12)), MOST_TEXT)?;
    let bytes = part(from, u32::from_le_bytes(word(16)), MOST_BYTES)?;
    Ok(Some(Frame { number, text, bytes }))
}

/// Reads a part of a frame. Memory grows with the bytes that arrive, not with the announced length.
fn part(from: &mut impl Read, length: u32, most: usize) -> io::Result<Vec<u8>> {
    let length = length as usize;
    if length > most {
        return Err(garbage("announces a message that is too long"));
    }
    let mut part = Vec::new();
    from.take(length as u64).read_to_end(&mut part)?;
    if part.len() < length {
        return Err(garbage("ends in the middle of a message"));
    }
    Ok(part)
}

fn garbage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("what the process wrote {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let mut wire = Vec::new();
        let reply = BuilderReply::Illegal { rule: "split".into(), reason: "no loop `q`".into() };
        send(&mut wire, 7, &reply, b"object").unwrap();
        send(&mut wire, 8, &BuilderReply::Ready, b"").unwrap();
        let mut wire = wire.as_slice();
        let frame = receive(&mut wire).unwrap().unwrap();
        assert_eq!((frame.number, frame.bytes.as_slice()), (7, &b"object"[..]));
        let message: BuilderReply = frame.message().unwrap();
        assert!(matches!(message, BuilderReply::Illegal { rule, .. } if rule == "split"));
        assert!(receive(&mut wire).unwrap().unwrap().message::<RunnerReply>().is_err());
        assert!(receive(&mut wire).unwrap().is_none());
    }

    #[test]
    fn descriptions_come_back_as_they_were() {
        let text =
            "def f(float(N) A, const float(N) W, int32(N) I) -> (B) { B(i) = A(I(i)) * W(i) }";
        let module = tensorwright::Module::parse("f.tc", text).unwrap();
        let program = module.def("f").unwrap().bind([("N", 3)]).unwrap();
        let lowered = program.compile().schedule_text("W: layout [d0/2, d0%2]").unwrap().lower();
        let interface = lowered.unwrap().interface().clone();
        assert!(interface.has_prepare && interface.checked.len() == 1);
        let description = Description { interface, error_growth: 1.5 };
        let mut wire = Vec::new();
        send(&mut wire, 1, &description, b"").unwrap();
        let frame = receive(&mut wire.as_slice()).unwrap().unwrap();
        assert_eq!(frame.message::<Description>().unwrap(), description);
    }

    #[test]
    fn garbage_is_an_error_whatever_it_is() {
        let mut frame = Vec::new();
        send(&mut frame, 1, &BuilderReply::Ready, b"bytes").unwrap();
        for end in 1..frame.len() {
            assert!(receive(&mut &frame[..end]).is_err(), "cut at {end}");
        }
        let mut long = frame.clone();
        long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(receive(&mut long.as_slice()).is_err());
        for text in ["hello\n", "\u{0}", "\u{ff}TW1", "{\"Ready\":null}\n{\"Ready\":null}\n"] {
            assert!(receive(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
