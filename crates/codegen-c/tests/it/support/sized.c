/* Runs calls from a file: each has a kernel, sizes, strides and the whole memory of each tensor. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* POOL */

typedef struct kernel {
    int (*run)(const int64_t *sizes, void **memory, const int64_t *strides, void *workspace,
               tw_pool *pool);
    int64_t (*workspace_bytes)(const int64_t *sizes, int32_t workers);
    int sizes, strides, tensors;
} kernel;

/* KERNELS */

/* Iterations one by one, backwards, by changing workers. */
static void run_backwards(tw_pool *self, tw_task task, void *context, int64_t count) {
    for (int64_t i = count - 1; i >= 0; --i) {
        task(context, i, i + 1, (int32_t)(i % self->workers));
    }
}

static FILE *in, *out;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *allocate(int64_t bytes) {
    void *memory = NULL;
    if (bytes > 0 && posix_memalign(&memory, 64, (size_t)bytes) != 0) {
        fail("no memory");
    }
    return memory;
}

static void *take(int64_t bytes) {
    void *memory = allocate(bytes);
    if (bytes > 0 && fread(memory, 1, (size_t)bytes, in) != (size_t)bytes) {
        fail("short input");
    }
    return memory;
}

static int call(void) {
    int64_t head[3], sizes[16], strides[64], bytes[64], starts[64];
    void *memory[64], *tensors[64];
    /* The kernel, whether there are strides, the workers. */
    if (fread(head, sizeof head, 1, in) != 1) {
        return 0;
    }
    const kernel *const k = &kernels[head[0]];
    const size_t expected = (size_t)(k->sizes + k->strides + 2 * k->tensors);
    size_t found = fread(sizes, 8, (size_t)k->sizes, in);
    found += fread(strides, 8, (size_t)k->strides, in);
    found += fread(bytes, 8, (size_t)k->tensors, in);
    found += fread(starts, 8, (size_t)k->tensors, in);
    if (found != expected) {
        fail("short head");
    }
    for (int i = 0; i < k->tensors; ++i) {
        memory[i] = take(bytes[i]);
        tensors[i] = (char *)memory[i] + starts[i];
    }
    tw_pool pool = {run_backwards, (int32_t)head[2]};
    const int64_t size = k->workspace_bytes(sizes, pool.workers);
    /* Without a pool, the call allocates. */
    void *const workspace = pool.workers > 0 ? allocate(size) : NULL;
    const int64_t status = k->run(sizes, tensors, head[1] ? strides : NULL, workspace,
                                  pool.workers > 0 ? &pool : NULL);
    if ((status == -2) != (size < 0)) {
        fail("the workspace is for other sizes");
    }
    fwrite(&status, sizeof status, 1, out);
    for (int i = 0; i < k->tensors; ++i) {
        fwrite(memory[i], 1, (size_t)bytes[i], out);
        free(memory[i]);
    }
    free(workspace);
    return 1;
}

int main(void) {
    in = fopen("calls", "rb");
    out = fopen("results", "wb");
    if (in == NULL || out == NULL) {
        fail("files");
    }
    while (call()) {
    }
    return fclose(in) | fclose(out);
}
