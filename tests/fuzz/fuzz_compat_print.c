/* Any object and any counts, within what their decoders let through: no crash, no undefined behaviour, and whatever is
 * refused leaves the buffer as it was. Input: 16-byte records; the first byte says what a record is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

#define MOST 512
#define RECORD 16u

struct input {
    struct object object;
    struct object_symbol symbols[MOST];
    struct object_range text;
    char names[MOST * 16];
    struct counts counts;
    struct counts_histogram histograms[MOST];
    uint32_t bin_index[MOST], from_build[MOST], to_build[MOST];
    uint64_t bin_ticks[MOST], from[MOST], to[MOST], calls[MOST];
};

static uint64_t number(const uint8_t *p, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value |= (uint64_t)p[i] << 8 * i;
    }
    return value;
}

/* Mostly small, so that things meet; now and then near the end of the address space. */
static uint64_t address(const uint8_t *p)
{
    uint64_t value = number(p, 2);
    return p[2] == 0xff ? UINT64_MAX - value : p[2] == 0xfe ? value << 47 : value;
}

static void add_symbol(struct input *in, const uint8_t *p)
{
    struct object *o = &in->object;
    if (o->symbol_count == MOST) {
        return;
    }
    struct object_symbol *s = &in->symbols[o->symbol_count++];
    *s = (struct object_symbol){.address = address(p + 1), .bind = p[4] % 4, .type = p[5] % 5, .flags = p[6] % 8};
    s->name = s->demangled = o->name_bytes;
    memcpy(in->names + o->name_bytes, p + 7, 9);
    o->name_bytes += 10;
    if ((p[6] & 8) != 0) {
        s->file = s->name;
    }
}

static void add_counts(struct input *in, const uint8_t *p)
{
    struct counts *c = &in->counts;
    if (p[0] % 4 == 1 && c->histogram_count < MOST) {
        struct counts_histogram h = {.low = address(p + 1),
                                     .high = address(p + 4),
                                     .bins = 1 + (uint32_t)number(p + 7, p[10] % 4),
                                     .rate = 1 + p[11],
                                     .dimension = "seconds",
                                     .abbreviation = 's',
                                     .first = c->bin_count};
        if (h.low < h.high) {
            in->histograms[c->histogram_count++] = h;
        }
    } else if (p[0] % 4 == 2 && c->histogram_count > 0 && c->bin_count < MOST) {
        struct counts_histogram *h = &in->histograms[c->histogram_count - 1];
        uint32_t least = h->used == 0 ? 0 : in->bin_index[c->bin_count - 1] + 1,
                 step = (uint32_t)number(p + 1, p[4] % 4);
        if (least >= h->bins || step >= h->bins - least) {
            return;
        }
        in->bin_index[c->bin_count] = least + step;
        in->bin_ticks[c->bin_count++] = 1 + number(p + 5, p[13] % 8);
        h->used++;
    } else if (p[0] % 4 == 3 && c->arc_count < MOST) {
        in->from[c->arc_count] = address(p + 1);
        in->to[c->arc_count] = address(p + 4);
        in->from_build[c->arc_count] = p[15] == 0xff ? COUNTS_NOWHERE : 0;
        in->calls[c->arc_count++] = number(p + 7, p[15] % 9);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < RECORD) {
        return 0;
    }
    struct input *in = calloc(1, sizeof *in);
    struct arena *a = arena_new(64u << 20);
    if (in == NULL || a == NULL) {
        abort();
    }
    in->object.symbols = in->symbols;
    in->object.ranges = &in->text;
    in->object.range_count = data[0] != 0xff;
    in->object.names = in->names;
    in->object.name_bytes = 1;
    in->text = (struct object_range){address(data + 1), address(data + 4), OBJECT_RANGE_TEXT};
    in->counts = (struct counts){.histograms = in->histograms,
                                 .bin_index = in->bin_index,
                                 .bin_ticks = in->bin_ticks,
                                 .from_build = in->from_build,
                                 .to_build = in->to_build,
                                 .from = in->from,
                                 .to = in->to,
                                 .calls = in->calls};
    struct compat_options options = {.brief = (data[7] & 15) != 15,
                                     .no_flat = (data[7] & 16) != 0,
                                     .no_graph = (data[7] & 32) != 0,
                                     .all_symbols = (data[7] & 64) != 0,
                                     .width = data[8],
                                     .traditional = (data[7] & 128) != 0};
    for (size_t at = RECORD; size - at >= RECORD; at += RECORD) {
        if (data[at] % 4 == 0) {
            add_symbol(in, data + at);
        } else {
            add_counts(in, data + at);
        }
    }
    struct buffer out;
    buffer_init(&out, 16u << 20);
    buffer_add_text(&out, "before");
    struct profd_error e = {{0}};
    enum profd_status status = compat_print(&options, &in->object, &in->counts, a, &out, &e);
    if (status != PROFD_OK && (out.size != 6 || e.sentence[0] == '\0')) {
        abort();
    }
    buffer_done(&out);
    arena_free(a);
    free(in);
    return 0;
}
