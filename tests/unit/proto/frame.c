/* The frame header on the wire, and compressed payloads: true sizes only, and no memory before the size is checked. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "proto/deflate.h"
#include "proto/frame.h"
#include "proto/limits.h"

Test(proto_frame, the_header_is_little_endian_and_fixed)
{
    struct frame_header f = {
        .length = 0x01020304, .version = 1, .type = FRAME_OBJECT, .flags = 0x0201, .tag = 0xa0b0c0d0};
    static const uint8_t expected[FRAME_HEADER_SIZE] = {4, 3, 2, 1, 1, 7, 1, 2, 0xd0, 0xc0, 0xb0, 0xa0};
    uint8_t bytes[FRAME_HEADER_SIZE];
    struct frame_header back;
    frame_encode(&f, bytes);
    cr_assert_arr_eq(bytes, expected, sizeof expected);
    cr_assert_eq(frame_decode(bytes, &back, NULL), PROFD_OK);
    cr_assert_eq(back.length, f.length);
    cr_assert_eq(back.type, f.type);
    cr_assert_eq(back.flags, f.flags);
    cr_assert_eq(back.tag, f.tag);
    cr_assert_eq(frame_fds(&back), 2);
}

static void refuse(struct frame_header f, enum profd_status status, const char *word)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    struct frame_header back = {0};
    struct profd_error e = {""};
    frame_encode(&f, bytes);
    cr_assert_eq(frame_decode(bytes, &back, &e), status, "%s", e.sentence);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
    cr_assert_eq(back.tag, f.tag, "the tag must be there for the NACK");
}

Test(proto_frame, bad_headers_are_refused_with_the_value)
{
    refuse((struct frame_header){UINT32_MAX, 1, FRAME_UPLOAD, 0, 9}, PROFD_TOO_LARGE, "4294967295");
    refuse((struct frame_header){LIMIT_FRAME_PAYLOAD + 1, 1, FRAME_UPLOAD, 0, 9}, PROFD_TOO_LARGE, "67108865");
    refuse((struct frame_header){0, 0, FRAME_UPLOAD, 0, 9}, PROFD_UNKNOWN_VERSION, "version 0");
    refuse((struct frame_header){0, FRAME_VERSION + 1, FRAME_UPLOAD, 0, 9}, PROFD_UNKNOWN_VERSION, "version 2");
    refuse((struct frame_header){0, FRAME_VERSION + 1, FRAME_HELLO, 0, 9}, PROFD_UNKNOWN_VERSION, "version 2");
    refuse((struct frame_header){0, 1, 0, 0, 9}, PROFD_UNKNOWN_TYPE, "type 0");
    refuse((struct frame_header){0, 1, 32, 0, 9}, PROFD_UNKNOWN_TYPE, "type 32");
    refuse((struct frame_header){0, 1, 255, 0, 9}, PROFD_UNKNOWN_TYPE, "type 255");
    refuse((struct frame_header){0, 1, FRAME_UPLOAD, 0x0004, 9}, PROFD_PROTOCOL, "0x0004");
    refuse((struct frame_header){0, 1, FRAME_UPLOAD, 0x1000, 9}, PROFD_PROTOCOL, "0x1000");
    refuse((struct frame_header){0, 1, FRAME_OBJECT, 0x0900, 9}, PROFD_PROTOCOL, "9 descriptors");
}

Test(proto_frame, the_largest_allowed_header_passes)
{
    struct frame_header f = {LIMIT_FRAME_PAYLOAD, FRAME_VERSION, FRAME_OBJECT, 0x0803, UINT32_MAX}, back;
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_encode(&f, bytes);
    cr_assert_eq(frame_decode(bytes, &back, NULL), PROFD_OK);
    cr_assert_eq(frame_fds(&back), LIMIT_FRAME_FDS);
}

Test(proto_frame, garbage_is_refused_as_a_frame)
{
    struct frame_header f;
    struct profd_error e;
    cr_assert_eq(frame_decode((const uint8_t *)"GET / HTTP/1", &f, &e), PROFD_TOO_LARGE, "%s", e.sentence);
    static const uint8_t zeros[FRAME_HEADER_SIZE];
    cr_assert_eq(frame_decode(zeros, &f, &e), PROFD_UNKNOWN_VERSION, "%s", e.sentence);
}

Test(proto_frame, type_names)
{
    cr_assert_str_eq(frame_type_name(3), "UPLOAD");
    cr_assert_str_eq(frame_type_name(13), "ADMIN");
    cr_assert_null(frame_type_name(0));
    cr_assert_str_eq(frame_type_name(16), "ACKNOWLEDGE");
    cr_assert_str_eq(frame_type_name(18), "PARSED");
    cr_assert_null(frame_type_name(19));
}

struct inflated {
    uint8_t *data;
    size_t size;
};

static void refuse_inflate(const uint8_t *in, size_t n, size_t limit, enum profd_status status)
{
    uint8_t *out = (uint8_t *)1;
    size_t size = 77;
    struct profd_error e = {""};
    cr_assert_eq(frame_inflate(in, n, limit, &out, &size, &e), status, "%s", e.sentence);
    cr_assert_gt(strlen(e.sentence), 10);
    cr_assert_eq(out, (uint8_t *)1);
    cr_assert_eq(size, 77);
}

static size_t pack(uint8_t *out, size_t capacity, const char *text, size_t n, bool sized)
{
    size_t size = 0;
    cr_assert_eq(deflate_pack((const uint8_t *)text, n, sized, out, capacity, &size, NULL), PROFD_OK);
    return size;
}

Test(proto_frame, a_frame_without_a_checksum_is_refused)
{
    uint8_t packed[200];
    size_t n = ZSTD_compress(packed, sizeof packed, "hello hello hello", 17, 1);
    refuse_inflate(packed, n, 1000, PROFD_MALFORMED);
}

/* Each flipped bit of the frame is found. */
Test(proto_frame, flipped_bits_are_found)
{
    uint8_t packed[200], out[17];
    size_t n = pack(packed, sizeof packed, "hello hello hello", 17, false);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert(deflate_unpack(packed, n, out, 17, NULL) != PROFD_OK || memcmp(out, "hello hello hello", 17) == 0);
        packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

Test(proto_frame, inflating)
{
    char text[5000];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i * i % 23);
    }
    uint8_t packed[6000];
    size_t n = pack(packed, sizeof packed - 10, text, sizeof text, true);
    uint8_t *out;
    size_t size;
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(frame_inflate(packed, n, sizeof text, &out, &size, NULL), PROFD_OK);
        cr_assert_eq(size, sizeof text);
        cr_assert_arr_eq(out, text, size);
        free(out);
    }
    refuse_inflate(packed, n, sizeof text - 1, PROFD_TOO_LARGE);
    for (size_t cut = 0; cut < n; cut++) {
        refuse_inflate(packed, cut, sizeof text, PROFD_MALFORMED);
    }
    memcpy(packed + n, packed, 8);
    refuse_inflate(packed, n + 1, sizeof text, PROFD_MALFORMED);
    size_t nothing = pack(packed, sizeof packed, "", 0, true);
    cr_assert_eq(frame_inflate(packed, nothing, 10, &out, &size, NULL), PROFD_OK);
    cr_assert_eq(size, 0);
    free(out);
}

Test(proto_frame, inflating_needs_a_stated_true_size)
{
    uint8_t packed[200];
    size_t n = pack(packed, sizeof packed, "hello hello hello", 17, false);
    refuse_inflate(packed, n, 1000, PROFD_MALFORMED);
    n = pack(packed, sizeof packed, "hello hello hello", 17, true);
    packed[5]++; /* single-segment frame: the byte behind the descriptor is the content size */
    refuse_inflate(packed, n, 1000, PROFD_MALFORMED);
    packed[5] -= 2;
    refuse_inflate(packed, n, 1000, PROFD_MALFORMED);
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'};
    refuse_inflate(skippable, sizeof skippable, 1000, PROFD_MALFORMED);
}

Test(proto_frame, a_bomb_that_lies_about_its_size_takes_no_memory)
{
    /* Descriptor 0xe4: single segment, checksum, 8-byte content size of 1 TiB; then one raw block of nothing. */
    static const uint8_t bomb[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe4, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    refuse_inflate(bomb, sizeof bomb, SIZE_MAX, PROFD_MALFORMED);
    refuse_inflate(bomb, sizeof bomb, LIMIT_FRAME_PAYLOAD, PROFD_TOO_LARGE);
}
