/* Calls packaged kernels in turns, and prints what each takes: "covered exact", in nanoseconds. */
#include "timed.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, ROUNDS, sizeof *times, ascending);
    return times[ROUNDS / 2];
}

static float *a, *b, *c;
static void *workspace;

/* The nanoseconds of a call, over so many. */
#define SAMPLE(function, count, ...)                                                   \
    ({                                                                                 \
        const double start = now();                                                    \
        for (long n = 0; n < (count); n++) {                                           \
            if (function(__VA_ARGS__, a, b, c, workspace, NULL) != 0) exit(1);         \
        }                                                                              \
        (now() - start) / (double)(count);                                             \
    })

/* Both kinds in turns, each round long enough for the clock. */
#define TIME(value, ...)                                                               \
    do {                                                                               \
        double covered[ROUNDS], exact[ROUNDS];                                         \
        const double once = SAMPLE(timed_exact_##value, 3, __VA_ARGS__);               \
        const long count = once > 2e5 ? 1 : (long)(2e5 / once) + 1;                    \
        for (int round = 0; round < ROUNDS; round++) {                                 \
            covered[round] = SAMPLE(timed_covered, count, __VA_ARGS__);                \
            exact[round] = SAMPLE(timed_exact_##value, count, __VA_ARGS__);            \
        }                                                                              \
        printf("%f %f\n", median(covered), median(exact));                             \
    } while (0)

int main(void) {
    const size_t bytes = 512 * 512 * sizeof(float);
    a = aligned_alloc(64, bytes);
    b = aligned_alloc(64, bytes);
    c = aligned_alloc(64, bytes);
    workspace = aligned_alloc(64, 16 << 20);
    for (size_t n = 0; n < 512 * 512; n++) {
        a[n] = b[n] = (float)(n % 7) - 3;
    }
    CALLS;
    return 0;
}
