//! Parser for file sizes.

/// Parses `500 MB`, `2GiB`, or bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let problem = || format!("`{text}` is not a size");
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let scale: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        _ => return Err(problem()),
    };
    let number: f64 = number.parse().map_err(|_| problem())?;
    let bytes = number * scale;
    if bytes < 9e15 { Ok(bytes as u64) } else { Err(problem()) }
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("500 MB"), Ok(500_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes(" 12 "), Ok(12));
        for wrong in ["", "GB", "1 XB", "-1", "1e99 GB", "1..2 MB", "99999999999 TB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
