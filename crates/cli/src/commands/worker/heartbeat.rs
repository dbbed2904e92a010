//! [`Heartbeat`]: signs of life, from a thread and a connection of its own: whatever the worker waits for, its leases are held.

use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tensorwright_fleet::{Fleet, Lease, WorkerId};
use tensorwright_records::Url;

/// The leases of a worker, as two threads see them.
#[derive(Default)]
struct Held {
    leases: Vec<Lease>,
    /// Tokens of leases that were taken away.
    lost: HashSet<String>,
}

/// Holds leases until it is dropped.
pub(super) struct Heartbeat {
    held: Arc<Mutex<Held>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn locked(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heartbeat {
    /// Beats three times per lease.
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
                // A beat that fails is followed by another one.
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

    /// Holds these as well.
    pub(super) fn hold<'l>(&self, leases: impl Iterator<Item = &'l Lease>) {
        locked(&self.held).leases.extend(leases.cloned());
    }

    /// Holds this no longer.
    pub(super) fn release(&self, lease: &Lease) {
        let mut held = locked(&self.held);
        held.leases.retain(|held| held.token != lease.token);
        held.lost.remove(&lease.token);
    }

    /// Whether somebody else has it.
    pub(super) fn is_lost(&self, lease: &Lease) -> bool {
        locked(&self.held).lost.contains(&lease.token)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It ends when it has an answer, or its limit is over.
            let _ = thread.join();
        }
    }
}
