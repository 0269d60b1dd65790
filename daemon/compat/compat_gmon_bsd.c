#include <inttypes.h>
#include <string.h>

#include "compat/compat_gmon_internal.h"

#define VERSION_44 0x00051879u
#define RATE_UNKNOWN 100u /* ticks per second: the old header does not state them */

/* low, high, bytes of header and bins; since 4.4BSD followed by a version and a rate */
struct header {
    uint64_t low, high, bytes, version, rate;
    unsigned size;
};

static enum profd_status too_short(const struct gmon_file *f)
{
    return gmon_complain(f, PROFD_MALFORMED, "%s: file too short to be a gmon file\n", f->name);
}

static enum profd_status read_header(struct gmon_file *f, struct header *out)
{
    struct compat_gmon *g = f->g;
    struct header h = {.size = 2 * g->pointer + 4};
    bool others = g->has_bsd || g->counts.histogram_count > 0;
    uint32_t rate = g->counts.histogram_count > 0 ? g->counts.histograms[0].rate : g->bsd_rate;
    f->at = 0;
    if (!gmon_take(f, g->pointer, &h.low) || !gmon_take(f, g->pointer, &h.high) || !gmon_take(f, 4, &h.bytes) ||
        !gmon_take(f, 4, &h.version)) {
        return too_short(f);
    }
    if (h.version == VERSION_44) {
        if (!gmon_take(f, 4, &h.rate)) {
            return too_short(f);
        }
        /* As in gprof, a signed number is compared with an unsigned one. */
        if (others && (int64_t)rate != (int32_t)h.rate) {
            return gmon_complain(f, PROFD_CONFLICT, "%s: profiling rate incompatible with first gmon file\n", f->name);
        }
        h.size += 20;
    }
    /* Also after files of the new format. */
    if (others && (g->bsd_low != h.low || g->bsd_high != h.high || g->bsd_bytes != h.bytes)) {
        return gmon_complain(f, PROFD_CONFLICT, "%s: incompatible with first gmon file\n", f->name);
    }
    if ((int32_t)((uint32_t)h.bytes - h.size) < 0 || h.low > h.high) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: file '%s' does not appear to be in gmon.out format\n", g->program,
                             f->name);
    }
    f->at = h.size < f->size ? h.size : f->size;
    *out = h;
    return PROFD_OK;
}

static enum profd_status read_bins(struct gmon_file *f, const struct header *h)
{
    struct compat_gmon *g = f->g;
    uint32_t bins = ((uint32_t)h->bytes - h->size) / 2;
    size_t there = (f->size - f->at) / 2;
    if (there < bins) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: unexpected EOF after reading %zd/%" PRIu32 " bins\n", g->program,
                             (ptrdiff_t)there - 1, bins);
    }
    struct counts_histogram r = {
        .bins = bins, .low = h->low, .high = h->high, .rate = g->bsd_rate, .abbreviation = 's'};
    memcpy(r.dimension, "seconds", 8);
    if (!gmon_add_bins(g, &r, f->in + f->at, bins)) {
        return gmon_too_large(f);
    }
    g->histograms = bins > 0;
    f->at += (size_t)bins * 2;
    return PROFD_OK;
}

enum profd_status gmon_read_bsd(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    struct header h;
    enum profd_status status = read_header(f, &h);
    if (status != PROFD_OK) {
        return status;
    }
    if (!g->has_bsd) {
        g->bsd_rate = h.version == VERSION_44 && h.rate != 0 ? (uint32_t)h.rate : RATE_UNKNOWN;
    }
    g->has_bsd = g->has_histogram = g->has_arcs = true;
    g->bsd_low = h.low;
    g->bsd_high = h.high;
    g->bsd_bytes = (uint32_t)h.bytes;
    status = read_bins(f, &h);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t most = (f->size - f->at) / (3 * g->pointer);
    if (!gmon_reserve_arcs(g, most)) {
        return gmon_too_large(f);
    }
    /* An incomplete arc at the end is ignored. */
    for (uint64_t i = 0; i < most; i++) {
        uint64_t from = 0, to = 0, calls = 0;
        (void)gmon_take(f, g->pointer, &from);
        (void)gmon_take(f, g->pointer, &to);
        (void)gmon_take(f, g->pointer, &calls);
        gmon_add_arc(g, from, to, calls);
    }
    g->arcs = (uint32_t)most;
    return PROFD_OK;
}
