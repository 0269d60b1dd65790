/* Uploads added up by the values of labels, by time, or both: /api/v1/builds/{id}/groups, and /api/v1/load for many
 * builds at once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/report.h"
#include "core/rollup.h"
#include "core/shares.h"
#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/label.h"
#include "proto/message.h"
#include "query/query_internal.h"

#define HOUR INT64_C(3600000000000)
#define LOCAL UINT32_MAX /* number of the mark of local users */

static bool take_mark(void *context, const struct store_mark *mark)
{
    struct groups_marks *m = context;
    struct groups_mark x = {
        .host = mark->of == STORE_OF_LOCAL_USERS ? LOCAL : 0, .reasons = mark->reasons, .hour = mark->hour};
    bool added;
    ARENA_BOUNDARY(m->arena, false);
    m->list = arena_extend(m->arena, m->list, m->count, &m->capacity, sizeof *m->list);
    if (m->by_host && mark->host) {
        x.host = set_add(&m->names, mark->host, strlen(mark->host) + 1, &added) + 1;
    }
    m->list[m->count++] = x;
    return true;
}

static int compare_marks(const void *a, const void *b)
{
    const struct groups_mark *x = a, *y = b;
    return x->host != y->host ? (x->host > y->host) - (x->host < y->host) : (x->hour > y->hour) - (x->hour < y->hour);
}

enum profd_status groups_marks_load(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    const char *const *labels, size_t label_count, struct arena *a,
                                    struct groups_marks *out, struct profd_error *e)
{
    *out = (struct groups_marks){.arena = a};
    set_init(&out->names, a);
    for (size_t i = 0; i < label_count; i++) {
        if (strcmp(labels[i], "host") == 0) {
            out->label = i;
            out->by_host = true;
        }
    }
    const enum profd_status status = store_each_mark(s, scope, filter, take_mark, out, e);
    arena_continue(a);
    /* Makes one of those of the same host and hour. */
    uint32_t n = 0;
    if (out->count > 1) {
        qsort(out->list, out->count, sizeof *out->list, compare_marks);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (n > 0 && compare_marks(&out->list[n - 1], &out->list[i]) == 0) {
            out->list[n - 1].reasons |= out->list[i].reasons;
        } else {
            out->list[n++] = out->list[i];
        }
    }
    out->count = n;
    return status;
}

/* The reasons of one host, by its number, in hours from one to another. */
static uint32_t find_host(const struct groups_marks *m, uint32_t host, int64_t from, int64_t to)
{
    uint32_t reasons = 0, low;
    SORT_SEARCH(low, 0, m->count, m->list[low].host < host || (m->list[low].host == host && m->list[low].hour < from));
    for (; low < m->count && m->list[low].host == host && m->list[low].hour <= to; low++) {
        reasons |= m->list[low].reasons;
    }
    return reasons;
}

uint32_t groups_marks_find(const struct groups_marks *m, enum store_origin of, const char *const *values, int64_t since,
                           int64_t until)
{
    const int64_t from = since > 0 ? since / HOUR : 0, to = until > 0 ? (until - 1) / HOUR : INT64_MAX;
    uint32_t reasons = of & STORE_OF_LOCAL_USERS ? find_host(m, LOCAL, from, to) : 0;
    reasons |= of & STORE_OF_HOSTS ? find_host(m, 0, from, to) : 0;
    if (m->by_host && of & STORE_OF_HOSTS) {
        const char *name = values[m->label];
        uint32_t number = 0;
        reasons |= set_find(&m->names, name, strlen(name) + 1, &number) ? find_host(m, number + 1, from, to) : 0;
    }
    return reasons;
}

struct rate_ticks {
    struct rate_ticks *next; /* ascending by dimension, then rate */
    char dimension[16];
    uint32_t rate;
    uint64_t ticks;
};

#define FEW 4u
#define HOST_NAME_MOST 64u

struct upload_group {
    struct group_row row;
    uint32_t few[FEW];   /* its hosts, by number, while they are that few; else: */
    uint64_t *host_bits; /* the bits of their numbers; NULL: few has them */
    uint32_t host_words;
    struct rate_ticks *rates;
    uint64_t nanoseconds; /* of totals */
    uint64_t outside;     /* ns of CPU time outside all builds, by the collectors */
    unsigned of;          /* enum store_origin */
};

struct adding {
    const struct groups_request *request;
    struct arena *arena, *scratch;
    struct set keys, hosts; /* hosts: numbers of all hosts */
    struct buffer key;      /* of the row */
    bool totals;            /* of a host were added */
    struct upload_group *groups;
    uint32_t capacity;
    int64_t widest; /* that rows may be; 0: any */
};

/* The group of a row, new if nothing is in it yet. With steps, it is that of the step that the row belongs to. */
static uint32_t find_group(struct adding *g, const struct store_row *row)
{
    const struct groups_request *r = g->request;
    int64_t time = 0, width = 0;
    bool added;
    if (r->step > 0) {
        const bool slice = row->width > 0 && row->width < HOUR; /* of a live process, or of what hosts have sent */
        const bool wide = row->rolled && !slice && r->step < g->widest;
        width = wide ? g->widest : (slice || !row->rolled) && row->width > r->step ? row->width : r->step;
        time = row->end - row->end % width;
        if (r->grid > 0 && row->width > 0) {
            width = row->width;
            time = row->end - row->end % width;
        } else if (r->grid > 0) {
            const int64_t behind = row->end - 1 - r->grid;
            width = r->step;
            time = r->grid + (behind / width - (behind % width < 0)) * width;
        }
    }
    g->key.size = 0;
    buffer_add(&g->key, &time, sizeof time);
    buffer_add(&g->key, &width, sizeof width);
    for (size_t i = 0; i < r->label_count; i++) {
        const char *value = row_find_label(row, r->labels[i]);
        buffer_add(&g->key, value, strlen(value) + 1);
    }
    const uint32_t number = set_add(&g->keys, g->key.data, g->key.size, &added);
    if (added) {
        const char **values = ARENA_ARRAY(g->arena, r->label_count + 1, const char *);
        for (size_t i = 0; i < r->label_count; i++) {
            const char *value = row_find_label(row, r->labels[i]);
            values[i] = arena_copy(g->arena, value, strlen(value));
        }
        g->groups = arena_extend(g->arena, g->groups, number, &g->capacity, sizeof *g->groups);
        g->groups[number] = (struct upload_group){.row = {.values = values, .time = time, .width = width}};
    }
    return number;
}

/* Counts a host of a group unless it was. O(1) expected: rows may have ten thousand hosts each. */
static void add_host(struct adding *g, struct upload_group *to, const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    bool added;
    if (n == 0 || n > HOST_NAME_MOST) {
        return;
    }
    const uint32_t host = set_add(&g->hosts, name, n, &added);
    for (uint32_t i = 0; !to->host_bits && i < to->row.hosts; i++) {
        if (to->few[i] == host) {
            return;
        }
    }
    if (to->row.hosts < FEW) {
        to->few[to->row.hosts++] = host;
        return;
    }

    /* Numbers of hosts ascend as they are met, so that space for all of them now, or twice as much as before, lasts. */
    if (host / 64 >= to->host_words) {
        const uint32_t wanted = (to->host_bits ? host : g->hosts.count - 1) / 64 + 1, twice = 2 * to->host_words;
        uint64_t *bits = ARENA_ARRAY(g->arena, wanted > twice ? wanted : twice, uint64_t);
        if (to->host_bits) {
            memcpy(bits, to->host_bits, to->host_words * sizeof *bits);
        }
        to->host_bits = bits;
        to->host_words = wanted > twice ? wanted : twice;
    }
    for (uint32_t i = 0; to->row.hosts == FEW && i < FEW; i++) {
        to->host_bits[to->few[i] / 64] |= UINT64_C(1) << to->few[i] % 64;
    }
    uint64_t *word = &to->host_bits[host / 64];
    const uint64_t bit = UINT64_C(1) << host % 64;
    to->row.hosts += (*word & bit) == 0;
    *word |= bit;
}

static int compare_ticks(const struct rate_ticks *a, const char *dimension, uint32_t rate)
{
    int order = strcmp(a->dimension, dimension);
    return order != 0 ? order : (a->rate > rate) - (a->rate < rate);
}

/* Ticks of one histogram, by dimension and rate; those of the collector's own dimension are not samples. */
static void add_ticks(struct adding *g, struct upload_group *to, const char dimension[16], uint32_t rate,
                      const uint32_t *bins, const uint64_t *ticks, uint32_t n)
{
    struct rate_ticks **at = &to->rates;
    if (collector_is_dimension(dimension)) {
        for (uint32_t i = 0; i < n; i++) {
            sum_saturate(&to->outside, bins[i] == COLLECTOR_OUTSIDE_NS ? ticks[i] : 0);
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
        sum_saturate(&(*at)->ticks, ticks[i]);
    }
}

/* only: the one build that counts; COUNTS_NOWHERE: all do. */
static void add_counts(struct adding *g, struct upload_group *to, const struct counts *c, uint32_t only)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (only == COUNTS_NOWHERE || h->build == only) {
            add_ticks(g, to, h->dimension, h->rate, c->bin_index + h->first, c->bin_ticks + h->first, h->used);
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (only == COUNTS_NOWHERE || c->from_build[i] == only || c->to_build[i] == only) {
            sum_saturate(&to->row.calls, c->calls[i]);
        }
    }
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    static const char usual[16] = REPORT_DIMENSION_USUAL;
    struct adding *g = context;
    ARENA_BOUNDARY(g->arena, profd_no_memory(e));
    uint32_t only = COUNTS_NOWHERE;
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    const uint32_t number = find_group(g, row); /* may move the groups */
    struct upload_group *to = &g->groups[number];
    const bool first = to->row.uploads == 0;
    to->row.uploads += row->uploads;
    to->row.processes += row->processes_started;
    to->row.inexact |= row->inexact;
    to->of |= store_origin_of(row->uid);
    to->row.first = first || row->start < to->row.first ? row->start : to->row.first;
    to->row.last = first || row->end > to->row.last ? row->end : to->row.last;
    add_host(g, to, row->host);
    for (size_t i = 0; i < row->host_count; i++) {
        add_host(g, to, row->hosts[i]);
    }
    for (uint32_t i = 0; g->request->alone && i < row->build_count; i++) {
        if (strcmp(row->builds[i].id.text, g->request->filter.build_id) == 0) {
            only = i;
        }
    }
    if (row->shares) { /* a total of a host; its seconds are those of the usual dimension */
        g->totals = true;
        for (uint32_t i = 0; i < row->build_count; i++) {
            if (only == COUNTS_NOWHERE || i == only) {
                sum_saturate(&to->nanoseconds, row->shares[i].nanoseconds);
            }
        }
        sum_saturate(&to->row.calls, only == COUNTS_NOWHERE ? row->calls : row->shares[only].calls);
        add_ticks(g, to, usual, 1, NULL, NULL, 0);
    } else {
        struct counts c;
        TRY(row_decode_counts(row, g->scratch, &c, e));
        add_counts(g, to, &c, only);
    }
    return PROFD_OK;
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
    if (!status) {
        status = store_get_marks(r->store, &r->scope, &filter, STORE_OF_ALL, &reasons, e);
    }
    if (status || (before->processes == 0 && reasons == 0)) {
        return status;
    }
    const bool totals = (reasons & (uint32_t)INEXACT_HOST_TOTALS) != 0; /* then groups are steps alone */
    status = groups_marks_load(r->store, &r->scope, &filter, r->labels, r->label_count, g->arena, &marks, e);
    memcpy(matchers, filter.matchers, filter.matcher_count * sizeof *matchers);
    filter.matchers = matchers;
    for (uint32_t i = 0; !status && i < g->keys.count; i++) {
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
        const enum store_origin of = (enum store_origin)g->groups[i].of;
        row->inexact |= groups_marks_find(&marks, of, row->values, filter.since, filter.until);
        if (!status && totals) {
            status = store_get_marks(r->store, &r->scope, &filter, of, &reasons, e);
            row->inexact |= reasons;
        }
    }
    return status;
}

static int group_compare(const void *left, const void *right, void *context)
{
    const struct group_row *a = &((const struct upload_group *)left)->row,
                           *b = &((const struct upload_group *)right)->row;
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
        for (const struct rate_ticks *at = g->groups[i].rates; at; at = at->next) {
            if ((!behind || strcmp(at->dimension, behind) > 0) && (!least || strcmp(at->dimension, least) < 0)) {
                least = at->dimension;
            }
        }
    }
    return least;
}

enum profd_status groups_add_up(const struct groups_request *r, struct arena *a, struct group_row **rows, size_t *count,
                                const char **dimension, struct profd_error *e)
{
    struct adding g = {.request = r, .arena = a, .scratch = arena_new_child(a, LIMIT_QUERY_MEMORY)};
    struct store_filter filter = r->filter;
    struct store_living unread;
    set_init(&g.keys, a);
    set_init(&g.hosts, a);
    buffer_init_arena(&g.key, a);
    if (r->step > 0) { /* the store gives no sum that is wider than a step or an hour, of whole ones */
        g.widest = r->step > HOUR ? r->step : HOUR;
        const int64_t first = r->begin - r->begin % g.widest, last = r->end - 1 - (r->end - 1) % g.widest + g.widest;
        filter.widest = g.widest;
        filter.since = first > filter.since ? first : filter.since;
        filter.since = filter.since > 0 ? filter.since : 1;
        filter.until = filter.until > 0 && filter.until < last ? filter.until : last;
    }
    enum profd_status status = store_get_living(r->store, STORE_UNREAD, &r->scope, &r->filter, &unread, e);
    status = status ? status : store_each_upload(r->store, &r->scope, &filter, take_row, &g, e);
    status = status ? status : store_pattern_judge(&filter, e);
    arena_free(g.scratch);
    TRY(status);
    TRY(mark_unread(&g, &unread, e));

    /* The dimension that all rows' seconds are of, chosen as a report does. */
    struct report_dimension *list = NULL;
    uint32_t list_count = 0, capacity = 0, picked;
    for (const char *at = next_dimension(&g, NULL); at; at = next_dimension(&g, at)) {
        list = arena_extend(a, list, list_count, &capacity, sizeof *list);
        list[list_count++] = (struct report_dimension){.name = at};
    }
    TRY(report_dimension_pick(list, list_count, r->dimension, r->may_lack, &picked, e));
    const char *chosen = picked < list_count ? list[picked].name : r->dimension ? r->dimension : REPORT_DIMENSION_USUAL;
    const bool usual = strcmp(chosen, REPORT_DIMENSION_USUAL) == 0;
    FAIL_IF(g.totals && !usual, e, PROFD_BAD_QUERY, "dimension=%s: of some hosts only totals in %s are kept", chosen,
            REPORT_DIMENSION_USUAL);

    const size_t n = g.keys.count;
    struct group_row *out = ARENA_ARRAY(a, n, struct group_row);
    if (n > 0) {
        struct groups_request order = *r;
        qsort_r(g.groups, n, sizeof *g.groups, group_compare, &order);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t outside = usual && !r->alone ? g.groups[i].outside : 0;
        out[i] = g.groups[i].row;
        out[i].seconds = (double)g.groups[i].nanoseconds / 1e9 + (double)outside / 1e9;
        for (const struct rate_ticks *at = g.groups[i].rates; at; at = at->next) {
            out[i].seconds += strcmp(at->dimension, chosen) == 0 ? (double)at->ticks / at->rate : 0;
        }
    }
    *dimension = chosen;
    *rows = out;
    *count = n;
    return PROFD_OK;
}

/* by= of the parameters into r->labels. BAD_QUERY if one is no name of a label or given twice, if there are too many,
 * and if there is none and no step either. */
static enum profd_status groups_parse_labels(const struct params *p, struct groups_request *r, struct profd_error *e)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *label = p->items[i].value;
        if (strcmp(p->items[i].name, "by") != 0) {
            continue;
        }
        FAIL_IF(label_judge_name(label, strlen(label)) != LABEL_GOOD, e, PROFD_BAD_QUERY, "by=%s does not name a label",
                label);
        for (size_t k = 0; k < r->label_count; k++) {
            FAIL_IF(strcmp(r->labels[k], label) == 0, e, PROFD_BAD_QUERY, "by=%s is given twice", label);
        }
        FAIL_IF(r->label_count == GROUPS_LABELS, e, PROFD_BAD_QUERY, "by=%s is one label too many: at most %d", label,
                GROUPS_LABELS);
        r->labels[r->label_count++] = label;
    }
    FAIL_IF(r->label_count == 0 && r->step == 0, e, PROFD_BAD_QUERY,
            "by= must name a label to group by, or step= a length of time");
    return PROFD_OK;
}

/* /api/v1/builds/{id}/groups: uploads by the values of labels, by time, or both. */

#define SECOND INT64_C(1000000000)

/* The cursor of a page: time, width and values of its last row. Backslashes and slashes in values are escaped by
 * backslashes. */
static const char *make_cursor(const struct group_row *row, size_t labels, struct arena *a)
{
    size_t size = 64;
    for (size_t i = 0; i < labels; i++) {
        size += 1 + 2 * strlen(row->values[i]);
    }
    char *cursor = arena_take(a, size), *p = cursor;
    p += snprintf(p, 64, "%" PRId64 ".%" PRId64, row->time / SECOND, row->width / SECOND);
    for (size_t i = 0; i < labels; i++) {
        *p++ = '/';
        for (const char *c = row->values[i]; *c != '\0'; c++) {
            if (*c == '/' || *c == '\\') {
                *p++ = '\\';
            }
            *p++ = *c;
        }
    }
    return cursor;
}

/* What the options select of a build, at the steps that the request has. */
static enum profd_status find_selection(const struct report_work *w, struct groups_request *r, struct profd_error *e)
{
    TRY(steps_find_span(w, r->step, &r->begin, &r->end, e));
    r->scope = w->options.visible;
    r->filter = work_make_filter(w);
    r->dimension = w->options.dimension;
    r->alone = w->scope != OPTIONS_SCOPE_PROGRAM;
    return PROFD_OK;
}

enum profd_status groups_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    struct groups_request r = {.store = job->store};
    unsigned long long limit = LIMIT_PAGE_DEFAULT;
    const char *cursor = params_find(job->params, "cursor");
    struct group_row *rows = NULL;
    size_t n = 0, first = 0;
    TRY(job_parse_page(job, &limit, e));
    TRY(steps_parse(job, 0, &r.step, e));
    TRY(groups_parse_labels(job->params, &r, e));
    TRY(work_begin(job, false, &w, e));
    TRY(find_selection(&w, &r, e));
    const char *dimension = r.dimension ? r.dimension : REPORT_DIMENSION_USUAL;
    for (bool moved = r.step == 0 || r.begin < r.end; moved;) {
        TRY(groups_add_up(&r, job->arena, &rows, &n, &dimension, e));
        TRY(work_check_edges(job, &w, &moved, e));
    }

    /* The page begins behind the cursor's row. There are few rows compared with the uploads that were read for them. */
    while (cursor && first < n && strcmp(cursor, make_cursor(&rows[first], r.label_count, job->arena)) != 0) {
        first++;
    }
    if (cursor && first++ == n) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "cursor=%s is not a cursor from this list, or its row no longer exists; "
                               "start again without cursor=",
                               cursor);
    }
    struct list_page page = {.size = sizeof *rows, .rows = rows, .count = (uint32_t)n};
    const size_t end = list_cut(&page, first, limit);
    const struct render_groups groups = {
        r.labels,     r.label_count,
        r.step,       w.used_since,
        w.used_until, page.rows,
        page.count,   page.more ? make_cursor(&rows[end - 1], r.label_count, job->arena) : NULL,
        dimension};
    render_groups(&groups, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/load: CPU time by steps, and values of labels, of all builds with uploads in a window. One answer for the
 * small pictures of a whole list. */

#define STEPS_USUAL 24
#define STEPS_MOST 400u /* of a row */
#define VALUES_MOST 32u /* of a label in a row */

struct loads {
    struct job *job;
    struct groups_request request; /* step and labels of all */
    int64_t begin;                 /* of the first step */
    size_t step_count;
    struct list_page ids; /* const char *: ids of the builds of the page; not for list_show */
    struct load_row *rows;
    size_t row_count;
};

static bool take_load_build(void *context, const struct build_row *row)
{
    struct loads *l = context;
    ARENA_BOUNDARY(l->job->arena, false);
    const char **id = list_add(&l->ids);
    if (id) {
        *id = job_copy(l->job, row->build_id.text);
    }
    return id;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different values of a label that are not empty, ascending, ended by NULL. */
static const char *const *find_values(struct loads *l, const struct group_row *rows, size_t n, size_t label)
{
    const char **values = ARENA_ARRAY(l->job->arena, n + 1, const char *);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].values[label][0] != '\0') {
            values[count++] = rows[i].values[label];
        }
    }
    qsort(values, count, sizeof *values, compare_texts);
    for (size_t i = 0; i < count && kept < VALUES_MOST; i++) {
        if (kept == 0 || strcmp(values[kept - 1], values[i]) != 0) {
            values[kept++] = values[i];
        }
    }
    values[kept] = NULL;
    return values;
}

/* The row of one build, if it has uploads in the window. */
static enum profd_status add_load(struct loads *l, const char *id, struct profd_error *e)
{
    struct arena *a = l->job->arena;
    struct report_work w;
    struct group_row *rows = NULL;
    size_t n = 0;
    const char *dimension = REPORT_DIMENSION_USUAL;
    struct groups_request r = l->request;
    TRY(work_find(l->job, l->job->params, id, false, &w, e));
    w.options.since = w.options.since > l->begin ? w.options.since : l->begin;
    TRY(find_selection(&w, &r, e));
    if (r.begin >= r.end) {
        return PROFD_OK;
    }
    TRY(groups_add_up(&r, a, &rows, &n, &dimension, e));
    const char *const **values = ARENA_ARRAY(a, r.label_count + 1, const char *const *);
    struct load_row *out = &l->rows[l->row_count];
    *out = (struct load_row){.build_id = id, .dimension = dimension, .values = values};
    out->seconds = ARENA_ARRAY(a, l->step_count + 1, double);
    memset(out->seconds, 0, (l->step_count + 1) * sizeof *out->seconds);
    for (size_t i = 0; i < n; i++) {
        const int64_t at = (rows[i].time - l->begin) / r.step;
        if (rows[i].time < l->begin) {
            continue; /* rows of whole steps: of one before the first */
        }
        out->seconds[at < (int64_t)l->step_count ? (size_t)at : l->step_count - 1] += rows[i].seconds;
        out->hosts = rows[i].hosts > out->hosts ? rows[i].hosts : out->hosts;
        sum_saturate(&out->calls, rows[i].calls);
        sum_saturate(&out->processes, rows[i].processes);
    }
    for (size_t k = 0; k < r.label_count; k++) {
        values[k] = find_values(l, rows, n, k);
    }
    l->row_count += n > 0;
    return PROFD_OK;
}

enum profd_status loads_list(struct job *job, struct profd_error *e)
{
    const struct query_request *q = job->request;
    struct loads l = {.job = job, .request = {.store = job->store}};
    struct buildid after = {""};
    struct options o;
    struct store_epoch epoch;
    TRY(list_begin(job, RENDER_BUILDS, sizeof(const char *), &l.ids, e));
    TRY(list_parse_build_cursor(&l.ids, &after, e));
    TRY(steps_parse(job, STEPS_HOUR, &l.request.step, e));
    FAIL_IF(l.request.step < STEPS_HOUR, e, PROFD_BAD_QUERY, "step=%s is shorter than 1h",
            params_find(job->params, "step"));
    TRY(groups_parse_labels(job->params, &l.request, e));

    /* The window as whole steps: the last day, if nothing is said. */
    TRY(options_parse(job->params, &q->scope, q->http, q->now, false, job->arena, &o, e));
    const int64_t step = l.request.step, until = o.until > 0 ? o.until : q->now + 1;
    const int64_t since = o.since > 0 ? o.since : until - (STEPS_USUAL - 1) * step;
    l.begin = since - since % step;
    const int64_t steps = until > l.begin ? (until - l.begin + step - 1) / step : 0;
    FAIL_IF(steps < 1 || steps > STEPS_MOST, e, PROFD_BAD_QUERY,
            "%lld steps, which is not between 1 and %u; use another step= or time range", (long long)steps, STEPS_MOST);
    l.step_count = (size_t)steps;
    const int64_t resolved[3] = {l.begin, steps, o.until};
    TRY(store_epoch_all(job->store, &q->scope, &epoch, e));
    TRY(job_set_etag(job, resolved, sizeof resolved, &epoch));

    l.rows = ARENA_ARRAY(job->arena, l.ids.limit + 1, struct load_row);
    TRY(store_each_build(job->store, &q->scope, after.text, l.ids.limit + 1, take_load_build, &l, e));
    arena_continue(job->arena);
    const char *const *ids = l.ids.rows;
    for (uint32_t i = 0; i < l.ids.count; i++) {
        TRY(add_load(&l, ids[i], e));
    }
    const struct render_loads loads = {l.request.labels, l.request.label_count,
                                       l.request.step,   l.begin,
                                       l.step_count,     l.rows,
                                       l.row_count,      l.ids.more ? ids[l.ids.count - 1] : NULL};
    render_loads(&loads, &job->answer->body);
    return PROFD_OK;
}
