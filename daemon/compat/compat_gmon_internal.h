/* Shared by the readers of the formats. Private to compat_gmon*.c. */
#ifndef PROFD_COMPAT_COMPAT_GMON_INSIDE_H
#define PROFD_COMPAT_COMPAT_GMON_INSIDE_H

#include "compat/compat_gmon.h"

/* A file being read. */
struct gmon_file {
    struct compat_gmon *g;
    const char *name;
    const uint8_t *in;
    size_t at, size;
    const char **complaint;
};

/* Reads a little-endian number of width bytes. False at the end of the file; nothing is then read. */
static inline bool gmon_take(struct gmon_file *f, unsigned width, uint64_t *out)
{
    if (f->size - f->at < width) {
        return false;
    }
    uint64_t value = 0;
    for (unsigned i = width; i-- > 0;) {
        value = value << 8 | f->in[f->at + i];
    }
    f->at += width;
    *out = value;
    return true;
}

/* Sets the error message of the file; it stays empty if memory is exhausted. Returns status. */
#define gmon_complain(f, status, ...) (*(f)->complaint = arena_format((f)->g->arena, __VA_ARGS__), (status))

/* Sets the error message for a file that does not fit into memory. */
enum profd_status gmon_too_large(const struct gmon_file *f);

/* Compares a record of the new format with earlier ones by gprof's rules. Sets bins to those of the first record of the
 * range. */
enum profd_status gmon_judge_histogram(const struct gmon_file *f, struct counts_histogram *h);

/* Adds a histogram with the n bins of two bytes; false if it does not fit. */
bool gmon_add_bins(struct compat_gmon *g, struct counts_histogram *h, const uint8_t *bins, uint32_t n);

bool gmon_reserve_arcs(struct compat_gmon *g, uint64_t n);

/* After gmon_reserve_arcs. */
static inline void gmon_add_arc(struct compat_gmon *g, uint64_t from, uint64_t to, uint64_t calls)
{
    struct counts *c = &g->counts;
    c->from[c->arc_count] = from;
    c->to[c->arc_count] = to;
    c->calls[c->arc_count++] = calls;
}

/* Reads a file that does not begin with "gmon". */
enum profd_status gmon_read_bsd(struct gmon_file *f);

#endif
