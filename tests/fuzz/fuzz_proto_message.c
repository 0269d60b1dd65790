/* First byte: the type. Law: what decodes encodes again, and that decodes to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message m, again;
    struct profd_error e;
    if (size < 1 || message_decode(data[0] % 32, data + 1, size - 1, &m, &e) != PROFD_OK) {
        return 0;
    }
    uint8_t *first, *second;
    size_t n, k;
    if (message_encode(&m, 0, 1, &first, &n, &e) != PROFD_OK) {
        abort();
    }
    if (message_decode(m.type, first + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &again, &e) != PROFD_OK) {
        abort();
    }
    if (message_encode(&again, 0, 1, &second, &k, &e) != PROFD_OK || n != k || memcmp(first, second, n) != 0) {
        abort();
    }
    free(first);
    free(second);
    message_done(&m);
    message_done(&again);
    return 0;
}
