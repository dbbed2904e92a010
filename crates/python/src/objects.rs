//! The on-disk cache of generated code, shared by processes.

use std::sync::OnceLock;

use tensorwright::{KernelBuilder, ObjectCache};

/// The size limit of the cache: some ten thousand kernels.
const LIMIT: u64 = 256 << 20;

/// The cache folder, as found by the first use in this process.
struct CacheFolder {
    cache: Option<ObjectCache>,
    /// Why a named folder cannot be used.
    problem: Option<String>,
}

fn place() -> &'static CacheFolder {
    static PLACE: OnceLock<CacheFolder> = OnceLock::new();
    PLACE.get_or_init(|| {
        let Some(folder) = ObjectCache::usual_folder() else {
            return CacheFolder { cache: None, problem: None };
        };
        match ObjectCache::open(&folder, LIMIT) {
            Ok(cache) => CacheFolder { cache: Some(cache), problem: None },
            Err(error) => {
                let (variable, folder) = (ObjectCache::VARIABLE, folder.display());
                let is_named = std::env::var_os(variable).is_some();
                let problem = || format!("{variable}={folder}: {error}; kernels are not cached");
                CacheFolder { cache: None, problem: is_named.then(problem) }
            }
        }
    })
}

/// The cache.
pub(crate) fn cache() -> Option<&'static ObjectCache> {
    place().cache.as_ref()
}

/// Attaches the cache to a kernel builder.
pub(crate) fn kept(builder: KernelBuilder<'_>) -> KernelBuilder<'_> {
    match cache() {
        Some(cache) => builder.cache(cache),
        None => builder,
    }
}

/// A problem with the folder, reported once.
pub(crate) fn problem() -> Option<String> {
    static SAID: OnceLock<()> = OnceLock::new();
    let problem = place().problem.as_ref()?;
    SAID.set(()).ok().map(|()| problem.clone())
}
