#include <libdeflate.h>
#include <stdlib.h>

#include "proto/deflate.h"

#define GZIP_LEVEL 6
#define INFLATE_BEGIN ((size_t)64 << 10)

/* Decompresses one member after the other. If a member does not fit, it is started again with a larger buffer. */
enum profd_status deflate_gunzip(const uint8_t *in, size_t n, size_t max, uint8_t **out, size_t *size,
                                 struct profd_error *e)
{
    struct libdeflate_decompressor *by = libdeflate_alloc_decompressor();
    size_t capacity = INFLATE_BEGIN < max ? INFLATE_BEGIN : max, given = 0;
    uint8_t *bytes = by ? malloc(capacity) : NULL;
    enum profd_status status = bytes ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory to inflate it");
    for (size_t fed = 0; status == PROFD_OK && fed < n;) {
        size_t took = 0, gave = 0;
        enum libdeflate_result answer =
            libdeflate_gzip_decompress_ex(by, in + fed, n - fed, bytes + given, capacity - given, &took, &gave);
        if (answer == LIBDEFLATE_SUCCESS) {
            fed += took;
            given += gave;
        } else if (answer != LIBDEFLATE_INSUFFICIENT_SPACE) {
            status = profd_error_set(e, PROFD_MALFORMED, "damaged or truncated gzip in the member at byte %zu of %zu",
                                     fed, n);
        } else if (capacity >= max) {
            status = profd_error_set(e, PROFD_TOO_LARGE, "more than %zu bytes when decompressed, the limit", max);
        } else {
            capacity = capacity * 2 < max ? capacity * 2 : max;
            uint8_t *larger = realloc(bytes, capacity);
            status = larger ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory to inflate it");
            bytes = larger ? larger : bytes;
        }
    }
    libdeflate_free_decompressor(by);
    if (status != PROFD_OK) {
        free(bytes);
        return status;
    }
    *out = bytes;
    *size = given;
    return PROFD_OK;
}

enum profd_status deflate_gzip(const void *in, size_t n, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct libdeflate_compressor *by = libdeflate_alloc_compressor(GZIP_LEVEL);
    const size_t most = by ? libdeflate_gzip_compress_bound(by, n) : 0;
    uint8_t *bytes = by ? malloc(most) : NULL;
    *size = bytes ? libdeflate_gzip_compress(by, in, n, bytes, most) : 0;
    libdeflate_free_compressor(by);
    *out = bytes;
    return bytes ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress %zu bytes", n);
}
