//! Harmful candidates: real machine code in the real runner.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{
    Processes, assert_well, children, config, good, matmul, next, object, schedule,
};
use tensorwright::Schedule;
use tensorwright_measure::Measurer;
use tensorwright_outcome::{Outcome, Phase};

/// The outcome of a candidate in C; the measurer works before and after it.
fn fate(includes: &str, body: &str) -> Outcome {
    let program = matmul(8);
    let mut config = config();
    config.run_deadline = Duration::from_secs(5);
    config.memory_bytes = 256 << 20;
    let mut measurer = Measurer::start(&program, config).unwrap();
    assert_well(&mut measurer);
    measurer.submit_object(1, &Schedule::default(), object(&program, includes, body));
    let finished = next(&mut measurer);
    assert_eq!(finished.id, 1);
    assert_well(&mut measurer);
    let (builders, runner) = measurer.processes();
    let mut expected: Vec<u32> = builders.into_iter().chain(runner).collect();
    expected.sort_unstable();
    let mut found = children();
    // A test process that runs several tests has children of others too.
    found.retain(|(number, state)| expected.contains(number) || *state == 'Z');
    found.sort_unstable();
    let numbers: Vec<u32> = found.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, expected, "zombies or lost children: {found:?}");
    drop(measurer);
    finished.outcome
}

fn assert_crashes(includes: &str, body: &str, reason: &str) {
    let outcome = fate(includes, body);
    let Outcome::Crashed { reason: actual, .. } = &outcome else { panic!("{outcome}") };
    assert!(actual.contains(reason), "{actual}");
}

#[test]
fn null_write() {
    assert_crashes("", "*(volatile int *)0 = 1;", "SIGSEGV");
}

#[test]
fn write_to_an_input() {
    assert_crashes("", "*(volatile float *)buffers[0] = 1;", "SIGSEGV");
}

#[test]
fn write_far_beyond_an_output() {
    assert_crashes("", "((volatile char *)buffers[2])[4096] = 1;", "SIGSEGV");
    assert_crashes("", "((volatile char *)buffers[2])[-1] = 1;", "SIGSEGV");
}

#[test]
fn write_a_little_beyond_an_output() {
    // The output does not fill its last page; the rest of the page is watched.
    let outcome = fate("", "((volatile char *)buffers[2])[sizeof(float) * 8 * 8 + 15] = 1;");
    let Outcome::WrongResult { reason } = &outcome else { panic!("{outcome}") };
    assert_eq!(reason, "the kernel writes past the end of output 0");
}

#[test]
fn division_by_zero() {
    assert_crashes("", "volatile int zero = 0; return 1 / zero;", "SIGFPE");
}

#[test]
fn stack_overflow() {
    let recursion = "static int deep(volatile int *p) \
                     { volatile int a[1000]; a[0] = *p; return deep(a) + a[0]; }";
    let outcome = fate(recursion, "int one = 1; return deep(&one);");
    assert_eq!(outcome.kind(), "crashed", "{outcome}");
}

#[test]
fn abort_and_exit() {
    assert_crashes("#include <stdlib.h>", "abort();", "SIGABRT");
    assert_crashes("#include <unistd.h>", "_exit(0);", "exit code 0");
}

#[test]
fn endless_loop() {
    let outcome = fate("", "for (;;) {}");
    assert_eq!(outcome, Outcome::TimedOut { phase: Phase::Check, limit: 5.0 });
    let sleep = fate("#include <unistd.h>", "for (;;) sleep(1000);");
    assert_eq!(sleep.kind(), "timed-out", "{sleep}");
}

#[test]
fn endless_loop_after_the_first_call() {
    let program = matmul(8);
    let right = "static int calls; ";
    let body = "if (calls++) for (;;) {}\n\
        for (int m = 0; m < 8; m++) for (int n = 0; n < 8; n++) { float sum = 0;\n\
        for (int k = 0; k < 8; k++)\n\
          sum += ((float *)buffers[0])[8 * m + k] * ((float *)buffers[1])[8 * k + n];\n\
        ((float *)buffers[2])[8 * m + n] = sum; }";
    let mut config = config();
    config.run_deadline = Duration::from_secs(3);
    let mut measurer = Measurer::start(&program, config).unwrap();
    measurer.submit_object(1, &Schedule::default(), object(&program, right, body));
    let outcome = next(&mut measurer).outcome;
    assert_eq!(outcome, Outcome::TimedOut { phase: Phase::Time, limit: 3.0 });
    assert_well(&mut measurer);
}

#[test]
fn endless_allocation() {
    let body = "for (;;) { char *p = malloc(1 << 24); memset(p, 1, 1 << 24); }";
    assert_crashes("#include <stdlib.h>\n#include <string.h>", body, "SIGSEGV");
}

#[test]
fn wrong_results() {
    let nothing = fate("", "");
    let Outcome::WrongResult { reason } = nothing else { panic!("{nothing}") };
    assert!(reason.contains("64 of 64 elements differ"), "{reason}");
    let status = fate("", "return 3;");
    let Outcome::WrongResult { reason } = status else { panic!("{status}") };
    assert!(reason.contains("status 3"), "{reason}");
}

#[test]
fn results_that_are_wrong_later() {
    let body = "static int calls;\n\
        for (int m = 0; m < 8; m++) for (int n = 0; n < 8; n++) { float sum = calls > 5;\n\
        for (int k = 0; k < 8; k++)\n\
          sum += ((float *)buffers[0])[8 * m + k] * ((float *)buffers[1])[8 * k + n];\n\
        ((float *)buffers[2])[8 * m + n] = sum; }\ncalls++;";
    assert_eq!(fate("", body).kind(), "wrong-result");
}

#[test]
fn garbage_on_every_descriptor() {
    let body = "char text[256]; memset(text, 'x', 256);\n\
        for (int fd = 0; fd < 1024; fd++) write(fd, text, 256);";
    let outcome = fate("#include <unistd.h>\n#include <string.h>", body);
    let Outcome::Crashed { reason, stderr } = &outcome else { panic!("{outcome}") };
    assert!(reason.contains("not a message"), "{reason}");
    assert!(stderr.contains("xxxx"), "{stderr}");
}

#[test]
fn megabytes_of_standard_error() {
    let body = "for (int i = 0; i < 100000; i++) fprintf(stderr, \"line %d of many lines\\n\", i);\n\
        printf(\"not seen\"); fflush(stdout); abort();";
    let outcome = fate("#include <stdio.h>\n#include <stdlib.h>", body);
    let Outcome::Crashed { stderr, .. } = &outcome else { panic!("{outcome}") };
    assert!(stderr.len() < 10_000 && stderr.contains("line 99999"), "{}", stderr.len());
    assert!(!stderr.contains("not seen"));
}

#[test]
fn closed_descriptors() {
    let outcome =
        fate("#include <unistd.h>", "for (int fd = 0; fd < 1024; fd++) close(fd);\nfor (;;) {}");
    assert_eq!(outcome.kind(), "crashed", "{outcome}");
}

/// Every attempt must fail with `EPERM` or `EACCES`; the status shows which did not.
#[test]
fn processes_files_and_sockets_are_denied() {
    let includes = "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <sched.h>\n\
        #include <signal.h>\n#include <sys/mman.h>\n#include <sys/prctl.h>\n#include <sys/ptrace.h>\n\
        #include <sys/socket.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        #define DENIED(n, call) do { errno = 0; \
            if ((long)(call) != -1 || (errno != EPERM && errno != EACCES)) return n; } while (0)";
    let body = "char *none[] = {0};\n\
        DENIED(1, fork()); DENIED(2, vfork()); DENIED(3, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));\n\
        DENIED(4, syscall(SYS_clone3, 0, 0)); DENIED(5, execve(\"/bin/true\", none, none));\n\
        DENIED(6, open(\"/etc/passwd\", O_RDONLY)); DENIED(7, open(\"/tmp/x\", O_CREAT | O_RDWR, 0600));\n\
        DENIED(8, socket(AF_INET, SOCK_STREAM, 0)); DENIED(9, socket(AF_UNIX, SOCK_STREAM, 0));\n\
        DENIED(10, kill(getppid_(), 0)); DENIED(11, unlink(\"/tmp/x\")); DENIED(12, memfd_create(\"x\", 0));\n\
        DENIED(13, ptrace(PTRACE_TRACEME, 0, 0, 0)); DENIED(14, prctl(PR_SET_PDEATHSIG, 0));\n\
        DENIED(15, syscall(SYS_tgkill, 1, 1, 9)); DENIED(16, chdir(\"/\")); DENIED(17, unshare(0));\n\
        DENIED(18, syscall(SYS_io_uring_setup, 1, 0)); DENIED(19, syscall(SYS_prlimit64, 0, 0, 0, 0));\n";
    let includes = format!("{includes}\nstatic int getppid_(void) {{ return 1; }}");
    let outcome = fate(&includes, body);
    let Outcome::WrongResult { reason } = &outcome else { panic!("{outcome}") };
    assert!(reason.contains("64 of 64 elements differ"), "not denied: {reason}");
}

#[test]
fn objects_that_do_not_link() {
    let program = matmul(8);
    let mut measurer = Measurer::start(&program, config()).unwrap();
    let missing = object(&program, "int no_such_function(void);", "return no_such_function();");
    for object in [missing, b"not an object".to_vec(), Vec::new()] {
        measurer.submit_object(1, &Schedule::default(), object);
        let outcome = next(&mut measurer).outcome;
        assert_eq!(outcome.kind(), "build-failed", "{outcome}");
    }
    assert_well(&mut measurer);
}

/// A right kernel that takes a second by the clock, since loop counts take different times on
/// different processors.
const SLOW: &str = "struct timespec start, now; clock_gettime(CLOCK_MONOTONIC, &start);\n\
    do clock_gettime(CLOCK_MONOTONIC, &now);\n\
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 1000000000L);\n\
    for (int m = 0; m < 8; m++) for (int n = 0; n < 8; n++) { float sum = 0;\n\
    for (int k = 0; k < 8; k++)\n\
      sum += ((float *)buffers[0])[8 * m + k] * ((float *)buffers[1])[8 * k + n];\n\
    ((float *)buffers[2])[8 * m + n] = sum; }";

fn kill(process: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_runner_killed_from_outside_is_replaced_and_the_candidate_tried_again() {
    let program = matmul(8);
    let mut measurer = Measurer::start(&program, config()).unwrap();
    for kills in [1, 2] {
        let slow = object(&program, "#include <time.h>", SLOW);
        measurer.submit_object(1, &Schedule::default(), slow);
        for _ in 0..kills {
            // It is built, and called for a second.
            assert!(measurer.next(Duration::from_millis(400)).is_none());
            kill(measurer.processes().1.unwrap(), "-KILL");
        }
        let outcome = next(&mut measurer).outcome;
        match kills {
            1 => assert_eq!(outcome.kind(), "measured", "{outcome}"),
            _ => assert!(outcome.to_string().contains("SIGKILL"), "{outcome}"),
        }
    }
    assert_well(&mut measurer);
}

#[test]
fn a_builder_that_dies_is_replaced() {
    let mut measurer = Measurer::start(&matmul(64), config()).unwrap();
    // A stopped builder is certain to be building when the signal comes.
    let (builders, _) = measurer.processes();
    kill(builders[0], "-STOP");
    measurer.submit(1, &good());
    kill(builders[0], "-ABRT");
    kill(builders[0], "-CONT");
    let outcome = next(&mut measurer).outcome;
    let Outcome::BuildFailed { reason } = &outcome else { panic!("{outcome}") };
    assert!(reason.contains("SIGABRT"), "{reason}");

    let (builders, _) = measurer.processes();
    kill(builders[0], "-STOP");
    measurer.submit(2, &good());
    kill(builders[0], "-KILL");
    let outcome = next(&mut measurer).outcome;
    assert_eq!(outcome.kind(), "measured", "{outcome}");
    assert_well(&mut measurer);
}

#[test]
fn a_builder_that_hangs_is_replaced() {
    let mut config = config();
    config.build_deadline = Duration::from_secs(2);
    let mut measurer = Measurer::start(&matmul(8), config).unwrap();
    let (builders, _) = measurer.processes();
    kill(builders[0], "-STOP");
    measurer.submit(1, &good());
    let outcome = next(&mut measurer).outcome;
    assert_eq!(outcome, Outcome::TimedOut { phase: Phase::Build, limit: 2.0 });
    assert_well(&mut measurer);
}

/// Lets a process run for a quarter of the time, until it is told to end.
fn throttle(process: u32, end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        kill(process, "-STOP");
        std::thread::sleep(Duration::from_millis(150));
        kill(process, "-CONT");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_builder_that_is_kept_from_the_processor_is_not_late() {
    let mut config = config();
    // The build needs half of this CPU time, but twice as long by the clock.
    config.build_deadline = Duration::from_secs(3);
    let mut measurer = Measurer::start(&matmul(32), config).unwrap();
    let (builders, _) = measurer.processes();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| throttle(builders[0], &end));
        measurer.submit(1, &schedule("C: unroll k\nC: unroll n"));
        let finished = next(&mut measurer);
        end.store(true, Ordering::Relaxed);
        assert_eq!(finished.outcome.kind(), "measured", "{}", finished.outcome);
    });
    assert_well(&mut measurer);
}

#[test]
fn dropping_a_measurer_in_the_middle_leaves_nothing_behind() {
    let program = matmul(8);
    let mut measurer = Measurer::start(&program, config()).unwrap();
    measurer.submit_object(1, &Schedule::default(), object(&program, "", "for (;;) {}"));
    assert!(measurer.next(Duration::from_millis(300)).is_none());
    let processes = Processes::of(&measurer);
    drop(measurer);
    processes.assert_gone();
}

#[test]
fn children_end_when_a_thread_other_than_the_last_user_started_them() {
    let measurer = std::thread::spawn(|| Measurer::start(&matmul(8), config()).unwrap());
    let mut measurer = measurer.join().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_well(&mut measurer);
}
