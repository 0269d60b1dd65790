#include "proto/gmon.h"

#include <stdlib.h>
#include <string.h>

#define GMON_MAGIC "gmon"
#define GMON_MAGIC_SIZE 4
#define GMON_VERSION 1
#define GMON_HEADER_SIZE 20 /* magic, u32 version, 12 spare bytes */

enum gmon_tag { GMON_TAG_HISTOGRAM = 0, GMON_TAG_ARC = 1, GMON_TAG_BLOCKS = 2 };

#define GMON_DIMENSION_SIZE 15 /* NUL-padded, perhaps without a NUL; an abbreviation follows */
#define GMON_HISTOGRAM_TAIL 24 /* after the two pointers: u32 bins, u32 rate, dimension, abbreviation */
#define GMON_ARC_TAIL 4        /* after the two pointers: u32 count */
#define GMON_BIN_MAX 65535u
#define GMON_ARC_MAX 4294967295u

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

static enum profd_status gmon_read_histogram(struct gmon_reader *r, size_t start, struct counts *c,
                                             struct gmon_sizes *done, struct profd_error *e)
{
    struct counts_histogram h = {0};
    TRY(gmon_need(r, 2 * r->pointer + GMON_HISTOGRAM_TAIL, "histogram", start, e));
    h.low = gmon_get(r, r->pointer);
    h.high = gmon_get(r, r->pointer);
    h.bins = (uint32_t)gmon_get(r, 4);
    h.rate = (uint32_t)gmon_get(r, 4);
    const char *dimension = (const char *)r->in + r->at;
    memcpy(h.dimension, dimension, strnlen(dimension, GMON_DIMENSION_SIZE));
    h.abbreviation = dimension[GMON_DIMENSION_SIZE];
    r->at += GMON_DIMENSION_SIZE + 1;
    FAIL_IF(h.low >= h.high, e, PROFD_MALFORMED,
            "gmon.out: histogram at offset %zu: low 0x%llx is not below high 0x%llx", start, (unsigned long long)h.low,
            (unsigned long long)h.high);
    FAIL_IF(h.bins == 0, e, PROFD_MALFORMED, "gmon.out: histogram at offset %zu has no bins", start);
    FAIL_IF(h.rate == 0, e, PROFD_MALFORMED, "gmon.out: histogram at offset %zu: 0 ticks per second", start);
    TRY(gmon_need(r, (uint64_t)h.bins * 2, "histogram", start, e));
    const uint64_t first = done->bins;
    for (uint32_t i = 0; i < h.bins; i++) {
        const uint64_t ticks = gmon_get(r, 2);
        if (ticks == 0) {
            continue;
        }
        if (c != NULL) {
            c->bin_index[done->bins] = i;
            c->bin_ticks[done->bins] = ticks;
        }
        done->bins++;
    }
    if (c != NULL) {
        h.first = (uint32_t)first;
        h.used = (uint32_t)(done->bins - first);
        c->histograms[done->histograms] = h;
    }
    done->histograms++;
    return PROFD_OK;
}

/* One pass over all records. c NULL: they are validated and counted; otherwise they are copied into it. Basic-block
 * counts are stepped over. */
static enum profd_status gmon_walk(struct gmon_reader r, struct counts *c, struct gmon_sizes *sizes,
                                   struct profd_error *e)
{
    struct gmon_sizes done = {0};
    while (r.at < r.size) {
        const size_t start = r.at;
        const uint8_t tag = r.in[r.at++];
        FAIL_IF(tag > GMON_TAG_BLOCKS, e, PROFD_MALFORMED,
                "gmon.out: record tag %u at offset %zu: only 0, 1 and 2 are known", tag, start);
        if (tag == GMON_TAG_HISTOGRAM) {
            TRY(gmon_read_histogram(&r, start, c, &done, e));
        } else if (tag == GMON_TAG_ARC) {
            TRY(gmon_need(&r, 2 * r.pointer + GMON_ARC_TAIL, "arc", start, e));
            const uint64_t from = gmon_get(&r, r.pointer), to = gmon_get(&r, r.pointer), calls = gmon_get(&r, 4);
            if (c != NULL) {
                c->from[done.arcs] = from;
                c->to[done.arcs] = to;
                c->calls[done.arcs] = calls;
            }
            done.arcs++;
        } else if (r.version == 0) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "gmon.out: basic-block record at offset %zu: those of version 0 are not read",
                                   start);
        } else {
            TRY(gmon_need(&r, 4, "basic-block record", start, e));
            const uint64_t bytes = gmon_get(&r, 4) * 2 * r.pointer;
            TRY(gmon_need(&r, bytes, "basic-block record", start, e));
            r.at += (size_t)bytes;
        }
    }
    *sizes = done;
    return PROFD_OK;
}

enum profd_status gmon_parse(const uint8_t *in, size_t n, const struct gmon_format *format, struct counts *c,
                             struct profd_error *e)
{
    FAIL_IF(format->pointer_size != 4 && format->pointer_size != 8, e, PROFD_REFUSED,
            "pointers of %u bytes: gmon.out has 4 or 8", format->pointer_size);
    FAIL_IF(n == 0, e, PROFD_MALFORMED, "gmon.out is empty: its header of %d bytes is missing", GMON_HEADER_SIZE);
    struct gmon_reader r = {.in = in, .size = n, .big_endian = format->big_endian, .pointer = format->pointer_size};
    struct gmon_sizes sizes = {0};
    FAIL_IF(memcmp(in, GMON_MAGIC, n < GMON_MAGIC_SIZE ? n : GMON_MAGIC_SIZE) != 0, e, PROFD_MALFORMED,
            "not a gmon.out: the magic number 'gmon' is missing at offset 0 (the old BSD format is not read)");
    TRY(gmon_need(&r, GMON_HEADER_SIZE, "header", 0, e));
    r.at = GMON_MAGIC_SIZE;
    r.version = (uint32_t)gmon_get(&r, 4);
    FAIL_IF(r.version == 0x1ffff, e, PROFD_MALFORMED,
            "gmon.out of version 0x1ffff at offset 4 is a shared library's, for sprof");
    FAIL_IF(r.version > GMON_VERSION, e, PROFD_MALFORMED, "gmon.out of version %u at offset 4: only 0 and 1 are read",
            r.version);
    r.at = GMON_HEADER_SIZE;
    FAIL_IF(r.at == r.size, e, PROFD_MALFORMED, "gmon.out ends at offset %zu, behind its header: it has no records",
            r.at);
    TRY(gmon_walk(r, NULL, &sizes, e));
    FAIL_IF(sizes.histograms > UINT32_MAX || sizes.bins > UINT32_MAX || sizes.arcs > UINT32_MAX, e, PROFD_TOO_LARGE,
            "gmon.out of %zu bytes holds more than 2^32 bins or arcs", n);
    struct counts result;
    TRY(counts_init(&result, (uint32_t)sizes.histograms, (uint32_t)sizes.bins, (uint32_t)sizes.arcs, e));
    enum profd_status status = gmon_walk(r, &result, &sizes, e);
    if (status == PROFD_OK) {
        *c = result;
    } else {
        counts_done(&result);
    }
    return status;
}

#define GMON_FILE_MAX (1ull << 30) /* one enormous bin repeats its whole histogram thousands of times */

struct gmon_writer {
    uint8_t *at;
    bool big_endian;
    unsigned pointer;
};

static void gmon_put(struct gmon_writer *w, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned shift = 8 * (w->big_endian ? width - 1 - i : i);
        *w->at++ = (uint8_t)(value >> shift);
    }
}

/* Returns how many records carry the value if each holds at most `most` of it; 1 for 0. */
static uint64_t gmon_repeats(uint64_t value, uint64_t most)
{
    return value == 0 ? 1 : value / most + (value % most != 0);
}

static uint64_t gmon_histogram_repeats(const struct counts *c, const struct counts_histogram *h)
{
    uint64_t most = 0;
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        most = c->bin_ticks[i] > most ? c->bin_ticks[i] : most;
    }
    return gmon_repeats(most, GMON_BIN_MAX);
}

static enum profd_status gmon_judge_address(uint64_t address, const struct gmon_format *f, struct profd_error *e)
{
    FAIL_IF(f->pointer_size == 4 && address > UINT32_MAX, e, PROFD_REFUSED,
            "address 0x%llx does not fit the 4 bytes of a pointer", (unsigned long long)address);
    return PROFD_OK;
}

/* Adds records of size bytes each to the size of the file. False beyond GMON_FILE_MAX. */
static bool gmon_grow(uint64_t *total, uint64_t records, uint64_t size)
{
    uint64_t bytes;
    return !__builtin_mul_overflow(records, size, &bytes) && !__builtin_add_overflow(*total, bytes, total) &&
           *total <= GMON_FILE_MAX;
}

/* Checks that a gmon.out can hold the counts, and computes its size. */
static enum profd_status gmon_measure(const struct counts *c, const struct gmon_format *f, uint64_t *size,
                                      struct profd_error *e)
{
    const uint64_t pointers = 2 * f->pointer_size;
    bool fits = true;
    *size = GMON_HEADER_SIZE;
    for (uint32_t i = 0; i < c->histogram_count && fits; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        FAIL_IF(h->build != 0, e, PROFD_REFUSED, "a histogram of build %u: a gmon.out can contain one build only",
                h->build);
        FAIL_IF(h->first > c->bin_count || h->used > c->bin_count - h->first || h->bins == 0, e, PROFD_REFUSED,
                "a histogram of %u bins, %u of them non-zero, %u in all", h->bins, h->used, c->bin_count);
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            FAIL_IF(c->bin_index[k] >= h->bins, e, PROFD_REFUSED, "bin %u of a histogram of %u", c->bin_index[k],
                    h->bins);
        }
        TRY(gmon_judge_address(h->low, f, e));
        TRY(gmon_judge_address(h->high, f, e));
        fits =
            gmon_grow(size, gmon_histogram_repeats(c, h), 1 + pointers + GMON_HISTOGRAM_TAIL + 2 * (uint64_t)h->bins);
    }
    for (uint32_t i = 0; i < c->arc_count && fits; i++) {
        FAIL_IF(c->from_build[i] != 0 || c->to_build[i] != 0, e, PROFD_REFUSED,
                "arc 0x%llx to 0x%llx leaves the build: a gmon.out can contain one build only",
                (unsigned long long)c->from[i], (unsigned long long)c->to[i]);
        TRY(gmon_judge_address(c->from[i], f, e));
        TRY(gmon_judge_address(c->to[i], f, e));
        fits = gmon_grow(size, gmon_repeats(c->calls[i], GMON_ARC_MAX), 1 + pointers + GMON_ARC_TAIL);
    }
    return fits ? PROFD_OK
                : profd_error_set(e, PROFD_TOO_LARGE,
                                  "these counts need a gmon.out of more than %llu bytes, because its bins hold 65535",
                                  (unsigned long long)GMON_FILE_MAX);
}

/* Returns the part of the value in the record of this number, from 0, if each holds at most `most` of it. */
static uint64_t gmon_part(uint64_t value, uint64_t repeat, uint64_t most)
{
    uint64_t before = repeat * most;
    if (value <= before) {
        return 0;
    }
    return value - before < most ? value - before : most;
}

enum profd_status gmon_format_file(const struct counts *c, const struct gmon_format *format, uint8_t **out,
                                   size_t *out_size, struct profd_error *e)
{
    FAIL_IF(format->pointer_size != 4 && format->pointer_size != 8, e, PROFD_REFUSED,
            "pointers of %u bytes: gmon.out has 4 or 8", format->pointer_size);
    uint64_t size = 0;
    TRY(gmon_measure(c, format, &size, e));
    uint8_t *block = calloc(1, (size_t)size);
    FAIL_IF(block == NULL, e, PROFD_NO_MEMORY, "no memory for a gmon.out of %llu bytes", (unsigned long long)size);
    struct gmon_writer w = {block, format->big_endian, format->pointer_size};
    memcpy(w.at, GMON_MAGIC, GMON_MAGIC_SIZE);
    w.at += GMON_MAGIC_SIZE;
    gmon_put(&w, GMON_VERSION, 4);
    w.at = block + GMON_HEADER_SIZE;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        const uint64_t repeats = gmon_histogram_repeats(c, h);
        for (uint64_t k = 0; k < repeats; k++) {
            *w.at++ = GMON_TAG_HISTOGRAM;
            gmon_put(&w, h->low, w.pointer);
            gmon_put(&w, h->high, w.pointer);
            gmon_put(&w, h->bins, 4);
            gmon_put(&w, h->rate, 4);
            memcpy(w.at, h->dimension, strnlen(h->dimension, GMON_DIMENSION_SIZE));
            w.at += GMON_DIMENSION_SIZE;
            *w.at++ = (uint8_t)h->abbreviation;
            uint8_t *bins = w.at;
            for (uint32_t n = h->first; n < h->first + h->used; n++) {
                w.at = bins + (size_t)c->bin_index[n] * 2;
                gmon_put(&w, gmon_part(c->bin_ticks[n], k, GMON_BIN_MAX), 2);
            }
            w.at = bins + (size_t)h->bins * 2;
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const uint64_t repeats = gmon_repeats(c->calls[i], GMON_ARC_MAX);
        for (uint64_t k = 0; k < repeats; k++) {
            *w.at++ = GMON_TAG_ARC;
            gmon_put(&w, c->from[i], w.pointer);
            gmon_put(&w, c->to[i], w.pointer);
            gmon_put(&w, gmon_part(c->calls[i], k, GMON_ARC_MAX), 4);
        }
    }
    *out = block;
    *out_size = (size_t)size;
    return PROFD_OK;
}
