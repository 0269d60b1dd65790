/* Builds a small executable and profile by hand for the tests of compat/. */
#include "tests/unit/compat/bed.h"

#include <criterion/criterion.h>
#include <string.h>

struct bed *bed_new(uint64_t low, uint64_t high)
{
    struct arena *a = arena_new(0);
    struct bed *b = ARENA_NEW(a, struct bed);
    cr_assert_not_null(b);
    b->arena = a;
    b->text = (struct object_range){low, high, OBJECT_RANGE_TEXT};
    b->object.symbols = b->symbols;
    b->object.ranges = &b->text;
    b->object.range_count = 1;
    b->object.names = b->names;
    b->object.name_bytes = 1;
    b->counts = (struct counts){.histograms = b->histograms,
                                .bin_index = b->bin_index,
                                .bin_ticks = b->bin_ticks,
                                .from_build = b->from_build,
                                .to_build = b->to_build,
                                .from = b->from,
                                .to = b->to,
                                .calls = b->calls};
    return b;
}

void bed_free(struct bed *b)
{
    arena_free(b->arena);
}

uint32_t bed_name(struct bed *b, const char *text)
{
    uint32_t at = b->object.name_bytes;
    size_t n = strlen(text) + 1;
    cr_assert(at + n <= sizeof b->names);
    memcpy(b->names + at, text, n);
    b->object.name_bytes += (uint32_t)n;
    return at;
}

struct object_symbol *bed_symbol(struct bed *b, const char *name, uint64_t address, enum object_bind bind,
                                 enum object_type type)
{
    cr_assert(b->object.symbol_count < BED_MAX);
    struct object_symbol *s = &b->symbols[b->object.symbol_count++];
    *s = (struct object_symbol){
        .address = address, .bind = (uint8_t)bind, .type = (uint8_t)type, .flags = OBJECT_SYMBOL_EXECUTABLE};
    s->name = s->demangled = bed_name(b, name);
    return s;
}

void bed_function(struct bed *b, const char *name, uint64_t address)
{
    bed_symbol(b, name, address, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
}

struct counts_histogram *bed_histogram(struct bed *b, uint64_t low, uint64_t high, uint32_t bins)
{
    struct counts_histogram *h = &b->histograms[b->counts.histogram_count++];
    *h = (struct counts_histogram){.bins = bins,
                                   .low = low,
                                   .high = high,
                                   .rate = 100,
                                   .dimension = "seconds",
                                   .abbreviation = 's',
                                   .first = b->counts.bin_count};
    return h;
}

void bed_bin(struct bed *b, uint32_t index, uint64_t ticks)
{
    b->bin_index[b->counts.bin_count] = index;
    b->bin_ticks[b->counts.bin_count++] = ticks;
    b->histograms[b->counts.histogram_count - 1].used++;
}

void bed_arc(struct bed *b, uint64_t from, uint64_t to, uint64_t calls)
{
    cr_assert(b->counts.arc_count < BED_MAX);
    b->from[b->counts.arc_count] = from;
    b->to[b->counts.arc_count] = to;
    b->calls[b->counts.arc_count++] = calls;
}

const char *bed_print(struct bed *b, const struct compat_options *options)
{
    struct buffer out;
    buffer_init(&out, 1u << 26);
    enum profd_status status = compat_print(options, &b->object, &b->counts, b->arena, &out, &b->error);
    cr_assert_eq(status, PROFD_OK, "%s", b->error.sentence);
    const char *text = arena_copy(b->arena, out.data == NULL ? "" : out.data, out.size);
    buffer_done(&out);
    return text;
}

enum profd_status bed_status(struct bed *b, const struct compat_options *options)
{
    struct buffer out;
    buffer_init(&out, 1u << 26);
    buffer_add_text(&out, "before");
    enum profd_status status = compat_print(options, &b->object, &b->counts, b->arena, &out, &b->error);
    cr_assert(status == PROFD_OK || (out.size == 6 && memcmp(out.data, "before", 6) == 0));
    buffer_done(&out);
    return status;
}
