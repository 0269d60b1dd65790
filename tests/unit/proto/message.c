/* Each message of the protocol survives encoding; damaged, surplus or excessive fields are refused at bounded cost. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"

/* Encodes m and decodes the frame again; the caller frees *out with message_done. */
static void round_trip(const struct message *m, uint16_t flags, struct message *out)
{
    uint8_t *bytes;
    size_t n;
    struct frame_header f;
    struct profd_error e = {""};
    cr_assert_eq(message_encode(m, flags, 4711, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(frame_decode(bytes, &f, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(f.length, n - FRAME_HEADER_SIZE);
    cr_assert_eq(f.type, m->type);
    cr_assert_eq(f.tag, 4711);
    cr_assert_eq(f.flags, flags);
    uint8_t *payload = bytes + FRAME_HEADER_SIZE, *inflated = NULL;
    size_t size = f.length;
    if (flags & FRAME_FLAG_COMPRESSED) {
        cr_assert_eq(frame_inflate(payload, size, LIMIT_FRAME_PAYLOAD, &inflated, &size, &e), PROFD_OK, "%s",
                     e.sentence);
        payload = inflated;
    }
    cr_assert_eq(message_decode(f.type, payload, size, out, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(out->type, m->type);
    free(inflated);
    free(bytes);
}

Test(proto_message, an_upload_comes_back_as_it_was)
{
    static const struct message_build builds[] = {{"00ff", "/usr/bin/lua"}, {"sha256-00", "libm.so.6"}, {"", ""}};
    static const struct message_label labels[] = {{"host", "a"}, {"service", "bücher €"}};
    static const uint8_t sender[12] = {1, 2, 3, 0, 5, 6, 7, 8, 9, 10, 11, 255};
    static const uint8_t counts[] = {0, 1, 2, 0, 255};
    struct message m = {.type = FRAME_UPLOAD}, back;
    m.as.upload = (struct message_upload){.sender = {sender, 12},
                                          .sequence = UINT32_MAX,
                                          .start = 1,
                                          .end = UINT64_MAX,
                                          .program = 2,
                                          .build_count = 3,
                                          .builds = builds,
                                          .label_count = 2,
                                          .labels = labels,
                                          .counts = {counts, 5},
                                          .inexact = INEXACT_ALL,
                                          .processes_started = 1,
                                          .host = "0123456789abcdef0123456789abcdef",
                                          .process = {sender, 7}};
    for (int compressed = 0; compressed < 2; compressed++) {
        round_trip(&m, compressed ? FRAME_FLAG_COMPRESSED : 0, &back);
        const struct message_upload *u = &back.as.upload;
        cr_assert_eq(u->sender.size, 12);
        cr_assert_arr_eq(u->sender.data, sender, 12);
        cr_assert_eq(u->sender.data[12], 0, "bytes are NUL-terminated");
        cr_assert_eq(u->sequence, UINT32_MAX);
        cr_assert_eq(u->start, 1);
        cr_assert_eq(u->end, UINT64_MAX);
        cr_assert_eq(u->program, 2);
        cr_assert_eq(u->build_count, 3);
        cr_assert_str_eq(u->builds[0].build_id, "00ff");
        cr_assert_str_eq(u->builds[0].name, "/usr/bin/lua");
        cr_assert_str_eq(u->builds[2].name, "");
        cr_assert_eq(u->label_count, 2);
        cr_assert_str_eq(u->labels[1].name, "service");
        cr_assert_str_eq(u->labels[1].value, "bücher €");
        cr_assert_eq(u->counts.size, 5);
        cr_assert_arr_eq(u->counts.data, counts, 5);
        cr_assert_eq(u->counts.data[5], 0);
        cr_assert_eq(u->inexact, INEXACT_ALL);
        cr_assert_eq(u->processes_started, 1);
        cr_assert_str_eq(u->host, "0123456789abcdef0123456789abcdef");
        cr_assert_eq(u->process.size, 7);
        cr_assert_arr_eq(u->process.data, sender, 7);
        message_done(&back);
        cr_assert_null(back.block);
    }
}

Test(proto_message, what_a_relay_says_comes_back)
{
    static const uint8_t bytes[16] = "sixteen bytes..";
    struct message m, b;
    m = (struct message){.type = FRAME_FETCH,
                         .as.fetch = {.incarnation = {bytes, 16},
                                      .backup = 1,
                                      .after = UINT64_MAX,
                                      .through = 3,
                                      .error = "no route to host",
                                      .went_back = true,
                                      .number = 5}};
    round_trip(&m, 0, &b);
    cr_assert(b.as.fetch.incarnation.size == 16 && memcmp(b.as.fetch.incarnation.data, bytes, 16) == 0);
    cr_assert(b.as.fetch.backup == 1 && b.as.fetch.after == UINT64_MAX && b.as.fetch.through == 3);
    cr_assert_str_eq(b.as.fetch.error, "no route to host");
    cr_assert(b.as.fetch.went_back && b.as.fetch.number == 5);
    message_done(&b);
    m = (struct message){.type = FRAME_SEGMENT,
                         .as.segment = {.id = 1,
                                        .epoch = {bytes, 12},
                                        .sequence = 2,
                                        .segment = {bytes, 7},
                                        .through = UINT64_MAX,
                                        .number = 3,
                                        .held = 4,
                                        .oldest = 5}};
    round_trip(&m, 0, &b);
    cr_assert(b.as.segment.id == 1 && b.as.segment.epoch.size == 12 && b.as.segment.sequence == 2);
    cr_assert(b.as.segment.segment.size == 7 && b.as.segment.through == UINT64_MAX && b.as.segment.number == 3);
    cr_assert(b.as.segment.held == 4 && b.as.segment.oldest == 5);
    message_done(&b);
    m = (struct message){.type = FRAME_ACKNOWLEDGE, .as.acknowledge = {{bytes, 12}, 1, {bytes, 16}, 2, 3}};
    round_trip(&m, 0, &b);
    cr_assert(b.as.acknowledge.epoch.size == 12 && b.as.acknowledge.incarnation.size == 16);
    cr_assert(b.as.acknowledge.sequence == 1 && b.as.acknowledge.number == 2 && b.as.acknowledge.outcome == 3);
    message_done(&b);
}

Test(proto_message, every_other_type_comes_back)
{
    struct message m, b;
    m = (struct message){.type = FRAME_HELLO, .as.hello = {1, 2, "profctl 0.1"}};
    round_trip(&m, 0, &b);
    cr_assert_eq(b.as.hello.version_oldest, 1);
    cr_assert_eq(b.as.hello.version_newest, 2);
    cr_assert_str_eq(b.as.hello.client, "profctl 0.1");
    message_done(&b);
    m = (struct message){.type = FRAME_WELCOME, .as.welcome = {1, 100, 256, "profd 0.1", UINT64_MAX, 3, true}};
    round_trip(&m, 0, &b);
    cr_assert_eq(b.as.welcome.version, 1);
    cr_assert_eq(b.as.welcome.payload_max, 100);
    cr_assert_eq(b.as.welcome.in_flight_max, 256);
    cr_assert_str_eq(b.as.welcome.daemon, "profd 0.1");
    cr_assert(b.as.welcome.run == UINT64_MAX && b.as.welcome.refused == 3 && b.as.welcome.claims);
    message_done(&b);
    m = (struct message){.type = FRAME_ACK, .as.ack = {.duplicate = true}};
    round_trip(&m, 0, &b);
    cr_assert(b.as.ack.duplicate);
    message_done(&b);
    m = (struct message){.type = FRAME_NACK, .as.nack = {15, true, 250, "busy"}};
    round_trip(&m, 0, &b);
    cr_assert_eq(b.as.nack.status, 15);
    cr_assert(b.as.nack.retry);
    cr_assert_eq(b.as.nack.retry_after_ms, 250);
    cr_assert_str_eq(b.as.nack.sentence, "busy");
    message_done(&b);
    for (unsigned type = FRAME_WANT_OBJECT; type <= FRAME_OBJECT; type++) {
        const bool object = type == FRAME_OBJECT;
        m = (struct message){.type = type,
                             .as.object = {"abcd", "/bin/true", .claimed = object, .uid = object ? 1000 : 0}};
        round_trip(&m, 2u << FRAME_FLAG_FDS_SHIFT, &b);
        cr_assert(!object || (b.as.object.claimed && b.as.object.uid == 1000));
        cr_assert_str_eq(b.as.object.build_id, "abcd");
        cr_assert_str_eq(b.as.object.name, "/bin/true");
        message_done(&b);
    }
    m = (struct message){.type = FRAME_DECLINE, .as.decline = {"abcd", "no such file"}};
    round_trip(&m, 0, &b);
    cr_assert_str_eq(b.as.decline.build_id, "abcd");
    cr_assert_str_eq(b.as.decline.reason, "no such file");
    message_done(&b);
    m = (struct message){.type = FRAME_QUERY, .as.query = {"/api/v1/builds?limit=5", "\"e\""}};
    round_trip(&m, 0, &b);
    cr_assert_str_eq(b.as.query.target, "/api/v1/builds?limit=5");
    cr_assert_str_eq(b.as.query.if_none_match, "\"e\"");
    message_done(&b);
    m = (struct message){.type = FRAME_REPLY,
                         .as.reply = {200, "application/json", "\"x\"", {(const uint8_t *)"{\0}", 3}, 7, UINT64_MAX}};
    round_trip(&m, FRAME_FLAG_LAST, &b);
    cr_assert_eq(b.as.reply.http_status, 200);
    cr_assert_str_eq(b.as.reply.content_type, "application/json");
    cr_assert_str_eq(b.as.reply.etag, "\"x\"");
    cr_assert_eq(b.as.reply.body.size, 3);
    cr_assert_arr_eq(b.as.reply.body.data, "{\0}", 3);
    cr_assert(b.as.reply.done == 7 && b.as.reply.total == UINT64_MAX);
    message_done(&b);
    static const char *const arguments[] = {"abcd", "", "ü"};
    m = (struct message){.type = FRAME_ADMIN, .as.admin = {"delete", 3, arguments}};
    round_trip(&m, FRAME_FLAG_COMPRESSED, &b);
    cr_assert_str_eq(b.as.admin.verb, "delete");
    cr_assert_eq(b.as.admin.argument_count, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_str_eq(b.as.admin.arguments[i], arguments[i]);
    }
    message_done(&b);
    m = (struct message){.type = FRAME_ADMIN, .as.admin = {"verify", 0, NULL}};
    round_trip(&m, 0, &b);
    cr_assert_eq(b.as.admin.argument_count, 0);
    message_done(&b);
    m = (struct message){.type = FRAME_SYNC};
    round_trip(&m, 0, &b);
    message_done(&b);
    m = (struct message){.type = FRAME_ATTACH};
    round_trip(&m, 1u << FRAME_FLAG_FDS_SHIFT, &b);
    message_done(&b);
}

Test(proto_message, absent_fields_are_empty_never_null)
{
    struct message m;
    cr_assert_eq(message_decode(FRAME_UPLOAD, NULL, 0, &m, NULL), PROFD_OK);
    cr_assert_str_eq(m.as.upload.host, "");
    cr_assert_not_null(m.as.upload.counts.data);
    cr_assert_not_null(m.as.upload.sender.data);
    cr_assert_eq(m.as.upload.counts.size, 0);
    cr_assert_eq(m.as.upload.build_count, 0);
    message_done(&m);
    struct message empty = {.type = FRAME_NACK};
    round_trip(&empty, 0, &m);
    cr_assert_str_eq(m.as.nack.sentence, "");
    message_done(&m);
}

Test(proto_message, an_admin_has_few_arguments)
{
    static const char *const arguments[LIMIT_ADMIN_ARGUMENTS + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    struct message m = {.type = FRAME_ADMIN, .as.admin = {"delete", LIMIT_ADMIN_ARGUMENTS + 1, arguments}}, back;
    struct profd_error e = {""};
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(message_encode(&m, 0, 1, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(message_decode(FRAME_ADMIN, bytes + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &back, &e),
                 PROFD_TOO_LARGE);
    cr_assert_not_null(strstr(e.sentence, "9 arguments, at most 8"), "%s", e.sentence);
    free(bytes);
}

static void refuse(unsigned type, const void *payload, size_t n, enum profd_status status, const char *word)
{
    struct message m = {.type = 99};
    struct profd_error e = {""};
    enum profd_status got = message_decode(type, payload, n, &m, &e);
    cr_assert_eq(got, status, "%s: %s", profd_status_name(got), e.sentence);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
    cr_assert_eq(m.type, 99, "untouched on failure");
}

Test(proto_message, bytes_that_do_not_fit_are_refused)
{
    refuse(FRAME_SYNC, "x", 1, PROFD_MALFORMED, "SYNC");
    refuse(FRAME_ATTACH, "x", 1, PROFD_MALFORMED, "ATTACH");
    refuse(32, "", 0, PROFD_UNKNOWN_TYPE, "32");
    refuse(0, "", 0, PROFD_UNKNOWN_TYPE, "0");
    refuse(FRAME_HELLO, "\xff", 1, PROFD_MALFORMED, "byte 0");
    refuse(FRAME_HELLO, "\x00\x01", 2, PROFD_MALFORMED, "byte 0"); /* field number 0 */
    refuse(FRAME_HELLO, "\x0b\x0c", 2, PROFD_MALFORMED, "byte 0"); /* groups */
    refuse(FRAME_HELLO,
           "\x1a\x7f"
           "ab",
           4, PROFD_MALFORMED, "byte 0"); /* longer than what is there */
    refuse(FRAME_HELLO,
           "\x08\x01\x1a\x02"
           "a",
           5, PROFD_MALFORMED, "byte 2");
    refuse(FRAME_HELLO,
           "\x1a\x03"
           "a\0b",
           5, PROFD_MALFORMED, "contains a NUL");
    refuse(FRAME_HELLO, "\x1a\x02\xc0\x80", 4, PROFD_MALFORMED, "client of Hello is not UTF-8");
    refuse(FRAME_HELLO, "\x18\x01", 2, PROFD_MALFORMED, "HELLO"); /* a number where a string belongs */
    refuse(FRAME_HELLO, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, PROFD_MALFORMED, "byte 0");
    refuse(FRAME_UPLOAD, "\x3a\x04\x0a\x02\xff\xfe", 6, PROFD_MALFORMED, "name of Label");
    refuse(FRAME_UPLOAD, "\x3a\x02\x0a\x05", 4, PROFD_MALFORMED, "Label is not protobuf");
    refuse(FRAME_UPLOAD, "\x32\x03\x12\x01\x00", 5, PROFD_MALFORMED, "name of Build contains a NUL");
}

Test(proto_message, fields_of_later_versions_are_skipped)
{
    static const uint8_t later[] = {0x08, 1,    0x10, 1, 0x92, 0x06, 3, 'x', 0, 'z', 0x98, 0x06,
                                    7,    0xa1, 0x06, 1, 2,    3,    4, 5,   6, 7,   8};
    struct message m;
    cr_assert_eq(message_decode(FRAME_HELLO, later, sizeof later, &m, NULL), PROFD_OK);
    cr_assert_eq(m.as.hello.version_newest, 1);
    message_done(&m);
}

Test(proto_message, twenty_thousand_labels_are_too_many)
{
    uint8_t *payload = malloc(40000);
    for (size_t i = 0; i < 20000; i++) {
        memcpy(payload + 2 * i, "\x3a\x00", 2);
    }
    refuse(FRAME_UPLOAD, payload, 40000, PROFD_TOO_LARGE, "20000 labels, at most 64");
    refuse(FRAME_UPLOAD, payload, 2 * 65, PROFD_TOO_LARGE, "65 labels, at most 64");
    struct message m;
    cr_assert_eq(message_decode(FRAME_UPLOAD, payload, 2 * 64, &m, NULL), PROFD_OK);
    cr_assert_eq(m.as.upload.label_count, 64);
    cr_assert_str_eq(m.as.upload.labels[63].value, "");
    message_done(&m);
    for (size_t i = 0; i < 2000; i++) {
        memcpy(payload + 2 * i, "\x32\x00", 2);
    }
    refuse(FRAME_UPLOAD, payload, 2 * 1025, PROFD_TOO_LARGE, "1025 builds, at most 1024");
    cr_assert_eq(message_decode(FRAME_UPLOAD, payload, 2 * 1024, &m, NULL), PROFD_OK);
    cr_assert_eq(m.as.upload.build_count, 1024);
    message_done(&m);
    free(payload);
}

Test(proto_message, full_lists_with_unknown_fields_fit_the_block)
{
    size_t n = 0;
    uint8_t *payload = malloc(1 << 20);
    for (size_t i = 0; i < 1024; i++) {
        static const uint8_t build[] = {0x32, 12, 0x0a, 2, 'a', 'b', 0x12, 1, 'x', 0xf8, 0x01, 1, 0x12, 0};
        memcpy(payload + n, build, sizeof build);
        n += sizeof build;
    }
    for (size_t i = 0; i < 3000; i++) {
        memcpy(payload + n, "\xfa\x01\x01y", 4);
        n += 4;
    }
    struct message m;
    struct profd_error e = {""};
    cr_assert_eq(message_decode(FRAME_UPLOAD, payload, n, &m, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(m.as.upload.build_count, 1024);
    cr_assert_str_eq(m.as.upload.builds[1023].build_id, "ab");
    message_done(&m);
    for (size_t i = 0; i < 1000; i++) {
        memcpy(payload + n, "\xfa\x01\x00", 3);
        n += 3;
    }
    refuse(FRAME_UPLOAD, payload, n, PROFD_TOO_LARGE, "fields, at most 8192");
    free(payload);
}

Test(proto_message, sixty_four_megabytes_of_labels_or_fields_cost_no_memory)
{
    uint8_t *payload = malloc(LIMIT_FRAME_PAYLOAD);
    for (size_t i = 0; i < LIMIT_FRAME_PAYLOAD; i += 2) {
        memcpy(payload + i, "\x3a\x00", 2);
    }
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    refuse(FRAME_UPLOAD, payload, LIMIT_FRAME_PAYLOAD, PROFD_TOO_LARGE, "33554432 labels");
    for (size_t i = 0; i < LIMIT_FRAME_PAYLOAD; i += 2) {
        memcpy(payload + i, "\x78\x00", 2);
    }
    refuse(FRAME_UPLOAD, payload, LIMIT_FRAME_PAYLOAD, PROFD_TOO_LARGE, "33554432 fields");
    cr_assert_leq(mallinfo2().uordblks + mallinfo2().hblkhd, before + 65536);
    free(payload);
}

Test(proto_message, what_exceeds_a_frame_is_not_encoded)
{
    uint8_t *big = calloc(1, LIMIT_FRAME_PAYLOAD + 1), *out = NULL;
    size_t n = 5;
    struct profd_error e;
    struct message m = {.type = FRAME_REPLY, .as.reply = {200, "", "", {big, LIMIT_FRAME_PAYLOAD}, 0, 0}};
    cr_assert_eq(message_encode(&m, 0, 0, &out, &n, &e), PROFD_TOO_LARGE);
    cr_assert(strstr(e.sentence, "67108864") != NULL, "%s", e.sentence);
    cr_assert_null(out);
    struct message_label labels[65];
    for (size_t i = 0; i < 65; i++) {
        labels[i] = (struct message_label){"a", "b"};
    }
    m = (struct message){.type = FRAME_UPLOAD, .as.upload = {.label_count = 65, .labels = labels}};
    cr_assert_eq(message_encode(&m, 0, 0, &out, &n, &e), PROFD_TOO_LARGE);
    cr_assert_str_eq(e.sentence, "65 labels, at most 64");
    m = (struct message){.type = 32};
    cr_assert_eq(message_encode(&m, 0, 0, &out, &n, &e), PROFD_UNKNOWN_TYPE);
    free(big);
}

/* Whatever a stranger changes or cuts: an answer, no crash (the address sanitizer watches). */
Test(proto_message, damaged_uploads_are_judged)
{
    static const struct message_build builds[] = {{"00ff", "/usr/bin/lua"}, {"ab", "libm.so.6"}};
    static const struct message_label labels[] = {{"host", "a"}};
    struct message m = {.type = FRAME_UPLOAD}, back;
    m.as.upload = (struct message_upload){.build_count = 2,
                                          .builds = builds,
                                          .label_count = 1,
                                          .labels = labels,
                                          .host = "h",
                                          .counts = {(const uint8_t *)"counts", 6}};
    uint8_t *bytes, copy[200];
    size_t n, accepted = 0;
    cr_assert_eq(message_encode(&m, 0, 0, &bytes, &n, NULL), PROFD_OK);
    n -= FRAME_HEADER_SIZE;
    cr_assert_lt(n, sizeof copy);
    for (size_t at = 0; at < n; at++) {
        for (unsigned value = 0; value < 256; value++) {
            memcpy(copy, bytes + FRAME_HEADER_SIZE, n);
            copy[at] = (uint8_t)value;
            if (message_decode(FRAME_UPLOAD, copy, n, &back, NULL) == PROFD_OK) {
                accepted++;
                message_done(&back);
            }
            if (message_decode(FRAME_UPLOAD, copy, at, &back, NULL) == PROFD_OK) {
                message_done(&back);
            }
        }
    }
    cr_assert_gt(accepted, n);
    free(bytes);
}

Test(proto_message, reasons_have_names)
{
    unsigned named = 0;
    for (unsigned bit = 0; bit < 32; bit++) {
        named += message_inexact_name(1u << bit) != NULL;
    }
    cr_assert_eq(named, 20);
    cr_assert_str_eq(message_inexact_name(INEXACT_BINS_16_BIT), "16-bit-bins");
    cr_assert_null(message_inexact_name(0));
    cr_assert_null(message_inexact_name(3));
}

static size_t put_text(uint8_t *to, uint8_t field, const char *text)
{
    const size_t n = strlen(text);
    to[0] = (uint8_t)(field << 3 | 2);
    to[1] = (uint8_t)n;
    memcpy(to + 2, text, n);
    return n + 2;
}

/* The body of POST /api/v1/uploads. Cut anywhere it is another batch, or refused. */
Test(proto_message, a_batch)
{
    uint8_t in[256];
    size_t n = put_text(in, 1, "0123456789abcdef");
    struct message_batch b;
    struct profd_error e;
    n += put_text(in + n, 3, "web-1");
    n += put_text(in + n, 11, "first");
    n += put_text(in + n, 12, "\n\002ab\022\001h\030\005"); /* build_id, hash, size */
    n += put_text(in + n, 11, "");
    cr_assert_eq(message_decode_batch(in, n, &b, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(b.centre.size == 16 && b.incarnation.size == 0 && !strcmp(b.host, "web-1") && !*b.boot && b.clock == 0);
    cr_assert(b.upload_count == 2 && b.uploads[0].size == 5 && b.uploads[1].size == 0);
    cr_assert(b.offer_count == 1 && !strcmp(b.offers[0].build_id, "ab") && b.offers[0].hash.size == 1);
    cr_assert_eq(b.offers[0].size, 5);
    message_batch_done(&b);
    for (size_t k = 0; k < n; k++) {
        uint8_t *cut = malloc(k + 1); /* so that a sanitizer sees what is read behind it */
        memcpy(cut, in, k);
        if (message_decode_batch(cut, k, &b, &e) == PROFD_OK) {
            cr_assert_leq(b.upload_count, 2);
            message_batch_done(&b);
        }
        free(cut);
    }
    in[n - 2] = 3 << 3 | 2; /* the text of the host again, cut */
    in[n - 1] = 9;
    cr_assert_eq(message_decode_batch(in, n, &b, &e), PROFD_MALFORMED);
}

/* Fields cost more memory than their bytes, so that their number is bounded. */
Test(proto_message, a_batch_of_too_many_fields)
{
    enum { MOST = 8192 };
    uint8_t *in = calloc(MOST + 1, 2);
    struct message_batch b;
    struct profd_error e;
    for (size_t i = 0; i <= MOST; i++) {
        in[2 * i] = 11 << 3 | 2;
    }
    cr_assert_eq(message_decode_batch(in, (size_t)2 * MOST, &b, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(b.upload_count, MOST);
    message_batch_done(&b);
    cr_assert_eq(message_decode_batch(in, (size_t)2 * (MOST + 1), &b, &e), PROFD_TOO_LARGE);
    free(in);
}
