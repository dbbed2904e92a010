//! The file format of landscapes, with a few bytes per point.
//!
//! Eight magic bytes, then one zlib stream, whose checksum detects damage:
//!
//! ```text
//! u32     length of the header
//! header  JSON: origin, parameters with all values, a hash of them, reasons, number of points
//! points  the number of each point minus that of the one before minus 1, seven bits per byte
//! kinds   one byte per point
//! details one byte per point
//! seconds f32 in four planes, the highest bytes of all points first; one per measured point
//! ```

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use tensorwright_space::{Parameter, Point};

use crate::cell::{Cell, Reasons};
use crate::landscape::{MOST_PARAMETERS, MOST_POINTS};
use crate::{Landscape, LandscapeError, Provenance};

/// The magic bytes of a file; the last one is the version.
const MAGIC: &[u8; 8] = b"TWLANDS\x01";

/// The most bytes that a file may decompress to.
const MOST_BYTES: u64 = 256 << 20;

/// The most bytes of a header.
const MOST_HEADER: usize = 32 << 20;

/// The most bytes of a 128-bit number, seven bits each.
const MOST_DIGITS: u32 = 19;

#[derive(Serialize)]
struct HeaderOut<'a> {
    origin: &'a Provenance,
    space: String,
    parameters: &'a [Parameter],
    reasons: &'a [String],
    points: usize,
}

#[derive(Deserialize)]
struct HeaderIn {
    origin: Provenance,
    space: String,
    parameters: Vec<Parameter>,
    reasons: Vec<String>,
    points: usize,
}

impl Landscape {
    /// Encodes the file.
    ///
    /// # Errors
    /// If it is larger than readers accept.
    pub fn encode(&self) -> Result<Vec<u8>, LandscapeError> {
        let space = self.space();
        let header = HeaderOut {
            origin: self.origin(),
            space: self.space_hash()?,
            parameters: space.parameters(),
            reasons: &self.reasons.0,
            points: self.points().len(),
        };
        let header = serde_json::to_vec(&header).map_err(|e| LandscapeError::new(e.to_string()))?;
        if header.len() > MOST_HEADER {
            return Err(LandscapeError::new("the program or the space is too large for a file"));
        }
        let mut bytes = Vec::with_capacity(header.len() + 8 * self.points().len());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        write_points(&radices(space.parameters())?, self.points(), &mut bytes);
        bytes.extend(self.cells.iter().map(|cell| cell.kind));
        bytes.extend(self.cells.iter().map(|cell| cell.detail));
        let measured: Vec<[u8; 4]> =
            self.cells.iter().filter(|c| c.kind == 0).map(|c| c.seconds.to_be_bytes()).collect();
        (0..4).for_each(|plane| bytes.extend(measured.iter().map(|b| b[plane])));
        compress(&bytes)
    }

    /// Decodes a file.
    ///
    /// # Errors
    /// If the bytes are damaged or not a landscape.
    pub fn decode(bytes: &[u8]) -> Result<Self, LandscapeError> {
        let bytes = decompress(bytes)?;
        let mut reader = Reader { rest: &bytes };
        let length = u32::from_le_bytes(reader.array()?) as usize;
        if length > MOST_HEADER {
            return Err(damaged("its header is too long"));
        }
        let header: HeaderIn = serde_json::from_slice(reader.take(length)?)
            .map_err(|error| damaged(&format!("its header: {error}")))?;
        let HeaderIn { origin, space, parameters, reasons, points: count } = header;
        if count > MOST_POINTS || parameters.len() > MOST_PARAMETERS {
            return Err(damaged("it has too many points or parameters"));
        }
        let reasons = Reasons(reasons);
        let points = reader.points(&radices(&parameters)?, count)?;
        let cells = reader.cells(count, &reasons)?;
        if !reader.rest.is_empty() {
            return Err(damaged("something follows its end"));
        }
        let landscape = Self::from_parts(origin, parameters, points, cells, reasons)?;
        if landscape.space_hash()? != space {
            return Err(damaged("its parameters do not have the hash that it states"));
        }
        Ok(landscape)
    }
}

fn damaged(what: &str) -> LandscapeError {
    LandscapeError::new(format!("the landscape is damaged: {what}"))
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>, LandscapeError> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(LandscapeError::new("the landscape is too large for a file"));
    }
    let mut encoder = ZlibEncoder::new(MAGIC.to_vec(), Compression::best());
    let done = encoder.write_all(bytes).and_then(|()| encoder.finish());
    done.map_err(|error| LandscapeError::new(error.to_string()))
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, LandscapeError> {
    let Some(stream) = bytes.strip_prefix(MAGIC) else {
        return Err(LandscapeError::new("this is not a landscape, or one of another version"));
    };
    let mut decoder = ZlibDecoder::new(stream);
    let mut unfolded = Vec::new();
    let read = (&mut decoder).take(MOST_BYTES + 1).read_to_end(&mut unfolded);
    read.map_err(|error| damaged(&error.to_string()))?;
    if unfolded.len() as u64 > MOST_BYTES {
        return Err(damaged("it is too large"));
    }
    if decoder.total_in() != stream.len() as u64 {
        return Err(damaged("something follows its end"));
    }
    Ok(unfolded)
}

/// The number of values of each parameter.
fn radices(parameters: &[Parameter]) -> Result<Vec<u32>, LandscapeError> {
    let counts: Vec<u32> = parameters.iter().map(Parameter::count).collect();
    let size = counts.iter().try_fold(1u128, |size, count| size.checked_mul((*count).into()));
    let error = || LandscapeError::new("the space has more than 2^128 points");
    size.map(|_| counts).ok_or_else(error)
}

fn number(radices: &[u32], point: &Point) -> u128 {
    let digits = radices.iter().zip(point.ranks());
    digits.fold(0, |number, (radix, rank)| number * u128::from(*radix) + u128::from(*rank))
}

fn point(radices: &[u32], mut number: u128) -> Option<Point> {
    let mut ranks = vec![0; radices.len()];
    for (rank, radix) in ranks.iter_mut().zip(radices).rev() {
        *rank = (number % u128::from(*radix)) as u32;
        number /= u128::from(*radix);
    }
    (number == 0).then(|| Point::new(ranks))
}

fn write_points(radices: &[u32], points: &[Point], to: &mut Vec<u8>) {
    let mut next = 0;
    for point in points {
        let number = number(radices, point);
        let mut rest = number - next;
        while rest >= 0x80 {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
        next = number + 1;
    }
}

/// Reads the rest of a file.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LandscapeError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| damaged("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LandscapeError> {
        self.take(N)?.try_into().map_err(|_| damaged("it ends too early"))
    }

    fn varint(&mut self) -> Result<u128, LandscapeError> {
        let mut value = 0u128;
        for digit in 0..MOST_DIGITS {
            let [byte] = self.array()?;
            let bits = u128::from(byte & 0x7f);
            let shifted = bits << (7 * digit);
            if shifted >> (7 * digit) != bits {
                break;
            }
            value |= shifted;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged("a number is too long"))
    }

    fn points(&mut self, radices: &[u32], count: usize) -> Result<Vec<Point>, LandscapeError> {
        let mut points = Vec::new();
        let mut next = Some(0u128);
        for _ in 0..count {
            let gap = self.varint()?;
            let number = next.and_then(|next| next.checked_add(gap));
            let found = number.and_then(|number| point(radices, number));
            points.push(found.ok_or_else(|| damaged("a point lies outside the space"))?);
            next = number.and_then(|number| number.checked_add(1));
        }
        Ok(points)
    }

    fn cells(&mut self, count: usize, reasons: &Reasons) -> Result<Vec<Cell>, LandscapeError> {
        let (kinds, details) = (self.take(count)?, self.take(count)?);
        let measured = kinds.iter().filter(|kind| **kind == 0).count();
        let planes = [(); 4].map(|()| self.take(measured));
        let [a, b, c, d] = planes;
        let (a, b, c, d) = (a?, b?, c?, d?);
        let mut seconds = (0..measured).map(|i| f32::from_be_bytes([a[i], b[i], c[i], d[i]]));
        let mut cell = |(kind, detail): (&u8, &u8)| {
            let seconds = if *kind == 0 { seconds.next().unwrap_or(0.0) } else { 0.0 };
            let cell = Cell { kind: *kind, seconds, detail: *detail };
            let sound = cell.is_sound(reasons).then_some(cell);
            sound.ok_or_else(|| damaged("an outcome is invalid"))
        };
        kinds.iter().zip(details).map(&mut cell).collect()
    }
}
