/* The memory that an UPLOAD will take is estimated from its bytes, and never underestimated. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"

/* The payload of an UPLOAD with these counts; the caller frees *frame. */
static size_t encode(const uint8_t *counts, size_t n, uint8_t **frame)
{
    static const uint8_t sender[12] = {1, 2, 3};
    struct message_build build = {.build_id = "abababababababababab", .name = "/bin/x"};
    struct message m = {.type = FRAME_UPLOAD};
    size_t size;
    m.as.upload.sender = (struct message_bytes){sender, sizeof sender};
    m.as.upload.sequence = 1;
    m.as.upload.builds = &build;
    m.as.upload.build_count = 1;
    m.as.upload.counts = (struct message_bytes){counts, n};
    m.as.upload.host = "0123456789abcdef0123456789abcdef";
    cr_assert_eq(message_encode(&m, 0, 1, frame, &size, NULL), PROFD_OK);
    return size - FRAME_HEADER_SIZE;
}

Test(proto_weight, what_counts_state_is_counted)
{
    static const uint8_t half_gigabyte[] = {1, 0x80, 0x80, 0x80, 0x80, 0x02, 0x28, 0xb5};
    static const uint8_t beyond[] = {1, 0x80, 0x80, 0x80, 0x80, 0x20, 0x28};
    uint8_t *frame;
    size_t n = encode(half_gigabyte, sizeof half_gigabyte, &frame);
    cr_assert_eq(message_upload_weight(frame + FRAME_HEADER_SIZE, n), n + (512u << 20));
    free(frame);
    n = encode(beyond, sizeof beyond, &frame); /* refused by its size: no work */
    cr_assert_eq(message_upload_weight(frame + FRAME_HEADER_SIZE, n), n);
    free(frame);
}

Test(proto_weight, real_counts_weigh_their_columns)
{
    struct counts c;
    uint8_t *bytes, *frame;
    size_t size, n;
    cr_assert_eq(counts_init(&c, 0, 0, 1000, NULL), PROFD_OK);
    for (uint32_t i = 0; i < 1000; i++) {
        c.calls[i] = 1;
    }
    cr_assert_eq(counts_encode(&c, &bytes, &size, NULL), PROFD_OK);
    n = encode(bytes, size, &frame);
    size_t weight = message_upload_weight(frame + FRAME_HEADER_SIZE, n);
    cr_assert(weight >= n + 1000 && weight < n + 6000, "%zu for %zu bytes", weight, n); /* a column of 1,000 bytes */
    free(frame);
    free(bytes);
    counts_done(&c);
}

Test(proto_weight, cut_anywhere_it_stays_inside)
{
    static const uint8_t counts[] = {1, 0x80, 0x80, 0x80, 0x80, 0x02};
    uint8_t *frame;
    size_t n = encode(counts, sizeof counts, &frame);
    for (size_t k = 0; k <= n; k++) {
        uint8_t *copy = malloc(k + (k == 0)); /* exactly its size: the address sanitizer looks on */
        memcpy(copy, frame + FRAME_HEADER_SIZE, k);
        cr_assert(message_upload_weight(copy, k) >= k);
        free(copy);
    }
    free(frame);
}

Test(proto_weight, of_too_many_fields_nothing_is_unpacked)
{
    uint8_t fields[2 * 9000];
    for (size_t i = 0; i < sizeof fields; i += 2) {
        fields[i] = 2 << 3;
        fields[i + 1] = 1;
    }
    cr_assert_eq(message_upload_weight(fields, sizeof fields), sizeof fields);
    struct message m;
    cr_assert_eq(message_decode(FRAME_UPLOAD, fields, sizeof fields, &m, NULL), PROFD_TOO_LARGE);
    cr_assert_eq(message_upload_weight(NULL, 0), 0);
}
