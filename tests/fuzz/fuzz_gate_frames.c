/* Law: of any payload that the gate lets pass, the daemon decodes the host and name that the gate added, or refuses it.
 * Input: a header and a payload, as a host would send them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/frames.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct message *m, const struct tls_identity *host)
{
    const struct message_bytes *of = m->type == FRAME_ARRIVE    ? &m->as.arrive.host
                                     : m->type == FRAME_DELIVER ? &m->as.deliver.host
                                     : m->type == FRAME_ATTEST  ? &m->as.attest.host
                                                                : &m->as.object_bytes.host;

    if (of->size != sizeof host->host || memcmp(of->data, host->host, sizeof host->host) != 0) {
        abort();
    }
    if (m->type == FRAME_ARRIVE && strcmp(m->as.arrive.name, host->name) != 0) {
        abort();
    }
}

static void add_and_decode(unsigned type, const uint8_t *payload, size_t n)
{
    const struct tls_identity host = {.host = {1, 2, 3}, .name = "host.example"};
    uint8_t *whole = malloc(n + FRAMES_ADDED_MAX);
    struct profd_error e;
    struct message m;

    if (!whole) {
        return;
    }
    memcpy(whole, payload, n);
    n += frames_add(type, &host, whole + n);
    if (!message_decode(type, whole, n, &m, &e)) {
        judge(&m, &host);
        message_done(&m);
    }
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profd_error e;
    struct frame f;
    enum frames_stage stage = FRAMES_BEFORE_HELLO;

    if (size < FRAME_HEADER_SIZE || frame_decode(data, &f, &e)) {
        return 0;
    }
    for (; stage <= FRAMES_AFTER_ARRIVE; stage++) {
        if (!frames_check(&f, stage, &e) && f.type != FRAME_HELLO &&
            !frames_check_fields(f.type, data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE, &e)) {
            add_and_decode(f.type, data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE);
        }
    }
    return 0;
}
