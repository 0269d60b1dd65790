/* The gate passes only what a host may send, and states the host itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gate/frames.h"
#include "proto/message.h"

static enum profd_status check(unsigned type, uint32_t length, uint16_t flags, enum frames_stage stage)
{
    const struct frame f = {length, FRAME_VERSION, (uint8_t)type, flags, 1};
    struct profd_error e = {""};
    const enum profd_status status = frames_check(&f, stage, &e);

    cr_assert((status == PROFD_OK) == !*e.sentence);
    return status;
}

Test(gate_frames, each_type_passes_in_its_stage_alone)
{
    for (unsigned type = 1; frame_type_name(type); type++) {
        const bool after = type == FRAME_DELIVER || type == FRAME_ATTEST || type == FRAME_OBJECT_BYTES;
        const bool enrols = type == FRAME_ENROLL || type == FRAME_RENEW;
        const bool ours = type == FRAME_HELLO || type == FRAME_ARRIVE || after || enrols;

        for (enum frames_stage stage = FRAMES_BEFORE_HELLO; stage <= FRAMES_AFTER_ARRIVE; stage++) {
            const bool now = stage == FRAMES_BEFORE_HELLO    ? type == FRAME_HELLO
                             : stage == FRAMES_BEFORE_ARRIVE ? type == FRAME_ARRIVE || type == FRAME_RENEW
                                                             : after;

            cr_assert_eq(check(type, 9, 0, stage),
                         !ours ? PROFD_FORBIDDEN
                         : now ? PROFD_OK
                               : PROFD_PROTOCOL,
                         "type %u in stage %d", type, stage);
        }
        if (ours && type != FRAME_HELLO) {
            cr_assert_eq(check(type, 9, 0, FRAMES_BEFORE_ENROLL), type == FRAME_ENROLL ? PROFD_OK : PROFD_UNAUTHORIZED);
            cr_assert_eq(check(type, 9, 0, FRAMES_BEFORE_RENEW), type == FRAME_RENEW ? PROFD_OK : PROFD_UNAUTHORIZED);
            cr_assert_eq(check(type, 9, 0, FRAMES_ENROLLED), PROFD_PROTOCOL);
        }
    }
}

Test(gate_frames, sizes_and_flags)
{
    cr_assert_eq(check(FRAME_DELIVER, FRAMES_PAYLOAD_MAX, 0, FRAMES_AFTER_ARRIVE), PROFD_OK);
    cr_assert_eq(check(FRAME_DELIVER, FRAMES_PAYLOAD_MAX + 1, 0, FRAMES_AFTER_ARRIVE), PROFD_TOO_LARGE);
    cr_assert_eq(check(FRAME_HELLO, FRAMES_HELLO_MAX, 0, FRAMES_BEFORE_HELLO), PROFD_OK);
    cr_assert_eq(check(FRAME_HELLO, FRAMES_HELLO_MAX + 1, 0, FRAMES_BEFORE_HELLO), PROFD_TOO_LARGE);
    cr_assert_eq(check(FRAME_ATTEST, FRAMES_HELLO_MAX + 1, 0, FRAMES_AFTER_ARRIVE), PROFD_TOO_LARGE);
    cr_assert_eq(check(FRAME_OBJECT_BYTES, LIMIT_ATTEST_PIECE, 0, FRAMES_AFTER_ARRIVE), PROFD_OK);
    cr_assert_eq(check(FRAME_OBJECT_BYTES, 2 * LIMIT_ATTEST_PIECE, 0, FRAMES_AFTER_ARRIVE), PROFD_TOO_LARGE);
    cr_assert_eq(check(FRAME_DELIVER, 0, 0, FRAMES_AFTER_ARRIVE), PROFD_MALFORMED);
    cr_assert_eq(check(FRAME_DELIVER, 9, FRAME_FLAG_COMPRESSED, FRAMES_AFTER_ARRIVE), PROFD_FORBIDDEN);
    cr_assert_eq(check(FRAME_DELIVER, 9, 1 << FRAME_FLAG_FDS_SHIFT, FRAMES_AFTER_ARRIVE), PROFD_PROTOCOL);
}

/* What a daemon decodes from the payload of m after the gate has added the host. */
static void pass(const struct message *m, const struct tls_identity *host, struct message *out)
{
    struct profd_error e;
    uint8_t *frame;
    size_t n;

    cr_assert_eq(message_encode(m, 0, 1, &frame, &n, &e), PROFD_OK);
    frame = realloc(frame, n + FRAMES_ADDED_MAX);
    cr_assert_eq(frames_check_fields(m->type, frame + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &e), PROFD_OK);
    n += frames_add(m->type, host, frame + n);
    cr_assert_eq(message_decode(m->type, frame + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, out, &e), PROFD_OK);
    free(frame);
}

Test(gate_frames, the_host_is_that_of_the_certificate)
{
    struct tls_identity host = {.host = "sixteen bytes.."};
    const struct message arrive = {.type = FRAME_ARRIVE, .as.arrive = {.name = "", .clock = 1, .number = 2}};
    const struct message deliver = {.type = FRAME_DELIVER, .as.deliver = {.sequence = 7, .segment = {host.host, 5}}};
    struct message m;

    for (size_t n = 0; n < TLS_NAME_SIZE; n++) { /* lengths around 127 and 255 */
        memset(host.name, 'n', n);
        pass(&arrive, &host, &m);
        cr_assert_str_eq(m.as.arrive.name, host.name);
        cr_assert(m.as.arrive.host.size == 16 && !memcmp(m.as.arrive.host.data, host.host, 16));
        cr_assert(m.as.arrive.clock == 1 && m.as.arrive.number == 2);
        message_done(&m);
    }
    pass(&deliver, &host, &m);
    cr_assert(m.as.deliver.host.size == 16 && !memcmp(m.as.deliver.host.data, host.host, 16));
    cr_assert(m.as.deliver.sequence == 7 && m.as.deliver.segment.size == 5);
    message_done(&m);
}

Test(gate_frames, a_payload_that_could_hide_the_host_is_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum profd_status arrive, deliver;
    } cases[] = {{"\x0a\x01x", 3, PROFD_FORBIDDEN, PROFD_FORBIDDEN},
                 {"\x08\x01", 2, PROFD_FORBIDDEN, PROFD_FORBIDDEN}, /* with another wire type */
                 {"\x12\x01x", 3, PROFD_FORBIDDEN, PROFD_OK},
                 {"\x22\x12", 2, PROFD_MALFORMED, PROFD_MALFORMED},
                 {"\x22\x80", 2, PROFD_MALFORMED, PROFD_MALFORMED},
                 {"\x19"
                  "1234567",
                  8, PROFD_MALFORMED, PROFD_MALFORMED},
                 {"\x19"
                  "12345678",
                  9, PROFD_OK, PROFD_OK},
                 {"\x1d"
                  "1234",
                  5, PROFD_OK, PROFD_OK},
                 {"\x1b\x1c", 2, PROFD_MALFORMED, PROFD_MALFORMED}, /* groups */
                 {"\x18", 1, PROFD_MALFORMED, PROFD_MALFORMED},
                 {"\x18\x80\x80", 3, PROFD_MALFORMED, PROFD_MALFORMED},
                 {"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, PROFD_MALFORMED, PROFD_MALFORMED}};
    struct profd_error e;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t *bytes = (const uint8_t *)cases[i].bytes;

        cr_assert_eq(frames_check_fields(FRAME_ARRIVE, bytes, cases[i].n, &e), cases[i].arrive, "case %zu", i);
        cr_assert_eq(frames_check_fields(FRAME_DELIVER, bytes, cases[i].n, &e), cases[i].deliver, "case %zu", i);
    }
}

Test(gate_frames, answers_of_the_daemon)
{
    for (unsigned type = 1; frame_type_name(type); type++) {
        cr_assert_eq(frames_may_answer(type), type == FRAME_ADMIT || type == FRAME_ACKNOWLEDGE ||
                                                  type == FRAME_ATTESTED || type == FRAME_NACK ||
                                                  type == FRAME_ENROLLED || type == FRAME_REVOKED);
    }
}
