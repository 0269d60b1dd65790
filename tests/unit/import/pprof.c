/* The reader of profile.proto, on messages written field by field here. */
#include <criterion/criterion.h>
#include <string.h>

#include "import/import_any_internal.h"
#include "proto/varint.h"

/* A message in the making. */
struct bytes {
    uint8_t at[4096];
    size_t size;
};

static void number(struct bytes *b, unsigned field, uint64_t value)
{
    b->size = (size_t)(varint_put(varint_put(b->at + b->size, field << 3), value) - b->at);
}

static void blob(struct bytes *b, unsigned field, const void *data, size_t n)
{
    b->size = (size_t)(varint_put(varint_put(b->at + b->size, field << 3 | 2), n) - b->at);
    memcpy(b->at + b->size, data, n);
    b->size += n;
}

static void message(struct bytes *b, unsigned field, const struct bytes *inside)
{
    blob(b, field, inside->at, inside->size);
}

static void two(struct bytes *b, unsigned field, uint64_t first, uint64_t second)
{
    struct bytes m = {.size = 0};
    number(&m, 1, first);
    number(&m, 2, second);
    message(b, field, &m);
}

static void mapping(struct bytes *b, uint64_t id, uint64_t start, uint64_t limit, uint64_t offset, uint64_t file,
                    uint64_t build)
{
    struct bytes m = {.size = 0};
    const uint64_t values[] = {id, start, limit, offset, file, build};
    for (unsigned i = 0; i < 6; i++) {
        number(&m, i + 1, values[i]);
    }
    message(b, 3, &m);
}

static void location(struct bytes *b, uint64_t id, uint64_t in, uint64_t address)
{
    struct bytes m = {.size = 0};
    number(&m, 1, id);
    number(&m, 2, in);
    number(&m, 3, address);
    message(b, 4, &m);
}

static void sample(struct bytes *b, bool packed, const uint64_t *ids, size_t n, const uint64_t *values, size_t k)
{
    struct bytes m = {.size = 0}, list = {.size = 0};
    for (size_t i = 0; i < n + k; i++) {
        uint64_t value = i < n ? ids[i] : values[i - n];
        if (!packed) {
            number(&m, i < n ? 1 : 2, value);
            continue;
        }
        list.size = (size_t)(varint_put(list.at + list.size, value) - list.at);
        if (i + 1 == n || i + 1 == n + k) {
            message(&m, i < n ? 1 : 2, &list);
            list.size = 0;
        }
    }
    message(b, 2, &m);
}

/* 1 samples 2 count 3 cpu 4 nanoseconds 5 /bin/prog 6 an id 7 /lib/libc.so 8 calls 9 the mark of an export 10 delay */
static const char *const texts[] = {"",
                                    "samples",
                                    "count",
                                    "cpu",
                                    "nanoseconds",
                                    "/bin/prog",
                                    "DEADBEEF01",
                                    "/lib/libc.so",
                                    "calls",
                                    "synthetic: stacks are derived from call counts, never observed",
                                    "delay"};

static void strings(struct bytes *b)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        blob(b, 6, texts[i], strlen(texts[i]));
    }
}

#define SAMPLE(b, packed, ids, ...)                                                                                    \
    sample(b, packed, (const uint64_t[])ids, sizeof((const uint64_t[])ids) / 8, (const uint64_t[]){__VA_ARGS__},       \
           sizeof((const uint64_t[]){__VA_ARGS__}) / 8)
#define IDS(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static struct arena *arena;

static enum profd_status parse(const struct bytes *b, const char *event, const struct import_profile **out,
                               struct profd_error *e)
{
    struct import_profile *p;
    arena_free(arena);
    arena = arena_new(16u << 20);
    enum profd_status status = import_pprof_parse(b->at, b->size, event, arena, &p, e);
    if (status == PROFD_OK) {
        *out = p;
    }
    return status;
}

static const struct import_profile *parsed(const struct bytes *b)
{
    const struct import_profile *p = NULL;
    struct profd_error e = {""};
    cr_assert_eq(parse(b, NULL, &p, &e), PROFD_OK, "%s", e.sentence);
    return p;
}

/* A CPU profile of two mappings, locations 1 and 2 in the program, 30 in the library. */
static struct bytes cpu_profile(void)
{
    struct bytes b = {.size = 0};
    two(&b, 1, 1, 2);
    two(&b, 1, 3, 4);
    mapping(&b, 1, 0x555500001000, 0x555500002000, 0x1000, 5, 6);
    mapping(&b, 9, 0x7f0000000000, 0x7f0000100000, 0x26000, 7, 0);
    location(&b, 1, 1, 0x555500001136);
    location(&b, 2, 1, 0x555500001200);
    location(&b, 30, 9, 0x7f0000000010);
    strings(&b);
    two(&b, 11, 3, 4);
    number(&b, 12, 10000000);
    number(&b, 9, UINT64_C(1700000000000000000));
    number(&b, 10, UINT64_C(5000000000));
    return b;
}

Test(pprof, stacks_become_ticks_and_a_tree)
{
    for (int packed = 0; packed < 2; packed++) {
        struct bytes b = cpu_profile();
        SAMPLE(&b, packed, IDS(1, 2), 3, 30000000);
        SAMPLE(&b, packed, IDS(30, 1, 2), 2, 20000000);
        SAMPLE(&b, packed, IDS(2), 1, 10000000);
        const struct import_profile *p = parsed(&b);
        cr_assert_eq(p->frame_count, 3);
        cr_assert_eq(p->frames[0].address, 0x1136, "an offset in the file");
        cr_assert_eq(p->frames[2].address, 0x26010);
        cr_assert_eq(p->objects[0].addressing, IMPORT_IN_FILE);
        cr_assert_str_eq(p->objects[0].build_id, "deadbeef01");
        cr_assert_null(p->objects[1].build_id);
        cr_assert_str_eq(p->objects[1].path, "/lib/libc.so");
        cr_assert(p->objects[0].low == 0x1000 && p->objects[0].high == 0x2000);
        cr_assert_eq(p->frames[0].ticks, 3);
        cr_assert_eq(p->frames[1].ticks, 1);
        cr_assert_eq(p->frames[2].ticks, 2);
        cr_assert(strcmp(p->dimension, "seconds") == 0 && p->rate == 100);
        cr_assert(p->pair_count == 0 && !p->sampled, "no call was counted");
        cr_assert(p->whole_stacks && p->node_count == 5, "2 → 1, 2 → 1 → 30, 2");
        cr_assert(p->nodes[0].parent == IMPORT_NONE && p->nodes[0].frame == 1 && !p->nodes[0].leaf);
        cr_assert(p->nodes[1].parent == 0 && p->nodes[1].frame == 0 && p->nodes[1].leaf && p->nodes[1].ticks == 3);
        cr_assert(p->nodes[3].parent == 2 && p->nodes[2].parent == 0 && p->nodes[3].ticks == 2);
        cr_assert(p->nodes[4].leaf && p->nodes[4].parent == IMPORT_NONE && p->nodes[4].ticks == 1);
        cr_assert_eq(p->program_object, 0);
        cr_assert(p->start == UINT64_C(1700000000000000000) && p->end == UINT64_C(1700000005000000000));
    }
}

Test(pprof, time_that_is_not_samples_times_the_period)
{
    struct bytes b = cpu_profile();
    SAMPLE(&b, true, IDS(1), 3, 31234567);
    const struct import_profile *p = parsed(&b);
    cr_assert_eq(p->frames[0].ticks, 31234567);
    cr_assert(strcmp(p->dimension, "seconds") == 0 && p->rate == 1000000000);
}

Test(pprof, addresses_that_are_link_time_already)
{
    struct bytes b = {.size = 0};
    two(&b, 1, 1, 2);
    mapping(&b, 1, 0, 0x500000, 0, 5, 6); /* as profd's own exports */
    mapping(&b, 2, 0x7f0000000000, 0x7f0000100000, 0x1000, 7,
            6); /* collectors that moved addresses, but not mappings */
    location(&b, 1, 1, 0x401136);
    location(&b, 2, 2, 0x26010);
    strings(&b);
    SAMPLE(&b, false, IDS(1, 2), 3);
    const struct import_profile *p = parsed(&b);
    cr_assert(p->objects[0].addressing == IMPORT_LINK_TIME && p->frames[0].address == 0x401136);
    cr_assert(p->objects[1].addressing == IMPORT_LINK_TIME && p->frames[1].address == 0x26010);
    cr_assert(strcmp(p->dimension, "samples") == 0 && p->rate == 1, "nothing says how long a sample is: %s",
              p->dimension);
}

Test(pprof, own_exports_have_exact_calls)
{
    struct bytes b = cpu_profile();
    two(&b, 1, 8, 2);
    number(&b, 13, 9);
    SAMPLE(&b, true, IDS(1, 2), 3, 30000000, 0); /* derived: says nothing about calls */
    SAMPLE(&b, true, IDS(1, 2), 0, 0, 1234567);
    SAMPLE(&b, true, IDS(2), 0, 0, 9);
    const struct import_profile *p = parsed(&b);
    cr_assert(!p->sampled);
    cr_assert_eq(p->pair_count, 2);
    cr_assert(p->pairs[0].from == 1 && p->pairs[0].to == 0 && p->pairs[0].calls == 1234567);
    cr_assert(p->pairs[1].from == 1 && p->pairs[1].to == 1 && p->pairs[1].calls == 9, "recursion");
    cr_assert_eq(p->frames[0].ticks, 3);
    blob(&b, 6, "calls: sampled, where they were not counted", 43);
    number(&b, 13, 11);
    cr_assert(parsed(&b)->sampled);
}

Test(pprof, elapsed_time_and_other_dimensions)
{
    struct bytes b = {.size = 0};
    two(&b, 1, 1, 2);
    two(&b, 1, 11, 4);
    mapping(&b, 1, 0, 0x500000, 0, 5, 6);
    location(&b, 1, 1, 0x401136);
    strings(&b);
    blob(&b, 6, "wall", 4);
    blob(&b, 6, "instructions", 12);
    two(&b, 11, 11, 4);
    number(&b, 12, 10000000);
    SAMPLE(&b, true, IDS(1), 3, 30000000);
    const struct import_profile *p = parsed(&b);
    cr_assert(strcmp(p->dimension, "wall") == 0 && p->rate == 100 && p->frames[0].ticks == 3);
    b.size = 0;
    two(&b, 1, 1, 2);
    two(&b, 1, 12, 2);
    mapping(&b, 1, 0, 0x500000, 0, 5, 6);
    location(&b, 1, 1, 0x401136);
    strings(&b);
    blob(&b, 6, "wall", 4);
    blob(&b, 6, "instructions", 12);
    two(&b, 11, 12, 2);
    number(&b, 12, 1);
    number(&b, 14, 12);
    SAMPLE(&b, true, IDS(1), 7, 7);
    p = parsed(&b);
    cr_assert(strcmp(p->dimension, "instructions") == 0 && p->abbreviation == 'I' && p->rate == 1 &&
              p->frames[0].ticks == 7);
}

Test(pprof, another_type_is_a_dimension)
{
    struct bytes b = cpu_profile();
    two(&b, 1, 10, 4);
    SAMPLE(&b, true, IDS(1), 3, 30000000, 77);
    const struct import_profile *p;
    struct profd_error e = {""};
    cr_assert_eq(parse(&b, "delay", &p, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(strcmp(p->dimension, "delay") == 0 && p->rate == 1 && p->frames[0].ticks == 77);
    cr_assert_eq(parse(&b, "alloc_space", &p, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "alloc_space") && strstr(e.sentence, "samples"), "%s", e.sentence);
}

Test(pprof, what_cannot_be_a_profile_is_refused_by_name)
{
    const struct import_profile *p;
    struct profd_error e = {""};
    struct bytes b = cpu_profile();
    SAMPLE(&b, true, IDS(1, 31), 1, 1);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "location 31"), "%s", e.sentence);
    b = cpu_profile();
    SAMPLE(&b, true, IDS(1), (uint64_t)-5, 1);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_REFUSED);
    cr_expect(strstr(e.sentence, "-5") && strstr(e.sentence, "difference"), "%s", e.sentence);
    b = cpu_profile();
    SAMPLE(&b, true, IDS(1), 1);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "fewer values"), "%s", e.sentence);
    b = cpu_profile();
    SAMPLE(&b, false, IDS(1), 1, 2, 3);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "more values"), "%s", e.sentence);
    b = cpu_profile();
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_REFUSED);
    cr_expect(strstr(e.sentence, "0 samples"), "%s", e.sentence);
    b = cpu_profile();
    mapping(&b, 1, 0, 1, 0, 5, 6);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "the same id"), "%s", e.sentence);
    b = cpu_profile();
    location(&b, 77, 4, 1);
    SAMPLE(&b, true, IDS(1), 1, 2);
    cr_expect_eq(parse(&b, NULL, &p, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "mapping 4"), "%s", e.sentence);
}

Test(pprof, names_alone_do_not_tell_what_ran)
{
    struct bytes b = {.size = 0};
    const struct import_profile *p;
    struct profd_error e = {""};
    two(&b, 1, 1, 2);
    location(&b, 1, 0, 0);
    location(&b, 2, 0, 0);
    strings(&b);
    SAMPLE(&b, true, IDS(1, 2), 1);
    cr_assert_eq(parse(&b, NULL, &p, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "none of its 2 locations has an address"), "%s", e.sentence);
}

Test(pprof, every_cut_is_refused_or_read_within_its_bytes)
{
    struct bytes b = cpu_profile();
    SAMPLE(&b, true, IDS(1, 2), 3, 30000000);
    uint32_t refused = 0;
    for (size_t n = 0; n < b.size; n++) {
        uint8_t *exact = malloc(n ? n : 1);
        struct import_profile *p;
        struct profd_error e = {""};
        memcpy(exact, b.at, n);
        struct arena *a = arena_new(1u << 20);
        enum profd_status status = import_pprof_parse(exact, n, NULL, a, &p, &e);
        cr_expect(status == PROFD_OK || e.sentence[0], "cut at %zu", n);
        refused += status != PROFD_OK;
        arena_free(a);
        free(exact);
    }
    cr_assert_eq(refused, b.size, "what is cut has no sample, which comes last");
}
