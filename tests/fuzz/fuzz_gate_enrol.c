/* ENROLL and RENEW at the gate: whatever a host sends, what comes out has a public key and no request. */
#include <assert.h>
#include <stdlib.h>

#include "gate/enrol.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame f = {.version = FRAME_VERSION, .type = FRAME_ENROLL, .tag = 7};
    struct profd_error e;
    struct message m;
    uint8_t *out;
    size_t n;

    if (size < 1 || size > 8192) {
        return 0;
    }
    f.type = data[0] & 1 ? FRAME_RENEW : FRAME_ENROLL;
    f.length = (uint32_t)size - 1;
    if (enrol_rewrite(&f, data + 1, NULL, &out, &n, &e)) {
        return 0;
    }
    assert(f.type == FRAME_ENROLL && n > FRAME_HEADER_SIZE); /* RENEW without a certificate is refused */
    assert(!message_decode(f.type, out + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &m, &e));
    assert(m.as.enroll.key.size > 0 && m.as.enroll.request.size == 0);
    message_done(&m);
    free(out);
    return 0;
}
