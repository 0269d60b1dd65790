#include "proto/gmon.h"

#include <string.h>

#include "proto/gmon_layout.h"

struct gmon_reader {
    const uint8_t *in;
    size_t at, size;
    bool big_endian;
    unsigned pointer;
    uint32_t version;
};

/* Number of elements of each kind, 64 bits wide, checked before memory is taken. */
struct gmon_sizes {
    uint64_t histograms, bins, arcs;
};

static uint64_t gmon_get(struct gmon_reader *r, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) {
        unsigned k = r->big_endian ? i : width - 1 - i;
        value = value << 8 | r->in[r->at + k];
    }
    r->at += width;
    return value;
}

/* Checks that size more bytes exist for what, which began at offset start. */
static enum profd_status gmon_need(const struct gmon_reader *r, uint64_t size, const char *what, size_t start,
                                   struct profd_error *e)
{
    if (size <= r->size - r->at) {
        return PROFD_OK;
    }
    return profd_error_set(
        e, PROFD_MALFORMED,
        "gmon.out is cut off: the %s at offset %zu needs %llu more bytes at offset %zu, %zu are left", what, start,
        (unsigned long long)size, r->at, r->size - r->at);
}

static enum profd_status gmon_read_header(struct gmon_reader *r, struct profd_error *e)
{
    size_t n = r->size < GMON_MAGIC_SIZE ? r->size : GMON_MAGIC_SIZE;
    if (memcmp(r->in, GMON_MAGIC, n) != 0) {
        return profd_error_set(
            e, PROFD_MALFORMED,
            "not a gmon.out: the magic number 'gmon' is missing at offset 0 (the old BSD format is not read)");
    }
    enum profd_status status = gmon_need(r, GMON_HEADER_SIZE, "header", 0, e);
    if (status != PROFD_OK) {
        return status;
    }
    r->at = GMON_MAGIC_SIZE;
    r->version = (uint32_t)gmon_get(r, 4);
    if (r->version == 0x1ffff) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "gmon.out of version 0x1ffff at offset 4 is a shared library's, for sprof");
    }
    if (r->version > GMON_VERSION) {
        return profd_error_set(e, PROFD_MALFORMED, "gmon.out of version %u at offset 4: only 0 and 1 are read",
                               r->version);
    }
    r->at = GMON_HEADER_SIZE;
    return PROFD_OK;
}

/* Parses a histogram's geometry; *r is then at its bins, which are complete. */
static enum profd_status gmon_read_geometry(struct gmon_reader *r, size_t start, struct counts_histogram *h,
                                            struct profd_error *e)
{
    enum profd_status status = gmon_need(r, 2 * r->pointer + GMON_HISTOGRAM_TAIL, "histogram", start, e);
    if (status != PROFD_OK) {
        return status;
    }
    *h = (struct counts_histogram){0};
    h->low = gmon_get(r, r->pointer);
    h->high = gmon_get(r, r->pointer);
    h->bins = (uint32_t)gmon_get(r, 4);
    h->rate = (uint32_t)gmon_get(r, 4);
    const char *dimension = (const char *)r->in + r->at;
    memcpy(h->dimension, dimension, strnlen(dimension, GMON_DIMENSION_SIZE));
    h->abbreviation = dimension[GMON_DIMENSION_SIZE];
    r->at += GMON_DIMENSION_SIZE + 1;
    if (h->low >= h->high) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "gmon.out: histogram at offset %zu: low 0x%llx is not below high 0x%llx", start,
                               (unsigned long long)h->low, (unsigned long long)h->high);
    }
    if (h->bins == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "gmon.out: histogram at offset %zu has no bins", start);
    }
    if (h->rate == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "gmon.out: histogram at offset %zu: 0 ticks per second", start);
    }
    return gmon_need(r, (uint64_t)h->bins * 2, "histogram", start, e);
}

/* Bins that are not zero go to c from *bin on; c NULL: they are only counted. */
static void gmon_read_bins(struct gmon_reader *r, uint32_t bins, struct counts *c, uint64_t *bin)
{
    for (uint32_t i = 0; i < bins; i++) {
        uint64_t ticks = gmon_get(r, 2);
        if (ticks == 0) {
            continue;
        }
        if (c != NULL) {
            c->bin_index[*bin] = i;
            c->bin_ticks[*bin] = ticks;
        }
        ++*bin;
    }
}

static enum profd_status gmon_read_histogram(struct gmon_reader *r, size_t start, struct counts *c,
                                             struct gmon_sizes *done, struct profd_error *e)
{
    struct counts_histogram h;
    enum profd_status status = gmon_read_geometry(r, start, &h, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t first = done->bins;
    gmon_read_bins(r, h.bins, c, &done->bins);
    if (c != NULL) {
        h.first = (uint32_t)first;
        h.used = (uint32_t)(done->bins - first);
        c->histograms[done->histograms] = h;
    }
    done->histograms++;
    return PROFD_OK;
}

static enum profd_status gmon_read_arc(struct gmon_reader *r, size_t start, struct counts *c, struct gmon_sizes *done,
                                       struct profd_error *e)
{
    enum profd_status status = gmon_need(r, 2 * r->pointer + GMON_ARC_TAIL, "arc", start, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t from = gmon_get(r, r->pointer), to = gmon_get(r, r->pointer), calls = gmon_get(r, 4);
    if (c != NULL) {
        c->from[done->arcs] = from;
        c->to[done->arcs] = to;
        c->calls[done->arcs] = calls;
    }
    done->arcs++;
    return PROFD_OK;
}

/* Basic-block counts are stepped over. */
static enum profd_status gmon_skip_blocks(struct gmon_reader *r, size_t start, struct profd_error *e)
{
    if (r->version == 0) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "gmon.out: basic-block record at offset %zu: those of version 0 are not read", start);
    }
    enum profd_status status = gmon_need(r, 4, "basic-block record", start, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t bytes = gmon_get(r, 4) * 2 * r->pointer;
    status = gmon_need(r, bytes, "basic-block record", start, e);
    if (status == PROFD_OK) {
        r->at += (size_t)bytes;
    }
    return status;
}

/* One pass over all records. c NULL: they are validated and counted; otherwise they are copied into it. */
static enum profd_status gmon_walk(struct gmon_reader r, struct counts *c, struct gmon_sizes *sizes,
                                   struct profd_error *e)
{
    struct gmon_sizes done = {0};
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && r.at < r.size) {
        size_t start = r.at;
        uint8_t tag = r.in[r.at++];
        if (tag == GMON_TAG_HISTOGRAM) {
            status = gmon_read_histogram(&r, start, c, &done, e);
        } else if (tag == GMON_TAG_ARC) {
            status = gmon_read_arc(&r, start, c, &done, e);
        } else if (tag == GMON_TAG_BLOCKS) {
            status = gmon_skip_blocks(&r, start, e);
        } else {
            status = profd_error_set(e, PROFD_MALFORMED,
                                     "gmon.out: record tag %u at offset %zu: only 0, 1 and 2 are known", tag, start);
        }
    }
    if (status == PROFD_OK) {
        *sizes = done;
    }
    return status;
}

enum profd_status gmon_parse(const uint8_t *in, size_t n, const struct gmon_format *format, struct counts *c,
                             struct profd_error *e)
{
    if (format->pointer_size != 4 && format->pointer_size != 8) {
        return profd_error_set(e, PROFD_REFUSED, "pointers of %u bytes: gmon.out has 4 or 8", format->pointer_size);
    }
    if (n == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "gmon.out is empty: its header of %d bytes is missing",
                               GMON_HEADER_SIZE);
    }
    struct gmon_reader r = {.in = in, .size = n, .big_endian = format->big_endian, .pointer = format->pointer_size};
    struct gmon_sizes sizes = {0};
    enum profd_status status = gmon_read_header(&r, e);
    if (status == PROFD_OK && r.at == r.size) {
        status = profd_error_set(e, PROFD_MALFORMED,
                                 "gmon.out ends at offset %zu, behind its header: it has no records", r.at);
    }
    if (status == PROFD_OK) {
        status = gmon_walk(r, NULL, &sizes, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (sizes.histograms > UINT32_MAX || sizes.bins > UINT32_MAX || sizes.arcs > UINT32_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "gmon.out of %zu bytes holds more than 2^32 bins or arcs", n);
    }
    struct counts result;
    status = counts_init(&result, (uint32_t)sizes.histograms, (uint32_t)sizes.bins, (uint32_t)sizes.arcs, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = gmon_walk(r, &result, &sizes, e);
    if (status == PROFD_OK) {
        *c = result;
    } else {
        counts_done(&result);
    }
    return status;
}
