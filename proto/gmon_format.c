#include "proto/gmon.h"

#include <stdlib.h>
#include <string.h>

#include "proto/gmon_layout.h"

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

/* Records that carry value when each holds at most most; 1 for 0. */
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
    if (f->pointer_size == 4 && address > UINT32_MAX) {
        return profd_error_set(e, PROFD_REFUSED, "address 0x%llx does not fit the 4 bytes of a pointer",
                               (unsigned long long)address);
    }
    return PROFD_OK;
}

static enum profd_status gmon_judge_histogram(const struct counts *c, const struct counts_histogram *h,
                                              const struct gmon_format *f, struct profd_error *e)
{
    if (h->build != 0) {
        return profd_error_set(e, PROFD_REFUSED, "a histogram of build %u: a gmon.out can contain one build only",
                               h->build);
    }
    if (h->first > c->bin_count || h->used > c->bin_count - h->first || h->bins == 0) {
        return profd_error_set(e, PROFD_REFUSED, "a histogram of %u bins, %u of them non-zero, %u in all", h->bins,
                               h->used, c->bin_count);
    }
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        if (c->bin_index[i] >= h->bins) {
            return profd_error_set(e, PROFD_REFUSED, "bin %u of a histogram of %u", c->bin_index[i], h->bins);
        }
    }
    enum profd_status status = gmon_judge_address(h->low, f, e);
    return status == PROFD_OK ? gmon_judge_address(h->high, f, e) : status;
}

static enum profd_status gmon_judge_arc(const struct counts *c, uint32_t i, const struct gmon_format *f,
                                        struct profd_error *e)
{
    if (c->from_build[i] != 0 || c->to_build[i] != 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "arc 0x%llx to 0x%llx leaves the build: a gmon.out can contain one build only",
                               (unsigned long long)c->from[i], (unsigned long long)c->to[i]);
    }
    enum profd_status status = gmon_judge_address(c->from[i], f, e);
    return status == PROFD_OK ? gmon_judge_address(c->to[i], f, e) : status;
}

/* Adds records of size bytes each to the size of the file. False beyond GMON_FILE_MAX. */
static bool gmon_grow(uint64_t *total, uint64_t records, uint64_t size)
{
    uint64_t bytes;
    return !__builtin_mul_overflow(records, size, &bytes) && !__builtin_add_overflow(*total, bytes, total) &&
           *total <= GMON_FILE_MAX;
}

static enum profd_status gmon_measure(const struct counts *c, const struct gmon_format *f, uint64_t *size,
                                      struct profd_error *e)
{
    uint64_t total = GMON_HEADER_SIZE, pointers = 2 * f->pointer_size;
    enum profd_status status = PROFD_OK;
    bool fits = true;
    for (uint32_t i = 0; i < c->histogram_count && status == PROFD_OK && fits; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        status = gmon_judge_histogram(c, h, f, e);
        if (status == PROFD_OK) {
            fits = gmon_grow(&total, gmon_histogram_repeats(c, h),
                             1 + pointers + GMON_HISTOGRAM_TAIL + 2 * (uint64_t)h->bins);
        }
    }
    for (uint32_t i = 0; i < c->arc_count && status == PROFD_OK && fits; i++) {
        status = gmon_judge_arc(c, i, f, e);
        if (status == PROFD_OK) {
            fits = gmon_grow(&total, gmon_repeats(c->calls[i], GMON_ARC_MAX), 1 + pointers + GMON_ARC_TAIL);
        }
    }
    if (status == PROFD_OK && !fits) {
        status = profd_error_set(e, PROFD_TOO_LARGE,
                                 "these counts need a gmon.out of more than %llu bytes, because its bins hold 65535",
                                 (unsigned long long)GMON_FILE_MAX);
    }
    if (status == PROFD_OK) {
        *size = total;
    }
    return status;
}

/* The repeat-th part of value when parts hold at most most. */
static uint64_t gmon_part(uint64_t value, uint64_t repeat, uint64_t most)
{
    uint64_t before = repeat * most;
    if (value <= before) {
        return 0;
    }
    return value - before < most ? value - before : most;
}

static void gmon_write_histogram(struct gmon_writer *w, const struct counts *c, const struct counts_histogram *h,
                                 uint64_t repeat)
{
    *w->at++ = GMON_TAG_HISTOGRAM;
    gmon_put(w, h->low, w->pointer);
    gmon_put(w, h->high, w->pointer);
    gmon_put(w, h->bins, 4);
    gmon_put(w, h->rate, 4);
    memset(w->at, 0, GMON_DIMENSION_SIZE);
    memcpy(w->at, h->dimension, strnlen(h->dimension, GMON_DIMENSION_SIZE));
    w->at += GMON_DIMENSION_SIZE;
    *w->at++ = (uint8_t)h->abbreviation;
    uint8_t *bins = w->at, *end = bins + (size_t)h->bins * 2;
    memset(bins, 0, (size_t)(end - bins));
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        w->at = bins + (size_t)c->bin_index[i] * 2;
        gmon_put(w, gmon_part(c->bin_ticks[i], repeat, GMON_BIN_MAX), 2);
    }
    w->at = end;
}

static void gmon_write_arc(struct gmon_writer *w, const struct counts *c, uint32_t i)
{
    uint64_t repeats = gmon_repeats(c->calls[i], GMON_ARC_MAX);
    for (uint64_t k = 0; k < repeats; k++) {
        *w->at++ = GMON_TAG_ARC;
        gmon_put(w, c->from[i], w->pointer);
        gmon_put(w, c->to[i], w->pointer);
        gmon_put(w, gmon_part(c->calls[i], k, GMON_ARC_MAX), 4);
    }
}

static void gmon_write(struct gmon_writer *w, const struct counts *c)
{
    memcpy(w->at, GMON_MAGIC, GMON_MAGIC_SIZE);
    w->at += GMON_MAGIC_SIZE;
    gmon_put(w, GMON_VERSION, 4);
    memset(w->at, 0, GMON_HEADER_SIZE - GMON_MAGIC_SIZE - 4);
    w->at += GMON_HEADER_SIZE - GMON_MAGIC_SIZE - 4;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        uint64_t repeats = gmon_histogram_repeats(c, &c->histograms[i]);
        for (uint64_t k = 0; k < repeats; k++) {
            gmon_write_histogram(w, c, &c->histograms[i], k);
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        gmon_write_arc(w, c, i);
    }
}

enum profd_status gmon_format_file(const struct counts *c, const struct gmon_format *format, uint8_t **out,
                                   size_t *out_size, struct profd_error *e)
{
    if (format->pointer_size != 4 && format->pointer_size != 8) {
        return profd_error_set(e, PROFD_REFUSED, "pointers of %u bytes: gmon.out has 4 or 8", format->pointer_size);
    }
    uint64_t size = 0;
    enum profd_status status = gmon_measure(c, format, &size, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint8_t *block = malloc((size_t)size);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a gmon.out of %llu bytes", (unsigned long long)size);
    }
    struct gmon_writer w = {block, format->big_endian, format->pointer_size};
    gmon_write(&w, c);
    *out = block;
    *out_size = (size_t)size;
    return PROFD_OK;
}
