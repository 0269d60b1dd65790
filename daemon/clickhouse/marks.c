/* Hours in which something of a host is missing, and what reports say of them. */
#include <inttypes.h>
#include <string.h>

#include "clickhouse/catalogue.h"
#include "clickhouse/fleet.h"
#include "store/labels.h"

#define SLOTS_BYTES (200u << 10) /* a statement has at most 256 KiB */

/* The reasons of one host, or of all, in an hour or all hours of a query. */
struct marked {
    uint8_t host[STORE_HOST_SIZE];
    uint32_t hour, reasons;
};

static int64_t first_hour(const struct store_filter *f)
{
    return f->since > 0 ? f->since / ENGINE_HOUR : 0;
}

static int64_t last_hour(const struct store_filter *f)
{
    return f->until > 0 ? (f->until - 1) / ENGINE_HOUR : UINT32_MAX;
}

/* Loads the marks, by host. hours: those of each hour apart. */
static enum profd_status load_marks(struct clickhouse_store *s, struct arena *a, const struct store_filter *filter,
                                    bool hours, struct marked **list, uint32_t *n, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    uint32_t capacity = 0;
    *list = NULL;
    *n = 0;
    enum profd_status status = engine_query(s, &r, e,
                                            "SELECT host, %s AS h, groupBitOr(reason) FROM mark WHERE hour >= %" PRId64
                                            " AND hour <= %" PRId64 " GROUP BY host, h ORDER BY host",
                                            hours ? "hour" : "toUInt32(0)", first_hour(filter), last_hour(filter));
    while (status == PROFD_OK && rows_more(&r)) {
        struct marked *more = arena_extend(a, *list, *n, &capacity, sizeof **list);
        if (!more) {
            status = profd_no_memory(e);
            break;
        }
        *list = more;
        rows_fixed(&r, more[*n].host, sizeof more[*n].host);
        more[*n].hour = rows_u32(&r);
        more[(*n)++].reasons = rows_u32(&r);
        status = engine_rows_check(&r, "marks of hours", e);
    }
    rows_close(&r);
    return status;
}

/* identity → name of the marked hosts in scope that the filter could select; NULL for what is marked of every host. */
static enum profd_status name_marked(struct clickhouse_store *s, struct arena *a, const struct store_scope *scope,
                                     const struct store_filter *filter, const struct marked *marks, uint32_t n,
                                     struct hashmap *names, struct profd_error *e)
{
    static const uint8_t every[STORE_HOST_SIZE];
    static const char *const none = NULL;
    const uint8_t **identities = ARENA_ARRAY(a, n, const uint8_t *);
    struct engine_host *hosts = NULL;
    size_t distinct = 0, count = 0;
    bool fine = identities && hashmap_put(names, every, sizeof every, &none, sizeof none);
    for (uint32_t i = 0; i < n && fine; i++) {
        if (i == 0 || memcmp(marks[i].host, marks[i - 1].host, sizeof marks[i].host) != 0) {
            identities[distinct++] = marks[i].host;
        }
    }
    enum profd_status status =
        fine ? engine_load_hosts(s, a, identities, distinct, &hosts, &count, e) : profd_no_memory(e);
    for (size_t i = 0; i < count && status == PROFD_OK; i++) {
        const struct engine_host *h = &hosts[i];
        if (store_scope_has(scope, h->uid) && labels_match_host(filter, h->name) &&
            !hashmap_put(names, h->identity, sizeof h->identity, &h->name, sizeof h->name)) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

static enum profd_status each_mark(struct clickhouse_store *s, const struct store_scope *scope,
                                   const struct store_filter *filter, bool hours,
                                   bool (*each)(void *context, const struct store_mark *mark), void *context,
                                   struct profd_error *e)
{
    struct marked *marks = NULL;
    uint32_t n = 0;
    struct hashmap names;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? load_marks(s, a, filter, hours, &marks, &n, e) : profd_no_memory(e);
    hashmap_init(&names, 0);
    if (status == PROFD_OK && n > 0) {
        status = name_marked(s, a, scope, filter, marks, n, &names, e);
    }
    for (uint32_t i = 0; status == PROFD_OK && i < n; i++) {
        const char *const *name = hashmap_find(&names, marks[i].host, sizeof marks[i].host);
        if (name &&
            !each(context, &(struct store_mark){.host = *name, .hour = marks[i].hour, .reasons = marks[i].reasons})) {
            status = profd_no_memory(e);
        }
    }
    hashmap_clear(&names);
    arena_free(a);
    return status;
}

enum profd_status engine_each_mark(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter,
                                   bool (*each)(void *context, const struct store_mark *mark), void *context,
                                   struct profd_error *e)
{
    return store_scope_has_tenants(scope) ? each_mark(engine_self(base), scope, filter, true, each, context, e)
                                          : PROFD_OK;
}

/* Keeps the series that are not of one host, and match what is asked of other labels. */
static enum profd_status keep_apart(const struct store_filter *filter, struct engine_catalogue *c,
                                    struct profd_error *e)
{
    struct store_matcher others[LIMIT_MATCHERS];
    size_t n = 0, kept = 0;
    bool failed = false;
    for (size_t i = 0; i < filter->matcher_count && n < LIMIT_MATCHERS; i++) {
        if (strcmp(filter->matchers[i].name, "host") != 0) {
            others[n++] = filter->matchers[i];
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        struct buffer text;
        bool of_host = false;
        buffer_init(&text, 2 * LIMIT_LABEL_BYTES);
        for (size_t k = 0; k < c->list[i].label_count; k++) {
            of_host |= strcmp(c->list[i].labels[k].name, "host") == 0;
        }
        labels_encode(c->list[i].labels, c->list[i].label_count, &text);
        failed |= text.failed;
        if (!of_host && labels_match(text.data, text.size, others, n)) {
            c->list[kept++] = c->list[i];
        }
        buffer_done(&text);
    }
    c->count = kept;
    return failed ? profd_no_memory(e) : PROFD_OK;
}

/* Appends " AND host IN (…)" with the slots of hosts that the filter selects. *none: it selects none. */
static enum profd_status put_slots(struct clickhouse_store *s, struct arena *a, const struct store_filter *filter,
                                   struct buffer *b, bool *none, struct profd_error *e)
{
    struct engine_host *hosts;
    size_t n = 0, selected = 0;
    const enum profd_status status = engine_load_hosts(s, a, NULL, 0, &hosts, &n, e);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        if (labels_match_host(filter, hosts[i].name)) {
            buffer_add_format(b, selected++ == 0 ? " AND host IN (%u" : ",%u", hosts[i].slot);
        }
    }
    buffer_add_text(b, selected > 0 ? ")" : "");
    *none = selected == 0;
    return status;
}

/* Has a host that the filter names sent something of the build that is in the sums of all hosts only? */
static enum profd_status find_totals(struct clickhouse_store *s, struct arena *a, const struct store_scope *scope,
                                     const struct store_filter *filter, bool *any, struct profd_error *e)
{
    struct engine_catalogue c = {.count = 0};
    struct row_reader r = {.bytes = NULL};
    struct buffer slots, *b = &s->statement;
    bool none = false;
    enum profd_status status = engine_load_series(s, a, scope, ENGINE_BUILD, filter->build_id, &c, e);
    *any = false;
    if (status == PROFD_OK) {
        status = keep_apart(filter, &c, e);
    }
    if (status != PROFD_OK || c.count == 0) {
        return status;
    }
    buffer_init(&slots, SLOTS_BYTES);
    status = put_slots(s, a, filter, &slots, &none, e);
    for (size_t i = 0; i < c.count && status == PROFD_OK && !none && !*any; i++) {
        engine_begin(s);
        buffer_add_text(b, "SELECT toUInt8(1) FROM segment_group WHERE head = 1 AND program = ");
        engine_put_quoted(b, c.list[i].program);
        buffer_add_text(b, " AND series = ");
        engine_put_unhex(b, c.list[i].hash, sizeof c.list[i].hash);
        buffer_add_format(b, " AND generation = %" PRIu32 " AND hour >= %" PRId64 " AND hour <= %" PRId64,
                          c.list[i].generation, first_hour(filter), last_hour(filter));
        if (!slots.failed) { /* the list is too long for a statement: then of any host */
            buffer_add(b, slots.data, slots.size);
        }
        buffer_add_text(b, " LIMIT 1");
        status = engine_query_printed(s, &r, e);
        *any = status == PROFD_OK && rows_more(&r);
        rows_close(&r);
        r = (struct row_reader){.bytes = NULL};
    }
    buffer_done(&slots);
    return status;
}

enum profd_status engine_get_marks(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter, uint32_t *reasons, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    bool apart = false;
    *reasons = 0;
    if (!store_scope_has_tenants(scope)) {
        return PROFD_OK;
    }
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    if (status == PROFD_OK && filter->build_id && !filter->by_host && labels_are_asked(filter, "host")) {
        status = find_totals(s, a, scope, filter, &apart, e);
    }
    *reasons = apart ? (uint32_t)INEXACT_HOST_TOTALS : 0;
    if (status == PROFD_OK) {
        status = each_mark(s, scope, filter, false, store_mark_add, reasons, e);
    }
    if (status == PROFD_OK && s->base.partial && !s->base.missing) {
        status = engine_find_missing(s, &s->base.missing, e);
    }
    *reasons |= s->base.missing ? (uint32_t)INEXACT_SHARDS_MISSING : 0;
    arena_free(a);
    return status;
}
