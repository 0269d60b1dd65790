/* Input: a content, which is packed here, or (first byte odd) a segment as it travels.
 * Law: what decodes encodes again, to the same content. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *bytes, size_t n)
{
    struct segment s;
    struct profd_error e = {""};
    uint8_t *content, *again, *content_again;
    size_t size, m, size_again;
    enum profd_status status = segment_decode(bytes, n, &s, &e);
    if (status != PROFD_OK) {
        if (e.sentence[0] == 0 || (status != PROFD_MALFORMED && status != PROFD_TOO_LARGE &&
                                   status != PROFD_UNKNOWN_VERSION && status != PROFD_NO_MEMORY)) {
            abort();
        }
        return;
    }
    if (segment_unpack(bytes, n, &content, &size, NULL) != PROFD_OK ||
        segment_encode(&s, &again, &m, NULL) != PROFD_OK ||
        segment_unpack(again, m, &content_again, &size_again, NULL) != PROFD_OK) {
        abort();
    }
    if (size != size_again || memcmp(content, content_again, size) != 0 ||
        memcmp(bytes + SEGMENT_DIGEST_AT, again + SEGMENT_DIGEST_AT, SEGMENT_DIGEST_SIZE) != 0) {
        abort();
    }
    free(content);
    free(again);
    free(content_again);
    segment_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    size_t n;
    if (size < 1 || size > 1 << 20) {
        return 0;
    }
    if (data[0] % 2 == 1) {
        look(data + 1, size - 1);
    } else if (segment_pack(data + 1, size - 1, &bytes, &n, NULL) == PROFD_OK) {
        look(bytes, n);
        free(bytes);
    }
    return 0;
}
