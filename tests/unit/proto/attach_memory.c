/* A snapshot of a live process is read back; memory that is damaged, incomplete or false is refused or counted. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/attach_memory.h"
#include "tests/rounds.h"

#define PAGES 16

/* A snapshot as a process writes it: two modules, labels, one table of 4 + 4 slots. */
struct scene {
    uint8_t bytes[PAGES * ATTACH_PAGE] __attribute__((aligned(4096)));
    struct attach_header *h;
    struct attach_chunk *modules, *labels, *table;
    struct attach_module_row *rows;
    struct attach_slot *slots;
    struct attach_identity *ids;
};

static struct attach_chunk *chunk(struct scene *s, uint32_t kind, uint64_t pages)
{
    struct attach_chunk *c = (struct attach_chunk *)(void *)(s->bytes + s->h->used);
    c->magic = ATTACH_CHUNK_MAGIC;
    c->kind = kind;
    c->size = pages * ATTACH_PAGE;
    s->h->used += c->size;
    return c;
}

static void row_fill(struct attach_module_row *row, uint64_t low, uint64_t high, const char *name)
{
    row->low = low;
    row->high = high;
    row->bias = 0x555500000000;
    row->id_size = 20;
    memset(row->id, 0xab, 20);
    row->name_size = (uint16_t)strlen(name);
    memcpy(row->name, name, strlen(name));
    row->loaded = 1;
    row->state = 1;
}

static struct scene *scene(void)
{
    static struct scene s;
    memset(&s, 0, sizeof s);
    s.h = (struct attach_header *)(void *)s.bytes;
    *s.h = (struct attach_header){.magic = ATTACH_MAGIC,
                                  .layout = ATTACH_LAYOUT,
                                  .machine = 62,
                                  .size = ATTACH_SIZE_MIN,
                                  .used = ATTACH_PAGE,
                                  .pid = 7,
                                  .rate = 99,
                                  .mode = ATTACH_MODE_CPU,
                                  .modules = 2};
    s.modules = chunk(&s, ATTACH_KIND_MODULES, 4);
    s.modules->primary = 1;
    s.rows = (struct attach_module_row *)(void *)(s.modules + 1);
    row_fill(&s.rows[0], 0x400000, 0x500000, "/bin/program");
    row_fill(&s.rows[1], 0, 0x2000, "libx.so");
    s.labels = chunk(&s, ATTACH_KIND_LABELS, 1);
    static const char labels[] = "host=a\0service=x=y\0empty=";
    memcpy(s.labels + 1, labels, sizeof labels);
    s.labels->primary = sizeof labels;
    s.table = chunk(&s, ATTACH_KIND_ARCS, 1);
    s.table->primary = s.table->hash = 4;
    s.slots = (struct attach_slot *)(void *)(s.table + 1);
    s.ids = (struct attach_identity *)(void *)(s.slots + 8);
    s.slots[3] = (struct attach_slot){1, 11};
    s.ids[3] = (struct attach_identity){0x10, 0x20, 1, 2};
    s.slots[7] = (struct attach_slot){2, 22};
    s.ids[7] = (struct attach_identity){0, 0x30, ATTACH_MODULE_NONE, 1};
    return &s;
}

static struct attach_image parse(struct scene *s)
{
    struct attach_image image;
    struct profd_error e = {""};
    cr_assert_eq(attach_parse(s->bytes, s->h->used, &image, &e), PROFD_OK, "%s", e.sentence);
    return image;
}

Test(proto_attach, a_snapshot_reads_back)
{
    struct scene *s = scene();
    uint64_t used = 0;
    cr_assert_eq(attach_measure(s->bytes, ATTACH_PAGE, ATTACH_SIZE_MIN, &used, NULL), PROFD_OK);
    cr_assert_eq(used, 7 * ATTACH_PAGE);
    struct attach_image image = parse(s);
    cr_assert_eq(image.module_count, 2);
    cr_assert_eq(image.slots, 8);
    struct attach_module m;
    bool bad;
    cr_assert(attach_module_get(&image, 1, &m, &bad));
    cr_assert_eq(m.name_size, 12);
    cr_assert_eq(memcmp(m.name, "/bin/program", 12), 0);
    cr_assert_str_eq(m.id.text, "abababababababababababababababababababab");
    cr_assert_eq(m.low, 0x400000);
    cr_assert(m.loaded);
    cr_assert_not(attach_module_get(&image, 0, &m, &bad) || bad);
    cr_assert_not(attach_module_get(&image, 3, &m, &bad) || bad);
    struct attach_cursor cursor = {0};
    struct attach_count c;
    cr_assert(attach_count_next(&image, &cursor, &c));
    cr_assert(c.kind == ATTACH_KIND_ARCS && c.from_module == 1 && c.from == 0x400010 && c.self_module == 2 &&
              c.self == 0x20 && c.count == 11);
    cr_assert(c.table == 6 && c.slot == 3);
    cr_assert(attach_count_next(&image, &cursor, &c));
    cr_assert(c.from_module == ATTACH_MODULE_NONE && c.from == 0 && c.self == 0x400030 && c.count == 22);
    cr_assert_not(attach_count_next(&image, &cursor, &c));
    cr_assert(cursor.bad == 0 && cursor.not_yet == 0);
}

Test(proto_attach, labels_may_hold_equals_signs_and_nothing)
{
    struct scene *s = scene();
    struct attach_image image = parse(s);
    size_t at = 0, n;
    const char *name, *value;
    bool bad;
    static const char *const names[] = {"host", "service", "empty"}, *const values[] = {"a", "x=y", ""};
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(attach_label_next(&image, &at, &name, &n, &value, &bad));
        cr_assert(n == strlen(names[i]) && memcmp(name, names[i], n) == 0);
        cr_assert_str_eq(value, values[i]);
    }
    cr_assert_not(attach_label_next(&image, &at, &name, &n, &value, &bad));
    cr_assert_not(bad);
    ((char *)(s->labels + 1))[4] = '-'; /* "host-a" has no = */
    at = 0;
    cr_assert_not(attach_label_next(&image, &at, &name, &n, &value, &bad));
    cr_assert(bad);
    s->labels->primary = 3; /* cut before its NUL */
    image = parse(s);
    at = 0;
    cr_assert_not(attach_label_next(&image, &at, &name, &n, &value, &bad));
    cr_assert(bad);
}

Test(proto_attach, what_is_not_yet_written_is_not_read)
{
    struct scene *s = scene();
    struct attach_cursor cursor = {0};
    struct attach_count c;
    s->ids[3].self_module = 0; /* claimed, not yet named */
    s->rows[0].state = 0;      /* the row of the other one's callee is being written */
    struct attach_image image = parse(s);
    cr_assert_not(attach_count_next(&image, &cursor, &c));
    cr_assert(cursor.not_yet == 1 && cursor.bad == 0);
    s->table->magic = 0; /* taken, not yet published */
    image = parse(s);
    cr_assert_eq(image.slots, 0);
    cr_assert_eq(image.skipped, ATTACH_PAGE);
    s = scene();
    s->table->size = 8 * ATTACH_PAGE; /* in the file, but not in this snapshot */
    image = parse(s);
    cr_assert_eq(image.slots, 0);
}

static void refuse(struct scene *s, enum profd_status status, const char *word)
{
    struct attach_image image = {.slots = 77};
    struct profd_error e = {""};
    cr_assert_eq(attach_parse(s->bytes, s->h->used <= sizeof s->bytes ? s->h->used : sizeof s->bytes, &image, &e),
                 status, "%s", e.sentence);
    cr_assert(strstr(e.sentence, word), "'%s' lacks '%s'", e.sentence, word);
    cr_assert_eq(image.slots, 77);
}

Test(proto_attach, liars_are_refused_with_the_value)
{
    struct scene *s = scene();
    s->h->magic = 5;
    refuse(s, PROFD_MALFORMED, "0x5");
    s = scene();
    s->h->layout = 9;
    refuse(s, PROFD_UNKNOWN_VERSION, "layout 9");
    s = scene();
    s->h->machine = 3;
    refuse(s, PROFD_MALFORMED, "machine 3");
    s = scene();
    s->h->used = s->h->size + ATTACH_PAGE;
    refuse(s, PROFD_MALFORMED, "use 1052672 of");
    s = scene();
    s->h->modules = 10000;
    refuse(s, PROFD_MALFORMED, "10000 modules");
    s = scene();
    s->h->rate = 0;
    refuse(s, PROFD_MALFORMED, "0 ticks");
    s = scene();
    s->table->size = 5000;
    refuse(s, PROFD_MALFORMED, "chunk at 24576");
    s = scene();
    s->table->size = UINT64_MAX - ATTACH_PAGE + 1;
    refuse(s, PROFD_MALFORMED, "leaves the file");
    s = scene();
    s->table->primary = UINT32_MAX;
    refuse(s, PROFD_MALFORMED, "do not fit");
    s = scene();
    s->table->kind = 99;
    refuse(s, PROFD_MALFORMED, "kind 99");
    s = scene();
    s->modules->primary = 2;
    refuse(s, PROFD_MALFORMED, "not a chunk of modules");
    s = scene();
    s->modules->size = ATTACH_PAGE;
    refuse(s, PROFD_MALFORMED, "not a chunk of modules");
    s = scene();
    s->labels->primary = 5000;
    refuse(s, PROFD_MALFORMED, "does not fit");
    s = scene();
    chunk(s, ATTACH_KIND_MODULES, 4)->primary = 1;
    refuse(s, PROFD_MALFORMED, "there before");
    s = scene();
    chunk(s, ATTACH_KIND_LABELS, 1);
    refuse(s, PROFD_MALFORMED, "second set");
    uint64_t used = 3;
    struct profd_error e;
    s = scene();
    cr_assert_eq(attach_measure(s->bytes, ATTACH_PAGE, ATTACH_SIZE_MIN + 4096, &used, &e), PROFD_MALFORMED);
    cr_assert_eq(attach_measure(s->bytes, 100, ATTACH_SIZE_MIN, &used, &e), PROFD_MALFORMED);
    cr_assert_eq(used, 3);
}

Test(proto_attach, numbers_that_cannot_be_are_left_out_and_counted)
{
    struct scene *s = scene();
    struct attach_cursor cursor = {0};
    struct attach_count c;
    s->ids[3].from = 0x100000; /* one past the module */
    s->slots[7].count = 1ull << 63;
    struct attach_image image = parse(s);
    cr_assert_not(attach_count_next(&image, &cursor, &c));
    cr_assert_eq(cursor.bad, 2);
    struct attach_module m;
    bool bad;
    s->rows[0].high = s->rows[0].low;
    cr_assert_not(attach_module_get(&image, 1, &m, &bad));
    cr_assert(bad);
    s->rows[1].id_size = 65;
    cr_assert_not(attach_module_get(&image, 2, &m, &bad));
    cr_assert(bad);
    s->rows[1].id_size = 0;
    s->rows[1].name_size = 145;
    cr_assert_not(attach_module_get(&image, 2, &m, &bad));
    cr_assert(bad);
    static const uint64_t places[] = {1, 64, 4096, 4096 + 64, 6 * 4096 + 64, UINT64_MAX, UINT64_MAX - 63};
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) { /* none of them a NAME chunk's text */
        s->rows[1].name_at = places[i];
        cr_assert_not(attach_module_get(&image, 2, &m, &bad));
        cr_assert(bad);
    }
}

Test(proto_attach, a_long_name_has_a_chunk)
{
    struct scene *s = scene();
    struct attach_chunk *c = chunk(s, ATTACH_KIND_NAME, 1);
    memset(c + 1, 'n', 300);
    c->primary = 300;
    s->rows[1].name_at = (uint64_t)((uint8_t *)(c + 1) - s->bytes);
    s->rows[1].name_size = 300;
    struct attach_image image = parse(s);
    struct attach_module m;
    bool bad;
    cr_assert(attach_module_get(&image, 2, &m, &bad));
    cr_assert_eq(m.name_size, 300);
    s->rows[1].name_size = 301;
    cr_assert_not(attach_module_get(&image, 2, &m, &bad));
    cr_assert(bad);
}

Test(proto_attach, exact_is_said_only_when_nothing_is_missing)
{
    static const struct {
        enum attach_counter counter;
        bool calls, ticks;
    } cases[] = {{ATTACH_COUNTER_CALLS_LOST, false, true},
                 {ATTACH_COUNTER_CALLS_JUNK, false, true},
                 {ATTACH_COUNTER_MODULES_LOST, false, false},
                 {ATTACH_COUNTER_PAUSES, false, false},
                 {ATTACH_COUNTER_TICKS_DROPPED, true, false},
                 {ATTACH_COUNTER_TICKS_BLOCKED, true, false},
                 {ATTACH_COUNTER_THREADS_UNTIMED, true, false},
                 {ATTACH_COUNTER_FOREIGN_SIGPROF, true, false},
                 {ATTACH_COUNTER_FORKS_UNSEEN, false, true},
                 {ATTACH_COUNTER_OVERLAPS, false, true},
                 {ATTACH_COUNTER_LEFT_OUT, false, true},
                 {ATTACH_COUNTER_TICKS, true, true},
                 {ATTACH_COUNTER_CPU_NS, true, true},
                 {ATTACH_COUNTER_TICKS_UNDELIVERED, true, true},
                 {ATTACH_COUNTER_ENDED, true, true}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *s = scene();
        enum attach_counter why = ATTACH_COUNTER_COUNT;
        s->h->counters[cases[i].counter] = 1;
        struct attach_image image = parse(s);
        cr_assert_eq(attach_calls_exact(&image, &why), cases[i].calls, "%s", attach_counter_name(cases[i].counter));
        cr_assert(cases[i].calls || why == cases[i].counter);
        cr_assert_eq(attach_ticks_exact(&image, NULL), cases[i].ticks, "%s", attach_counter_name(cases[i].counter));
    }
    cr_assert_null(attach_counter_name(ATTACH_COUNTER_COUNT));
}

Test(proto_attach, undelivered_ticks_matter_beyond_the_error_of_the_sample)
{
    static const struct {
        uint64_t undelivered, ticks;
        uint32_t rate;
        bool matter;
    } cases[] = {
        {0, 0, 100, false},        {4, 4, 100, false}, /* 40 ms */
        {5, 4, 100, true},                             /* 25 of 9 */
        {5, 20, 100, false},                           /* 25 of 25 */
        {5, 19, 100, true},                            /* 25 of 24 */
        {49, 49, 1000, false},                         /* 49 ms */
        {100, 9900, 1000, false},                      /* the error of 10,000 */
        {101, 9900, 1000, true},   {1, 0, 10, false},  /* one is within its own error */
        {UINT64_MAX, 1, 99, true},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *s = scene();
        enum attach_counter why = ATTACH_COUNTER_COUNT;
        s->h->counters[ATTACH_COUNTER_TICKS_UNDELIVERED] = cases[i].undelivered;
        s->h->counters[ATTACH_COUNTER_TICKS] = cases[i].ticks;
        s->h->rate = cases[i].rate;
        struct attach_image image = parse(s);
        cr_assert_eq(attach_ticks_exact(&image, &why), !cases[i].matter, "case %u", i);
        cr_assert_eq(why, cases[i].matter ? ATTACH_COUNTER_TICKS_UNDELIVERED : ATTACH_COUNTER_COUNT);
    }
}

/* Bytes changed at random in a whole snapshot: whatever comes, nothing is read outside, and loops end. */
Test(proto_attach, mutations)
{
    uint64_t state = 12345;
    for (unsigned round = 0; round < rounds(8000); round++) {
        struct scene *s = scene();
        for (unsigned i = 0; i < 1 + round % 5; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t places[] = {(state >> 33) % sizeof *s->h, ATTACH_PAGE + (state >> 33) % 700,
                               5 * ATTACH_PAGE + (state >> 33) % 100, 6 * ATTACH_PAGE + (state >> 33) % 400};
            s->bytes[places[state >> 20 & 3]] = (uint8_t)(state >> 55);
        }
        size_t n = state >> 40 & 1 ? sizeof s->bytes : 7 * ATTACH_PAGE;
        uint8_t *copy = malloc(n); /* of exactly that size, for the sanitizers */
        memcpy(copy, s->bytes, n);
        struct attach_image image;
        struct attach_cursor cursor = {0};
        struct attach_count c;
        struct attach_module m;
        bool bad;
        uint64_t found = 0;
        if (attach_parse(copy, n, &image, NULL) == PROFD_OK) {
            while (attach_count_next(&image, &cursor, &c)) {
                found++;
            }
            cr_assert_leq(found, image.slots);
            for (uint32_t id = 0; id <= image.module_count + 1; id++) {
                attach_module_get(&image, id, &m, &bad);
            }
        }
        free(copy);
    }
}

/* A chunk of four nodes, numbers 5 to 8. */
static struct attach_node *nodes_add(struct scene *s, struct attach_chunk **c)
{
    *c = chunk(s, ATTACH_KIND_STACKS, 1);
    (*c)->magic = ATTACH_STACKS_MAGIC;
    (*c)->primary = 4;
    (*c)->hash = 5;
    return (struct attach_node *)(void *)(*c + 1);
}

Test(proto_attach, nodes_of_stacks_read_back)
{
    struct scene *s = scene();
    struct attach_chunk *c;
    struct attach_node *n = nodes_add(s, &c);
    n[0] = (struct attach_node){.parent = 7, .self = 0x20, .begin = 0x18, .kind = 1, .module = 1, .count = 3};
    n[2] = (struct attach_node){.self = ATTACH_INCOMPLETE, .begin = ATTACH_BEGIN_UNKNOWN, .module = ATTACH_MODULE_NONE};
    n[3] = (struct attach_node){.parent = 7, .self = 0x20, .begin = 0x21, .module = 2, .count = 9};
    struct attach_image image = parse(s);
    cr_assert(image.nodes == 8 && image.slots == 12);
    struct attach_cursor cursor = {0};
    struct attach_count count;
    uint64_t size;
    uint32_t slots, number;
    struct attach_frame f;
    cr_assert(attach_table_next(&image, &cursor, &size) && attach_table_next(&image, &cursor, &size));
    cr_assert(attach_table_kind(&image, &cursor, &slots) == ATTACH_KIND_STACKS && slots == 4 && size == ATTACH_PAGE);
    cr_assert_eq(attach_node_get(&image, &cursor, 0, &number, &f), ATTACH_THERE);
    cr_assert(number == 5 && f.parent == 7 && f.kind == ATTACH_NODE_PC && f.module == 1 && f.address == 0x400020 &&
              f.has_begin && f.begin == 0x400018 && !f.incomplete);
    cr_assert_eq(attach_node_get(&image, &cursor, 1, &number, &f), ATTACH_NOT_YET);
    cr_assert_eq(attach_node_get(&image, &cursor, 2, &number, &f), ATTACH_THERE);
    cr_assert(number == 7 && f.parent == 0 && f.incomplete && f.address == 0 && !f.has_begin);
    cr_assert_eq(attach_node_get(&image, &cursor, 3, &number, &f), ATTACH_BAD);
    cr_assert(attach_table_count(&image, &cursor, &count) && count.kind == ATTACH_KIND_STACKS && count.count == 3 &&
              count.from == 5 && count.self == 0x400020 && count.slot == 0);
    cr_assert(!attach_table_count(&image, &cursor, &count) && cursor.bad == 1 && cursor.not_yet == 0);
}

Test(proto_attach, chunks_of_stacks_that_cannot_be_are_refused)
{
    static const struct {
        uint32_t kind, primary, hash;
    } cases[] = {{ATTACH_KIND_STACKS, 0, 5},
                 {ATTACH_KIND_STACKS, 4, 0},
                 {ATTACH_KIND_STACKS, 127, 5},
                 {ATTACH_KIND_STACKS, 4, 65533},
                 {ATTACH_KIND_STACKS, UINT32_MAX, UINT32_MAX}};
    struct attach_image image;
    struct profd_error e;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *s = scene();
        struct attach_chunk *c;
        nodes_add(s, &c);
        c->kind = cases[i].kind;
        c->primary = cases[i].primary;
        c->hash = cases[i].hash;
        cr_assert_eq(attach_parse(s->bytes, s->h->used, &image, &e), PROFD_MALFORMED, "case %zu", i);
    }
    struct scene *s = scene();
    struct attach_chunk *c;
    nodes_add(s, &c);
    nodes_add(s, &c); /* the same numbers again */
    cr_assert_eq(attach_parse(s->bytes, s->h->used, &image, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "not a chunk of stacks"), "%s", e.sentence);
    c->hash = 9;
    cr_assert_eq(attach_parse(s->bytes, s->h->used, &image, &e), PROFD_OK);
}

/* A reader that knows only chunks with ATTACH_CHUNK_MAGIC goes over it page by page. */
Test(proto_attach, no_page_of_a_chunk_of_stacks_looks_like_another_chunk)
{
    struct scene *s = scene();
    struct attach_chunk *c;
    struct attach_node *n = nodes_add(s, &c);
    c->size = 3 * ATTACH_PAGE;
    s->h->used += 2 * ATTACH_PAGE;
    c->primary = (3 * ATTACH_PAGE - sizeof *c) / sizeof *n;
    for (uint32_t i = 0; i < c->primary; i++) {
        memset(&n[i], 0xff, sizeof n[i]);
        n[i].parent = ATTACH_NODES_MAX;
    }
    for (uint64_t at = ATTACH_PAGE; at < s->h->used; at += ATTACH_PAGE) {
        uint32_t magic;
        memcpy(&magic, s->bytes + at, sizeof magic);
        cr_assert((uint8_t *)c > s->bytes + at || magic != ATTACH_CHUNK_MAGIC);
    }
}
