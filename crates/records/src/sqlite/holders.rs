//! Finds other processes that lock a database (Linux: `/proc/locks`).

use std::fs;
use std::path::{Path, PathBuf};

/// Other processes that hold write locks on a database, such as `4242 (sqlite3)`.
pub(crate) fn holders(path: &Path) -> Vec<String> {
    let Ok(locks) = fs::read_to_string("/proc/locks") else { return Vec::new() };
    // With a write-ahead log writers lock the shared-memory file, otherwise the database itself.
    let files: Vec<u64> = [path.to_owned(), with_suffix(path, "-shm")]
        .iter()
        .filter_map(|file| inode(file))
        .collect();
    let mut processes: Vec<u32> =
        locks.lines().filter_map(|line| write_lock(line, &files)).collect();
    processes.sort_unstable();
    processes.dedup();
    processes.retain(|process| *process != std::process::id());
    processes.into_iter().map(describe).collect()
}

/// The process of a line such as `3: POSIX  ADVISORY  WRITE 4242 fe:00:1310 120 120` if it is about
/// one of the files.
fn write_lock(line: &str, files: &[u64]) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "POSIX", _, "WRITE", process, file, ..] = words.as_slice() else { return None };
    let inode: u64 = file.rsplit(':').next()?.parse().ok()?;
    files.contains(&inode).then(|| process.parse().ok()).flatten()
}

fn describe(process: u32) -> String {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) => format!("{process} ({})", name.trim()),
        Err(_) => process.to_string(),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_read() {
        let line = "3: POSIX  ADVISORY  WRITE 4242 fe:00:1310 120 120";
        assert_eq!(write_lock(line, &[1310]), Some(4242));
        assert_eq!(write_lock(line, &[1311]), None);
        assert_eq!(write_lock(&line.replace("WRITE", "READ"), &[1310]), None);
        assert_eq!(write_lock("", &[1310]), None);
    }
}
