#include "proto/deflate.h"

#include <stdatomic.h>
#include <zstd.h>
#include <zstd_errors.h>

#define DEFLATE_BLOCK_MAX (128u << 10)
#define DEFLATE_BLOCK_MIN 4u
#define DEFLATE_CHECKSUM_FLAG 4u /* of the byte after the magic number */

/* Making a context costs more than a small upload takes. A few are kept idle; they stay reachable, so nothing leaks. */
#define DEFLATE_IDLE 4
static _Atomic(ZSTD_CCtx *) deflate_packers[DEFLATE_IDLE];
static _Atomic(ZSTD_DCtx *) deflate_unpackers[DEFLATE_IDLE];

size_t deflate_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

enum profd_status deflate_pack(const uint8_t *in, size_t n, bool sized, uint8_t *out, size_t capacity, size_t *size,
                               struct profd_error *e)
{
    ZSTD_CCtx *c = NULL;
    for (int i = 0; i < DEFLATE_IDLE && c == NULL; i++) {
        c = atomic_exchange(&deflate_packers[i], NULL);
    }
    c = c == NULL ? ZSTD_createCCtx() : c;
    FAIL_IF(c == NULL, e, PROFD_NO_MEMORY, "no memory to compress %zu bytes", n);
    ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, sized ? 1 : 0);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t result = ZSTD_compress2(c, out, capacity, in, n);
    for (int i = 0; i < DEFLATE_IDLE && c != NULL; i++) {
        c = atomic_exchange(&deflate_packers[i], c);
    }
    ZSTD_freeCCtx(c);
    FAIL_IF(ZSTD_isError(result), e, PROFD_INTERNAL, "compressing %zu bytes: %s", n, ZSTD_getErrorName(result));
    *size = result;
    return PROFD_OK;
}

uint64_t deflate_content_max(size_t n)
{
    return ((uint64_t)n / DEFLATE_BLOCK_MIN + 1) * DEFLATE_BLOCK_MAX;
}

/* One frame of the current format, and with a checksum if checked: what libzstd accepts besides is refused. */
static enum profd_status deflate_judge(const uint8_t *in, size_t n, bool checked, struct profd_error *e)
{
    static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    for (size_t i = 0; i < 4; i++) {
        FAIL_IF(i >= n || in[i] != magic[i], e, PROFD_MALFORMED,
                "%zu bytes of compressed data do not begin with zstd's magic number", n);
    }
    FAIL_IF(checked && (n < 5 || !(in[4] & DEFLATE_CHECKSUM_FLAG)), e, PROFD_MALFORMED,
            "compressed data of %zu bytes have no checksum", n);
    size_t frame = ZSTD_findFrameCompressedSize(in, n);
    FAIL_IF(ZSTD_isError(frame), e, PROFD_MALFORMED, "compressed data of %zu bytes: %s", n, ZSTD_getErrorName(frame));
    FAIL_IF(frame != n, e, PROFD_MALFORMED, "%zu bytes follow the compressed data", n - frame);
    return PROFD_OK;
}

enum profd_status deflate_stated_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e)
{
    TRY(deflate_judge(in, n, true, e));
    unsigned long long stated = ZSTD_getFrameContentSize(in, n);
    FAIL_IF(stated == ZSTD_CONTENTSIZE_UNKNOWN || stated == ZSTD_CONTENTSIZE_ERROR, e, PROFD_MALFORMED,
            "compressed data of %zu bytes do not state their content size", n);
    *size = stated;
    return PROFD_OK;
}

/* Inflates what was judged to *size bytes, at most capacity. TOO_LARGE if there are more. */
static enum profd_status deflate_inflate(const uint8_t *in, size_t n, uint8_t *out, size_t capacity, size_t *size,
                                         struct profd_error *e)
{
    ZSTD_DCtx *d = NULL;
    for (int i = 0; i < DEFLATE_IDLE && d == NULL; i++) {
        d = atomic_exchange(&deflate_unpackers[i], NULL);
    }
    d = d == NULL ? ZSTD_createDCtx() : d;
    FAIL_IF(d == NULL, e, PROFD_NO_MEMORY, "no memory to inflate %zu bytes", n);
    *size = ZSTD_decompressDCtx(d, out, capacity, in, n);
    for (int i = 0; i < DEFLATE_IDLE && d != NULL; i++) {
        d = atomic_exchange(&deflate_unpackers[i], d);
    }
    ZSTD_freeDCtx(d);
    FAIL_IF(ZSTD_isError(*size), e,
            ZSTD_getErrorCode(*size) == ZSTD_error_dstSize_tooSmall ? PROFD_TOO_LARGE : PROFD_MALFORMED,
            "compressed data of %zu bytes, at most %zu inflated: %s", n, capacity, ZSTD_getErrorName(*size));
    return PROFD_OK;
}

enum profd_status deflate_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t size, struct profd_error *e)
{
    size_t result = 0;
    TRY(deflate_judge(in, n, true, e));
    enum profd_status status = deflate_inflate(in, n, out, size, &result, e);
    if (status) {
        return status == PROFD_TOO_LARGE ? PROFD_MALFORMED : status;
    }
    FAIL_IF(result != size, e, PROFD_MALFORMED, "compressed data inflate to %zu bytes where %zu were stated", result,
            size);
    return PROFD_OK;
}

enum profd_status deflate_find_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e)
{
    TRY(deflate_judge(in, n, false, e));
    const unsigned long long stated = ZSTD_getFrameContentSize(in, n);
    *size = stated == ZSTD_CONTENTSIZE_UNKNOWN ? UINT64_MAX : stated;
    return stated == ZSTD_CONTENTSIZE_ERROR
               ? profd_error_set(e, PROFD_MALFORMED, "compressed data of %zu bytes have a damaged header", n)
               : PROFD_OK;
}

enum profd_status deflate_unpack_foreign(const uint8_t *in, size_t n, uint8_t *out, size_t most, size_t *size,
                                         struct profd_error *e)
{
    TRY(deflate_judge(in, n, false, e));
    return deflate_inflate(in, n, out, most, size, e);
}
