/* Law: a header that is accepted encodes to the same bytes; what inflates has the size that was stated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FRAME_HEADER_SIZE) {
        return 0;
    }
    struct frame_header f;
    struct profd_error e;
    uint8_t again[FRAME_HEADER_SIZE], *out;
    size_t n;
    frame_decode(data, &f, &e);
    frame_encode(&f, again);
    if (memcmp(data, again, sizeof again) != 0) {
        abort();
    }
    if (frame_inflate(data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE, 1 << 20, &out, &n, &e) == PROFD_OK) {
        if (n > 1 << 20) {
            abort();
        }
        free(out);
    }
    return 0;
}
