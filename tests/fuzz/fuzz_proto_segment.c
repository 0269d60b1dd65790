/* Input: an encoded upload of a host (proto/segment.h); its checksum is made here if its field is there.
 * Law: what decodes weighs as it did before, and a sum or key encodes again, to what decodes to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct segment *s, uint8_t **bytes, size_t *n)
{
    if (segment_encode(s, bytes, n, NULL) != PROFD_OK) {
        abort();
    }
}

/* A copy with the checksum that it should have. */
static uint8_t *seal(const uint8_t *data, size_t size)
{
    uint8_t digest[SEGMENT_DIGEST_SIZE], *copy = malloc(size + 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    if (size >= SEGMENT_CHECKSUM_FIELD && memcmp(copy + size - SEGMENT_CHECKSUM_FIELD, "\xaa\x01\x08", 3) == 0) {
        segment_digest(copy, size - SEGMENT_CHECKSUM_FIELD, digest);
        memcpy(copy + size - SEGMENT_CHECKSUM_SIZE, digest, SEGMENT_CHECKSUM_SIZE);
    }
    return copy;
}

static void look(const uint8_t *data, size_t size)
{
    struct segment s, back;
    struct profd_error e = {""};
    uint8_t *bytes, *again;
    size_t n, m;
    const size_t weight = segment_weight(data, size);
    const enum profd_status status = segment_decode(data, size, &s, &e);
    if (status != PROFD_OK) {
        if (e.sentence[0] == 0 || s.block || s.message.block || s.counts.block ||
            (status != PROFD_MALFORMED && status != PROFD_TOO_LARGE && status != PROFD_UNKNOWN_VERSION)) {
            abort();
        }
        return;
    }
    if (s.kind == SEGMENT_COUNTS && weight < (uint64_t)8 * s.counts.arc_count + 8 * s.counts.bin_count) {
        abort();
    }
    if (s.kind != SEGMENT_COUNTS || s.shares.size > 0) {
        encode(&s, &bytes, &n);
        if (segment_decode(bytes, n, &back, NULL) != PROFD_OK) {
            abort();
        }
        encode(&back, &again, &m);
        if (n != m || memcmp(bytes, again, n) != 0) {
            abort();
        }
        free(bytes);
        free(again);
        segment_done(&back);
    }
    segment_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1 << 20) {
        uint8_t *sealed = seal(data, size);
        look(sealed, size);
        free(sealed);
    }
    return 0;
}
