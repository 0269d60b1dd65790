/* Inflates gzip, in which files of pprof are compressed. */
#include <libdeflate.h>
#include <stdlib.h>

#include "import/import_input.h"

#define INFLATE_BEGIN ((size_t)64 << 10)

struct inflating {
    struct libdeflate_decompressor *by;
    uint8_t *out;
    size_t size, capacity, max;
};

/* Doubles the buffer, up to max bytes; false if it cannot grow. */
static bool inflating_widen(struct inflating *i)
{
    size_t capacity = i->capacity == 0 ? INFLATE_BEGIN : i->capacity * 2;
    capacity = capacity < i->max ? capacity : i->max;
    uint8_t *out = capacity > i->capacity ? realloc(i->out, capacity) : NULL;
    if (!out) {
        return false;
    }
    i->out = out;
    i->capacity = capacity;
    return true;
}

/* Decompresses one member after the other. If a member does not fit, it is started again with a larger buffer. */
static enum profd_status inflating_run(struct inflating *i, const uint8_t *in, size_t n, struct profd_error *e)
{
    for (size_t fed = 0; fed < n;) {
        size_t took = 0, gave = 0;
        enum libdeflate_result answer = libdeflate_gzip_decompress_ex(i->by, in + fed, n - fed, i->out + i->size,
                                                                      i->capacity - i->size, &took, &gave);
        if (answer == LIBDEFLATE_INSUFFICIENT_SPACE) {
            if (!inflating_widen(i)) {
                return i->capacity >= i->max
                           ? profd_error_set(e, PROFD_TOO_LARGE, "more than %zu bytes when decompressed, the limit",
                                             i->max)
                           : profd_error_set(e, PROFD_NO_MEMORY, "no memory to inflate it");
            }
            continue;
        }
        if (answer != LIBDEFLATE_SUCCESS) {
            return profd_error_set(e, PROFD_MALFORMED, "damaged or truncated gzip in the member at byte %zu of %zu",
                                   fed, n);
        }
        fed += took;
        i->size += gave;
    }
    return PROFD_OK;
}

enum profd_status import_inflate(const uint8_t *in, size_t n, size_t max, uint8_t **out, size_t *size,
                                 struct profd_error *e)
{
    struct inflating i = {.max = max, .by = libdeflate_alloc_decompressor()};
    enum profd_status status = i.by && inflating_widen(&i)
                                   ? inflating_run(&i, in, n, e)
                                   : profd_error_set(e, PROFD_NO_MEMORY, "no memory to inflate it");
    libdeflate_free_decompressor(i.by);
    if (status != PROFD_OK) {
        free(i.out);
        return status;
    }
    *out = i.out;
    *size = i.size;
    return PROFD_OK;
}
