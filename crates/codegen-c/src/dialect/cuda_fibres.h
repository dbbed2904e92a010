/* Runs CUDA C++ on a CPU: blocks in order, the threads of a block as fibres.

   A fibre runs until it waits at a barrier. Those of a block take turns in an order that a seed decides, so that threads
   which rely on an order that nothing guarantees compute something else. Memory that threads share is filled with bytes 0xff,
   which are no number, when a block begins. A barrier to which some threads of a block do not come ends the program with
   a message. For tests; speed does not matter.

   Tensor operations (`mma.h`) are those of a warp, 32 threads that follow each other: they wait for each other at each of
   them. Each thread holds eight elements of a tile, in an order that no device has, so that nothing can rely on it. Sums
   round towards zero after groups of four terms, as those of the first tensor cores do. */
#ifndef CUDA_FIBRES_H
#define CUDA_FIBRES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __shared__ static __attribute__((section("fibres_shared")))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __syncthreads() fibres::wait(fibres::State::waiting, __LINE__)
#define __syncwarp() fibres::wait(fibres::State::in_warp, __LINE__)

static inline uint32_t __float_as_uint(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float __uint_as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* At least one byte of shared memory, so that the section exists. */
__shared__ unsigned char fibres_shared_byte __attribute__((used));
extern unsigned char __start_fibres_shared[], __stop_fibres_shared[];

namespace fibres {

struct Index3 {
    unsigned x, y, z;
};

/* A kernel argument: converts to any pointer. */
struct Argument {
    void *pointer;
    template <typename T> operator T *() const { return static_cast<T *>(pointer); }
};

/* Device memory: aligned, and filled with NaN. */
struct Memory {
    std::vector<char> bytes;
    explicit Memory(size_t size) : bytes(size + 256, '\xff') {}
    char *data() { return bytes.data() + (256 - uintptr_t(bytes.data()) % 256) % 256; }
};

} // namespace fibres

static fibres::Index3 threadIdx, blockIdx;

namespace fibres {

enum class State { ready, waiting, in_warp, done };

struct Fibre {
    ucontext_t context;
    std::vector<char> stack;
    Index3 thread;
    State state;
    int line;
};

static ucontext_t scheduler;
static Fibre *current, *first_fibre;
static std::function<void()> body;

static const size_t WARP = 32;

/* The thread waits for the others of its block or of its warp. */
static void wait(State state, int line) {
    current->state = state;
    current->line = line;
    swapcontext(&current->context, &scheduler);
}

static void start() {
    body();
    current->state = State::done;
    swapcontext(&current->context, &scheduler);
}

static uint64_t random_below(uint64_t &seed, uint64_t bound) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % bound;
}

static void fail(const char *what) {
    fprintf(stderr, "%s in block (%u, %u, %u)\n", what, blockIdx.x, blockIdx.y, blockIdx.z);
    exit(3);
}

/* Resumes warps whose threads have all reached the same point. */
static bool release_warps(std::vector<Fibre> &all) {
    bool released = false;
    for (size_t first = 0; first < all.size(); first += WARP) {
        const size_t end = first + WARP < all.size() ? first + WARP : all.size();
        size_t here = 0;
        for (size_t i = first; i < end; ++i) {
            here += all[i].state == State::in_warp && all[i].line == all[first].line;
        }
        if (here == end - first) {
            released = true;
            for (size_t i = first; i < end; ++i) {
                all[i].state = State::ready;
            }
        }
    }
    return released;
}

static void run_block(std::vector<Fibre> &all, uint64_t &seed) {
    memset(__start_fibres_shared, 0xff, __stop_fibres_shared - __start_fibres_shared);
    for (Fibre &fibre : all) {
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = nullptr;
        makecontext(&fibre.context, start, 0);
        fibre.state = State::ready;
    }
    std::vector<size_t> order(all.size());
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    for (;;) {
        for (size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1], order[random_below(seed, i)]);
        }
        /* Some warps get ahead of others. */
        const uint64_t held = random_below(seed, uint64_t(1) << 32);
        bool is_held = false;
        for (size_t i : order) {
            if (all[i].state != State::ready) {
                continue;
            }
            if (held >> (i / WARP) & 1) {
                is_held = true;
                continue;
            }
            current = &all[i];
            threadIdx = current->thread;
            swapcontext(&scheduler, &current->context);
        }
        if (release_warps(all) || is_held) {
            continue;
        }
        for (const Fibre &fibre : all) {
            if (fibre.state == State::in_warp) {
                fail("divergent warp: not all threads of it come to an operation");
            }
        }
        for (const Fibre &fibre : all) {
            if (fibre.state != all[0].state || (fibre.state == State::waiting && fibre.line != all[0].line)) {
                fprintf(stderr, "divergent barrier: not all threads of block (%u, %u, %u) come to it\n",
                        blockIdx.x, blockIdx.y, blockIdx.z);
                exit(3);
            }
        }
        if (all[0].state == State::done) {
            return;
        }
        for (Fibre &fibre : all) {
            fibre.state = State::ready;
        }
    }
}

/* Runs a kernel that `call` calls, for all threads of all blocks. */
static void launch(Index3 grid, Index3 block, uint64_t seed, std::function<void()> call) {
    body = std::move(call);
    std::vector<Fibre> all(size_t(block.x) * block.y * block.z);
    first_fibre = all.data();
    size_t number = 0;
    for (unsigned z = 0; z < block.z; ++z) {
        for (unsigned y = 0; y < block.y; ++y) {
            for (unsigned x = 0; x < block.x; ++x) {
                all[number].thread = {x, y, z};
                all[number++].stack.resize(64 << 10);
            }
        }
    }
    seed = seed * 2 + 1;
    for (unsigned z = 0; z < grid.z; ++z) {
        for (unsigned y = 0; y < grid.y; ++y) {
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                run_block(all, seed);
            }
        }
    }
}

} // namespace fibres

/* The types of `cuda_fp16.h` and `cuda_bf16.h`, which are only multiplied here. */
struct __half {
    uint16_t bits;
};

struct __nv_bfloat16 {
    uint16_t bits;
};

namespace fibres {

static inline float number(__nv_bfloat16 value) { return __uint_as_float(uint32_t(value.bits) << 16); }

static inline float number(__half value) {
    const int exponent = (value.bits >> 10) & 31, digits = value.bits & 1023;
    float magnitude = exponent == 31 ? (digits ? NAN : INFINITY)
                      : exponent == 0 ? ldexpf(float(digits), -24)
                                      : ldexpf(float(1024 + digits), exponent - 25);
    return value.bits >> 15 ? -magnitude : magnitude;
}

static inline float toward_zero(double value) {
    const float rounded = float(value);
    return fabs(double(rounded)) > fabs(value) ? nextafterf(rounded, 0.0f) : rounded;
}

/* The part of a 32-bit number that tensor cores read. */
static inline float number(float value) {
    return __uint_as_float(__float_as_uint(value) & ~0x1fffu);
}

/* The mapping between elements of a tile and slots of threads, in both directions. Any odd number would do. */
static inline int element_in(int slot, int lane, int count) { return ((slot * 32 + lane) * 77 + 41) & (count - 1); }
static inline int place_of(int element, int count) { return ((element - 41) * 133) & (count - 1); }

static inline int lane() { return int((current - first_fibre) % WARP); }

/* The data that threads of a warp exchange in an operation. */
struct Handed {
    const void *what[2];
    size_t number;
};
static Handed handed[1024];

static Handed *hand(const void *a, const void *b, size_t number, int line) {
    Handed *warp = handed + (current - first_fibre - lane());
    if (current - first_fibre >= 1024) {
        fail("a block of more than 1024 threads");
    }
    warp[lane()] = {{a, b}, number};
    wait(State::in_warp, line);
    return warp;
}

/* All threads of a warp name the same tile, which is aligned as devices require. */
template <typename T> static void check_tile(const T *start, size_t leading) {
    const Handed *warp = hand(start, nullptr, leading, __LINE__);
    if (warp[0].what[0] != start || warp[0].number != leading) {
        fail("threads of a warp access different tiles");
    }
    if (uintptr_t(start) % 32 != 0 || leading * sizeof(T) % 16 != 0) {
        fail("a tile that is not aligned");
    }
    wait(State::in_warp, __LINE__);
}

} // namespace fibres

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32;
}

/* The element types of a fragment in memory and in registers. */
template <typename T> struct Element {
    using type = T;
};
template <> struct Element<precision::tf32> {
    using type = float;
};

/* The rows and columns of a fragment. */
template <typename Use, int k> struct Shape;
template <int k> struct Shape<matrix_a, k> {
    enum { rows = 16, columns = k };
};
template <int k> struct Shape<matrix_b, k> {
    enum { rows = k, columns = 16 };
};
template <int k> struct Shape<accumulator, k> {
    enum { rows = 16, columns = 16 };
};

template <typename Use, int m, int n, int k, typename T, typename Layout = void> struct fragment {
    static_assert(m == 16 && n == 16 && (k == 16 || (k == 8 && sizeof(typename Element<T>::type) == 4)),
                  "other tiles than those that are used");
    enum { rows = Shape<Use, k>::rows, columns = Shape<Use, k>::columns, num_elements = rows * columns / 32 };
    typename Element<T>::type x[num_elements];
    fragment() { memset(static_cast<void *>(x), 0xff, sizeof x); }
};

template <typename Layout> struct Order;
template <> struct Order<row_major> {
    static size_t offset(int row, int column, size_t leading) { return row * leading + column; }
};
template <> struct Order<col_major> {
    static size_t offset(int row, int column, size_t leading) { return column * leading + row; }
};

/* Rounds to 11 bits, to nearest, ties away from zero. */
static inline float __float_to_tf32(float value) {
    return value - value != 0 ? value : __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
}

template <typename Use, int k, typename T, typename Layout>
static void load_matrix_sync(fragment<Use, 16, 16, k, T, Layout> &into, const typename Element<T>::type *from,
                             unsigned leading) {
    fibres::check_tile(from, leading);
    for (int slot = 0; slot < into.num_elements; ++slot) {
        const int element = fibres::element_in(slot, fibres::lane(), into.rows * into.columns);
        into.x[slot] = from[Order<Layout>::offset(element / into.columns, element % into.columns, leading)];
    }
}

template <int k> static void fill_fragment(fragment<accumulator, 16, 16, k, float> &into, float value) {
    for (float &element : into.x) {
        element = value;
    }
}

template <int k>
static void store_matrix_sync(float *to, const fragment<accumulator, 16, 16, k, float> &from, unsigned leading,
                              layout_t layout) {
    fibres::check_tile(to, leading);
    for (int slot = 0; slot < from.num_elements; ++slot) {
        const int element = fibres::element_in(slot, fibres::lane(), 256);
        const size_t offset = layout == mem_row_major
                                  ? Order<row_major>::offset(element / 16, element % 16, leading)
                                  : Order<col_major>::offset(element / 16, element % 16, leading);
        to[offset] = from.x[slot];
    }
}

template <int terms, typename T, typename A, typename B>
static void mma_sync(fragment<accumulator, 16, 16, terms, float> &into, const fragment<matrix_a, 16, 16, terms, T, A> &a,
                     const fragment<matrix_b, 16, 16, terms, T, B> &b,
                     const fragment<accumulator, 16, 16, terms, float> &plus) {
    const fibres::Handed *warp = fibres::hand(a.x, b.x, 0, __LINE__);
    const auto factor = [&](int which, int element) {
        const int place = fibres::place_of(element, 16 * terms);
        const auto *held = static_cast<const typename Element<T>::type *>(warp[place % 32].what[which]);
        return double(fibres::number(held[place / 32]));
    };
    float made[8];
    for (int slot = 0; slot < 8; ++slot) {
        const int element = fibres::element_in(slot, fibres::lane(), 256), row = element / 16, column = element % 16;
        float sum = plus.x[slot];
        for (int group = 0; group < terms; group += 4) {
            double added = sum;
            for (int k = group; k < group + 4; ++k) {
                added += factor(0, row * terms + k) * factor(1, k * 16 + column);
            }
            sum = fibres::toward_zero(added);
        }
        made[slot] = sum;
    }
    /* All threads read the others' data before any continues. */
    fibres::wait(fibres::State::in_warp, __LINE__);
    memcpy(into.x, made, sizeof made);
}

} // namespace wmma
} // namespace nvcuda

#endif
