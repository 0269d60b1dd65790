/* Reads stored data: the rows that a filter selects are found by index and sorted, then read one after the other. */
#include <string.h>

#include "store/labels.h"
#include "store/sqlite_host_total.h"
#include "store/sqlite_interval.h"
#include "store/sqlite_select.h"

static enum profd_status find_host(struct reading *r, int64_t id, const char **host, struct profd_error *e)
{
    const char *cached = hashmap_find(&r->hosts, &id, sizeof id);
    if (!cached) {
        sqlite3_stmt *q;
        bool row = false;
        TRY(sqlite_first(r->s, SQL_HOST_GET, VALUES(INTEGER(id)), &q, &row, e));
        const char *text = row ? sqlite_text(q, 0) : "";
        cached = hashmap_put(&r->hosts, &id, sizeof id, text, strlen(text) + 1);
        if (row) {
            sqlite_finish(q);
        }
        if (!cached) {
            return profd_no_memory(e);
        }
    }
    *host = cached;
    return PROFD_OK;
}

typedef enum profd_status upload_sink(void *context, const struct store_row *row, struct profd_error *e);

/* Data that all rows of a series share; builds and labels belong to the reading's arena. */
static struct store_row begin_row(const struct series_info *info, const struct row_ref *ref)
{
    return (struct store_row){.commit = (uint64_t)ref->number,
                              .id = (uint64_t)(ref->id != 0 ? ref->id : ref->number),
                              .uid = info->uid,
                              .label_count = info->label_count,
                              .labels = info->labels,
                              .program = info->program,
                              .build_count = info->build_count,
                              .builds = info->builds,
                              .series = (uint64_t)info->id};
}

/* A single upload, selected by its exact time. */
static enum profd_status give_upload(struct reading *r, const struct row_ref *ref, sqlite3_stmt *q, upload_sink *each,
                                     void *context, struct profd_error *e)
{
    struct store_row row = begin_row(&r->series[ref->series], ref);
    row.uploads = (uint64_t)sqlite3_column_int64(q, 6);
    row.width = sqlite3_column_int(q, 7) * INT64_C(60000000000);
    row.start = sqlite3_column_int64(q, 1);
    row.end = row.start + sqlite3_column_int64(q, 2);
    row.inexact = (uint32_t)sqlite3_column_int64(q, 3);
    row.processes_started = (uint32_t)sqlite3_column_int64(q, 4);
    row.group = (uint32_t)sqlite3_column_int(q, 8) & (RANDOM_GROUPS - 1);
    row.groups.of[row.group] = row.processes_started;
    if ((r->since > 0 && row.end < r->since) || (r->until > 0 && row.end >= r->until)) {
        return PROFD_OK;
    }
    TRY(find_host(r, sqlite3_column_int64(q, 0), &row.host, e));
    row.counts = sqlite_blob(q, 5, &row.counts_size);
    return each(context, &row, e);
}

static enum profd_status name_hosts(struct reading *r, struct arena *a, const uint8_t *bytes, size_t n,
                                    struct store_row *row, struct profd_error *e)
{
    const int64_t *ids;
    enum profd_status status = folded_decode_hosts(a, bytes, n, &ids, &row->host_count, e);
    const char **names = status == PROFD_OK ? ARENA_ARRAY(a, row->host_count + 1, const char *) : NULL;
    if (status == PROFD_OK && !names) {
        status = profd_no_memory(e);
    }
    for (size_t i = 0; status == PROFD_OK && i < row->host_count; i++) {
        status = find_host(r, ids[i], &names[i], e);
    }
    row->hosts = names;
    return status;
}

/* A sum with its spread, which other readers of sums do not need. */
static enum profd_status give_spread(struct reading *r, struct store_row *row, upload_sink *each, void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    bool found = false;
    enum profd_status status =
        sqlite_first(r->s, SQL_ROLLUP_READ_SPREAD, VALUES(INTEGER((int64_t)row->id)), &q, &found, e);
    if (found) {
        row->spread = sqlite_blob(q, 0, &row->spread_size);
        status = each(context, row, e);
        sqlite_finish(q);
    }
    return status;
}

static enum profd_status give_sum(struct reading *r, const struct row_ref *ref, sqlite3_stmt *q, upload_sink *each,
                                  void *context, struct profd_error *e)
{
    struct store_row row = begin_row(&r->series[ref->series], ref);
    size_t hosts_size;
    row.rolled = true;
    row.uploads = (uint64_t)sqlite3_column_int64(q, ROLLUP_UPLOADS);
    row.processes_started = (uint64_t)sqlite3_column_int64(q, ROLLUP_PROCESSES);
    row.start = sqlite3_column_int64(q, ROLLUP_FIRST);
    row.end = sqlite3_column_int64(q, ROLLUP_LAST);
    row.inexact = (uint32_t)sqlite3_column_int64(q, ROLLUP_INEXACT);
    row.version = (uint64_t)sqlite3_column_int64(q, ROLLUP_AFTER);
    int level = sqlite3_column_int(q, ROLLUP_AFTER + 1);
    row.width = level == SQLITE_LEVEL_DAY   ? SQLITE_DAY
                : level == SQLITE_LEVEL_ALL ? 0
                                            : sqlite_level_minutes(level) * INT64_C(60000000000);
    row.counts = sqlite_blob(q, ROLLUP_COUNTS, &row.counts_size);
    const uint8_t *hosts = sqlite_blob(q, ROLLUP_HOSTS, &hosts_size);
    struct arena *a = arena_new(0);
    enum profd_status status = a ? name_hosts(r, a, hosts, hosts_size, &row, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = sqlite_processes_decode(r->s, q, ROLLUP_AFTER + 2, row.processes_started, &row.groups, e);
    }
    if (status == PROFD_OK) {
        status = r->filter->spread ? give_spread(r, &row, each, context, e) : each(context, &row, e);
    }
    arena_free(a);
    return status;
}

static enum profd_status read_rows(struct reading *r, upload_sink *each, void *context, struct profd_error *e)
{
    for (size_t i = 0; i < r->ref_count; i++) {
        const struct row_ref *ref = &r->refs[i];
        sqlite3_stmt *q;
        bool row = false;
        enum profd_status status = ref->id != 0
                                       ? sqlite_start(r->s, SQL_ROLLUP_READ, VALUES(INTEGER(ref->id)), &q, e)
                                       : sqlite_start(r->s, SQL_UPLOAD_GET, VALUES(INTEGER(ref->number)), &q, e);
        if (status == PROFD_OK) {
            status = sqlite_next(r->s, q, &row, e);
        }
        if (row) {
            status = ref->id != 0 ? give_sum(r, ref, q, each, context, e) : give_upload(r, ref, q, each, context, e);
            sqlite_finish(q);
        }
        if (status != PROFD_OK) {
            return status;
        }
    }
    return PROFD_OK;
}

/* Totals by host that are being given. any: whether there is one is all that is asked. */
struct giving {
    struct reading *r;
    const struct series_info *info;
    upload_sink *each;
    void *context;
    bool *any;
};

static enum profd_status give_total(void *context, const struct sqlite_host_total *x, struct profd_error *e)
{
    const struct giving *g = context;
    const struct row_ref ref = {.number = 0};
    struct store_row row = begin_row(g->info, &ref);
    struct store_label labels[LIMIT_LABELS + 1];
    struct buffer text;
    row.label_count = labels_add_host(g->info->labels, g->info->label_count, x->name, labels);
    row.labels = labels;
    buffer_init(&text, 65536);
    labels_encode(labels, row.label_count, &text);
    const bool failed = text.failed, wanted = !failed && labels_match(text.data, text.size, g->r->filter->matchers,
                                                                      g->r->filter->matcher_count);
    buffer_done(&text);
    if (failed) {
        return profd_no_memory(e);
    }
    if (!wanted) {
        return PROFD_OK;
    }
    if (g->any) {
        *g->any = true;
        return PROFD_OK;
    }
    row.rolled = true;
    row.width = SQLITE_HOUR;
    row.uploads = x->sums.uploads;
    row.processes_started = x->sums.processes;
    row.start = x->sums.first;
    row.end = x->sums.last;
    row.inexact = x->sums.inexact;
    row.host_count = 1;
    row.hosts = &x->identity;
    row.shares = x->sums.shares;
    row.calls = x->sums.calls;
    return g->each(g->context, &row, e);
}

static enum profd_status give_totals(struct reading *r, upload_sink *each, void *context, bool *any,
                                     struct profd_error *e)
{
    const int64_t from = r->since > 0 ? r->since / SQLITE_HOUR : 0,
                  to = r->until > 0 ? (r->until - 1) / SQLITE_HOUR : INT64_MAX;
    for (size_t i = 0; i < r->series_count; i++) {
        struct giving g = {r, &r->series[i], each, context, any};
        if (g.info->totals) {
            TRY(sqlite_host_totals_each(r->s, g.info->id, g.info->build_count, from, to, give_total, &g, e));
        }
    }
    return PROFD_OK;
}

/* Begins to read what the filter selects. sqlite_read_end and sqlite_reading_done must follow in every case. */
static enum profd_status reading_begin(struct reading *r, struct store *s, const struct store_scope *scope,
                                       const struct store_filter *filter, bool *began, struct profd_error *e)
{
    *began = false;
    TRY(sqlite_reading_init(r, s, filter, e));
    TRY(sqlite_read_begin(r->s, began, e));
    return sqlite_select_series(r, scope, e);
}

enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    upload_sink *each, void *context, struct profd_error *e)
{
    struct reading r;
    bool began;
    enum profd_status status = reading_begin(&r, s, scope, filter, &began, e);
    if (status == PROFD_OK) {
        status = sqlite_select_names(&r, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_select_rows(&r, e);
    }
    if (status == PROFD_OK) {
        status = read_rows(&r, each, context, e);
    }
    if (status == PROFD_OK) {
        status = give_totals(&r, each, context, NULL, e);
    }
    status = sqlite_read_end(r.s, began, status, e);
    sqlite_reading_done(&r);
    return status;
}

enum profd_status store_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  int64_t *since, int64_t *until, struct profd_error *e)
{
    struct reading r;
    bool began;
    enum profd_status status = reading_begin(&r, s, scope, filter, &began, e);
    status = sqlite_read_end(r.s, began, status, e);
    if (status == PROFD_OK) {
        *since = r.since;
        *until = r.until;
    }
    sqlite_reading_done(&r);
    return status;
}

enum profd_status sqlite_has_totals(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    bool *any, struct profd_error *e)
{
    struct reading r;
    bool began;
    struct store_filter by_host = *filter;
    by_host.by_host = true;
    *any = false;
    enum profd_status status = reading_begin(&r, s, scope, &by_host, &began, e);
    if (status == PROFD_OK) {
        status = give_totals(&r, NULL, NULL, any, e);
    }
    status = sqlite_read_end(s, began, status, e);
    sqlite_reading_done(&r);
    return status;
}
