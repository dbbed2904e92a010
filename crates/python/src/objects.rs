//! Generated code that is kept on disk: what one process compiled, the next one finds.

use std::sync::OnceLock;

use tensorwright::{KernelBuilder, ObjectCache};

/// The bytes that objects may take together: some ten thousand kernels.
const LIMIT: u64 = 256 << 20;

/// Where objects are kept, as the process that first asks finds it.
struct Place {
    cache: Option<ObjectCache>,
    /// Why there is none, where a folder was named.
    problem: Option<String>,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let Some(folder) = ObjectCache::usual_folder() else {
            return Place { cache: None, problem: None };
        };
        match ObjectCache::open(&folder, LIMIT) {
            Ok(cache) => Place { cache: Some(cache), problem: None },
            Err(error) => {
                let (variable, folder) = (ObjectCache::VARIABLE, folder.display());
                let is_named = std::env::var_os(variable).is_some();
                let problem = || format!("{variable}={folder}: {error}; kernels are not kept");
                Place { cache: None, problem: is_named.then(problem) }
            }
        }
    })
}

/// Lets a kernel be found that another process compiled.
pub(crate) fn kept(builder: KernelBuilder<'_>) -> KernelBuilder<'_> {
    match &place().cache {
        Some(cache) => builder.cache(cache),
        None => builder,
    }
}

/// What there is to say about the folder, once.
pub(crate) fn problem() -> Option<String> {
    static SAID: OnceLock<()> = OnceLock::new();
    let problem = place().problem.as_ref()?;
    SAID.set(()).ok().map(|()| problem.clone())
}
