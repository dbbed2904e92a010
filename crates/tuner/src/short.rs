//! Short formats of large numbers and times.

use tensorwright_outcome::Seconds;

/// The number of schedules of a space: `480`, `4.7e34`.
pub(crate) fn about(digits: &str) -> String {
    let mantissa = digits.get(..3).and_then(|first| first.parse::<f64>().ok());
    match mantissa {
        Some(mantissa) if digits.len() > 6 => {
            let exponent = digits.len() - 1;
            let number = format!("{:.1}", mantissa / 100.0);
            match number.as_str() {
                "10.0" => format!("1.0e{}", exponent + 1),
                _ => format!("{number}e{exponent}"),
            }
        }
        _ => digits.to_owned(),
    }
}

/// A time with two digits: `54 us`, `1.3 ms`.
pub(crate) fn roughly(seconds: f64) -> String {
    let scale = [1.0, 1e-3, 1e-6].into_iter().find(|scale| seconds >= *scale);
    let value = seconds / scale.unwrap_or(1e-9);
    if value < 9.95 {
        format!("{:.1}", Seconds(seconds))
    } else {
        format!("{:.0}", Seconds(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_an_exponent() {
        assert_eq!(about("484000"), "484000");
        assert_eq!(about("46725265384742343610349756035891200"), "4.7e34");
        assert_eq!(about("9990000"), "1.0e7");
        assert_eq!(about("1000000"), "1.0e6");
        assert_eq!(about(""), "");
        assert_eq!(
            [53.89e-6, 1.26e-3, 9.97e-3, 12.0].map(roughly),
            ["54 us", "1.3 ms", "10 ms", "12 s"]
        );
    }
}
