//! [`Proxy`]: a TCP proxy that can be frozen or cut.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

/// The polling interval of the proxy's state.
const TICK: Duration = Duration::from_millis(10);

const WHOLE: u8 = 0;
const FROZEN: u8 = 1;
const CUT: u8 = 2;
const ENDED: u8 = 3;

/// A local port that forwards to another one until it is frozen or cut.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<AtomicU8>,
}

impl Proxy {
    /// A proxy to a local port.
    ///
    /// # Errors
    /// If it cannot listen on a port.
    pub fn to(target: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(AtomicU8::new(WHOLE));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            while shared.load(Ordering::Relaxed) != ENDED {
                match listener.accept() {
                    Ok((near, _)) => connect(near, target, &shared),
                    Err(_) => thread::sleep(TICK),
                }
            }
        });
        Ok(Self { port, state })
    }

    /// Rewrites a URL to go through this proxy.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        let port = super::port(url).map(|port| format!(":{port}")).unwrap_or_default();
        url.replacen(&port, &format!(":{}", self.port), 1)
    }

    /// Stops forwarding without closing connections.
    pub fn freeze(&self) {
        self.state.store(FROZEN, Ordering::Relaxed);
    }

    /// Closes all connections, and new ones at once.
    pub fn cut(&self) {
        self.state.store(CUT, Ordering::Relaxed);
    }

    /// Restores forwarding; data held while frozen is delivered.
    pub fn mend(&self) {
        self.state.store(WHOLE, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.store(ENDED, Ordering::Relaxed);
    }
}

fn connect(near: TcpStream, target: u16, state: &Arc<AtomicU8>) {
    if state.load(Ordering::Relaxed) == CUT {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { return };
    let shared = Arc::clone(state);
    thread::spawn(move || carry(near, far, &shared));
    let shared = Arc::clone(state);
    thread::spawn(move || carry(far_too, near_too, &shared));
}

/// Copies bytes in one direction until either end closes or the proxy is cut.
fn carry(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let mut bytes = [0; 1 << 16];
    let _ = from.set_nonblocking(false);
    let _ = from.set_read_timeout(Some(TICK));
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    'carrying: loop {
        let length = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(_) => break,
        };
        loop {
            match state.load(Ordering::Relaxed) {
                FROZEN => thread::sleep(TICK),
                WHOLE => break,
                _ => break 'carrying,
            }
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
