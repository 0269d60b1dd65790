#include "query/caller_cells.h"

#include <string.h>

#include "core/rollup.h"
#include "proto/limits.h"
#include "query/query.h"
#include "query/row.h"
#include "query/set.h"
#include "query/steps.h"

#define GROUPS ROLLUP_GROUPS

struct filling {
    const struct work *work;
    const struct caller_mix *mix;
    struct caller_cells *out;
    struct arena *scratch; /* of a row */
    struct set sums;       /* that were read: one that is wider than a step comes again with the next */
    uint32_t *map;         /* of the row's builds: the profile's */
    bool alone;
    uint64_t rows; /* equations that were not empty */
    double *calls; /* [group · callers + caller] */
    double seconds[GROUPS];
};

/* What of a row concerns the function: counts with, if it is a sum, those of each group. */
struct parts {
    uint32_t groups; /* 1 or GROUPS */
    const uint64_t *arcs, *bins;
    const uint32_t *from_build, *to_build, *bin_index;
    const uint64_t *from, *to;
    uint32_t arc_count;
};

static void add_arcs(struct filling *f, const struct parts *p)
{
    for (uint32_t i = 0; i < p->arc_count; i++) {
        uint32_t from = p->from_build[i] == COUNTS_NOWHERE ? COUNTS_NOWHERE : f->map[p->from_build[i]];
        uint32_t to = p->to_build[i] == COUNTS_NOWHERE ? COUNTS_NOWHERE : f->map[p->to_build[i]];
        bool far = f->alone && from == COUNTS_NOWHERE; /* such ends lost their addresses, so that they add up */
        uint32_t caller = caller_mix_find(f->mix, from, far ? 0 : p->from[i], to, p->to[i]);
        for (uint32_t g = 0; caller != CALLER_MIX_NONE && g < p->groups; g++) {
            f->calls[(size_t)g * f->mix->caller_count + caller] += (double)p->arcs[(size_t)i * p->groups + g];
        }
    }
}

static void add_bins(struct filling *f, const struct parts *p, struct counts_geometry geometry, uint32_t first,
                     uint32_t used)
{
    geometry.build = geometry.build == COUNTS_NOWHERE ? COUNTS_NOWHERE : f->map[geometry.build];
    const struct caller_mix_histogram *h = caller_mix_find_histogram(f->mix, &geometry);
    uint32_t place = 0;
    for (uint32_t i = first; h != NULL && i < first + used; i++) {
        double seconds = caller_mix_seconds(h, p->bin_index[i], &place);
        for (uint32_t g = 0; seconds > 0 && g < p->groups; g++) {
            f->seconds[g] += seconds * (double)p->bins[(size_t)i * p->groups + g];
        }
    }
}

/* Each group with calls or time is an equation, and all are zero again. */
static void close_row(struct filling *f, uint32_t groups)
{
    struct caller_cells *out = f->out;
    for (uint32_t g = 0; g < groups; g++) {
        double *calls = f->calls + (size_t)g * out->callers, any = f->seconds[g];
        for (uint32_t k = 0; k < out->callers; k++) {
            any += calls[k];
        }
        if (any > 0) {
            size_t at = (size_t)(f->rows++ % CALLER_CELLS_MOST);
            out->count = f->rows < CALLER_CELLS_MOST ? (uint32_t)f->rows : CALLER_CELLS_MOST;
            out->seconds[at] += f->seconds[g];
            for (uint32_t k = 0; k < out->callers; k++) {
                out->calls[at * out->callers + k] += calls[k];
            }
        }
    }
    memset(f->calls, 0, sizeof(double) * GROUPS * out->callers);
    memset(f->seconds, 0, sizeof f->seconds);
}

static enum profd_status add_upload(struct filling *f, const struct store_row *row, struct profd_error *e)
{
    struct counts c = {0};
    enum profd_status status = row_decode_counts(row, &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    const struct parts p = {1, c.calls, c.bin_ticks, c.from_build, c.to_build, c.bin_index, c.from, c.to, c.arc_count};
    add_arcs(f, &p);
    for (uint32_t i = 0; i < c.histogram_count; i++) {
        add_bins(f, &p, c.histograms[i].geometry, c.histograms[i].first, c.histograms[i].used);
    }
    counts_done(&c);
    close_row(f, 1);
    return PROFD_OK;
}

static enum profd_status add_sum(struct filling *f, const struct store_row *row, struct profd_error *e)
{
    struct rollup r;
    struct rollup_spread spread = {NULL, NULL, NULL};
    enum profd_status status =
        rollup_decode(f->scratch, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, e);
    if (status == PROFD_OK && row->spread != NULL) {
        status = rollup_decode_spread(f->scratch, &r, row->spread, row->spread_size, &spread, e);
    }
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "a stored sum cannot be read");
    }
    struct parts p = {1, r.calls, r.bin_ticks, r.from_build, r.to_build, r.bin_index, r.from, r.to, r.arc_count};
    if (row->spread != NULL) {
        p.groups = GROUPS;
        p.arcs = spread.arcs;
        p.bins = spread.bins;
    }
    add_arcs(f, &p);
    for (uint32_t i = 0; i < r.histogram_count; i++) {
        add_bins(f, &p, r.histograms[i].geometry, r.histograms[i].first, r.histograms[i].used);
    }
    close_row(f, p.groups);
    return PROFD_OK;
}

/* The profile's numbers of the row's builds. */
static bool make_map(struct filling *f, const struct store_row *row)
{
    const struct profile *p = f->work->load.profile;
    f->map = ARENA_ARRAY(f->scratch, row->build_count, uint32_t);
    for (size_t i = 0; f->map != NULL && i < row->build_count; i++) {
        const char *id = row->builds[i].id.text;
        f->map[i] = COUNTS_NOWHERE;
        for (uint32_t k = 0; k < p->build_count && (!f->alone || strcmp(id, f->work->id.text) == 0); k++) {
            if (strcmp(p->builds[k], id) == 0) {
                f->map[i] = k;
            }
        }
    }
    return f->map != NULL;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct filling *f = context;
    uint32_t number;
    bool fresh = true;
    arena_reset(f->scratch);
    if (row->counts == NULL) { /* a host's total has no callers */
        return PROFD_OK;
    }
    if ((row->rolled && set_add(&f->sums, &row->id, sizeof row->id, &number, &fresh) != PROFD_OK) ||
        !make_map(f, row)) {
        return profd_no_memory(e);
    }
    if (!fresh) {
        return PROFD_OK;
    }
    return row->rolled ? add_sum(f, row, e) : add_upload(f, row, e);
}

static enum profd_status read_steps(struct job *job, struct filling *f, struct profd_error *e)
{
    struct store_filter filter = work_make_filter(f->work);
    const int64_t since = filter.since, until = filter.until;
    int64_t begin, end, step = STEPS_HOUR;
    enum profd_status status = steps_find_span(f->work, 0, &begin, &end, e);
    step = (end - begin) / step >= (int64_t)LIMIT_STEPS ? 24 * step : step;
    filter.spread = true;
    for (int64_t at = begin - begin % step; status == PROFD_OK && at < end; at += step) {
        filter.since = at > since ? at : since;
        filter.since = filter.since > 0 ? filter.since : 1;
        filter.until = until > 0 && until < at + step ? until : at + step;
        status = store_each_upload(job->store, &f->work->options.visible, &filter, take_row, f, e);
        if (status == PROFD_OK) {
            status = store_pattern_judge(&filter, e);
        }
    }
    return status;
}

enum profd_status caller_cells_load(struct job *job, const struct work *w, const struct caller_mix *mix,
                                    struct caller_cells *out, struct profd_error *e)
{
    struct filling f = {.work = w, .mix = mix, .out = out, .alone = w->scope != OPTIONS_SCOPE_PROGRAM};
    *out = (struct caller_cells){.callers = mix->caller_count};
    out->calls = ARENA_ARRAY(job->arena, (size_t)CALLER_CELLS_MOST * mix->caller_count, double);
    out->seconds = ARENA_ARRAY(job->arena, CALLER_CELLS_MOST, double);
    f.calls = ARENA_ARRAY(job->arena, (size_t)GROUPS * mix->caller_count, double);
    if (out->calls == NULL || out->seconds == NULL || f.calls == NULL) {
        return profd_no_memory(e);
    }
    set_init(&f.sums, job->arena);
    f.scratch = arena_new(LIMIT_QUERY_MEMORY_OWN);
    enum profd_status status = f.scratch != NULL ? read_steps(job, &f, e) : profd_no_memory(e);
    arena_free(f.scratch);
    return status;
}
