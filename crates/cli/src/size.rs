//! Sizes and durations as people write them, and back.

use plimsoll_store::budget::UNITS;
pub use plimsoll_store::budget::parse_bytes;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An amount of memory: bytes, or a share of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    Bytes(u64),
    Percent(f64),
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        match text.trim().strip_suffix('%') {
            Some(number) => match number.trim().parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Size::Percent(percent)),
                _ => Err("a share must be above 0% and at most 100%".into()),
            },
            None => parse_bytes(text).map(Size::Bytes),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Size::Bytes(bytes) => write!(out, "{bytes}"),
            Size::Percent(percent) => write!(out, "{percent}%"),
        }
    }
}

/// Reads `90s`, `10m`, `1h`, `1h30m`, `500ms` or a number of seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let explain = || "expected a time such as 90s, 10m, 1h30m or a number of seconds".to_string();
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(explain());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| explain())?;
        let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let scale = match &rest[digits..digits + letters] {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(explain()),
        };
        seconds += number * scale;
        rest = &rest[digits + letters..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| explain())
}

/// A size for people: three significant digits and a unit.
pub fn show_bytes(bytes: u64) -> String {
    let (name, scale) = *UNITS.iter().rev().find(|(_, scale)| bytes >= *scale).unwrap_or(&UNITS[0]);
    let value = bytes as f64 / scale as f64;
    match name {
        "" => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.2} {name}iB"),
        _ if value < 100.0 => format!("{value:.1} {name}iB"),
        _ => format!("{value:.0} {name}iB"),
    }
}

/// A count with its digits in groups of three.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number that may be far below one.
pub fn show_small(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        _ if number >= 100.0 => show_count(number as u64),
        _ if number >= 0.01 => format!("{number:.2}"),
        _ => format!("{number:.1e}"),
    }
}

/// Seconds with as many digits as matter.
pub fn show_seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else if seconds < 100.0 {
        format!("{seconds:.2} s")
    } else if seconds < 7200.0 {
        format!("{} min {} s", seconds as u64 / 60, seconds as u64 % 60)
    } else {
        format!("{} h {} min", seconds as u64 / 3600, seconds as u64 / 60 % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        let cases = [("0", 0), ("1", 1), ("512M", 512 << 20), ("2g", 2 << 30), ("1.5G", 3 << 29), ("64 KiB", 65536)];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Size::Bytes(bytes)), "{text}");
        }
        assert_eq!("50%".parse(), Ok(Size::Percent(50.0)));
        for text in ["", "M", "-1", "1X", "1.2.3G", "0%", "101%", "nan%", "99999999999T", "1 2"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_written() {
        for (text, seconds) in [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("1h30m", 5400.0), ("500ms", 0.5)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "h", "1y", "-3s", "1h-", "1.2.3s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn people_read_short_numbers() {
        assert_eq!((show_bytes(1023), show_bytes(3 << 29)), ("1023 B".into(), "1.50 GiB".into()));
        assert_eq!(
            (show_count(0), show_count(999), show_count(1234567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(
            (show_small(0.0), show_small(2.4e-8), show_small(0.125), show_small(1234.5)),
            ("0".into(), "2.4e-8".into(), "0.12".into(), "1,234".into())
        );
        assert_eq!(
            (show_seconds(0.0123), show_seconds(75.0), show_seconds(600.0)),
            ("12.3 ms".into(), "75.00 s".into(), "10 min 0 s".into())
        );
    }
}
