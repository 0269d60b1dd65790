/* Keys of a block: what is encoded is decoded again, and every cut and every number that lies is found. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/block_keys.h"

#define SEEN_MOST 16

struct seen_keys {
    struct {
        char tenant[80];
        uint8_t epoch;
        struct block_keys_range range;
    } list[SEEN_MOST];
    size_t count, most; /* most: after which it fails */
};

static enum profd_status see(void *context, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                             const struct block_keys_range *range, struct profd_error *e)
{
    struct seen_keys *s = context;
    if (s->count == s->most) {
        return profd_error_set(e, PROFD_BUSY, "enough");
    }
    cr_assert(range->low >= 1 && range->low <= range->high);
    snprintf(s->list[s->count].tenant, sizeof s->list[0].tenant, "%s", tenant);
    s->list[s->count].epoch = epoch[SEGMENT_EPOCH_SIZE - 1];
    s->list[s->count++].range = *range;
    return PROFD_OK;
}

/* A copy of exactly that size, for the address sanitizer. */
static enum profd_status decode(const void *bytes, size_t n, struct seen_keys *s)
{
    struct profd_error e = {""};
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    *s = (struct seen_keys){.most = SEEN_MOST};
    const enum profd_status status = block_keys_decode(copy, n, see, s, &e);
    cr_assert(status == PROFD_OK || strstr(e.sentence, "fault at byte"), "%s", e.sentence);
    free(copy);
    return status;
}

static void encode(struct buffer *b)
{
    static const struct block_keys_range first[] = {{1, 1}, {3, 300}, {UINT64_MAX - 1, UINT64_MAX}},
                                         second[] = {{7, 7}};
    const uint8_t epochs[2][SEGMENT_EPOCH_SIZE] = {{[SEGMENT_EPOCH_SIZE - 1] = 5}, {[SEGMENT_EPOCH_SIZE - 1] = 6}};
    buffer_init(b, 1000);
    block_keys_add(b, "default", epochs[0], first, 3);
    block_keys_add(b, "", epochs[1], second, 1);
    cr_assert(!b->failed);
}

Test(block_keys, decode_what_was_encoded)
{
    struct buffer b;
    struct seen_keys s;
    struct profd_error e;
    encode(&b);
    cr_assert_eq(decode(b.data, b.size, &s), PROFD_OK);
    cr_assert_eq(s.count, 4);
    cr_assert(s.list[0].range.low == 1 && s.list[0].range.high == 1 && s.list[1].range.low == 3);
    cr_assert(s.list[1].range.high == 300 && s.list[2].range.low == UINT64_MAX - 1);
    cr_assert(s.list[2].range.high == UINT64_MAX && s.list[2].epoch == 5 && !strcmp(s.list[2].tenant, "default"));
    cr_assert(s.list[3].range.low == 7 && s.list[3].epoch == 6 && !s.list[3].tenant[0]);
    cr_assert_eq(decode("", 0, &s), PROFD_OK);
    cr_assert_eq(s.count, 0);
    s = (struct seen_keys){.most = 2};
    cr_assert_eq(block_keys_decode((const uint8_t *)b.data, b.size, see, &s, &e), PROFD_BUSY);
    buffer_done(&b);
}

Test(block_keys, every_cut_is_found)
{
    struct buffer b;
    struct seen_keys s;
    size_t whole = 0; /* prefixes that end behind an epoch */
    encode(&b);
    for (size_t n = 0; n < b.size; n++) {
        whole += decode(b.data, n, &s) == PROFD_OK;
    }
    cr_assert_eq(whole, 2, "%zu", whole);
    buffer_done(&b);
}

Test(block_keys, lies_are_found)
{
#define EPOCH "eeeeeeeeeeee"
#define LARGEST "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    static const struct {
        const char *bytes;
        size_t size;
    } lies[] = {
#define LIE(text) {text, sizeof text - 1}
        LIE("\x00" EPOCH "\x00"), /* no range */
        LIE("\x02"
            "a" EPOCH "\x01\x00\x00"),                   /* a longer name: the last number is missing */
        LIE("\x01\x00" EPOCH "\x01\x00\x00"),            /* a name with a NUL */
        LIE(LARGEST EPOCH "\x01\x00\x00"),               /* a name of 2^64-1 bytes */
        LIE("\x00" EPOCH LARGEST "\x00\x00"),            /* 2^64-1 ranges */
        LIE("\x00" EPOCH "\x01" LARGEST "\x00"),         /* a sequence of 2^64 */
        LIE("\x00" EPOCH "\x01\x00" LARGEST),            /* a last one of 2^64 */
        LIE("\x00" EPOCH "\x02\x05" LARGEST "\x00\x00"), /* the first range ends beyond */
        LIE("\x00" EPOCH "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x00"), /* a number of 65 bits */
    };
    struct seen_keys s;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        cr_assert_eq(decode(lies[i].bytes, lies[i].size, &s), PROFD_PROTOCOL, "%zu", i);
    }
    /* Whatever the bytes are, it ends, and gives nothing but ranges. */
    uint64_t state = 12345;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        struct profd_error e;
        for (size_t k = 0; k < sizeof bytes; k++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[k] = (uint8_t)(state >> 60 < 12 ? state >> 62 : state >> 56);
        }
        s = (struct seen_keys){.most = SEEN_MOST};
        (void)block_keys_decode(bytes, state >> 32 & 63, see, &s, &e);
    }
}
