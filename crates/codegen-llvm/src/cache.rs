//! [`ObjectCache`]: compiled objects on disk, keyed by their inputs.
//!
//! Code generation dominates compile time, and programs are compiled again whenever a process
//! starts. The key of an object is a hash of the unoptimized IR, the CPU and the options: a cached
//! object is the one that would be generated, byte for byte. Nothing has to be invalidated, and if
//! anything is wrong with a file, the code is generated.
//!
//! Cached objects are executed. So a folder that others can write to is refused, and a file begins
//! with a hash of its key and its object: a truncated, damaged or renamed file is replaced. That
//! protects against accidents, not against an attacker with write access to the folder.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use inkwell::module::Module;
use sha2::{Digest, Sha256};

use crate::llvm_version;
use crate::options::CodegenOptions;
use crate::processor::Processor;

/// The bytes of a hash.
const HASH: usize = 32;

/// The largest valid object: larger files are ignored.
const MOST_BYTES: u64 = 1 << 28;

/// The names to try for a new file.
const TRIES: usize = 64;

/// The interval between updates of an object's last use.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of objects with a size limit: the least recently used objects are evicted.
///
/// ```
/// use tensorwright_codegen_llvm::ObjectCache;
///
/// let folder = std::env::temp_dir().join(format!("objects-{}", std::process::id()));
/// let cache = ObjectCache::open(&folder, 256 << 20)?;
/// assert_eq!(cache.footprint()?, (0, 0));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ObjectCache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    limit: u64,
    /// The bytes that this process has written since it last scanned the folder.
    written: AtomicU64,
    /// The number of the next temporary file.
    number: AtomicU64,
}

/// The key of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; HASH]);

impl Key {
    /// The key of an emitted module, before any pass.
    pub(crate) fn of(module: &Module<'_>, target: &Processor, options: &CodegenOptions) -> Self {
        let (major, minor, patch) = llvm_version();
        let CodegenOptions { pipeline, level, hidden } = options;
        let about = format!(
            "{} {major}.{minor}.{patch} {target:?} {pipeline} {level:?} {hidden}",
            env!("CARGO_PKG_VERSION")
        );
        let mut hash = Sha256::new();
        hash.update((about.len() as u64).to_le_bytes());
        hash.update(about);
        hash.update(module.write_bitcode_to_memory().as_slice());
        Self(hash.finalize().into())
    }

    fn file(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + ".o"
    }
}

impl ObjectCache {
    /// The environment variable with the folder; if empty, the cache is disabled.
    pub const VARIABLE: &str = "TENSORWRIGHT_CACHE";

    /// Opens a folder, which is created if missing.
    ///
    /// # Errors
    /// The folder cannot be created or written to, or others can write to it.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let inner = Inner {
            folder: folder.to_owned(),
            limit,
            // The first write scans the folder.
            written: AtomicU64::new(limit),
            number: AtomicU64::new(0),
        };
        let cache = Self { inner: Arc::new(inner) };
        // A new file is owned by this process's user, which identifies the user.
        let (path, file) = cache.new_file()?;
        let owner = file.metadata().map(|own| own.uid());
        fs::remove_file(path)?;
        let about = fs::metadata(folder)?;
        if about.uid() != owner? || about.mode() & 0o022 != 0 {
            let message = "other users can write to the folder, whose contents are executed";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(cache)
    }

    /// The default folder of a user: the value of [`ObjectCache::VARIABLE`], or
    /// `tensorwright/objects` in `XDG_CACHE_HOME` or `~/.cache`. `None` without a home, or if the
    /// variable is empty.
    #[must_use]
    pub fn usual_folder() -> Option<PathBuf> {
        if let Some(named) = std::env::var_os(Self::VARIABLE) {
            return Some(PathBuf::from(named)).filter(|folder| !folder.as_os_str().is_empty());
        }
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let caches =
            absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(caches.join("tensorwright/objects"))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// The number of objects and their bytes.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn footprint(&self) -> io::Result<(usize, u64)> {
        let found = self.objects()?;
        Ok((found.len(), found.iter().map(|(_, _, bytes)| bytes).sum()))
    }

    /// Removes all objects.
    ///
    /// # Errors
    /// An object cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        // Another process may have removed it.
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        self.objects()?.into_iter().try_for_each(|(path, ..)| match fs::remove_file(path) {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        })
    }

    /// The object of a key, if it is cached and intact.
    pub(crate) fn get(&self, key: Key) -> Option<Vec<u8>> {
        let path = self.inner.folder.join(key.file());
        match read(&path, key) {
            Ok((file, object)) => {
                note_use(&file);
                Some(object)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "an object cannot be used");
                remove(&path);
                None
            }
        }
    }

    /// Stores an object, if possible.
    pub(crate) fn put(&self, key: Key, object: &[u8]) {
        if let Err(error) = self.write(key, object) {
            tracing::debug!(%error, folder = %self.inner.folder.display(), "an object was not kept");
        }
    }

    fn write(&self, key: Key, object: &[u8]) -> io::Result<()> {
        let (path, mut file) = self.new_file()?;
        let written = file.write_all(&seal(key, object)).and_then(|()| file.write_all(object));
        // Atomic: other processes see the whole file or none.
        let moved = written.and_then(|()| fs::rename(&path, self.inner.folder.join(key.file())));
        if moved.is_err() {
            let _ = fs::remove_file(&path);
        }
        moved?;
        let bytes = (HASH + object.len()) as u64;
        let written = self.inner.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if written > self.inner.limit / 16 {
            self.inner.written.store(0, Ordering::Relaxed);
            self.trim()?;
        }
        Ok(())
    }

    /// A new file that no other process uses.
    fn new_file(&self) -> io::Result<(PathBuf, File)> {
        let mut tries = 0;
        loop {
            let number = self.inner.number.fetch_add(1, Ordering::Relaxed);
            let path = self.inner.folder.join(format!("{}-{number}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                // A file of an earlier process with the same number, which was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    remove(&path);
                    tries += 1;
                }
                opened => return Ok((path, opened?)),
            }
        }
    }

    /// Evicts the least recently used objects until three quarters of the limit remain, if it is
    /// exceeded.
    fn trim(&self) -> io::Result<()> {
        let mut found = self.objects()?;
        let mut bytes: u64 = found.iter().map(|(_, _, bytes)| bytes).sum();
        if bytes <= self.inner.limit {
            return Ok(());
        }
        found.sort_by_key(|(_, used, _)| *used);
        for (path, _, size) in found {
            if bytes <= self.inner.limit / 4 * 3 {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            bytes -= size;
        }
        Ok(())
    }

    /// Files with the time of last use and their size: objects, and temporary files of killed
    /// processes.
    fn objects(&self) -> io::Result<Vec<(PathBuf, SystemTime, u64)>> {
        let now = SystemTime::now();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.inner.folder)? {
            let path = entry?.path();
            // Another process may remove it meanwhile.
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let used = about.modified().unwrap_or(now);
            let is_left = || now.duration_since(used).is_ok_and(|age| age > DAY);
            // A folder that the user chose may contain other files.
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_ours = match name.split_once('.') {
                Some((hash, "o")) => is_hash(hash),
                Some((number, "part")) => is_number(number) && is_left(),
                _ => false,
            };
            if is_ours && about.is_file() {
                found.push((path, used, about.len()));
            }
        }
        Ok(found)
    }
}

/// The hash at the start of a file. It includes the key, so a renamed object is not accepted.
fn seal(key: Key, object: &[u8]) -> [u8; HASH] {
    let mut hash = Sha256::new();
    hash.update(key.0);
    hash.update(object);
    hash.finalize().into()
}

/// Reads an object, without blocking on special files and without reading files of implausible
/// size.
fn read(path: &Path, key: Key) -> io::Result<(File, Vec<u8>)> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    // A FIFO without a writer would never open.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(wrong("it is no object"));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(about.len() as usize)?;
    (&file).take(about.len()).read_to_end(&mut bytes)?;
    if bytes.len() < HASH {
        return Err(wrong("it is cut short"));
    }
    let object = bytes.split_off(HASH);
    match bytes == seal(key, &object) {
        true => Ok((file, object)),
        false => Err(wrong("it is damaged, or that of other code")),
    }
}

/// Updates the last use of an object, once a day.
fn note_use(file: &File) {
    let used = file.metadata().and_then(|about| about.modified());
    let now = SystemTime::now();
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > DAY)) {
        // If this fails, the object is only evicted earlier.
        let _ = file.set_times(FileTimes::new().set_modified(now));
    }
}

/// Removes a file in the place of an object, if possible; a folder only if it is empty.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

/// Whether a name is an object's: a hash.
fn is_hash(name: &str) -> bool {
    name.len() == 2 * HASH && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a name is a temporary file's: the numbers of a process and of the file.
fn is_number(name: &str) -> bool {
    name.split_once('-').is_some_and(|(process, number)| {
        [process, number].iter().all(|part| part.parse::<u64>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("objects-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn objects_are_found_again_unless_they_are_damaged() {
        let folder = folder("damaged");
        let cache = ObjectCache::open(&folder, 1 << 20).unwrap();
        let key = Key([7; HASH]);
        assert_eq!(cache.get(key), None);
        cache.put(key, b"code");
        assert_eq!(cache.get(key).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.footprint().unwrap(), (1, 36));
        for text in [&b""[..], b"short", &[0; 40]] {
            cache.put(key, b"code");
            fs::write(folder.join(key.file()), text).unwrap();
            assert_eq!(cache.get(key), None);
        }
        cache.put(key, b"code");
        // Other files in a user's folder are not objects.
        let others = ["main.o", "notes.part", "1-2.tar.o"].map(|name| folder.join(name));
        others.iter().for_each(|other| fs::write(other, "theirs").unwrap());
        assert_eq!(cache.footprint().unwrap().0, 1);
        cache.clear().unwrap();
        assert_eq!(cache.get(key), None);
        assert!(others.iter().all(|other| other.exists()));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_object_under_the_name_of_another_is_not_taken_for_it() {
        let folder = folder("swapped");
        let cache = ObjectCache::open(&folder, 1 << 20).unwrap();
        let [one, other] = [Key([1; HASH]), Key([2; HASH])];
        cache.put(one, b"one");
        cache.put(other, b"other");
        fs::copy(folder.join(one.file()), folder.join(other.file())).unwrap();
        assert_eq!(cache.get(other), None);
        assert_eq!(cache.get(one).as_deref(), Some(&b"one"[..]));
        // A file of an earlier version, whose hash covers only the object.
        let mut old = Sha256::digest(b"other").to_vec();
        old.extend(b"other");
        fs::write(folder.join(other.file()), old).unwrap();
        assert_eq!(cache.get(other), None);
        cache.put(other, b"other");
        assert_eq!(cache.get(other).as_deref(), Some(&b"other"[..]));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_file_is_replaced_without_waiting_for_it() {
        let folder = folder("special");
        let cache = ObjectCache::open(&folder, 1 << 20).unwrap();
        let key = Key([3; HASH]);
        let path = folder.join(key.file());
        let mkfifo = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        };
        let link = |path: &Path| std::os::unix::fs::symlink(path, path).unwrap();
        let huge = |path: &Path| File::create(path).unwrap().set_len(1 << 40).unwrap();
        let unreadable = |path: &Path| {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        };
        let folder_there = |path: &Path| fs::create_dir(path).unwrap();
        let cases: [&dyn Fn(&Path); 5] = [&mkfifo, &link, &huge, &unreadable, &folder_there];
        for case in cases {
            case(&path);
            assert_eq!(cache.get(key), None);
            cache.put(key, b"code");
            assert_eq!(cache.get(key).as_deref(), Some(&b"code"[..]));
            fs::remove_file(&path).unwrap();
        }
        // The same in the place of a new file.
        let next = cache.inner.number.load(Ordering::Relaxed);
        mkfifo(&folder.join(format!("{}-{next}.part", std::process::id())));
        fs::create_dir(folder.join(format!("{}-{}.part", std::process::id(), next + 1))).unwrap();
        cache.put(key, b"code");
        assert!(cache.get(key).is_some());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn folders_of_others_are_refused() {
        let folder = folder("others");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let error = ObjectCache::open(&folder, 1 << 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "other users can write to the folder, whose contents are executed"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_oldest_leave() {
        let folder = folder("oldest");
        let cache = ObjectCache::open(&folder, 4096).unwrap();
        for number in 0..16u8 {
            let key = Key([number; HASH]);
            cache.put(key, &[number; 1000]);
            let age = Duration::from_secs(1000 - u64::from(number));
            let times = FileTimes::new().set_modified(SystemTime::now() - age);
            if let Ok(file) = File::open(folder.join(key.file())) {
                file.set_times(times).unwrap();
            }
        }
        let (_, bytes) = cache.footprint().unwrap();
        assert!(bytes <= 4096, "{bytes}");
        assert!(cache.get(Key([15; HASH])).is_some());
        assert!(cache.get(Key([0; HASH])).is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
