#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "proto/segment_internal.h"

#define HEAD (1 + SEGMENT_DIGEST_SIZE)

/* SHA-256 over the version byte and the content. */
static void digest(const uint8_t *content, size_t n, uint8_t out[SEGMENT_DIGEST_SIZE])
{
    const uint8_t version = SEGMENT_VERSION;
    struct sha256_ctx c;
    sha256_init(&c);
    sha256_update(&c, 1, &version);
    sha256_update(&c, n, content);
    sha256_digest(&c, SEGMENT_DIGEST_SIZE, out);
}

enum profd_status segment_pack(const uint8_t *content, size_t n, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    size_t capacity = deflate_bound(n), size = 0;
    uint8_t *block = malloc(HEAD + VARINT_MAX + capacity);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress a segment of %zu bytes", n);
    }
    block[0] = SEGMENT_VERSION;
    digest(content, n, block + 1);
    uint8_t *p = varint_put(block + HEAD, n);
    enum profd_status status = deflate_pack(content, n, false, p, capacity, &size, e);
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *out = block;
    *out_size = size + (size_t)(p - block);
    return PROFD_OK;
}

/* What precedes the compressed content. *at moves behind it. */
static enum profd_status judge_head(const uint8_t **at, const uint8_t *end, uint64_t *size, struct profd_error *e)
{
    const uint8_t *in = *at, *number = in + HEAD;
    if (end - in < HEAD) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of %zu bytes: its head alone has more",
                               (size_t)(end - in));
    }
    if (in[0] != SEGMENT_VERSION) {
        return profd_error_set(e, PROFD_UNKNOWN_VERSION, "a segment of version %u: only %d is known", in[0],
                               SEGMENT_VERSION);
    }
    if (!varint_get(&number, end, size) || (number - in > HEAD + 1 && number[-1] == 0)) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment does not state the size of its content");
    }
    if (*size > LIMIT_SEGMENT_CONTENT) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a segment with a content of %llu bytes, at most %u",
                               (unsigned long long)*size, LIMIT_SEGMENT_CONTENT);
    }
    if (*size > deflate_content_max((size_t)(end - number))) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment states a content of %llu bytes in %zu",
                               (unsigned long long)*size, (size_t)(end - number));
    }
    *at = number;
    return PROFD_OK;
}

enum profd_status segment_unpack(const uint8_t *in, size_t n, uint8_t **content, size_t *out_size,
                                 struct profd_error *e)
{
    const uint8_t *at = in, *end = n == 0 ? in : in + n;
    uint8_t found[SEGMENT_DIGEST_SIZE];
    uint64_t size = 0;
    TRY(judge_head(&at, end, &size, e));
    uint8_t *block = malloc(size == 0 ? 1 : (size_t)size);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment of %llu bytes", (unsigned long long)size);
    }
    enum profd_status status = deflate_unpack(at, (size_t)(end - at), block, (size_t)size, e);
    if (status == PROFD_OK) {
        digest(block, (size_t)size, found);
        if (memcmp(found, in + 1, sizeof found) != 0) {
            status = profd_error_set(e, PROFD_MALFORMED, "a segment of %zu bytes: the digest is not its content's", n);
        }
    }
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *content = block;
    *out_size = (size_t)size;
    return PROFD_OK;
}

size_t segment_content_size(const uint8_t *in, size_t n)
{
    const uint8_t *at = in, *end = n == 0 ? in : in + n;
    uint64_t size = 0;
    return judge_head(&at, end, &size, NULL) == PROFD_OK ? (size_t)size : 0;
}
