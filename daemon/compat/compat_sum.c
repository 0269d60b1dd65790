#include "compat/compat_sum.h"

#include <string.h>

static void number_add(struct buffer *out, uint64_t value, unsigned width)
{
    char bytes[8];
    for (unsigned i = 0; i < width; i++) {
        bytes[i] = (char)(value >> 8 * i & 255);
    }
    buffer_add(out, bytes, width);
}

static void range_write(const struct compat_run *r, const struct compat_hist_range *h, unsigned pointer,
                        struct buffer *out)
{
    buffer_add_char(out, 0);
    number_add(out, h->low, pointer);
    number_add(out, h->high, pointer);
    number_add(out, h->bins, 4);
    number_add(out, r->hist.rate, 4);
    buffer_add(out, r->hist.dimension, 15);
    buffer_add_char(out, r->hist.abbreviation);
    char *bins = buffer_extend(out, (size_t)h->bins * 2);
    if (bins == NULL) {
        return;
    }
    memset(bins, 0, (size_t)h->bins * 2);
    for (uint64_t i = 0; i < h->used; i++) {
        if (h->index[i] >= h->bins) {
            continue;
        }
        bins[2 * (size_t)h->index[i]] = (char)(h->ticks[i] & 255);
        bins[2 * (size_t)h->index[i] + 1] = (char)(h->ticks[i] >> 8 & 255);
    }
}

void compat_sum_write(const struct compat_run *r, unsigned pointer, bool blocks, struct buffer *out)
{
    const struct compat_arcs *arcs = &r->arcs;
    buffer_add_text(out, "gmon");
    number_add(out, 1, 4);
    buffer_add_repeat(out, 0, 12);
    for (uint32_t i = 0; i < r->hist.range_count; i++) {
        range_write(r, &r->hist.ranges[i], pointer, out);
    }
    for (uint32_t v = 0; v < r->symbols.count && r->has_arcs; v++) {
        for (uint32_t i = arcs->recorded[v]; i-- > arcs->child_first[v];) {
            buffer_add_char(out, 1);
            number_add(out, r->symbols.address[v], pointer);
            number_add(out, r->symbols.address[arcs->child[i]], pointer);
            number_add(out, arcs->calls[i], 4);
        }
    }
    if (blocks) {
        buffer_add_char(out, 2);
        number_add(out, 0, 4);
    }
}
