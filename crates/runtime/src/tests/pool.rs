//! Tests of the pool: coverage, panics, nesting, and the C interface.
#![allow(unsafe_code, reason = "calls the C interface as a kernel does")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::pool::MAX_THREADS;
use crate::{Pool, PoolError};

/// The number of times that each iteration ran.
fn coverage(pool: &Pool, count: i64) -> Vec<u32> {
    let seen: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
    pool.run(count, &|range, worker| {
        assert!(worker < pool.workers());
        for iteration in range {
            seen[iteration as usize].fetch_add(1, Relaxed);
        }
    });
    seen.into_iter().map(AtomicU32::into_inner).collect()
}

#[test]
fn every_iteration_runs_once() {
    for threads in [1, 2, 3, 8] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.workers(), threads);
        for count in [0, 1, 2, 3, 7, 16, 33, 500] {
            assert!(coverage(&pool, count).iter().all(|&times| times == 1), "{threads} {count}");
        }
    }
}

#[test]
fn nothing_is_run_for_no_iterations() {
    let pool = Pool::new(2).unwrap();
    for count in [0, -1, i64::MIN] {
        pool.run(count, &|_, _| panic!("nothing to run"));
    }
}

#[test]
fn huge_counts_do_not_overflow() {
    let pool = Pool::new(3).unwrap();
    let total = AtomicI64::new(0);
    pool.run(i64::MAX, &|range, _| {
        total.fetch_add(range.end - range.start, Relaxed);
    });
    assert_eq!(total.into_inner(), i64::MAX);
}

#[test]
fn what_workers_write_is_seen_by_the_caller_and_the_next_run() {
    let pool = Pool::new(2).unwrap();
    let cells: Vec<AtomicI64> = (0..64).map(|_| AtomicI64::new(0)).collect();
    for round in 0..20_000 {
        // Relaxed on purpose: only the pool's own ordering makes the previous round visible.
        pool.run(64, &|range, _| {
            for iteration in range {
                let mirror = &cells[63 - iteration as usize];
                let cell = &cells[iteration as usize];
                assert!(mirror.load(Relaxed) >= round, "the former round is complete");
                assert_eq!(cell.load(Relaxed), round);
                cell.store(round + 1, Relaxed);
            }
        });
        assert!(cells.iter().all(|cell| cell.load(Relaxed) == round + 1));
    }
}

#[test]
fn all_workers_take_part() {
    let threads = 4;
    let pool = Pool::new(threads).unwrap();
    for _ in 0..50 {
        let barrier = Barrier::new(threads);
        let workers = AtomicUsize::new(0);
        // All workers must arrive before any continues: the caller cannot do it alone.
        pool.run(threads as i64, &|_, worker| {
            workers.fetch_or(1 << worker, Relaxed);
            barrier.wait();
        });
        assert_eq!(workers.into_inner(), 0b1111);
    }
}

#[test]
fn parked_helpers_and_callers_wake_up() {
    let pool = Pool::new(2).unwrap();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
        let barrier = Barrier::new(2);
        pool.run(2, &|_, worker| {
            barrier.wait();
            if worker == 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

#[test]
fn a_panic_reaches_the_caller_and_leaves_the_pool_usable() {
    let pool = Pool::new(3).unwrap();
    for guilty in [0, 50, 99] {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(100, &|range, _| assert!(!range.contains(&guilty), "guilty {guilty}"));
        }));
        let message = *result.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("guilty {guilty}"));
        assert!(coverage(&pool, 100).iter().all(|&times| times == 1));
    }
}

#[test]
fn a_panic_of_every_worker_is_one_panic() {
    let pool = Pool::new(2).unwrap();
    let barrier = Barrier::new(2);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.run(2, &|_, _| {
            barrier.wait();
            panic!("all");
        });
    }));
    assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "all");
}

#[test]
fn nested_runs_stay_in_their_worker() {
    let (pool, other) = (Pool::new(3).unwrap(), Pool::new(2).unwrap());
    let total = AtomicI64::new(0);
    pool.run(12, &|range, worker| {
        for _ in range {
            pool.run(10, &|inner, inner_worker| {
                assert_eq!((inner.clone(), inner_worker), (0..10, worker));
                total.fetch_add(inner.sum(), Relaxed);
            });
            other.run(10, &|_, other_worker| {
                assert_eq!(other_worker, 0);
                pool.run(2, &|_, inner_worker| assert_eq!(inner_worker, worker));
            });
        }
    });
    assert_eq!(total.into_inner(), 12 * 45);
}

#[test]
fn threads_may_share_a_pool() {
    let pool = Pool::new(2).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for count in 1..300 {
                    assert!(coverage(&pool, count).iter().all(|&times| times == 1));
                }
            });
        }
    });
}

#[test]
fn pools_come_and_go() {
    for threads in (1..6).cycle().take(60) {
        let pool = Pool::new(threads).unwrap();
        assert!(coverage(&pool, 10).iter().all(|&times| times == 1));
    }
    drop(Pool::new(4).unwrap());
}

#[test]
fn more_threads_than_processors_never_spin() {
    let pool = Pool::new(64).unwrap();
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 64) {
        assert!(pool.is_crowded());
    }
    for _ in 0..20 {
        assert!(coverage(&pool, 1000).iter().all(|&times| times == 1));
    }
}

#[test]
fn a_crowded_machine_is_survived() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let pool = Pool::new(2).unwrap();
        for _ in 0..2000 {
            assert!(coverage(&pool, 8).iter().all(|&times| times == 1));
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn helpers_are_pinned_to_processors_of_their_own() {
    let pool = Pool::new(1).unwrap();
    assert_eq!(pool.processors().len(), 1);
    let allowed = crate::affinity::allowed();
    if allowed.len() >= 2 {
        let pool = Pool::new(2).unwrap();
        let [Some(first), Some(second)] = *pool.processors() else { panic!("both are placed") };
        assert!(first != second && allowed.contains(&first) && allowed.contains(&second));
        let _pin = pool.pin_caller().unwrap();
        let barrier = Barrier::new(2);
        pool.run(2, &|_, worker| {
            barrier.wait();
            let processor = crate::affinity::current();
            assert_eq!(processor, pool.processors()[worker]);
        });
    }
}

#[test]
fn impossible_numbers_of_threads_are_errors() {
    for threads in [0, MAX_THREADS + 1, usize::MAX] {
        let error = Pool::new(threads).unwrap_err();
        assert!(matches!(error, PoolError::Threads(given) if given == threads));
        assert!(error.to_string().contains(&threads.to_string()));
    }
}

/// A C task: adds the sum of its iterations to the context.
unsafe extern "C" fn add(context: *mut c_void, begin: i64, end: i64, worker: i32) {
    assert!((0..3).contains(&worker));
    // SAFETY: the test passes a pointer to an atomic that outlives the run.
    let total = unsafe { &*context.cast::<AtomicI64>() };
    total.fetch_add((begin..end).sum(), Relaxed);
}

#[test]
fn kernels_use_the_pool_through_c() {
    let pool = Pool::new(3).unwrap();
    let abi = pool.as_abi();
    // SAFETY: the pool lives.
    assert_eq!(unsafe { (*abi).workers }, 3);
    for count in [-5, 0, 1, 2, 1000] {
        let total = AtomicI64::new(0);
        let context = std::ptr::from_ref(&total).cast_mut().cast();
        // SAFETY: the pool lives, and the task accepts this context from any thread.
        unsafe { ((*abi).run)(abi, add, context, count) };
        assert_eq!(total.into_inner(), (0..count).sum());
    }
}

#[test]
fn the_c_pool_is_laid_out_as_in_c() {
    use crate::abi;
    assert_eq!(std::mem::offset_of!(abi::Pool, run), 0);
    assert_eq!(std::mem::offset_of!(abi::Pool, workers), size_of::<usize>());
    assert_eq!(size_of::<abi::Pool>(), 2 * size_of::<usize>());
}

#[test]
fn those_who_ask_for_as_many_threads_share_a_pool() {
    let first = Pool::shared(2).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &Pool::shared(2).unwrap()));
    assert!(!std::sync::Arc::ptr_eq(&first, &Pool::shared(3).unwrap()));
    assert!(Pool::shared(0).is_err());
}

#[test]
#[allow(unsafe_code, reason = "forks")]
fn a_forked_child_runs_alone_and_ends() {
    let pool = Pool::shared(2).unwrap();
    let sum = |pool: &Pool| {
        let sum = AtomicI64::new(0);
        pool.run(100, &|range, _| {
            sum.fetch_add(range.sum(), Relaxed);
        });
        sum.into_inner()
    };
    assert_eq!(sum(&pool), 4950);
    // SAFETY: the child runs tasks in its one thread, drops the pool, and ends without returning to
    // the test's harness.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = sum(&pool) == 4950;
        drop(pool);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if right { 7 } else { 1 }) };
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut status = 0;
    // SAFETY: the child is ours, and the status is a place to write to.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if std::time::Instant::now() > deadline {
            // SAFETY: the child is ours.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the forked child hangs");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
}
