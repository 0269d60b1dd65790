/* Sections of stored sums, compressed. */
#include <stdlib.h>

#include "core/rollup_format.h"
#include "proto/deflate.h"
#include "proto/limits.h"

enum profd_status rollup_pack(const uint8_t *raw, size_t n, size_t skip, uint8_t **out, size_t *size,
                              struct profd_error *e)
{
    if (n > LIMIT_COUNTS_RAW) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a sum of %zu bytes, at most %u", n, LIMIT_COUNTS_RAW);
    }
    size_t capacity = deflate_bound(n), packed = 0;
    uint8_t *block = malloc(skip + capacity);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress %zu bytes of a sum", n);
    }
    enum profd_status status = deflate_pack(raw, n, false, block + skip, capacity, &packed, e);
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *out = block;
    *size = packed;
    return PROFD_OK;
}

enum profd_status rollup_unpack(const uint8_t *in, size_t n, uint64_t size, uint8_t **out, struct profd_error *e)
{
    if (size > LIMIT_COUNTS_RAW || size > deflate_content_max(n)) {
        return profd_error_set(e, PROFD_DAMAGED, "a sum of %llu bytes stated in %zu", (unsigned long long)size, n);
    }
    uint8_t *raw = malloc(size == 0 ? 1 : (size_t)size);
    if (raw == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sum of %llu bytes", (unsigned long long)size);
    }
    enum profd_status status = deflate_unpack(in, n, raw, (size_t)size, e);
    if (status != PROFD_OK) {
        free(raw);
        return status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_DAMAGED, "a sum");
    }
    *out = raw;
    return PROFD_OK;
}
