/* Runs kernels on inputs from files, with buffers of exact size. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*tw_task)(void *context, int64_t begin, int64_t end, int32_t worker);
typedef struct tw_pool {
    void (*run)(struct tw_pool *self, tw_task task, void *context, int64_t count);
    int32_t workers;
} tw_pool;
typedef int32_t (*kernel)(void *const *, void *, tw_pool *);

/* DECLARATIONS */

/* Iterations one by one, backwards, by changing workers. */
static void run_backwards(tw_pool *self, tw_task task, void *context, int64_t count) {
    for (int64_t i = count - 1; i >= 0; --i) {
        task(context, i, i + 1, (int32_t)(i % self->workers));
    }
}

static void fail(const char *name, const char *what) {
    fprintf(stderr, "%s: %s\n", name, what);
    exit(1);
}

static void *allocate(const char *name, int64_t bytes) {
    void *memory = NULL;
    if (bytes > 0 && posix_memalign(&memory, 64, (size_t)bytes) != 0) {
        fail(name, "no memory");
    }
    return memory;
}

static void run_with(const char *name, kernel call, kernel prepare, int64_t workspace_bytes,
                     int count, const int64_t *bytes, const int *is_input, tw_pool *pool) {
    char path[256];
    void *buffers[64];
    snprintf(path, sizeof path, "%s.in", name);
    FILE *in = fopen(path, "rb");
    snprintf(path, sizeof path, "%s.%s", name, pool == NULL ? "serial" : "pool");
    FILE *out = fopen(path, "wb");
    if (in == NULL || out == NULL || count > 64) {
        fail(name, "files");
    }
    for (int i = 0; i < count; ++i) {
        buffers[i] = allocate(name, bytes[i]);
        if (is_input[i] && fread(buffers[i], 1, (size_t)bytes[i], in) != (size_t)bytes[i]) {
            fail(name, "short input");
        }
    }
    void *workspace = allocate(name, workspace_bytes);
    if (prepare != NULL && prepare(buffers, workspace, pool) != 0) {
        fail(name, "prepare");
    }
    if (call(buffers, workspace, pool) != 0) {
        fail(name, "out of bounds");
    }
    for (int i = 0; i < count; ++i) {
        if (!is_input[i]) {
            fwrite(buffers[i], 1, (size_t)bytes[i], out);
        }
        free(buffers[i]);
    }
    free(workspace);
    fclose(in);
    fclose(out);
}

static void run_case(const char *name, kernel call, kernel prepare, int64_t (*workspace)(int32_t),
                     int count, const int64_t *bytes, const int *is_input) {
    tw_pool pool = {run_backwards, 3};
    run_with(name, call, prepare, workspace(1), count, bytes, is_input, NULL);
    run_with(name, call, prepare, workspace(3), count, bytes, is_input, &pool);
}
