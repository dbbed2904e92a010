//! The default number of threads.

use std::sync::OnceLock;

use tensorwright::runtime::affinity;

/// The most threads of a kernel.
const MOST: usize = 1024;

/// One thread per physical core available to this process, within container limits: the default of
/// `--threads`, and of Python without PyTorch.
#[must_use]
pub fn default_threads() -> u16 {
    // Every subcommand needs it.
    static THREADS: OnceLock<u16> = OnceLock::new();
    *THREADS.get_or_init(cores)
}

fn cores() -> u16 {
    let allowed = affinity::allowed();
    let first = |processor: &&usize| {
        let siblings = affinity::siblings(**processor);
        siblings.iter().filter(|sibling| allowed.contains(sibling)).min() == Some(processor)
    };
    let cores = allowed.iter().filter(first).count();
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if cores == 0 { most } else { cores.min(most) };
    u16::try_from(threads.clamp(1, MOST)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_thread_for_each_core_at_most() {
        let processors = std::thread::available_parallelism().unwrap().get();
        assert!((1..=processors).contains(&usize::from(default_threads())));
    }
}
