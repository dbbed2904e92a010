//! Identifies this machine and this build of the code.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// Files with a unique machine ID; the last one is the host name.
const NAMES: [&str; 3] =
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];

/// A text that is unique to this machine and build: the machine ID, and the size and time of the
/// file that contains this code. It is private; hash it before storing it.
#[must_use]
pub fn installation() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("{} {}", machine(), build()))
}

fn machine() -> String {
    let name = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
    let known = NAMES.into_iter().filter_map(name).find(|name| !name.is_empty());
    known.unwrap_or_else(|| "unknown".to_owned())
}

/// The size and time of the file that contains this code.
fn build() -> String {
    let describe = |path: PathBuf| {
        let file = fs::metadata(path).ok()?;
        let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{} {}", file.len(), since.as_nanos()))
    };
    code_file().and_then(describe).unwrap_or_else(|| "unknown".to_owned())
}

/// The executable or library that contains this function: in an interpreter's process it is not the
/// executable.
fn code_file() -> Option<PathBuf> {
    let here = code_file as *const () as usize;
    let holds = |line: &str| {
        // 7f12a000-7f13b000 r-xp 00001000 fd:01 1234    /usr/lib/a library.so
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let path = rest.get(rest.find('/')?..)?;
        (number(start)? <= here && here < number(end)?).then(|| PathBuf::from(path))
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().find_map(holds).or_else(|| std::env::current_exe().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_code_is_in_this_executable() {
        let file = code_file().map(|path| fs::canonicalize(path).ok());
        assert_eq!(file, std::env::current_exe().ok().map(|path| fs::canonicalize(path).ok()));
        assert_eq!(installation(), installation());
        assert!(!installation().contains('\n'));
    }
}
