/* /api/v1/processes: the live processes, as they were found on the loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rows.h"
#include "proto/hex.h"
#include "query/handlers.h"
#include "query/options.h"
#include "query/query.h"
#include "render/render.h"
#include "store/labels.h"
#include "store/store.h"

#define INSTANCE 16
#define CURSOR (2 * INSTANCE + 12)

struct process_query {
    struct job *job;
    bool has_pid, has_uid;
    uint32_t pid, uid;
    unsigned long long limit;
    size_t matcher_count;
    struct store_matcher matchers[LIMIT_MATCHERS];
    char cursor[CURSOR];
};

/* The place in the list: an order that does not change while pages are asked for. */
static void processes_format_place(const struct process_row *row, char out[CURSOR])
{
    char *end = hex_put(out, row->instance, INSTANCE);

    snprintf(end, (size_t)(out + CURSOR - end), "-%u", row->uid);
}

static int processes_compare(const void *x, const void *y)
{
    const struct process_row *a = x, *b = y;
    const int by_instance = memcmp(a->instance, b->instance, INSTANCE);
    char one[CURSOR], other[CURSOR];

    if (by_instance) {
        return by_instance;
    }
    processes_format_place(a, one);
    processes_format_place(b, other);
    return strcmp(one, other);
}

static enum profd_status processes_parse_number(const struct params *p, const char *name, bool *has, uint32_t *out,
                                                struct profd_error *e)
{
    unsigned long long n = 0;
    enum profd_status status = params_parse_number(p, name, 0, UINT32_MAX, &n, e);

    *has = params_find(p, name);
    *out = (uint32_t)n;
    return status;
}

static enum profd_status processes_parse_cursor(struct process_query *q, const char *cursor, struct profd_error *e)
{
    if (!cursor) {
        return PROFD_OK;
    }
    if (strlen(cursor) >= sizeof q->cursor || strspn(cursor, "0123456789abcdef") != (size_t)(2 * INSTANCE)) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not a cursor from a list", cursor);
    }
    memcpy(q->cursor, cursor, strlen(cursor) + 1);
    return PROFD_OK;
}

static enum profd_status processes_parse(struct process_query *q, struct profd_error *e)
{
    const struct params *p = q->job->params;
    enum profd_status status = processes_parse_number(p, "pid", &q->has_pid, &q->pid, e);

    if (!status) {
        status = processes_parse_number(p, "uid", &q->has_uid, &q->uid, e);
    }
    if (!status) {
        status = job_parse_page(q->job, &q->limit, e);
    }
    if (!status) {
        status = options_parse_matchers(p, q->job->arena, q->matchers, &q->matcher_count, e);
    }
    return status ? status : processes_parse_cursor(q, params_find(p, "cursor"), e);
}

/* The labels as matchers take them. */
static bool processes_match(const struct process_query *q, const struct process_row *row)
{
    struct buffer text;
    bool match;

    buffer_init(&text, 2 * LIMIT_LABEL_BYTES);
    for (size_t i = 0; i < row->label_count; i++) {
        buffer_add(&text, row->labels[i].name, strlen(row->labels[i].name) + 1);
        buffer_add(&text, row->labels[i].value, strlen(row->labels[i].value) + 1);
    }
    match = labels_match(text.data ? text.data : "", text.size, q->matchers, q->matcher_count);
    buffer_done(&text);
    return match;
}

static bool processes_select(const struct process_query *q, const struct process_row *row)
{
    char place[CURSOR];

    if ((q->has_pid && row->pid != q->pid) || (q->has_uid && row->uid != q->uid)) {
        return false;
    }
    if (*q->cursor) {
        processes_format_place(row, place);
        if (strcmp(place, q->cursor) <= 0) {
            return false;
        }
    }
    return !q->matcher_count || processes_match(q, row);
}

enum profd_status processes_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct process_query q = {.job = job};
    struct store_filter filter = {.matchers = q.matchers};
    struct process_row *rows;
    size_t count = 0, n;
    char next[CURSOR] = "";
    enum profd_status status;

    if (!r->processes) {
        return profd_error_set(e, PROFD_NOT_FOUND, "there is no resource at %.100s; write it without escapes",
                               r->target);
    }
    status = processes_parse(&q, e);
    if (status) {
        return status;
    }
    rows = ARENA_ARRAY(job->arena, r->process_count + 1, struct process_row);
    for (size_t i = 0; i < r->process_count; i++) {
        if (processes_select(&q, &r->processes[i])) {
            rows[count++] = r->processes[i];
        }
    }
    filter.matcher_count = q.matcher_count;
    status = store_pattern_judge(&filter, e);
    if (status) {
        return status;
    }
    qsort(rows, count, sizeof *rows, processes_compare);
    n = count < q.limit ? count : (size_t)q.limit;
    if (n < count) {
        processes_format_place(&rows[n - 1], next);
    }
    job->answer->content_type = "application/json; charset=utf-8";
    render_processes(rows, n, *next ? next : NULL, &job->answer->body);
    return PROFD_OK;
}
