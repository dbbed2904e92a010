static int64_t tw_prepared_bytes(const struct operator_ *op, const int64_t *sizes) {
    struct call call = {0};
    const int32_t status = begin(&call, op, sizes);
    return status != 0 ? status : call.variant->prepared_bytes;
}

static int32_t tw_prepare(const struct operator_ *op, const int64_t *sizes, void *const *pointers,
                                void *prepared, tw_pool *pool) {
    struct call call = {0};
    int32_t status = begin(&call, op, sizes);
    if (status != 0 || call.variant->prepared_bytes == 0) {
        return status;
    }
    status = tw_check_pointers(op, pointers, call.variant->prepares);
    if (status != 0) {
        return status;
    }
    if (prepared == NULL) {
        return tw_error_null;
    }
    if ((uintptr_t)prepared % 64 != 0) {
        return tw_error_alignment;
    }
    const int32_t workers = pool != NULL ? pool->workers : 1;
    void *memory = malloc((size_t)tw_preparing_bytes(call.case_, call.variant, workers) + 64);
    if (memory == NULL) {
        return tw_error_memory;
    }
    call.pointers = pointers;
    call.pool = pool;
    call.workspace = aligned(memory);
    call.prepared = prepared;
    status = tw_fill_prepared(&call);
    free(memory);
    return status;
}
