/* GET /api/v1/processes: the live processes, from the loop's memory. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "query/options.h"
#include "query/params.h"
#include "render/render.h"
#include "server_attach.h"
#include "store/labels.h"

#define ARENA (16u << 20)
#define PATIENCE_MS 100u /* for regular expressions: the loop has others to serve */
#define CALL_NS 2.0      /* what a counted call costs about, where no tick says better */
#define CURSOR (2 * ATTACH_INSTANCE_SIZE + 12)

struct server_attach_question {
    struct arena *arena;
    struct params *params;
    struct store_scope scope;
    int64_t now;
    bool has_pid, has_uid;
    uint32_t pid, uid;
    unsigned long long limit;
    size_t matcher_count;
    struct store_matcher matchers[LIMIT_MATCHERS];
    char cursor[CURSOR];
    const struct server_attached **found;
    size_t count;
};

/* Where it stands in the list: an order that does not change while pages are asked for. */
static void server_attach_place(const struct server_attached *a, char out[CURSOR])
{
    size_t n = 0;

    for (size_t i = 0; i < ATTACH_INSTANCE_SIZE; i++)
        n += (size_t)snprintf(out + n, CURSOR - n, "%02x", a->instance[i]);
    snprintf(out + n, CURSOR - n, "-%u", a->uid);
}

static int server_attach_compare(const void *x, const void *y)
{
    const struct server_attached *a = *(const struct server_attached *const *)x,
                                 *b = *(const struct server_attached *const *)y;
    const int by_instance = memcmp(a->instance, b->instance, sizeof a->instance);
    char one[CURSOR], other[CURSOR];

    if (by_instance)
        return by_instance;
    server_attach_place(a, one);
    server_attach_place(b, other);
    return strcmp(one, other);
}

static enum profd_status server_attach_add_matcher(struct server_attach_question *q, const struct param *p,
                                                   struct profd_error *e)
{
    struct store_matcher *m = &q->matchers[q->matcher_count];
    const bool label = !strncmp(p->name, "label.", 6);
    enum profd_status status = PROFD_OK;

    if (!label && strcmp(p->name, "match") != 0)
        return PROFD_OK;
    if (q->matcher_count == LIMIT_MATCHERS)
        return profd_error_set(e, PROFD_BAD_QUERY, "more than %u matchers", LIMIT_MATCHERS);
    if (label)
        *m = (struct store_matcher){.name = p->name + 6, .value = p->value, .match = STORE_MATCH_EQUAL};
    else
        status = options_parse_match(p->value, q->arena, m, e);
    q->matcher_count += !status;
    return status;
}

static enum profd_status server_attach_read_number(const struct params *p, const char *name, bool *has, uint32_t *out,
                                                   struct profd_error *e)
{
    unsigned long long n = 0;
    enum profd_status status = params_parse_number(p, name, 0, UINT32_MAX, &n, e);

    *has = params_find(p, name);
    *out = (uint32_t)n;
    return status;
}

static enum profd_status server_attach_ask(struct server_attach_question *q, const char *target, struct profd_error *e)
{
    static const char *const allowed[] = {"pid", "uid", "match", "label.*", "limit", "cursor", NULL};
    enum profd_status status = params_parse(target, q->params, e);
    const char *cursor;

    if (!status)
        status = params_check(q->params, allowed, e);
    if (!status)
        status = server_attach_read_number(q->params, "pid", &q->has_pid, &q->pid, e);
    if (!status)
        status = server_attach_read_number(q->params, "uid", &q->has_uid, &q->uid, e);
    q->limit = LIMIT_PAGE_DEFAULT;
    if (!status)
        status = params_parse_number(q->params, "limit", 1, LIMIT_PAGE, &q->limit, e);
    for (size_t i = 0; i < q->params->count && !status; i++)
        status = server_attach_add_matcher(q, &q->params->items[i], e);
    if (status)
        return status;
    cursor = params_find(q->params, "cursor");
    if (cursor &&
        (strlen(cursor) >= sizeof q->cursor || strspn(cursor, "0123456789abcdef") != 2 * ATTACH_INSTANCE_SIZE))
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not one that a list gave", cursor);
    if (cursor)
        memcpy(q->cursor, cursor, strlen(cursor) + 1);
    return PROFD_OK;
}

/* The labels as matchers take them. */
static bool server_attach_matches(const struct server_attach_question *q, const struct server_attached *a)
{
    const size_t n = a->facts ? a->facts->facts.label_count : 0;
    struct buffer text;
    bool match;

    buffer_init(&text, 2 * LIMIT_LABEL_BYTES);
    for (size_t i = 0; i < n; i++) {
        const struct label_row *l = &a->facts->labels[i];

        buffer_add(&text, l->name, strlen(l->name) + 1);
        buffer_add(&text, l->value, strlen(l->value) + 1);
    }
    match = labels_match(text.data ? text.data : "", text.size, q->matchers, q->matcher_count);
    buffer_done(&text);
    return match;
}

static bool server_attach_is_asked_for(const struct server_attach_question *q, const struct server_attached *a)
{
    char place[CURSOR];

    if ((!q->scope.all && a->uid != q->scope.uid) || (q->has_pid && a->origin.pid != q->pid) ||
        (q->has_uid && a->uid != q->uid))
        return false;
    if (*q->cursor) {
        server_attach_place(a, place);
        if (strcmp(place, q->cursor) <= 0)
            return false;
    }
    return !q->matcher_count || server_attach_matches(q, a);
}

static enum profd_status server_attach_find_all(const struct server_attach *t, struct server_attach_question *q,
                                                struct profd_error *e)
{
    const struct store_filter filter = {.matcher_count = q->matcher_count, .matchers = q->matchers};
    const uint64_t began = loop_now();

    q->found = t->count ? calloc(t->count, sizeof(struct server_attached *)) : NULL;
    if (t->count && !q->found)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", t->count);
    for (size_t b = 0; b < SERVER_ATTACH_BUCKETS; b++)
        for (const struct server_attached *a = t->buckets[b]; a; a = a->next) {
            if (server_attach_is_asked_for(q, a))
                q->found[q->count++] = a;
            if (q->matcher_count && loop_now() - began > PATIENCE_MS)
                return profd_error_set(e, PROFD_LIMIT, "the matchers took more than %u ms for %zu processes",
                                       PATIENCE_MS, t->count);
        }
    if (q->count)
        qsort(q->found, q->count, sizeof *q->found, server_attach_compare);
    return store_pattern_judge(&filter, e);
}

static const char *server_attach_state(const struct server_attached *a)
{
    if (a->dead)
        return "ended";
    if (a->page && a->page->paused)
        return "paused";
    return a->conn ? "counting" : "silent";
}

/* The part of its CPU time that counting takes: by the ticks that fell inside the collector, else by what a call costs.
 */
static double server_attach_overhead(const struct attach_facts *f)
{
    double part = 0;

    if (f->ticks)
        part = (double)f->ticks_inside / (double)f->ticks;
    else if (f->cpu_ns)
        part = (double)f->calls * CALL_NS / (double)f->cpu_ns;
    return part < 1 ? part : 1;
}

static double server_attach_rate(const struct attach_facts *f)
{
    const int64_t since = f->harvested_before ? f->harvested_before : f->start;

    if (!f->harvested || f->harvested <= since || f->calls < f->calls_before)
        return 0;
    return (double)(f->calls - f->calls_before) * 1e9 / (double)(f->harvested - since);
}

void server_attach_add_json(const struct server_attached *a, int64_t now, struct buffer *out)
{
    static const char *const modes[] = {
        [ATTACH_MODE_OFF] = "off", [ATTACH_MODE_CPU] = "cpu", [ATTACH_MODE_WALL] = "wall"};
    static const uint8_t nobody[ATTACH_INSTANCE_SIZE];
    struct process_row row = {.instance = a->instance,
                              .now = now,
                              .uid = a->uid,
                              .pid = a->origin.pid,
                              .build_id = "",
                              .name = "",
                              .why = "",
                              .mode = modes[0],
                              .state = server_attach_state(a)};
    const struct attach_facts *f = a->facts ? &a->facts->facts : NULL;
    char why[48] = "";

    row.rate_asked = a->page ? a->page->rate : 0;
    if (f) {
        for (size_t i = 0; f->why[i] && i + 1 < sizeof why; i++)
            why[i] = (char)tolower((unsigned char)f->why[i]);
        row.parent = memcmp(f->parent, nobody, sizeof nobody) ? f->parent : NULL;
        row.pid_inside = f->pid_inside;
        row.build_id = f->build_id;
        row.name = f->name;
        row.label_count = f->label_count;
        row.labels = a->facts->labels;
        row.started = f->start;
        row.mode = f->mode <= ATTACH_MODE_WALL ? modes[f->mode] : modes[0];
        row.rate = f->rate;
        row.calls_exact = f->calls_exact;
        row.ticks_exact = f->ticks_exact;
        row.exact = f->calls_exact && f->ticks_exact;
        row.why = why;
        row.calls = f->calls;
        row.ticks = f->ticks;
        row.cpu_ns = f->cpu_ns;
        row.bytes = f->bytes;
        row.calls_per_second = server_attach_rate(f);
        row.overhead = server_attach_overhead(f);
        row.harvested = f->harvested;
    }
    render_process(&row, out);
}

static void server_attach_print(const struct server_attach_question *q, struct server_page *page)
{
    const size_t n = q->count < q->limit ? q->count : (size_t)q->limit;
    char next[CURSOR];

    server_page_init(page, 200, "application/json; charset=utf-8");
    page->body.limit = SERVER_ATTACH_PAGE_MAX;
    buffer_add_text(&page->body, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buffer_add_char(&page->body, ',');
        server_attach_add_json(q->found[i], q->now, &page->body);
    }
    if (n < q->count) {
        server_attach_place(q->found[n - 1], next);
        buffer_add_format(&page->body, "],\"next\":\"%s\"}\n", next);
    } else {
        buffer_add_text(&page->body, "],\"next\":null}\n");
    }
}

bool server_attach_list(struct server *s, const struct query_request *request, struct server_page *page)
{
    struct server_attach_question q = {.scope = request->scope, .now = request->now};
    const size_t n = strlen(SERVER_ATTACH_PATH);
    enum profd_status status = PROFD_NO_MEMORY;
    struct profd_error e = {"no memory for a list of processes"};

    if (strncmp(request->target, SERVER_ATTACH_PATH, n) != 0 || (request->target[n] && request->target[n] != '?'))
        return false;
    q.params = malloc(sizeof *q.params);
    q.arena = arena_new(ARENA);
    if (q.params && q.arena)
        status = server_attach_ask(&q, request->target, &e);
    if (!status)
        status = server_attach_find_all(s->attach, &q, &e);
    if (status)
        server_page_problem(page, profd_status_http(status), status, e.sentence);
    else
        server_attach_print(&q, page);
    free(q.found);
    arena_free(q.arena);
    free(q.params);
    return true;
}
