//! [`Heartbeat`]: renews leases from a thread and a connection of its own.

use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tensorwright_fleet::{Fleet, Lease, WorkerId};
use tensorwright_records::Url;

/// The leases of a worker, shared by two threads.
#[derive(Default)]
struct Held {
    leases: Vec<Lease>,
    /// Tokens of lost leases.
    lost: HashSet<String>,
}

/// Renews leases until it is dropped.
pub(super) struct Heartbeat {
    held: Arc<Mutex<Held>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn locked(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heartbeat {
    /// Renews three times per lease period.
    pub(super) fn start(
        url: &Url,
        worker: WorkerId,
        lease: Duration,
    ) -> Result<Self, tensorwright_records::Error> {
        let mut fleet = Fleet::later(url)?.with_limit((lease / 3).max(Duration::from_secs(1)));
        let held = Arc::new(Mutex::new(Held::default()));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&held);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(lease / 3) == Err(RecvTimeoutError::Timeout) {
                let leases = locked(&shared).leases.clone();
                // A failed renewal is retried at the next beat.
                if let Ok(alive) = fleet.beat(worker, &leases, lease) {
                    let alive: HashSet<String> = alive.into_iter().collect();
                    let gone = leases.into_iter().filter(|lease| !alive.contains(&lease.token));
                    locked(&shared).lost.extend(gone.map(|lease| lease.token));
                }
                let _ = fleet.sweep();
            }
        });
        Ok(Self { held, stop: Some(stop), thread: Some(thread) })
    }

    /// Adds leases.
    pub(super) fn hold<'l>(&self, leases: impl Iterator<Item = &'l Lease>) {
        locked(&self.held).leases.extend(leases.cloned());
    }

    /// Drops a lease.
    pub(super) fn release(&self, lease: &Lease) {
        let mut held = locked(&self.held);
        held.leases.retain(|held| held.token != lease.token);
        held.lost.remove(&lease.token);
    }

    /// Whether another worker has the lease.
    pub(super) fn is_lost(&self, lease: &Lease) -> bool {
        locked(&self.held).lost.contains(&lease.token)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends after an answer or its timeout.
            let _ = thread.join();
        }
    }
}
