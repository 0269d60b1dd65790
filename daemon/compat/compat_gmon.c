#include "compat/compat.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "compat/compat_run.h"

/* A file being read. */
struct gmon_file {
    struct compat_gmon *g;
    const char *name;
    const uint8_t *in;
    size_t at, size;
    const char **complaint;
};

/* Reads a little-endian number of width bytes. False at the end of the file; nothing is then read. */
static bool gmon_take(struct gmon_file *f, unsigned width, uint64_t *out)
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

/* After gmon_reserve_arcs. */
static void gmon_add_arc(struct compat_gmon *g, uint64_t from, uint64_t to, uint64_t calls)
{
    struct counts *c = &g->counts;
    c->from[c->arc_count] = from;
    c->to[c->arc_count] = to;
    c->calls[c->arc_count++] = calls;
}

/* Compares a record of the new format with earlier ones by gprof's rules, which complains in three lines. Sets bins to
 * those of the first record of the range. */
static enum profd_status gmon_judge_histogram(const struct gmon_file *f, struct counts_histogram *h)
{
    const struct counts *c = &f->g->counts;
    const struct counts_histogram *first = &c->histograms[0];
    const char *p = f->g->program;
    if (c->histogram_count == 0) {
        return PROFD_OK;
    }
    if (strncmp(h->dimension, first->dimension, 15) != 0) {
        return gmon_complain(f, PROFD_CONFLICT,
                             "%s: dimension unit changed between histogram records\n%s: from '%s'\n%s: to '%s'\n", p, p,
                             first->dimension, p, h->dimension);
    }
    if (h->abbreviation != first->abbreviation) {
        return gmon_complain(
            f, PROFD_CONFLICT,
            "%s: dimension abbreviation changed between histogram records\n%s: from '%c'\n%s: to '%c'\n", p, p,
            first->abbreviation, p, h->abbreviation);
    }
    if (fabs(compat_hist_scale(first) - compat_hist_scale(h)) > 0.000001) {
        return gmon_complain(f, PROFD_CONFLICT, "%s: different scales in histogram records", p);
    }
    bool meets = false;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *k = &c->histograms[i];
        if (k->low == h->low && k->high == h->high) {
            h->bins = k->bins;
            return PROFD_OK;
        }
        meets |= (k->low > h->low ? k->low : h->low) < (k->high < h->high ? k->high : h->high);
    }
    return meets ? gmon_complain(f, PROFD_CONFLICT, "%s: overlapping histogram records\n", p) : PROFD_OK;
}

/* Copies count items into a block with capacity for more; NULL: no memory. */
static void *array_grow(struct arena *a, const void *items, size_t size, uint32_t count, uint32_t capacity)
{
    void *more = arena_take_array(a, capacity, size);
    if (more != NULL && count > 0) {
        memcpy(more, items, count * size);
    }
    return more;
}

#define GROW(a, items, count, capacity) (((items) = array_grow(a, items, sizeof *(items), count, capacity)) != NULL)

/* Returns the capacity for more items; 0: too many. */
static uint32_t capacity_next(uint32_t count, uint64_t more, uint32_t capacity)
{
    uint64_t want = count + more, next = (uint64_t)capacity * 2;
    next = next < want ? want : next;
    next = next < 64 ? 64 : next;
    return want >= UINT32_MAX ? 0 : next >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)next;
}

static bool gmon_reserve_arcs(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->arc_capacity - c->arc_count) {
        return true;
    }
    uint32_t count = c->arc_count, capacity = capacity_next(count, n, g->arc_capacity);
    g->arc_capacity = capacity;
    return capacity != 0 && GROW(g->arena, c->from, count, capacity) && GROW(g->arena, c->to, count, capacity) &&
           GROW(g->arena, c->calls, count, capacity) && GROW(g->arena, c->from_build, count, capacity) &&
           GROW(g->arena, c->to_build, count, capacity);
}

/* Adds a histogram with the n bins of two bytes; false if it does not fit. */
static bool gmon_add_bins(struct compat_gmon *g, struct counts_histogram *h, const uint8_t *bins, uint32_t n)
{
    struct counts *c = &g->counts;
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += bins[2 * (size_t)i] != 0 || bins[2 * (size_t)i + 1] != 0;
    }
    if (c->histogram_count == g->histogram_capacity) {
        g->histogram_capacity = capacity_next(c->histogram_count, 1, g->histogram_capacity);
        if (g->histogram_capacity == 0 || !GROW(g->arena, c->histograms, c->histogram_count, g->histogram_capacity)) {
            return false;
        }
    }
    if (used > g->bin_capacity - c->bin_count) {
        g->bin_capacity = capacity_next(c->bin_count, used, g->bin_capacity);
        if (g->bin_capacity == 0 || !GROW(g->arena, c->bin_index, c->bin_count, g->bin_capacity) ||
            !GROW(g->arena, c->bin_ticks, c->bin_count, g->bin_capacity)) {
            return false;
        }
    }
    h->first = c->bin_count;
    h->used = used;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t ticks = (uint64_t)bins[2 * (size_t)i] | (uint64_t)bins[2 * (size_t)i + 1] << 8;
        if (ticks != 0) {
            c->bin_index[c->bin_count] = i;
            c->bin_ticks[c->bin_count++] = ticks;
        }
    }
    c->histograms[c->histogram_count++] = *h;
    return true;
}

/* Sets the error message for a file that does not fit into memory. */
static enum profd_status gmon_too_large(const struct gmon_file *f)
{
    return gmon_complain(f, PROFD_TOO_LARGE, "%s: %s: more records than fit into memory\n", f->g->program, f->name);
}

#define VERSION_44 0x00051879u
#define RATE_UNKNOWN 100u /* ticks per second: the old header does not state them */

/* Reads a file that does not begin with "gmon": low, high, bytes of header and bins, since 4.4BSD a version and a rate;
 * then the bins; then arcs up to the end. */
static enum profd_status gmon_read_bsd(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    uint64_t low, high, bytes, version, rate = 0;
    unsigned header = 2 * g->pointer + 4;
    const bool others = g->has_bsd || g->counts.histogram_count > 0;
    const uint32_t known = g->counts.histogram_count > 0 ? g->counts.histograms[0].rate : g->bsd_rate;
    f->at = 0;
    if (!gmon_take(f, g->pointer, &low) || !gmon_take(f, g->pointer, &high) || !gmon_take(f, 4, &bytes) ||
        !gmon_take(f, 4, &version) || (version == VERSION_44 && !gmon_take(f, 4, &rate))) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: file too short to be a gmon file\n", f->name);
    }
    if (version == VERSION_44) {
        /* As in gprof, a signed number is compared with an unsigned one. */
        if (others && (int64_t)known != (int32_t)rate) {
            return gmon_complain(f, PROFD_CONFLICT, "%s: profiling rate incompatible with first gmon file\n", f->name);
        }
        header += 20;
    }
    /* Also after files of the new format. */
    if (others && (g->bsd_low != low || g->bsd_high != high || g->bsd_bytes != bytes)) {
        return gmon_complain(f, PROFD_CONFLICT, "%s: incompatible with first gmon file\n", f->name);
    }
    if ((int32_t)((uint32_t)bytes - header) < 0 || low > high) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: file '%s' does not appear to be in gmon.out format\n", g->program,
                             f->name);
    }
    f->at = header < f->size ? header : f->size;
    if (!g->has_bsd) {
        g->bsd_rate = version == VERSION_44 && rate != 0 ? (uint32_t)rate : RATE_UNKNOWN;
    }
    g->has_bsd = g->has_histogram = g->has_arcs = true;
    g->bsd_low = low;
    g->bsd_high = high;
    g->bsd_bytes = (uint32_t)bytes;

    const uint32_t bins = ((uint32_t)bytes - header) / 2;
    const size_t there = (f->size - f->at) / 2;
    if (there < bins) {
        return gmon_complain(f, PROFD_MALFORMED, "%s: unexpected EOF after reading %zd/%" PRIu32 " bins\n", g->program,
                             (ptrdiff_t)there - 1, bins);
    }
    struct counts_histogram h = {.bins = bins, .low = low, .high = high, .rate = g->bsd_rate, .abbreviation = 's'};
    memcpy(h.dimension, "seconds", 8);
    if (!gmon_add_bins(g, &h, f->in + f->at, bins)) {
        return gmon_too_large(f);
    }
    g->histograms = bins > 0;
    f->at += (size_t)bins * 2;

    /* An incomplete arc at the end is ignored. */
    const uint64_t most = (f->size - f->at) / (3 * g->pointer);
    if (!gmon_reserve_arcs(g, most)) {
        return gmon_too_large(f);
    }
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
    TRY(gmon_judge_histogram(f, &h));
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
    while (f.at < n) {
        const uint8_t tag = in[f.at++];
        uint64_t from = 0, to = 0, calls = 0, blocks = 0, bytes;
        switch (tag) {
        case TAG_HISTOGRAM:
            g->histograms++;
            g->has_histogram = true;
            TRY(read_histogram(&f));
            break;
        case TAG_ARC:
            g->arcs++;
            g->has_arcs = true;
            if (!gmon_take(&f, g->pointer, &from) || !gmon_take(&f, g->pointer, &to) || !gmon_take(&f, 4, &calls)) {
                return too_short(&f);
            }
            /* Makes room for as many arcs as the rest of the file can hold: most files end with arcs only. */
            if (g->counts.arc_count == g->arc_capacity &&
                !gmon_reserve_arcs(g, 1 + (n - f.at) / (2 * g->pointer + 5))) {
                return gmon_too_large(&f);
            }
            gmon_add_arc(g, from, to, calls);
            break;
        case TAG_BLOCKS:
            g->blocks++;
            g->has_block_records = true;
            if (!gmon_take(&f, 4, &blocks)) {
                return too_short(&f);
            }
            if (g->version == 0) {
                return gmon_complain(&f, PROFD_REFUSED, "%s: %s: basic-block records of version 0 are not read\n",
                                     g->program, file);
            }
            /* gprof warns at the first complete block. If the blocks are cut off, it prints the last error of the
             * system; here there is none. */
            bytes = blocks * 2 * g->pointer;
            if (bytes > n - f.at) {
                g->has_blocks = g->has_blocks || n - f.at >= 2 * g->pointer;
                return gmon_complain(&f, PROFD_MALFORMED, "%s: Success\n", file);
            }
            f.at += (size_t)bytes;
            g->has_blocks = g->has_blocks || blocks > 0;
            break;
        default:
            return gmon_complain(&f, PROFD_MALFORMED, "%s: %s: found bad tag %d (file corrupted?)\n", g->program, file,
                                 tag);
        }
    }
    return PROFD_OK;
}

static void number_add(struct buffer *out, uint64_t value, unsigned width)
{
    char bytes[8];
    for (unsigned i = 0; i < width; i++) {
        bytes[i] = (char)(value >> 8 * i & 255);
    }
    buffer_add(out, bytes, width);
}

void compat_sum_write(const struct compat_run *r, unsigned pointer, bool blocks, struct buffer *out)
{
    const struct compat_arcs *arcs = &r->arcs;
    buffer_add_text(out, "gmon");
    number_add(out, 1, 4);
    buffer_add_repeat(out, 0, 12);
    for (uint32_t i = 0; i < r->hist.range_count; i++) {
        const struct compat_hist_range *h = &r->hist.ranges[i];
        buffer_add_char(out, TAG_HISTOGRAM);
        number_add(out, h->low, pointer);
        number_add(out, h->high, pointer);
        number_add(out, h->bins, 4);
        number_add(out, r->hist.rate, 4);
        buffer_add(out, r->hist.dimension, 15);
        buffer_add_char(out, r->hist.abbreviation);
        char *bins = buffer_extend(out, (size_t)h->bins * 2);
        if (bins == NULL) {
            return; /* the buffer has failed */
        }
        memset(bins, 0, (size_t)h->bins * 2);
        for (uint64_t k = 0; k < h->used; k++) {
            if (h->index[k] < h->bins) {
                bins[2 * (size_t)h->index[k]] = (char)(h->ticks[k] & 255);
                bins[2 * (size_t)h->index[k] + 1] = (char)(h->ticks[k] >> 8 & 255);
            }
        }
    }
    for (uint32_t v = 0; v < r->symbols.count && r->has_arcs; v++) {
        for (uint32_t i = arcs->recorded[v]; i-- > arcs->child_first[v];) {
            buffer_add_char(out, TAG_ARC);
            number_add(out, r->symbols.address[v], pointer);
            number_add(out, r->symbols.address[arcs->child[i]], pointer);
            number_add(out, arcs->calls[i], 4);
        }
    }
    if (blocks) {
        buffer_add_char(out, TAG_BLOCKS);
        number_add(out, 0, 4);
    }
}
