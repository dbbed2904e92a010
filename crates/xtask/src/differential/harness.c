/* Runs kernels on inputs from a file, on buffers that end where they should. The arguments are
   numbers of kernels to leave out. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KERNELS */

typedef int32_t (*entry)(void *const *, void *, tw_pool *);

enum role { INPUT, OUTPUT, PREPARED };

typedef struct item {
    entry call, prepare;
    int64_t (*workspace_bytes)(int32_t);
    int garbage, parallel, count;
    const int64_t *bytes;
    const int *roles;
    long offset;
} item;

/* Iterations one by one, backwards, by changing workers. */
static void run_backwards(tw_pool *self, tw_task task, void *context, int64_t count) {
    for (int64_t i = count - 1; i >= 0; --i) {
        task(context, i, i + 1, (int32_t)(i % self->workers));
    }
}

static void fail(const char *what) {
    fprintf(stderr, "harness: %s\n", what);
    exit(3);
}

static void *allocate(int64_t bytes, int garbage) {
    void *memory = NULL;
    if (bytes > 0 && posix_memalign(&memory, 64, (size_t)bytes) != 0) {
        fail("no memory");
    }
    if (bytes > 0) {
        memset(memory, garbage, (size_t)bytes);
    }
    return memory;
}

/* Writes the number of the kernel, the status and the outputs. */
static void run(int32_t number, const item *item, tw_pool *pool, FILE *in, FILE *out) {
    void *buffers[256];
    if (item->count > 256 || fseek(in, item->offset, SEEK_SET) != 0) {
        fail("files");
    }
    for (int i = 0; i < item->count; ++i) {
        size_t bytes = (size_t)item->bytes[i];
        buffers[i] = allocate(item->bytes[i], item->garbage);
        if (item->roles[i] == INPUT && fread(buffers[i], 1, bytes, in) != bytes) {
            fail("short input");
        }
    }
    void *workspace = allocate(item->workspace_bytes(pool ? pool->workers : 1), item->garbage);
    int32_t status = item->prepare ? item->prepare(buffers, workspace, pool) : 0;
    if (status == 0) {
        status = item->call(buffers, workspace, pool);
    }
    fwrite(&number, sizeof number, 1, out);
    fwrite(&status, sizeof status, 1, out);
    for (int i = 0; i < item->count; ++i) {
        if (item->roles[i] == OUTPUT) {
            fwrite(buffers[i], 1, (size_t)item->bytes[i], out);
        }
        free(buffers[i]);
    }
    free(workspace);
}

int main(int argc, char **argv) {
    /* ITEMS */
    tw_pool pool = {run_backwards, 3};
    FILE *in = fopen("batch.in", "rb"), *out = fopen("batch.out", "wb");
    if (in == NULL || out == NULL) {
        fail("files");
    }
    for (int32_t i = 0; i < (int32_t)(sizeof items / sizeof *items); ++i) {
        int skipped = 0;
        for (int j = 1; j < argc; ++j) {
            skipped |= atoi(argv[j]) == i;
        }
        if (!skipped) {
            fprintf(stderr, "at %d\n", (int)i);
            run(i, &items[i], NULL, in, out);
            if (items[i].parallel) {
                run(i, &items[i], &pool, in, out);
            }
        }
    }
    fclose(in);
    return fclose(out) == 0 ? 0 : 3;
}
