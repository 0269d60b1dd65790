#include "compat/compat_gmon.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_gmon_internal.h"

#define HEADER_SIZE 20u

enum tag { TAG_HISTOGRAM, TAG_ARC, TAG_BLOCKS };

void compat_gmon_init(struct compat_gmon *g, struct arena *a, const char *program, unsigned pointer)
{
    *g = (struct compat_gmon){.arena = a, .program = program, .pointer = pointer};
}

static enum profd_status too_short(const struct gmon_file *f)
{
    return gmon_complain(f, PROFD_MALFORMED, "%s: %s: unexpected end of file\n", f->g->program, f->name);
}

static enum profd_status read_histogram(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    struct counts_histogram h = {0};
    uint64_t bins = 0, rate = 0;
    if (!gmon_take(f, g->pointer, &h.low) || !gmon_take(f, g->pointer, &h.high) || !gmon_take(f, 4, &bins) ||
        !gmon_take(f, 4, &rate) || f->size - f->at < 16) {
        return too_short(f);
    }
    h.bins = (uint32_t)bins;
    h.rate = (uint32_t)rate;
    memcpy(h.dimension, f->in + f->at, 15);
    h.abbreviation = (char)f->in[f->at + 15];
    f->at += 16;
    enum profd_status status = gmon_judge_histogram(f, &h);
    if (status != PROFD_OK) {
        return status;
    }
    size_t there = (f->size - f->at) / 2;
    if (there < h.bins) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: %s: unexpected EOF after reading %zu of %" PRIu32 " samples\n",
                             g->program, f->name, there, h.bins);
    }
    if (!gmon_add_bins(g, &h, f->in + f->at, h.bins)) {
        return gmon_too_large(f);
    }
    f->at += (size_t)h.bins * 2;
    return PROFD_OK;
}

static enum profd_status read_arc(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    uint64_t from = 0, to = 0, calls = 0;
    if (!gmon_take(f, g->pointer, &from) || !gmon_take(f, g->pointer, &to) || !gmon_take(f, 4, &calls)) {
        return too_short(f);
    }
    /* Reserves capacity for as many arcs as the rest of the file can hold: most files end with arcs only. */
    if (g->counts.arc_count == g->arc_capacity && !gmon_reserve_arcs(g, 1 + (f->size - f->at) / (2 * g->pointer + 5))) {
        return gmon_too_large(f);
    }
    gmon_add_arc(g, from, to, calls);
    return PROFD_OK;
}

/* Skips the contents of a basic-block record. If it is cut off, gprof prints the last error of the system; here there
 * is none. */
static enum profd_status read_blocks(struct gmon_file *f)
{
    uint64_t n = 0;
    if (!gmon_take(f, 4, &n)) {
        return too_short(f);
    }
    uint64_t bytes = n * 2 * f->g->pointer;
    if (f->g->version == 0) {
        return gmon_complain(f, PROFD_REFUSED, "%s: %s: basic-block records of version 0 are not read\n", f->g->program,
                             f->name);
    }
    if (bytes > f->size - f->at) {
        f->g->has_blocks =
            f->g->has_blocks || f->size - f->at >= 2 * f->g->pointer; /* gprof warns at the first complete one */
        return gmon_complain(f, PROFD_MALFORMED, "%s: Success\n", f->name);
    }
    f->at += (size_t)bytes;
    f->g->has_blocks = f->g->has_blocks || n > 0;
    return PROFD_OK;
}

static enum profd_status read_records(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    enum profd_status status = PROFD_OK;
    while (f->at < f->size && status == PROFD_OK) {
        uint8_t tag = f->in[f->at++];
        switch (tag) {
        case TAG_HISTOGRAM:
            g->histograms++;
            g->has_histogram = true;
            status = read_histogram(f);
            break;
        case TAG_ARC:
            g->arcs++;
            g->has_arcs = true;
            status = read_arc(f);
            break;
        case TAG_BLOCKS:
            g->blocks++;
            g->has_block_records = true;
            status = read_blocks(f);
            break;
        default:
            status = gmon_complain(f, PROFD_MALFORMED, "%s: %s: found bad tag %d (file corrupted?)\n", g->program,
                                   f->name, tag);
        }
    }
    return status;
}

enum profd_status compat_gmon_read(struct compat_gmon *g, const char *file, const uint8_t *in, size_t n,
                                   const char **complaint)
{
    struct gmon_file f = {g, file, in, 0, n, complaint};
    g->histograms = g->arcs = g->blocks = 0;
    if (n < HEADER_SIZE) {
        return gmon_complain(&f, PROFD_MALFORMED, "%s: file too short to be a gmon file\n", file);
    }
    if (memcmp(in, "gmon", 4) != 0) {
        return gmon_read_bsd(&f);
    }
    uint64_t version = 0;
    f.at = 4;
    (void)gmon_take(&f, 4, &version);
    g->version = (uint32_t)version;
    if (version > 1) {
        return gmon_complain(&f, PROFD_MALFORMED, "%s: file `%s' has unsupported version %" PRId32 "\n", g->program,
                             file, (int32_t)version);
    }
    f.at = HEADER_SIZE;
    return read_records(&f);
}
