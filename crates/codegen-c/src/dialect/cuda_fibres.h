/* Runs CUDA C++ on a processor: blocks one after the other, the threads of a block as fibres.

   A fibre runs until it waits at a barrier. Those of a block take turns in an order that a seed decides, so that threads
   which rely on an order that nothing guarantees compute something else. Memory that threads share is filled with bytes 0xff,
   which are no number, when a block begins. A barrier to which some threads of a block do not come ends the program with
   a message. For tests; speed does not matter. */
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
#define __syncthreads() fibres::wait(__LINE__)

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

struct Place {
    unsigned x, y, z;
};

/* Anything that a kernel is given: a pointer to whatever it wants. */
struct Argument {
    void *pointer;
    template <typename T> operator T *() const { return static_cast<T *>(pointer); }
};

} // namespace fibres

static fibres::Place threadIdx, blockIdx;

namespace fibres {

enum class State { ready, waiting, done };

struct Fibre {
    ucontext_t context;
    std::vector<char> stack;
    Place thread;
    State state;
    int line;
};

static ucontext_t scheduler;
static Fibre *current;
static std::function<void()> body;

/* The thread waits for the others of its block. */
static void wait(int line) {
    current->state = State::waiting;
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
        for (size_t i : order) {
            current = &all[i];
            threadIdx = current->thread;
            swapcontext(&scheduler, &current->context);
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
    }
}

/* Runs a kernel that `call` calls, for all threads of all blocks. */
static void launch(Place grid, Place block, uint64_t seed, std::function<void()> call) {
    body = std::move(call);
    std::vector<Fibre> all(size_t(block.x) * block.y * block.z);
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

#endif
