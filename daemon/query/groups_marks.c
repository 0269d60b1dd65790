#include "query/groups_marks.h"

#include <stdlib.h>
#include <string.h>

#define HOUR INT64_C(3600000000000)

static bool take_mark(void *context, const struct store_mark *mark)
{
    struct groups_marks *m = context;
    struct groups_mark x = {.host = 0, .reasons = mark->reasons, .hour = mark->hour};
    bool added;
    ARENA_BOUNDARY(m->arena, false);
    m->list = arena_extend(m->arena, m->list, m->count, &m->capacity, sizeof *m->list);
    if (m->by_host && mark->host != NULL) {
        x.host = set_add(&m->names, mark->host, strlen(mark->host) + 1, &added) + 1;
    }
    m->list[m->count++] = x;
    return true;
}

static int compare(const void *a, const void *b)
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
        qsort(out->list, out->count, sizeof *out->list, compare);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (n > 0 && compare(&out->list[n - 1], &out->list[i]) == 0) {
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
    uint32_t reasons = 0, low = 0, high = m->count;
    while (low < high) { /* the first that is not before */
        const uint32_t middle = low + (high - low) / 2;
        const struct groups_mark *x = &m->list[middle];
        if (x->host < host || (x->host == host && x->hour < from)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < m->count && m->list[low].host == host && m->list[low].hour <= to; low++) {
        reasons |= m->list[low].reasons;
    }
    return reasons;
}

uint32_t groups_marks_find(const struct groups_marks *m, const char *const *values, int64_t since, int64_t until)
{
    const int64_t from = since > 0 ? since / HOUR : 0, to = until > 0 ? (until - 1) / HOUR : INT64_MAX;
    uint32_t reasons = m->count > 0 ? find_host(m, 0, from, to) : 0;
    if (m->by_host) {
        const char *name = values[m->label];
        uint32_t number = 0;
        reasons |= set_find(&m->names, name, strlen(name) + 1, &number) ? find_host(m, number + 1, from, to) : 0;
    }
    return reasons;
}
