#include "requests/metrics_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "requests/metrics_label.h"
#include "proto/hex.h"

#define NS 1e9
#define DAY_NS INT64_C(86400000000000)
#define AGE_NS (METRICS_HOSTS_AGE_DAYS * DAY_NS)
#define BACKLOG_NS INT64_C(3600000000000)
#define ROWS_BYTES (64u << 20)

struct host_row {
    char *labels;
    int64_t last, delivered; /* ns */
    bool two_machines;
    const struct host_counts *counts;
};

struct host_rows {
    struct metrics_hosts *m;
    const struct store_scope *scope;
    struct arena *arena;
    struct host_row *rows;
    uint32_t count, capacity;
    uint64_t listed[2], unlisted[2], absent; /* [1]: with something wrong */
    bool failed;
};

static const struct host_counts host_counts_none = {.backlog = -1};

enum profd_status metrics_hosts_begin(struct metrics_hosts *m, const struct hashmap *counts, int64_t now,
                                      int64_t interval, struct profd_error *e)
{
    size_t at = 0;
    const void *host;
    const struct host_counts *value;

    *m = (struct metrics_hosts){.active = counts != NULL, .now = now, .interval = interval};
    buffer_init(&m->text, METRICS_HOSTS_BYTES);
    if (!counts || !counts->count) {
        return PROFD_OK;
    }
    m->counted = calloc(counts->count, sizeof *m->counted);
    if (!m->counted) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for counts of %zu hosts", counts->count);
    }
    while ((value = hashmap_next(counts, &at, &host)) != NULL) {
        struct metrics_counted *c = &m->counted[m->count++];

        memcpy(c->host, host, sizeof c->host);
        c->counts = *value;
    }
    return PROFD_OK;
}

static int counted_compare(const void *a, const void *b)
{
    return memcmp(a, b, STORE_HOST_SIZE); /* host is the first member */
}

static char *make_labels(struct arena *arena, const struct store_fleet_host *h)
{
    /* Each byte of the texts may be escaped; beside them there are fewer than 100 bytes. */
    char *labels = arena_take(arena, 2 * (strlen(h->name) + strlen(h->tenant)) + 100), *to = labels;

    if (!labels) {
        return NULL;
    }
    to = metrics_put_value(stpcpy(to, "host=\""), h->name);
    to = metrics_put_value(stpcpy(to, "\",tenant=\""), h->tenant);
    to = hex_put(stpcpy(to, "\",identity=\""), h->host, STORE_HOST_SIZE);
    *to++ = '"';
    return labels;
}

/* Is something wrong with the host, as the alerts have it? */
static bool is_wrong(const struct host_rows *r, const struct store_fleet_host *h, const struct host_counts *n)
{
    return (r->m->interval && r->m->now - h->last > 2 * r->m->interval) || r->m->now - h->copied < DAY_NS ||
           n->backlog > BACKLOG_NS ||
           n->refused + n->segments.refused + n->segments.put_aside + n->segments.conflicts > 0;
}

/* Is the host listed? Counts it in any case. */
static bool judge_host(struct host_rows *r, const struct store_fleet_host *h, bool wrong)
{
    const bool absent = r->m->now - h->last > AGE_NS, listed = !absent && r->listed[wrong] < METRICS_HOSTS_MOST;

    *(absent ? &r->absent : listed ? &r->listed[wrong] : &r->unlisted[wrong]) += 1;
    return listed;
}

static bool take_host(void *context, const struct store_fleet_host *h)
{
    struct host_rows *r = context;
    const struct metrics_counted *counted =
        r->m->count ? bsearch(h->host, r->m->counted, r->m->count, sizeof *counted, counted_compare) : NULL;
    const struct host_counts *counts = counted ? &counted->counts : &host_counts_none;
    struct host_row *rows;

    if (!store_scope_has(r->scope, h->uid) || !judge_host(r, h, is_wrong(r, h, counts))) {
        return true;
    }
    rows = arena_extend(r->arena, r->rows, r->count, &r->capacity, sizeof *rows);
    r->failed = !rows;
    if (!rows) {
        return false;
    }
    r->rows = rows;
    rows[r->count] = (struct host_row){.labels = make_labels(r->arena, h),
                                       .last = h->last,
                                       .delivered = h->delivered,
                                       .two_machines = r->m->now - h->copied < DAY_NS,
                                       .counts = counts};
    r->failed = !rows[r->count++].labels;
    return !r->failed;
}

/* Each returns false where there is no such value. */
static bool get_lag(const struct host_row *h, int64_t now, double *out)
{
    *out = (double)(now > h->last ? now - h->last : 0) / NS;
    return true;
}

static bool get_backlog(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)h->counts->backlog / NS;
    return h->counts->backlog >= 0;
}

static bool get_delivered(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)h->delivered / NS;
    return h->delivered != 0;
}

static bool get_refusals(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)(h->counts->refused + h->counts->segments.refused);
    return true;
}

static bool get_two(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = 1;
    return h->two_machines;
}

static void add_head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_add_format(out, "# HELP profd_%s %s\n# TYPE profd_%s %s\n", name, help, name, type);
}

static void add_families(const struct host_rows *r, struct buffer *out)
{
    static const struct {
        const char *name, *type, *help;
        bool (*get)(const struct host_row *h, int64_t now, double *out);
    } families[] = {
        {"host_lag_seconds", "gauge", "Time since the host last connected.", get_lag},
        {"host_backlog_seconds", "gauge",
         "Age of the host's oldest unacknowledged upload when it last connected; absent if it does not state it or has "
         "not connected since the start.",
         get_backlog},
        {"host_last_upload_timestamp_seconds", "gauge", "When the latest upload of the host arrived.", get_delivered},
        {"host_refusals_total", "counter", "Batches and uploads of the host that were refused since start.",
         get_refusals},
        {"host_two_machines", "gauge", "1: two machines connected as this host within a day.", get_two}};

    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        add_head(out, families[f].name, families[f].type, families[f].help);
        for (uint32_t i = 0; i < r->count; i++) {
            double value;

            if (families[f].get(&r->rows[i], r->m->now, &value)) {
                buffer_add_text(out, "profd_");
                buffer_add_text(out, families[f].name);
                buffer_add_char(out, '{');
                buffer_add_text(out, r->rows[i].labels);
                buffer_add_text(out, "} ");
                buffer_add_shortest(out, value);
                buffer_add_char(out, '\n');
            }
        }
    }
}

static void add_segments(const struct host_rows *r, struct buffer *out)
{
    static const char *const results[] = {"counted", "repeat", "put-aside", "conflict"};

    add_head(out, "host_received_total", "counter",
             "Uploads of the host that were acknowledged since start, by result.");
    for (uint32_t i = 0; i < r->count; i++) {
        const struct delivery_counts *n = &r->rows[i].counts->segments;
        const uint64_t values[] = {n->counted, n->again, n->put_aside, n->conflicts};

        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            buffer_add_text(out, "profd_host_received_total{");
            buffer_add_text(out, r->rows[i].labels);
            buffer_add_text(out, ",result=\"");
            buffer_add_text(out, results[k]);
            buffer_add_text(out, "\"} ");
            buffer_add_u64(out, values[k], 0);
            buffer_add_char(out, '\n');
        }
    }
}

enum profd_status metrics_hosts_format(struct metrics_hosts *m, struct store *store, const struct store_scope *scope,
                                       struct profd_error *e)
{
    struct host_rows r = {.m = m, .scope = scope};
    enum profd_status status;

    if (!m->active) {
        return PROFD_OK;
    }
    if (m->count) {
        qsort(m->counted, m->count, sizeof *m->counted, counted_compare);
    }
    r.arena = arena_new(ROWS_BYTES);
    status = r.arena ? store_each_host(store, take_host, &r, e)
                     : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of hosts");
    if (!status && r.failed) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of hosts");
    }
    if (!status) {
        add_head(
            &m->text, "hosts", "gauge",
            "Hosts by state. Only those of state listed have values of their own; absent: has not arrived for 30 days; "
            "unlisted: beyond the first 1000 by name; unlisted-wrong: something is wrong, but beyond the first 1000 "
            "of these.");
        buffer_add_format(&m->text, "profd_hosts{state=\"listed\"} %u\n", (unsigned)r.count);
        buffer_add_format(&m->text, "profd_hosts{state=\"unlisted\"} %llu\n", (unsigned long long)r.unlisted[0]);
        buffer_add_format(&m->text, "profd_hosts{state=\"unlisted-wrong\"} %llu\n", (unsigned long long)r.unlisted[1]);
        buffer_add_format(&m->text, "profd_hosts{state=\"absent\"} %llu\n", (unsigned long long)r.absent);
        add_families(&r, &m->text);
        add_segments(&r, &m->text);
    }
    arena_free(r.arena);
    return status;
}

void metrics_hosts_done(struct metrics_hosts *m)
{
    free(m->counted);
    buffer_done(&m->text);
    *m = (struct metrics_hosts){.active = false};
}
