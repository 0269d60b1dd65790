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

static double scale_of(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

/* The same message in the three lines of gprof. */
static enum profd_status judge_dimension(const struct gmon_file *f, const struct counts_histogram *first,
                                         const struct counts_histogram *h)
{
    const char *p = f->g->program;
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
    if (fabs(scale_of(first) - scale_of(h)) > 0.000001) {
        return gmon_complain(f, PROFD_CONFLICT, "%s: different scales in histogram records", p);
    }
    return PROFD_OK;
}

static bool ranges_meet(const struct counts_histogram *x, const struct counts_histogram *y)
{
    uint64_t low = x->low > y->low ? x->low : y->low, high = x->high < y->high ? x->high : y->high;
    return low < high;
}

/* Compares a record of the new format with earlier ones by gprof's rules. Sets bins to those of the first record of the
 * range. */
static enum profd_status gmon_judge_histogram(const struct gmon_file *f, struct counts_histogram *h)
{
    const struct counts *c = &f->g->counts;
    if (c->histogram_count == 0) {
        return PROFD_OK;
    }
    TRY(judge_dimension(f, &c->histograms[0], h));
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *k = &c->histograms[i];
        if (k->low != h->low || k->high != h->high) {
            continue;
        }
        h->bins = k->bins;
        return PROFD_OK;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (ranges_meet(&c->histograms[i], h)) {
            return gmon_complain(f, PROFD_CONFLICT, "%s: overlapping histogram records\n", f->g->program);
        }
    }
    return PROFD_OK;
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

static bool reserve_bins(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->bin_capacity - c->bin_count) {
        return true;
    }
    uint32_t count = c->bin_count, capacity = capacity_next(count, n, g->bin_capacity);
    g->bin_capacity = capacity;
    return capacity != 0 && GROW(g->arena, c->bin_index, count, capacity) &&
           GROW(g->arena, c->bin_ticks, count, capacity);
}

static bool reserve_histogram(struct compat_gmon *g)
{
    struct counts *c = &g->counts;
    if (c->histogram_count < g->histogram_capacity) {
        return true;
    }
    g->histogram_capacity = capacity_next(c->histogram_count, 1, g->histogram_capacity);
    return g->histogram_capacity != 0 && GROW(g->arena, c->histograms, c->histogram_count, g->histogram_capacity);
}

/* Adds a histogram with the n bins of two bytes; false if it does not fit. */
static bool gmon_add_bins(struct compat_gmon *g, struct counts_histogram *h, const uint8_t *bins, uint32_t n)
{
    struct counts *c = &g->counts;
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += bins[2 * (size_t)i] != 0 || bins[2 * (size_t)i + 1] != 0;
    }
    if (!reserve_histogram(g) || !reserve_bins(g, used)) {
        return false;
    }
    h->first = c->bin_count;
    h->used = used;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t ticks = (uint64_t)bins[2 * (size_t)i] | (uint64_t)bins[2 * (size_t)i + 1] << 8;
        if (ticks == 0) {
            continue;
        }
        c->bin_index[c->bin_count] = i;
        c->bin_ticks[c->bin_count++] = ticks;
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

/* low, high, bytes of header and bins; since 4.4BSD followed by a version and a rate */
struct header {
    uint64_t low, high, bytes, version, rate;
    unsigned size;
};

static enum profd_status bsd_too_short(const struct gmon_file *f)
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
        return bsd_too_short(f);
    }
    if (h.version == VERSION_44) {
        if (!gmon_take(f, 4, &h.rate)) {
            return bsd_too_short(f);
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

/* Reads a file that does not begin with "gmon". */
static enum profd_status gmon_read_bsd(struct gmon_file *f)
{
    struct compat_gmon *g = f->g;
    struct header h;
    TRY(read_header(f, &h));
    if (!g->has_bsd) {
        g->bsd_rate = h.version == VERSION_44 && h.rate != 0 ? (uint32_t)h.rate : RATE_UNKNOWN;
    }
    g->has_bsd = g->has_histogram = g->has_arcs = true;
    g->bsd_low = h.low;
    g->bsd_high = h.high;
    g->bsd_bytes = (uint32_t)h.bytes;
    TRY(read_bins(f, &h));
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
