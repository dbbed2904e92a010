/* What Debian's libraries of LLVM and C++ ask of glibc 2.30 to 2.36, for wheels that run from glibc 2.28 on.
   `.ci/wheel` links it in; it is no part of any other build. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN __attribute__((visibility("hidden")))

/* glibc 2.30: the number of the thread. */
OWN int gettid(void) { return (int)syscall(SYS_gettid); }

/* glibc 2.32: whether counters may be changed without locks. Never. */
OWN char __libc_single_threaded = 0;

/* glibc 2.33: what the allocator holds; LLVM prints it in statistics, which nobody asks for. */
struct own_mallinfo2 { size_t fields[10]; };
OWN struct own_mallinfo2 mallinfo2(void) { return (struct own_mallinfo2){{0}}; }

/* glibc 2.36: random bits, for std::random_device. */
OWN uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
  }
  return bits;
}
