/* Input: the body of a POST to /api/v1/uploads, when it is decoded.
 * Law: it is refused with a sentence, or no text and no list in it is longer than it; and each of its uploads has a
 * status and a sentence as if it had come alone, and weighs nothing if its counts are refused for their size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void look(const struct message_bytes *upload)
{
    struct segment s;
    struct profd_error e = {""};
    uint8_t *copy = malloc(upload->size + 1); /* of its size, so that reading beyond it is seen */
    require(copy != NULL);
    memcpy(copy, upload->data, upload->size);
    uint8_t *exact = realloc(copy, upload->size ? upload->size : 1);
    require(exact != NULL);
    const size_t weight = segment_weight(exact, upload->size);
    const enum profd_status status = segment_decode(exact, upload->size, &s, &e);
    require(!status == !e.sentence[0]);
    require(status || s.kind != SEGMENT_COUNTS || weight >= upload->size);
    require(!status || (!s.block && !s.message.block && !s.counts.block));
    segment_done(&s);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message_batch b;
    struct profd_error e = {""};
    if (message_decode_batch(data, size, &b, &e)) {
        require(e.sentence[0]);
        return 0;
    }
    require(b.upload_count <= size && b.offer_count <= size && strlen(b.host) <= size && strlen(b.machine) <= size &&
            strlen(b.boot) <= size && strlen(b.version) <= size);
    for (size_t i = 0; i < b.offer_count; i++) {
        require(strlen(b.offers[i].build_id) <= size && b.offers[i].hash.size <= size);
    }
    for (size_t i = 0; i < b.upload_count; i++) {
        require(b.uploads[i].size <= size);
        look(&b.uploads[i]);
    }
    message_batch_done(&b);
    return 0;
}
