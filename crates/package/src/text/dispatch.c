/* What every package does: find the kernel for sizes and processor, check pointers, run it. */

typedef int32_t (*tw_entry_point)(void *const *buffers, void *workspace, tw_pool *pool);

/* What a kernel is called with in one place: a parameter, or if that is negative a place in what was
   prepared. */
struct slot {
    int32_t parameter;
    int64_t prepared_at;
};

/* A kernel for one processor and one value of the size that varies, if one does. */
struct kernel {
    tw_entry_point run;
    tw_entry_point prepare; /* null unless it fills a part of what is prepared */
    const struct slot *slots;
    int32_t slot_count;
    int64_t shared_bytes;  /* of the workspace: for all workers, */
    int64_t private_bytes; /* and for each */
};

/* How a parameter lies in memory: rows of steps along the size that varies. */
struct layout {
    int64_t rows;
    int64_t step_bytes;
    int32_t varies;
};

/* Slices with kernels of the same bucket. */
struct run {
    uint16_t bucket;
    uint16_t count;
};

/* The kernels of a case for one processor. */
struct variant {
    const struct kernel *kernels;
    int64_t prepared_bytes; /* 0 if nothing is prepared */
    uint64_t identity;      /* of what is prepared */
    uint64_t needs;         /* the parameters that a call reads or writes, bit by bit */
    uint64_t prepares;      /* the parameters that preparation reads */
    const uint32_t *starts; /* where the runs of each value begin */
    const struct run *runs;
};

/* Sizes that an operator can be called with. */
struct case_ {
    const int64_t *sizes; /* 0 for the one that varies */
    int32_t varying;      /* its place; negative if none varies */
    int32_t bucket_count;
    int64_t first;
    int64_t last;
    const int64_t *buckets;
    int32_t pads_with_last; /* otherwise with zeros */
    const struct layout *layouts;
    const struct variant *variants; /* one per level */
};

struct parameter {
    int32_t element_bytes;
    int32_t is_output;
};

struct operator_ {
    int32_t size_count;
    int32_t parameter_count;
    int32_t case_count;
    const struct parameter *parameters;
    const struct case_ *cases;
};

/* A call that was checked. */
struct call {
    const struct operator_ *operator_;
    const struct case_ *case_;
    const struct variant *variant;
    int64_t value; /* of the size that varies */
    void *const *pointers;
    char *prepared;
    char *workspace;
    tw_pool *pool;
};

static int64_t tw_round_up(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* The start of a block of memory that malloc gave, at a multiple of 64. */
static char *aligned(void *memory) {
    return (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
}

/* --- the processor ------------------------------------------------------------------------------- */

/* Whether the processor has, and the system saves, what x86-64-v2, v3 or v4 names. */
static int tw_processor_has(int version) {
    unsigned a, b, c, d, state, state_high;
    const unsigned v3_c = 1u << 12 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
    const unsigned v3_b = 1u << 3 | 1u << 5 | 1u << 8;
    const unsigned v4_b = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    if (version < 3) {
        return 1;
    }
    /* FMA, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C */
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & v3_c) != v3_c) {
        return 0;
    }
    /* BMI1, AVX2, BMI2; AVX-512 F, DQ, CD, BW, VL */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & v3_b) != v3_b) {
        return 0;
    }
    if (version >= 4 && (b & v4_b) != v4_b) {
        return 0;
    }
    /* LZCNT */
    if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !(c & 1u << 5)) {
        return 0;
    }
    /* The registers that the system saves: xgetbv, by its bytes for assemblers that do not know it. */
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(state), "=d"(state_high) : "c"(0));
    return version >= 4 ? (state & 0xe6u) == 0xe6u : (state & 0x6u) == 0x6u;
}

#define tw_not_detected INT32_MIN

/* Threads may find it out at the same time: all find the same. */
static int32_t tw_level_in_use = tw_not_detected;

/* The best level of the processor, or an error. */
static int32_t tw_detected_level(void) {
    for (int32_t level = tw_level_count - 1; level >= 0; level--) {
        if (tw_processor_has(tw_level_versions[level])) {
            return level;
        }
    }
    return tw_error_processor;
}

static int32_t tw_current_level(void) {
    int32_t level = __atomic_load_n(&tw_level_in_use, __ATOMIC_RELAXED);
    if (level == tw_not_detected) {
        level = tw_detected_level();
        __atomic_store_n(&tw_level_in_use, level, __ATOMIC_RELAXED);
    }
    return level;
}

static int32_t tw_use_level(int32_t level) {
    if (level == -1) {
        level = tw_detected_level();
        if (level < 0) {
            return level;
        }
    } else if (level < 0 || level >= tw_level_count) {
        return tw_error_level;
    } else if (!tw_processor_has(tw_level_versions[level])) {
        return tw_error_processor;
    }
    __atomic_store_n(&tw_level_in_use, level, __ATOMIC_RELAXED);
    return 0;
}

static const char *tw_text_of(int32_t code) {
    if (code > 0) {
        return "a subscript that is computed from data is out of bounds";
    }
    switch (code) {
    case 0:
        return "no error";
    case tw_error_memory:
        return "there is no memory for the workspace";
    case tw_error_sizes:
        return "the package has no kernel for these sizes";
    case tw_error_null:
        return "a pointer is null";
    case tw_error_alignment:
        return "a pointer is not aligned: tensors to their elements, workspace and prepared memory to 64 bytes";
    case tw_error_processor:
        return "this processor, or its system, lacks the instructions that the kernels use";
    case tw_error_prepared:
        return "the memory was not prepared for these sizes at this level";
    case tw_error_level:
        return "the package has no such level";
    default:
        return "an unknown error";
    }
}

/* --- sizes --------------------------------------------------------------------------------------- */

static const struct case_ *tw_find_case(const struct operator_ *op, const int64_t *sizes) {
    for (int32_t number = 0; number < op->case_count; number++) {
        const struct case_ *candidate = &op->cases[number];
        int fits = 1;
        for (int32_t place = 0; place < op->size_count && fits; place++) {
            fits = place == candidate->varying
                       ? sizes[place] >= candidate->first && sizes[place] <= candidate->last
                       : sizes[place] == candidate->sizes[place];
        }
        if (fits) {
            return candidate;
        }
    }
    return NULL;
}

static int64_t tw_varying_value(const struct case_ *c, const int64_t *sizes) {
    return c->varying < 0 ? 1 : sizes[c->varying];
}

static int64_t tw_layout_bytes(const struct layout *layout, int64_t value) {
    return layout->rows * layout->step_bytes * (layout->varies ? value : 1);
}

static int64_t tw_elements(const struct operator_ *op, const int64_t *sizes, int32_t parameter) {
    const struct case_ *c = tw_find_case(op, sizes);
    if (c == NULL || parameter < 0 || parameter >= op->parameter_count) {
        return tw_error_sizes;
    }
    return tw_layout_bytes(&c->layouts[parameter], tw_varying_value(c, sizes)) /
           op->parameters[parameter].element_bytes;
}

static int64_t tw_kernel_workspace(const struct kernel *kernel, int32_t workers) {
    return kernel->shared_bytes + kernel->private_bytes * (workers > 1 ? workers : 1);
}

/* Whether a slice of a parameter has to be copied: its rows are not where the kernel expects them. */
static int tw_is_copied(const struct layout *layout, int64_t value, int64_t bucket) {
    return layout->varies && value != bucket && (layout->rows > 1 || value < bucket);
}

/* The workspace of a call: of the kernel that needs most, with the copies of its slice. */
static int64_t tw_most_workspace(const struct operator_ *op, const struct case_ *c,
                               const struct variant *v, int64_t value, int32_t workers) {
    int64_t most = 0, begin = 0;
    if (c->varying < 0) {
        return tw_kernel_workspace(&v->kernels[0], workers);
    }
    for (const struct run *run = &v->runs[v->starts[value - c->first]]; begin < value; run++) {
        const int64_t bucket = c->buckets[run->bucket];
        int64_t bytes = tw_round_up(tw_kernel_workspace(&v->kernels[run->bucket], workers));
        for (int32_t p = 0; p < op->parameter_count; p++) {
            if (tw_is_copied(&c->layouts[p], value, bucket)) {
                bytes += tw_round_up(tw_layout_bytes(&c->layouts[p], bucket));
            }
        }
        most = bytes > most ? bytes : most;
        begin += bucket * run->count;
    }
    return most;
}

/* --- calls --------------------------------------------------------------------------------------- */

static int32_t tw_run_kernel(const struct call *call, const struct kernel *kernel, tw_entry_point entry,
                          void *const *pointers) {
    void *buffers[tw_most_slots];
    for (int32_t n = 0; n < kernel->slot_count; n++) {
        const struct slot slot = kernel->slots[n];
        buffers[n] = slot.parameter < 0 ? call->prepared + slot.prepared_at : pointers[slot.parameter];
    }
    return entry(buffers, call->workspace, call->pool);
}

/* Copies a slice to where a kernel has it, and pads what is beyond the value. */
static void gather(const struct call *call, const struct layout *layout, const char *from, char *to,
                   int64_t at, int64_t bucket) {
    const int64_t valid = call->value - at < bucket ? call->value - at : bucket;
    const int64_t step = layout->step_bytes;
    for (int64_t row = 0; row < layout->rows; row++) {
        char *target = to + row * bucket * step;
        memcpy(target, from + (row * call->value + at) * step, (size_t)(valid * step));
        if (!call->case_->pads_with_last) {
            memset(target + valid * step, 0, (size_t)((bucket - valid) * step));
        } else {
            for (int64_t n = valid; n < bucket; n++) {
                memcpy(target + n * step, target + (valid - 1) * step, (size_t)step);
            }
        }
    }
}

/* Copies what a kernel computed for a slice to where it belongs. */
static void scatter(const struct call *call, const struct layout *layout, const char *from, char *to,
                    int64_t at, int64_t bucket) {
    const int64_t valid = call->value - at < bucket ? call->value - at : bucket;
    const int64_t step = layout->step_bytes;
    for (int64_t row = 0; row < layout->rows; row++) {
        memcpy(to + (row * call->value + at) * step, from + row * bucket * step, (size_t)(valid * step));
    }
}

/* Runs the kernel of a bucket on the slice that begins at `at`. */
static int32_t tw_run_slice(const struct call *call, int32_t number, int64_t at) {
    const struct case_ *c = call->case_;
    const struct kernel *kernel = &call->variant->kernels[number];
    const int64_t bucket = c->buckets[number];
    const int32_t workers = call->pool != NULL ? call->pool->workers : 1;
    char *free_memory = call->workspace + tw_round_up(tw_kernel_workspace(kernel, workers));
    void *pointers[tw_most_parameters];
    const int32_t count = call->operator_->parameter_count;
    for (int32_t p = 0; p < count; p++) {
        const struct layout *layout = &c->layouts[p];
        char *pointer = call->pointers[p];
        if (!layout->varies || pointer == NULL) {
            pointers[p] = pointer;
        } else if (tw_is_copied(layout, call->value, bucket)) {
            pointers[p] = free_memory;
            free_memory += tw_round_up(tw_layout_bytes(layout, bucket));
            if (!call->operator_->parameters[p].is_output) {
                gather(call, layout, pointer, pointers[p], at, bucket);
            }
        } else {
            pointers[p] = pointer + at * layout->step_bytes;
        }
    }
    const int32_t status = tw_run_kernel(call, kernel, kernel->run, pointers);
    for (int32_t p = 0; p < count && status == 0; p++) {
        const struct layout *layout = &c->layouts[p];
        if (call->operator_->parameters[p].is_output && tw_is_copied(layout, call->value, bucket)) {
            scatter(call, layout, pointers[p], call->pointers[p], at, bucket);
        }
    }
    return status;
}

/* Runs the kernels that cover the value. */
static int32_t tw_run_cover(const struct call *call) {
    const struct case_ *c = call->case_;
    const struct variant *v = call->variant;
    if (c->varying < 0) {
        return tw_run_kernel(call, &v->kernels[0], v->kernels[0].run, call->pointers);
    }
    const struct run *run = &v->runs[v->starts[call->value - c->first]];
    int64_t begin = 0;
    for (; begin < call->value; run++) {
        const int64_t bucket = c->buckets[run->bucket];
        for (int32_t n = 0; n < run->count; n++) {
            /* The last slice ends where the tensors end; one that is longer than they are is padded. */
            int64_t at = begin;
            if (at + bucket > call->value) {
                at = call->value > bucket ? call->value - bucket : 0;
            }
            const int32_t status = tw_run_slice(call, run->bucket, at);
            if (status != 0) {
                return status;
            }
            begin = at + bucket;
        }
    }
    return 0;
}

static int32_t tw_check_pointers(const struct operator_ *op, void *const *pointers, uint64_t needed) {
    for (int32_t p = 0; p < op->parameter_count; p++) {
        if (pointers[p] == NULL && needed >> p & 1) {
            return tw_error_null;
        }
        if ((uintptr_t)pointers[p] % (uintptr_t)op->parameters[p].element_bytes != 0) {
            return tw_error_alignment;
        }
    }
    return 0;
}

/* Fills memory with the constants of all kernels of a variant. */
static int32_t tw_fill_prepared(const struct call *call) {
    const struct variant *v = call->variant;
    memset(call->prepared, 0, (size_t)v->prepared_bytes);
    for (int32_t n = 0; n < call->case_->bucket_count; n++) {
        if (v->kernels[n].prepare != NULL) {
            const int32_t status = tw_run_kernel(call, &v->kernels[n], v->kernels[n].prepare, call->pointers);
            if (status != 0) {
                return status;
            }
        }
    }
    memcpy(call->prepared, &v->identity, sizeof v->identity);
    return 0;
}

/* The workspace that preparing needs: of the kernel that needs most. */
static int64_t tw_preparing_bytes(const struct case_ *c, const struct variant *v, int32_t workers) {
    int64_t most = 0;
    for (int32_t n = 0; n < c->bucket_count; n++) {
        const int64_t bytes = tw_kernel_workspace(&v->kernels[n], workers);
        most = v->kernels[n].prepare != NULL && bytes > most ? bytes : most;
    }
    return most;
}

/* Finds the variant of a call. */
static int32_t begin(struct call *call, const struct operator_ *op, const int64_t *sizes) {
    const int32_t level = tw_current_level();
    if (level < 0) {
        return level;
    }
    call->operator_ = op;
    call->case_ = tw_find_case(op, sizes);
    if (call->case_ == NULL) {
        return tw_error_sizes;
    }
    call->variant = &call->case_->variants[level];
    call->value = tw_varying_value(call->case_, sizes);
    return 0;
}

static int32_t tw_run(const struct operator_ *op, const int64_t *sizes, void *const *pointers,
                            const void *prepared, void *workspace, tw_pool *pool) {
    struct call call = {0};
    int32_t status = begin(&call, op, sizes);
    if (status != 0) {
        return status;
    }
    const struct variant *v = call.variant;
    const int prepares = v->prepared_bytes > 0 && prepared == NULL;
    status = tw_check_pointers(op, pointers, v->needs | (prepares ? v->prepares : 0));
    if (status != 0) {
        return status;
    }
    if ((uintptr_t)prepared % 64 != 0 || (uintptr_t)workspace % 64 != 0) {
        return tw_error_alignment;
    }
    if (v->prepared_bytes > 0 && prepared != NULL &&
        memcmp(prepared, &v->identity, sizeof v->identity) != 0) {
        return tw_error_prepared;
    }
    const int32_t workers = pool != NULL ? pool->workers : 1;
    int64_t bytes = workspace == NULL ? tw_most_workspace(op, call.case_, v, call.value, workers) : 0;
    if (prepares) {
        const int64_t preparing = tw_preparing_bytes(call.case_, v, workers);
        bytes = tw_round_up(bytes > preparing ? bytes : preparing) + v->prepared_bytes;
    }
    void *memory = NULL;
    if (bytes > 0) {
        memory = malloc((size_t)bytes + 63);
        if (memory == NULL) {
            return tw_error_memory;
        }
    }
    call.pointers = pointers;
    call.pool = pool;
    call.workspace = memory != NULL ? aligned(memory) : NULL;
    call.prepared = (char *)prepared;
    if (prepares) {
        call.prepared = call.workspace + tw_round_up(bytes - v->prepared_bytes);
        status = tw_fill_prepared(&call);
    }
    if (workspace != NULL) {
        call.workspace = workspace;
    }
    if (status == 0) {
        status = tw_run_cover(&call);
    }
    free(memory);
    return status;
}

static int64_t tw_workspace_bytes(const struct operator_ *op, const int64_t *sizes,
                                        int32_t workers) {
    struct call call = {0};
    const int32_t status = begin(&call, op, sizes);
    return status != 0 ? status
                       : tw_most_workspace(op, call.case_, call.variant, call.value, workers);
}
