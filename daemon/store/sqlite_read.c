/* Reads stored data: the rows that a filter selects are found by index and sorted, then read one after the other. */
#include <string.h>

#include "store/labels.h"
#include "store/sqlite_host_total.h"
#include "store/sqlite_interval.h"
#include "store/sqlite_select.h"

#define TOTAL_BYTES 64                /* about, of a host's total as the tier gives it */
#define SEALED_ID (UINT64_C(1) << 62) /* set in the ids of sums that are in blocks: others are not so great */

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
static struct store_row begin_row(struct series_info *info, const struct row_ref *ref)
{
    info->begun = true;
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
    const int64_t start = sqlite3_column_int64(q, 1), end = start + sqlite3_column_int64(q, 2);
    if ((r->since > 0 && end < r->since) || (r->until > 0 && end >= r->until)) {
        return PROFD_OK;
    }
    struct store_row row = begin_row(&r->series[ref->series], ref);
    row.uploads = (uint64_t)sqlite3_column_int64(q, 6);
    row.width = sqlite3_column_int(q, 7) * INT64_C(60000000000);
    row.start = start;
    row.end = end;
    row.inexact = (uint32_t)sqlite3_column_int64(q, 3);
    row.processes_started = (uint32_t)sqlite3_column_int64(q, 4);
    row.group = (uint32_t)sqlite3_column_int(q, 8) & (RANDOM_GROUPS - 1);
    row.groups.of[row.group] = row.processes_started;
    TRY(find_host(r, sqlite3_column_int64(q, 0), &row.host, e));
    row.counts = sqlite_blob(q, 5, &row.counts_size);
    return each(context, &row, e);
}

enum profd_status sqlite_select_hosts(struct reading *r, struct arena *a, const uint8_t *bytes, size_t n,
                                      const char *const **hosts, size_t *count, struct profd_error *e)
{
    const int64_t *ids;
    TRY(folded_decode_hosts(a, bytes, n, &ids, count, e));
    const char **names = ARENA_ARRAY(a, *count + 1, const char *);
    TRY(names ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < *count; i++) {
        TRY(find_host(r, ids[i], &names[i], e));
    }
    *hosts = names;
    return PROFD_OK;
}

static int64_t width_of(int level)
{
    return level == SQLITE_LEVEL_DAY   ? SQLITE_DAY
           : level == SQLITE_LEVEL_ALL ? 0
                                       : sqlite_level_minutes(level) * INT64_C(60000000000);
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
    row.width = width_of(sqlite3_column_int(q, ROLLUP_AFTER + 1));
    row.counts = sqlite_blob(q, ROLLUP_COUNTS, &row.counts_size);
    const uint8_t *hosts = sqlite_blob(q, ROLLUP_HOSTS, &hosts_size);
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? sqlite_select_hosts(r, a, hosts, hosts_size, &row.hosts, &row.host_count, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = sqlite_processes_decode(r->s, q, ROLLUP_AFTER + 2, row.processes_started, &row.groups, e);
    }
    if (status == PROFD_OK) {
        status = r->filter->spread ? give_spread(r, &row, each, context, e) : each(context, &row, e);
    }
    arena_free(a);
    return status;
}

/* Notes what is known of a sum that is in a block, and announces its series if this is the first row; or gives the row
 * if its counts are not wanted. */
static enum profd_status take_sealed(struct reading *r, const struct row_ref *ref, sqlite3_stmt *q, upload_sink *each,
                                     void *context, struct profd_error *e)
{
    enum {
        LEVEL = SQLITE_BLOCK_COLUMNS,
        AT,
        UPLOADS,
        PROCESSES,
        FIRST,
        LAST,
        INEXACT,
        GROUPS,
        BYTES,
        ARCS,
        TOTAL_HOSTS
    };
    struct series_info *info = &r->series[ref->series];
    const bool begun = info->begun;
    struct store_row row = begin_row(info, ref);
    struct store_stub stub = {.program = info->builds[info->program].id.text,
                              .level = sqlite3_column_int(q, LEVEL),
                              .at = sqlite3_column_int64(q, AT),
                              .bytes = (uint64_t)sqlite3_column_int64(q, BYTES)};
    struct fetch_list *list = info->totals ? &r->totals : &r->sums;
    const char *name;
    sqlite_block_take(q, 0, &stub.block);
    if (info->totals) {
        stub.bytes = TOTAL_BYTES * (uint64_t)sqlite3_column_int64(q, TOTAL_HOSTS);
    } else if (r->filter->arcs_only) {
        row.counts = sqlite_blob(q, ARCS, &row.counts_size);
    }
    const bool whole = !info->totals && (r->filter->metadata || row.counts_size > 0);
    if (!begun && !whole && !info->totals) {
        TRY(each(context, &row, e));
    }
    row.rolled = true;
    row.id = (uint64_t)ref->id | SEALED_ID;
    row.version = stub.block.attempt;
    row.uploads = (uint64_t)sqlite3_column_int64(q, UPLOADS);
    row.processes_started = (uint64_t)sqlite3_column_int64(q, PROCESSES);
    row.start = sqlite3_column_int64(q, FIRST);
    row.end = sqlite3_column_int64(q, LAST);
    row.inexact = (uint32_t)sqlite3_column_int64(q, INEXACT);
    row.width = width_of(stub.level);
    TRY(sqlite_processes_decode(r->s, q, GROUPS, row.processes_started, &row.groups, e));
    if (whole) {
        return each(context, &row, e);
    }
    if (info->totals && stub.bytes == 0) { /* none of it was kept without its host */
        return PROFD_OK;
    }
    TRY(sqlite_series_key(r, info, &name, stub.series, e));
    list->rows[list->count] = row;
    list->stubs[list->count++] = stub;
    return PROFD_OK;
}

static enum profd_status fetch_list_init(const struct reading *r, struct fetch_list *list, struct profd_error *e)
{
    list->rows = ARENA_ARRAY(r->arena, r->sealed_count + 1, struct store_row);
    list->stubs = ARENA_ARRAY(r->arena, r->sealed_count + 1, struct store_stub);
    return list->rows && list->stubs ? PROFD_OK : profd_no_memory(e);
}

static enum profd_status read_rows(struct reading *r, upload_sink *each, void *context, struct profd_error *e)
{
    TRY(fetch_list_init(r, &r->sums, e));
    TRY(fetch_list_init(r, &r->totals, e));
    for (size_t i = 0; i < r->ref_count; i++) {
        const struct row_ref *ref = &r->refs[i];
        sqlite3_stmt *q;
        bool row = false;
        const enum sqlite_sql which = ref->sealed ? SQL_SEALED_READ : ref->id ? SQL_ROLLUP_READ : SQL_UPLOAD_GET;
        TRY(sqlite_first(r->s, which, VALUES(INTEGER(ref->id ? ref->id : ref->number)), &q, &row, e));
        if (row) {
            enum profd_status status = ref->sealed ? take_sealed(r, ref, q, each, context, e)
                                       : ref->id   ? give_sum(r, ref, q, each, context, e)
                                                   : give_upload(r, ref, q, each, context, e);
            sqlite_finish(q);
            TRY(status);
        }
    }
    return PROFD_OK;
}

/* Totals by host that are being given. any: whether there is one is all that is asked. */
struct giving {
    struct reading *r;
    struct store_row row; /* what those of one sum share */
    upload_sink *each;
    void *context;
    bool *any;
};

static enum profd_status give_total(void *context, const struct sqlite_host_total *x, struct profd_error *e)
{
    const struct giving *g = context;
    const struct store_filter *filter = g->r->filter;
    struct store_row row = g->row;
    struct store_label labels[LIMIT_LABELS + 1];
    row.label_count = labels_add_host(g->row.labels, g->row.label_count, x->name, labels);
    row.labels = labels;
    if (filter->matcher_count > 0) {
        struct buffer text;
        buffer_init(&text, 65536);
        labels_encode(labels, row.label_count, &text);
        const bool failed = text.failed,
                   wanted = !failed && labels_match(text.data, text.size, filter->matchers, filter->matcher_count);
        buffer_done(&text);
        if (!wanted) {
            return failed ? profd_no_memory(e) : PROFD_OK;
        }
    }
    if (g->any) {
        *g->any = true;
        return PROFD_OK;
    }
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

/* The totals that are not in blocks. */
static enum profd_status give_totals(struct reading *r, upload_sink *each, void *context, bool *any,
                                     struct profd_error *e)
{
    const int64_t from = r->since > 0 ? r->since / SQLITE_HOUR : 0,
                  to = r->until > 0 ? (r->until - 1) / SQLITE_HOUR : INT64_MAX;
    for (size_t i = 0; i < r->series_count; i++) {
        struct series_info *info = &r->series[i];
        struct giving g = {.r = r, .each = each, .context = context, .any = any};
        if (info->totals) {
            g.row = begin_row(info, &(struct row_ref){.number = 0});
            g.row.rolled = true;
            g.row.width = SQLITE_HOUR;
            TRY(sqlite_host_totals_each(r->s, info->id, info->build_count, from, to, INT64_MAX, give_total, &g, e));
        }
    }
    return PROFD_OK;
}

/* Sums of blocks that are being fetched. */
struct fetching {
    struct reading *r;
    struct fetch_list *list;
    upload_sink *each;
    void *context;
    bool *any; /* as in struct giving */
    size_t given;
};

static enum profd_status give_sealed(void *context, size_t i, const struct store_bulk *bulk, struct profd_error *e)
{
    struct fetching *f = context;
    struct store_row row = i < f->list->count ? f->list->rows[i] : (struct store_row){.uploads = 0};
    if (row.uploads == 0) {
        return profd_error_set(e, PROFD_DAMAGED, "the tier gave a sum twice, or one that it was not asked for");
    }
    f->list->rows[i].uploads = 0;
    f->given++;
    if (f->list == &f->r->totals) {
        struct giving g = {.r = f->r, .row = row, .each = f->each, .context = f->context, .any = f->any};
        return sqlite_host_totals_decode(f->r->s, bulk->totals, bulk->totals_size, row.build_count, give_total, &g, e);
    }
    row.counts = bulk->counts;
    row.counts_size = bulk->counts_size;
    row.spread = f->r->filter->spread ? bulk->spread : NULL;
    row.spread_size = f->r->filter->spread ? bulk->spread_size : 0;
    row.hosts = bulk->hosts;
    row.host_count = bulk->host_count;
    return f->each(f->context, &row, e);
}

/* Fetches the sums that are in blocks. No transaction is open. */
static enum profd_status read_sealed(struct reading *r, struct fetch_list *list, upload_sink *each, void *context,
                                     bool *any, struct profd_error *e)
{
    const struct store_archive *archive = r->s->archive;
    const enum store_archive_part part = list == &r->totals  ? STORE_ARCHIVE_TOTALS
                                         : r->filter->spread ? STORE_ARCHIVE_SPREAD
                                                             : STORE_ARCHIVE_COUNTS;
    struct fetching f = {.r = r, .list = list, .each = each, .context = context, .any = any};
    if (list->count == 0) {
        return PROFD_OK;
    }
    if (!archive) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "past days were moved to the tier, and no tier is configured");
    }
    TRY(archive->fetch(archive->context, list->stubs, list->count, part, give_sealed, &f, e));
    return f.given == list->count
               ? PROFD_OK
               : profd_error_set(e, PROFD_UNAVAILABLE, "the tier gave %zu of %zu sums", f.given, list->count);
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
    if (status == PROFD_OK) {
        status = read_sealed(&r, &r.sums, each, context, NULL, e);
    }
    if (status == PROFD_OK) {
        status = read_sealed(&r, &r.totals, each, context, NULL, e);
    }
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
    r.totals_only = true;
    if (status == PROFD_OK && !*any) {
        status = sqlite_select_names(&r, e);
    }
    if (status == PROFD_OK && !*any) {
        status = sqlite_select_rows(&r, e);
    }
    if (status == PROFD_OK && !*any) {
        status = read_rows(&r, NULL, NULL, e);
    }
    status = sqlite_read_end(s, began, status, e);
    if (status == PROFD_OK) {
        status = read_sealed(&r, &r.totals, NULL, NULL, any, e);
    }
    sqlite_reading_done(&r);
    return status;
}
