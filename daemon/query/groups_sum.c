#include "query/groups_sum.h"

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/report_dimension.h"
#include "core/rollup.h"
#include "core/share.h"
#include "core/sum.h"
#include "proto/counts.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/collector.h"
#include "query/groups_marks.h"
#include "query/row.h"
#include "query/set.h"

#define HOUR INT64_C(3600000000000)

struct rate_ticks {
    struct rate_ticks *next; /* ascending by dimension, then rate */
    char dimension[16];
    uint32_t rate;
    uint64_t ticks;
};

#define FEW 4u
#define HOST_NAME_MOST 64u

struct group {
    struct group_row row;
    uint32_t few[FEW];   /* its hosts, by number, while they are that few; else: */
    uint64_t *host_bits; /* the bits of their numbers; NULL: few has them */
    uint32_t host_words;
    struct rate_ticks *rates;
    uint64_t nanoseconds; /* of totals */
    uint64_t outside;     /* ns of CPU time outside all builds, by the collectors */
};

struct adding {
    const struct groups_request *request;
    struct arena *arena, *scratch;
    struct set keys, hosts; /* hosts: numbers of all hosts */
    struct buffer key;      /* of the row */
    bool totals;            /* of a host were added */
    struct group *groups;
    uint32_t capacity;
    int64_t widest; /* that rows may be; 0: any */
};

static const char *find_value(const struct store_row *row, const char *name)
{
    for (size_t i = 0; i < row->label_count; i++) {
        if (strcmp(row->labels[i].name, name) == 0) {
            return row->labels[i].value;
        }
    }
    return "";
}

/* The step that a row belongs to. */
static void find_step(const struct adding *g, const struct store_row *row, int64_t *time, int64_t *width)
{
    int64_t step = g->request->step;
    const bool slice = row->width > 0 && row->width < HOUR; /* of a live process, or of what hosts have sent */
    const bool wide = row->rolled && !slice && step < g->widest;
    if ((slice || !row->rolled) && row->width > step) {
        step = row->width;
    }
    *width = wide ? g->widest : step;
    *time = row->end - row->end % *width;
}

static void new_group(struct adding *g, uint32_t at, const struct store_row *row, int64_t time, int64_t width)
{
    const struct groups_request *r = g->request;
    const char **values = ARENA_ARRAY(g->arena, r->label_count + 1, const char *);
    for (size_t i = 0; i < r->label_count; i++) {
        const char *value = find_value(row, r->labels[i]);
        values[i] = arena_copy(g->arena, value, strlen(value));
    }
    g->groups = arena_extend(g->arena, g->groups, at, &g->capacity, sizeof *g->groups);
    g->groups[at] = (struct group){.row = {.values = values, .time = time, .width = width}};
}

/* The group of a row, new if nothing is in it yet. */
static uint32_t find_group(struct adding *g, const struct store_row *row)
{
    const struct groups_request *r = g->request;
    int64_t key_time[2] = {0, 0};
    bool added;
    if (r->step > 0) {
        find_step(g, row, &key_time[0], &key_time[1]);
    }
    g->key.size = 0;
    buffer_add(&g->key, key_time, sizeof key_time);
    for (size_t i = 0; i < r->label_count; i++) {
        const char *value = find_value(row, r->labels[i]);
        buffer_add(&g->key, value, strlen(value) + 1);
    }
    const uint32_t number = set_add(&g->keys, g->key.data, g->key.size, &added);
    if (added) {
        new_group(g, number, row, key_time[0], key_time[1]);
    }
    return number;
}

/* Makes space for the bit of a host. */
static void reserve_bit(struct adding *g, struct group *to, uint32_t host)
{
    const uint32_t wanted = host / 64 + 1, twice = 2 * to->host_words, words = wanted > twice ? wanted : twice;
    if (to->host_bits != NULL && wanted <= to->host_words) {
        return;
    }
    uint64_t *bits = ARENA_ARRAY(g->arena, words, uint64_t);
    if (to->host_bits != NULL) {
        memcpy(bits, to->host_bits, to->host_words * sizeof *bits);
    }
    to->host_bits = bits;
    to->host_words = words;
}

/* Counts a host of a group unless it was. O(1) expected: rows may have ten thousand hosts each. */
static void count_host(struct adding *g, struct group *to, uint32_t host)
{
    for (uint32_t i = 0; to->host_bits == NULL && i < to->row.hosts; i++) {
        if (to->few[i] == host) {
            return;
        }
    }
    if (to->row.hosts < FEW) {
        to->few[to->row.hosts++] = host;
        return;
    }
    if (to->host_bits == NULL) {
        reserve_bit(g, to, g->hosts.count - 1);
    }
    for (uint32_t i = 0; to->row.hosts == FEW && i < FEW; i++) {
        to->host_bits[to->few[i] / 64] |= UINT64_C(1) << to->few[i] % 64;
    }
    reserve_bit(g, to, host);
    uint64_t *word = &to->host_bits[host / 64];
    const uint64_t bit = UINT64_C(1) << host % 64;
    to->row.hosts += (*word & bit) == 0;
    *word |= bit;
}

static void add_host(struct adding *g, uint32_t number, const char *host)
{
    size_t n = host != NULL ? strlen(host) : 0;
    bool added;
    if (n > 0 && n <= HOST_NAME_MOST) {
        count_host(g, &g->groups[number], set_add(&g->hosts, host, n, &added));
    }
}

static void add_source(struct adding *g, uint32_t number, const struct store_row *row)
{
    struct group_row *to = &g->groups[number].row;
    bool first = to->uploads == 0;
    to->uploads += row->uploads;
    to->processes += row->processes_started;
    to->inexact |= row->inexact;
    to->first = first || row->start < to->first ? row->start : to->first;
    to->last = first || row->end > to->last ? row->end : to->last;
    add_host(g, number, row->host);
    for (size_t i = 0; i < row->host_count; i++) {
        add_host(g, number, row->hosts[i]);
    }
}

static int compare_ticks(const struct rate_ticks *a, const char *dimension, uint32_t rate)
{
    int order = strcmp(a->dimension, dimension);
    return order != 0 ? order : (a->rate > rate) - (a->rate < rate);
}

static void add_ticks(struct adding *g, struct group *to, const char dimension[16], uint32_t rate, const uint32_t *bins,
                      const uint64_t *ticks, uint32_t n)
{
    struct rate_ticks **at = &to->rates;
    bool saturated = false;
    if (collector_is_dimension(dimension)) {
        for (uint32_t i = 0; i < n; i++) {
            sum_add(&to->outside, bins[i] == COLLECTOR_OUTSIDE_NS ? ticks[i] : 0, &saturated);
        }
        return;
    }
    while (*at != NULL && compare_ticks(*at, dimension, rate) < 0) {
        at = &(*at)->next;
    }
    if (*at == NULL || compare_ticks(*at, dimension, rate) != 0) {
        struct rate_ticks *fresh = ARENA_NEW(g->arena, struct rate_ticks);
        *fresh = (struct rate_ticks){.next = *at, .rate = rate};
        memcpy(fresh->dimension, dimension, sizeof fresh->dimension);
        *at = fresh;
    }
    for (uint32_t i = 0; i < n; i++) {
        sum_add(&(*at)->ticks, ticks[i], &saturated);
    }
}

static void add_counts(struct adding *g, struct group *to, const struct counts *c, uint32_t only)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (only == COUNTS_NOWHERE || h->build == only) {
            add_ticks(g, to, h->dimension, h->rate, c->bin_index + h->first, c->bin_ticks + h->first, h->used);
        }
    }
    /* only: the one build that counts; COUNTS_NOWHERE: all do. */
    bool saturated = false;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (only == COUNTS_NOWHERE || c->from_build[i] == only || c->to_build[i] == only) {
            sum_add(&to->row.calls, c->calls[i], &saturated);
        }
    }
}

static enum profd_status add_upload(struct adding *g, struct group *to, const struct store_row *row, uint32_t only,
                                    struct profd_error *e)
{
    struct row_counts c;
    enum profd_status status = row_open_counts(row, g->arena, &c, e);
    if (!status) {
        add_counts(g, to, &c.counts, only);
        row_close_counts(&c);
    }
    return status;
}

static enum profd_status add_rolled(struct adding *g, struct group *to, const struct store_row *row, uint32_t only,
                                    struct profd_error *e)
{
    struct counts r;
    arena_reset(g->scratch);
    enum profd_status status =
        rollup_decode(g->scratch, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "a stored sum cannot be read");
    }
    add_counts(g, to, &r, only);
    return PROFD_OK;
}

/* A total of a host. Its seconds are those of the usual dimension. */
static void add_total(struct adding *g, struct group *to, const struct store_row *row, uint32_t only)
{
    static const char usual[16] = REPORT_DIMENSION_USUAL;
    bool saturated = false;
    g->totals = true;
    for (uint32_t i = 0; i < row->build_count; i++) {
        if (only == COUNTS_NOWHERE || i == only) {
            sum_add(&to->nanoseconds, row->shares[i].nanoseconds, &saturated);
        }
    }
    sum_add(&to->row.calls, only == COUNTS_NOWHERE ? row->calls : row->shares[only].calls, &saturated);
    add_ticks(g, to, usual, 1, NULL, NULL, 0);
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct adding *g = context;
    ARENA_BOUNDARY(g->arena, profd_no_memory(e));
    uint32_t only = COUNTS_NOWHERE;
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    const uint32_t number = find_group(g, row);
    add_source(g, number, row);
    for (uint32_t i = 0; g->request->alone && i < row->build_count; i++) {
        if (strcmp(row->builds[i].id.text, g->request->filter.build_id) == 0) {
            only = i;
        }
    }
    struct group *to = &g->groups[number];
    if (row->shares != NULL) {
        add_total(g, to, row, only);
        return PROFD_OK;
    }
    return row->rolled ? add_rolled(g, to, row, only, e) : add_upload(g, to, row, only, e);
}

/* With steps, the store gives no sum that is wider than a step or an hour, of whole ones. */
static enum profd_status ask(struct adding *g, struct profd_error *e)
{
    const struct groups_request *r = g->request;
    struct store_filter filter = r->filter;
    if (r->step > 0) {
        g->widest = r->step > HOUR ? r->step : HOUR;
        const int64_t first = r->begin - r->begin % g->widest, last = r->end - 1 - (r->end - 1) % g->widest + g->widest;
        filter.widest = g->widest;
        filter.since = first > filter.since ? first : filter.since;
        filter.since = filter.since > 0 ? filter.since : 1;
        filter.until = filter.until > 0 && filter.until < last ? filter.until : last;
    }
    TRY(store_each_upload(r->store, &r->scope, &filter, take_row, g, e));
    return store_pattern_judge(&filter, e);
}

/* The groups with processes that have not been read since the restart, and with marked hours of hosts. If one of these
 * processes has been found meanwhile, its group is unknown, so every group is marked. */
static enum profd_status mark_unread(struct adding *g, const struct store_living *before, struct profd_error *e)
{
    const struct groups_request *r = g->request;
    struct store_filter filter = r->filter;
    struct store_living unread = {.processes = 0};
    struct store_matcher *matchers =
        ARENA_ARRAY(g->arena, filter.matcher_count + r->label_count + 1, struct store_matcher);
    struct groups_marks marks;
    uint32_t reasons = 0;
    enum profd_status status = store_get_living(r->store, STORE_UNREAD, &r->scope, &filter, &unread, e);
    const bool all = unread.processes < before->processes;
    if (status == PROFD_OK) {
        status = store_get_marks(r->store, &r->scope, &filter, &reasons, e);
    }
    if (status != PROFD_OK || (before->processes == 0 && reasons == 0)) {
        return status;
    }
    const bool totals = (reasons & (uint32_t)INEXACT_HOST_TOTALS) != 0; /* then groups are steps alone */
    status = groups_marks_load(r->store, &r->scope, &filter, r->labels, r->label_count, g->arena, &marks, e);
    memcpy(matchers, filter.matchers, filter.matcher_count * sizeof *matchers);
    filter.matchers = matchers;
    for (uint32_t i = 0; status == PROFD_OK && i < g->keys.count; i++) {
        struct group_row *row = &g->groups[i].row;
        filter.matcher_count = r->filter.matcher_count;
        for (size_t k = 0; k < r->label_count; k++) {
            matchers[filter.matcher_count++] =
                (struct store_matcher){.name = r->labels[k], .value = row->values[k], .match = STORE_MATCH_EQUAL};
        }
        filter.until = r->step > 0 ? row->time + row->width : r->filter.until;
        filter.since = r->filter.since;
        if (before->processes > 0) {
            status = store_get_living(r->store, STORE_UNREAD, &r->scope, &filter, &unread, e);
            row->inexact |= all || unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0;
        }
        filter.since = r->step > 0 ? row->time : r->filter.since;
        row->inexact |= groups_marks_find(&marks, row->values, filter.since, filter.until);
        if (status == PROFD_OK && totals) {
            status = store_get_marks(r->store, &r->scope, &filter, &reasons, e);
            row->inexact |= reasons;
        }
    }
    return status;
}

static int group_compare(const void *left, const void *right, void *context)
{
    const struct group_row *a = &((const struct group *)left)->row, *b = &((const struct group *)right)->row;
    const struct groups_request *r = context;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    int order = 0;
    for (size_t i = 0; order == 0 && i < r->label_count; i++) {
        order = strcmp(a->values[i], b->values[i]);
    }
    return order != 0 ? order : (a->width > b->width) - (a->width < b->width);
}

/* The next dimension in byte order; NULL if there is none. */
static const char *next_dimension(const struct adding *g, const char *behind)
{
    const char *least = NULL;
    for (uint32_t i = 0; i < g->keys.count; i++) {
        for (const struct rate_ticks *at = g->groups[i].rates; at != NULL; at = at->next) {
            if ((behind == NULL || strcmp(at->dimension, behind) > 0) &&
                (least == NULL || strcmp(at->dimension, least) < 0)) {
                least = at->dimension;
            }
        }
    }
    return least;
}

/* The dimension that all rows' seconds are of, chosen as a report does. */
static enum profd_status choose_dimension(const struct adding *g, const char **out, struct profd_error *e)
{
    const char *asked = g->request->dimension;
    struct report_dimension *list = NULL;
    uint32_t n = 0, capacity = 0, picked;
    for (const char *at = next_dimension(g, NULL); at != NULL; at = next_dimension(g, at)) {
        list = arena_extend(g->arena, list, n, &capacity, sizeof *list);
        list[n++] = (struct report_dimension){.name = at};
    }
    TRY(report_dimension_pick(list, n, asked, false, &picked, e));
    *out = picked < n ? list[picked].name : asked != NULL ? asked : REPORT_DIMENSION_USUAL;
    return PROFD_OK;
}

static enum profd_status finish(struct adding *g, struct group_row **rows, size_t *count, const char **dimension,
                                struct profd_error *e)
{
    struct groups_request request = *g->request;
    size_t n = g->keys.count;
    const char *chosen = REPORT_DIMENSION_USUAL;
    TRY(choose_dimension(g, &chosen, e));
    if (g->totals && strcmp(chosen, REPORT_DIMENSION_USUAL) != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "dimension=%s: of some hosts only totals in %s are kept", chosen,
                               REPORT_DIMENSION_USUAL);
    }
    struct group_row *out = ARENA_ARRAY(g->arena, n, struct group_row);
    const bool usual = !request.alone && strcmp(chosen, REPORT_DIMENSION_USUAL) == 0;
    if (n > 0) {
        qsort_r(g->groups, n, sizeof *g->groups, group_compare, &request);
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = g->groups[i].row;
        const uint64_t outside = usual ? g->groups[i].outside : 0;
        out[i].seconds = (double)g->groups[i].nanoseconds / 1e9 + (double)outside / 1e9;
        for (const struct rate_ticks *at = g->groups[i].rates; at != NULL; at = at->next) {
            out[i].seconds += strcmp(at->dimension, chosen) == 0 ? (double)at->ticks / at->rate : 0;
        }
    }
    *dimension = chosen;
    *rows = out;
    *count = n;
    return PROFD_OK;
}

enum profd_status groups_add_up(const struct groups_request *request, struct arena *a, struct group_row **rows,
                                size_t *count, const char **dimension, struct profd_error *e)
{
    struct adding g = {.request = request, .arena = a, .scratch = arena_new_child(a, LIMIT_QUERY_MEMORY)};
    set_init(&g.keys, a);
    set_init(&g.hosts, a);
    buffer_init_arena(&g.key, a);
    struct store_living unread;
    enum profd_status status =
        store_get_living(request->store, STORE_UNREAD, &request->scope, &request->filter, &unread, e);
    if (status == PROFD_OK) {
        status = ask(&g, e);
    }
    arena_free(g.scratch);
    if (status == PROFD_OK) {
        status = mark_unread(&g, &unread, e);
    }
    return status == PROFD_OK ? finish(&g, rows, count, dimension, e) : status;
}

enum profd_status groups_parse_labels(const struct params *p, struct groups_request *r, struct profd_error *e)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *label = p->items[i].value;
        if (strcmp(p->items[i].name, "by") != 0) {
            continue;
        }
        if (label_judge_name(label, strlen(label)) != LABEL_GOOD) {
            return profd_error_set(e, PROFD_BAD_QUERY, "by=%s does not name a label", label);
        }
        for (size_t k = 0; k < r->label_count; k++) {
            if (strcmp(r->labels[k], label) == 0) {
                return profd_error_set(e, PROFD_BAD_QUERY, "by=%s is given twice", label);
            }
        }
        if (r->label_count == GROUPS_LABELS) {
            return profd_error_set(e, PROFD_BAD_QUERY, "by=%s is one label too many: at most %d", label, GROUPS_LABELS);
        }
        r->labels[r->label_count++] = label;
    }
    if (r->label_count == 0 && r->step == 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "by= must name a label to group by, or step= a length of time");
    }
    return PROFD_OK;
}
