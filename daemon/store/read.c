/* Reads stored data. The series and rows that a filter selects are found by index and sorted, then read one by one. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/labels.h"
#include "store/store_internal.h"

/* Selects the series in the current row of q if its labels match. Builds are named later, and totals are selected
 * later, each by its host. */
static enum profd_status take_series(struct row_selection *r, sqlite3_stmt *q, struct profd_error *e)
{
    enum { ID, UID, PROGRAM, LABELS, BUILDS, BUILD_SET };
    const uint32_t uid = (uint32_t)sqlite3_column_int64(q, UID);
    struct store_label pair;
    size_t n, count = 0, set_size;
    bool named = false;
    const char *text = (const char *)sqlite_blob(q, LABELS, &n);
    for (const char *p = text; labels_next(&p, text + n, &pair); count++) {
        named |= strcmp(pair.name, "host") == 0;
    }
    const bool apart = store_is_tenant(uid) && !named, totals = apart && r->filter->by_host;
    if ((apart && !totals && labels_are_asked(r->filter, "host")) ||
        (!totals && !labels_match(text, n, r->filter->matchers, r->filter->matcher_count))) {
        return PROFD_OK;
    }
    if (!LIST_GROW(r->series, r->series_count, r->series_capacity)) {
        return profd_no_memory(e);
    }
    struct series_info *info = &r->series[r->series_count];
    const struct series_info *before = r->series_count > 0 ? info - 1 : NULL;
    char *copy = arena_copy(r->arena, text, n);
    struct store_label *labels = ARENA_ARRAY(r->arena, count + 1, struct store_label);
    TRY(copy && labels ? PROFD_OK : profd_no_memory(e));
    *info = (struct series_info){.id = sqlite3_column_int64(q, ID),
                                 .set = sqlite3_column_int64(q, BUILD_SET),
                                 .uid = uid,
                                 .totals = totals,
                                 .label_count = count,
                                 .labels = labels};
    const char *at = copy;
    for (size_t i = 0; i < count; i++) {
        (void)labels_next(&at, copy + n, &labels[i]);
    }
    if (before && before->set == info->set && before->uid == info->uid) {
        info->build_count = before->build_count;
        info->rows = before->rows;
        info->builds = before->builds;
    } else {
        const uint8_t *set = sqlite_blob(q, BUILDS, &set_size);
        uint32_t *rows = ARENA_ARRAY(r->arena, set_size / 4 + 1, uint32_t);
        info->build_count = set_size / 4;
        info->builds = ARENA_ARRAY(r->arena, set_size / 4 + 1, struct store_build);
        info->rows = rows;
        TRY(rows && info->builds ? PROFD_OK : profd_no_memory(e));
        for (size_t i = 0; i < info->build_count; i++) {
            rows[i] = sqlite_set_build(set, i);
        }
    }
    while (info->program < info->build_count && info->rows[info->program] != sqlite3_column_int64(q, PROGRAM)) {
        info->program++;
    }
    r->series_count++;
    return PROFD_OK;
}

/* Moves a limit outward: to the border of the hour that contains it, if that is a sum in a matching series; otherwise
 * to that of the widest slice that contains it, of a live process or of what hosts have sent, in a matching series. */
static enum profd_status settle_edge(struct row_selection *r, int64_t *edge, bool up, struct profd_error *e)
{
    const int64_t hour = *edge / SQLITE_HOUR;
    int64_t one;
    bool found = false;
    if (*edge <= 0 || *edge % SQLITE_HOUR == 0) {
        return PROFD_OK;
    }
    for (size_t i = 0; !found && i < r->series_count; i++) {
        TRY(sqlite_find(r->s, r->series[i].totals ? SQL_HOST_TOTAL_IS_HOUR : SQL_ROLLUP_IS_HOUR,
                        VALUES(INTEGER(r->series[i].id), INTEGER(hour)), &one, &found, e));
    }
    if (found) {
        *edge = (hour + up) > INT64_MAX / SQLITE_HOUR ? INT64_MAX : (hour + up) * SQLITE_HOUR;
        return PROFD_OK;
    }
    for (size_t w = SQLITE_SLICE_WIDTHS; !found && w > 0; w--) {
        const int width = sqlite_slice_widths[w - 1];
        const int64_t at = sqlite_slice_at(width, *edge), minutes = (at + up) * width;
        bool live = false;
        if (at * width * SQLITE_MINUTE == *edge) { /* not inside it */
            continue;
        }
        TRY(sqlite_find(r->s, SQL_SLICE_ANY, VALUES(INTEGER(width), INTEGER(at)), &one, &live, e));
        for (size_t i = 0; !found && i < r->series_count; i++) {
            const struct sqlite_value id = INTEGER(r->series[i].id);
            if (live && !r->series[i].totals) {
                TRY(sqlite_find(r->s, SQL_SLICE_EXISTS, VALUES(id, INTEGER(width), INTEGER(at)), &one, &found, e));
            }
            if (!found && !r->series[i].totals && width < SQLITE_SLICE_WIDE) {
                TRY(sqlite_find(r->s, SQL_ROLLUP_EXISTS, VALUES(id, INTEGER(sqlite_level_of(width)), INTEGER(at)), &one,
                                &found, e));
            }
        }
        if (found) {
            *edge = minutes > INT64_MAX / SQLITE_MINUTE ? INT64_MAX : minutes * SQLITE_MINUTE;
        }
    }
    return PROFD_OK;
}

/* Begins to read what the filter selects: finds the series that match, and the limits that their sums allow.
 * sqlite_read_end and sqlite_reading_done must follow in every case. */
static enum profd_status reading_begin(struct row_selection *r, struct store *s, const struct store_scope *scope,
                                       const struct store_filter *filter, bool *began, struct profd_error *e)
{
    int64_t build = 0;
    bool found = false;
    *began = false;
    TRY(sqlite_reading_init(r, s, filter, e));
    TRY(sqlite_read_begin(s, began, e));
    r->since = filter->since;
    r->until = filter->until;
    TRY(sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(filter->build_id)), &build, &found, e));
    if (found) {
        enum profd_status status = PROFD_OK;
        sqlite3_stmt *q;
        TRY(sqlite_start(s, SQL_SERIES_OF_BUILD,
                         VALUES(INTEGER(build), INTEGER(scope->all), SCOPE(scope), INTEGER(filter->as_program)), &q,
                         e));
        while (sqlite_row(s, q, &status, e)) {
            status = take_series(r, q, e);
        }
        TRY(status);
    }
    FAIL_IF(r->series_count > UINT32_MAX, e, PROFD_LIMIT, "more than 2^32 series");
    TRY(settle_edge(r, &r->since, false, e));
    return settle_edge(r, &r->until, true, e);
}

/* Names the builds of all series found. */
static enum profd_status name_builds(struct row_selection *r, struct profd_error *e)
{
    for (size_t i = 0; i < r->series_count; i++) {
        const struct series_info *info = &r->series[i];
        for (size_t k = 0; k < info->build_count && !info->builds[k].name; k++) {
            struct store_build *build = &info->builds[k];
            sqlite3_stmt *q;
            bool row = false;
            TRY(sqlite_first(r->s, SQL_BUILD_NAME, VALUES(INTEGER(info->rows[k]), INTEGER(0), INTEGER(info->uid)), &q,
                             &row, e));
            FAIL_IF(!row, e, PROFD_DAMAGED, "database %s: a build's row is missing", r->s->path);
            const char *text = sqlite_text(q, 0), *name = sqlite_text(q, 1);
            if (strlen(text) < sizeof build->id.text) {
                memcpy(build->id.text, text, strlen(text) + 1);
            }
            build->name = arena_copy(r->arena, name, strlen(name));
            sqlite_finish(q);
            TRY(build->name ? PROFD_OK : profd_no_memory(e));
        }
    }
    return PROFD_OK;
}

enum profd_status sqlite_select_one(struct row_selection *r, int64_t series, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    r->series_count = 0;
    arena_reset(r->arena);
    TRY(sqlite_first(r->s, SQL_SERIES_ONE, VALUES(INTEGER(series)), &q, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    enum profd_status status = take_series(r, q, e);
    sqlite_finish(q);
    return status == PROFD_OK ? name_builds(r, e) : status;
}

/* Records the rows that a statement finds: number, and id if they are sums. */
static enum profd_status take_refs(struct row_selection *r, uint32_t series, enum sqlite_sql which,
                                   const struct sqlite_value *values, size_t count, struct profd_error *e)
{
    const bool sums = which != SQL_UPLOAD_NUMBERS, sealed = which == SQL_SEALED_IDS;
    sqlite3_stmt *q;
    enum profd_status status = sqlite_start(r->s, which, values, count, &q, e);
    while (sqlite_row(r->s, q, &status, e)) {
        if (!LIST_GROW(r->refs, r->ref_count, r->ref_capacity)) {
            sqlite_finish(q);
            return profd_no_memory(e);
        }
        r->refs[r->ref_count++] = (struct row_ref){.number = sqlite3_column_int64(q, 0),
                                                   .id = sums ? sqlite3_column_int64(q, 1) : 0,
                                                   .sealed = sealed,
                                                   .series = series};
        r->sealed_count += sealed;
    }
    return status;
}

static enum profd_status take_sums(struct row_selection *r, uint32_t series, int level, bool open_only, int64_t from,
                                   int64_t to, struct profd_error *e)
{
    const bool totals = r->series[series].totals;
    if (from > to || (totals && open_only)) {
        return PROFD_OK;
    }
    const struct sqlite_value which[] = {INTEGER(r->series[series].id), INTEGER(level), INTEGER(from), INTEGER(to)};
    const size_t n = sizeof which / sizeof which[0];
    if (!totals) {
        TRY(take_refs(r, series, open_only ? SQL_ROLLUP_IDS_OPEN : SQL_ROLLUP_IDS, which, n, e));
    }
    /* A sealed hour is in the sum of its day, and a sealed day is in no other sum. */
    return level == SQLITE_LEVEL_DAY || (level == SQLITE_LEVEL_HOUR && !open_only)
               ? take_refs(r, series, SQL_SEALED_IDS, which, n, e)
               : PROFD_OK;
}

/* Finds the rows of a series, each upload in exactly one of them. Without limits: the sum of all time, the days and
 * hours that it does not contain, and single uploads. In a window: days that are completely inside, and the hours that
 * they do not contain; hours at the limits; single uploads. No slice contains one of the limits. Of totals what is
 * sealed: days are exact for each step, because steps divide a day or are whole days. */
static enum profd_status select_rows_of(struct row_selection *r, uint32_t series, struct profd_error *e)
{
    const struct sqlite_value id = INTEGER(r->series[series].id);
    const bool totals = r->series[series].totals, all = r->since <= 0 && r->until <= 0 && !totals;
    const int64_t since = r->since > 0 ? r->since : 0, until = r->until > 0 ? r->until : INT64_MAX,
                  first = since / SQLITE_HOUR, last = r->until > 0 ? (until - 1) / SQLITE_HOUR : INT64_MAX,
                  from = since / SQLITE_DAY + (since % SQLITE_DAY != 0),
                  to = r->until > 0 ? until / SQLITE_DAY : INT64_MAX / 24;
    if (r->until > 0 && until <= since) {
        return PROFD_OK;
    }
    if (all) {
        TRY(take_sums(r, series, SQLITE_LEVEL_ALL, false, 0, 0, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_DAY, true, INT64_MIN, INT64_MAX, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, true, INT64_MIN, INT64_MAX, e));
    } else if (from < to && (r->filter->widest == 0 || r->filter->widest >= SQLITE_DAY)) {
        TRY(take_sums(r, series, SQLITE_LEVEL_DAY, false, from, to - 1, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, true, 24 * from, 24 * to - 1, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, first, 24 * from - 1, e));
        if (r->until > 0) {
            TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, 24 * to, last, e));
        }
    } else {
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, first, last, e));
    }
    for (int level = SQLITE_LEVEL_SLICE; !totals && level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t width = sqlite_level_minutes(level) * SQLITE_MINUTE;
        TRY(take_sums(r, series, level, true, since / width + (since % width != 0), (until - 1) / width, e));
    }
    return totals ? PROFD_OK
                  : take_refs(r, series, SQL_UPLOAD_NUMBERS,
                              VALUES(id, INTEGER(all ? INT64_MIN : first), INTEGER(all ? INT64_MAX : last)), e);
}

static int compare_refs(const void *a, const void *b)
{
    const struct row_ref *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Finds the rows of the series found, by ascending number. */
static enum profd_status select_rows(struct row_selection *r, struct profd_error *e)
{
    for (size_t i = 0; i < r->series_count; i++) {
        TRY(r->series[i].totals || !r->totals_only ? select_rows_of(r, (uint32_t)i, e) : PROFD_OK);
    }
    if (r->ref_count > 1) {
        qsort(r->refs, r->ref_count, sizeof *r->refs, compare_refs);
    }
    return PROFD_OK;
}

void sqlite_block_take(sqlite3_stmt *q, int column, struct store_block *out)
{
    *out = (struct store_block){.number = sqlite_u64(q, column + 8),
                                .attempt = (uint32_t)sqlite3_column_int64(q, column + 2),
                                .day = sqlite3_column_int64(q, column + 3),
                                .state = (enum store_block_state)sqlite3_column_int(q, column + 4),
                                .sums = sqlite_u64(q, column + 5),
                                .bytes = sqlite_u64(q, column + 6),
                                .sealed = sqlite3_column_int64(q, column + 7),
                                .row = sqlite_u64(q, column)};
    sqlite_copy(q, column + 1, out->centre, sizeof out->centre);
}

static void hash_number(struct sha256_ctx *hash, uint64_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(n >> 8 * i);
    }
    sha256_update(hash, sizeof bytes, bytes);
}

static void hash_text(struct sha256_ctx *hash, const char *text)
{
    hash_number(hash, strlen(text));
    sha256_update(hash, strlen(text), (const uint8_t *)text);
}

void sqlite_series_key_make(const struct store_block_sum *sum, uint8_t key[STORE_SERIES_KEY_SIZE])
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    hash_text(&hash, sum->tenant);
    hash_text(&hash, sum->stub.program);
    hash_number(&hash, sum->build_count);
    for (size_t i = 0; i < sum->build_count; i++) {
        hash_text(&hash, sum->builds[i].id.text);
    }
    hash_number(&hash, sum->label_count);
    for (size_t i = 0; i < sum->label_count; i++) {
        hash_text(&hash, sum->labels[i].name);
        hash_text(&hash, sum->labels[i].value);
    }
    sha256_digest(&hash, STORE_SERIES_KEY_SIZE, key);
}

enum profd_status sqlite_series_key(struct row_selection *r, const struct series_info *info, const char **name,
                                    uint8_t key[STORE_SERIES_KEY_SIZE], struct profd_error *e)
{
    char owner[SQLITE_OWNER_SIZE];
    TRY(sqlite_owner_name(r->s, info->uid, owner, e));
    *name = arena_copy(r->arena, owner, strlen(owner));
    TRY(*name ? PROFD_OK : profd_no_memory(e));
    const struct store_block_sum sum = {.stub = {.program = info->builds[info->program].id.text},
                                        .tenant = *name,
                                        .build_count = info->build_count,
                                        .builds = info->builds,
                                        .label_count = info->label_count,
                                        .labels = info->labels};
    sqlite_series_key_make(&sum, key);
    return PROFD_OK;
}

enum profd_status sqlite_reading_init(struct row_selection *r, struct store *s, const struct store_filter *filter,
                                      struct profd_error *e)
{
    *r = (struct row_selection){.s = s, .filter = filter, .arena = arena_new(0)};
    hashmap_init(&r->hosts, 0);
    return r->arena ? PROFD_OK : profd_no_memory(e);
}

void sqlite_reading_done(struct row_selection *r)
{
    hashmap_clear(&r->hosts);
    free(r->refs);
    free(r->series);
    arena_free(r->arena);
}

#define TOTAL_BYTES 64                /* estimate for a host's total that the tier gives */
#define SEALED_ID (UINT64_C(1) << 62) /* set in the ids of sums that are in blocks; other ids are smaller */

static enum profd_status find_host(struct row_selection *r, int64_t id, const char **host, struct profd_error *e)
{
    const char *cached = hashmap_find(&r->hosts, &id, sizeof id);
    if (!cached) {
        sqlite3_stmt *q;
        bool row = false;
        TRY(sqlite_first(r->s, SQL_HOST_GET, VALUES(INTEGER(id)), &q, &row, e));
        const char *text = row ? sqlite_text(q, 0) : "";
        cached = hashmap_put(&r->hosts, &id, sizeof id, text, strlen(text) + 1);
        sqlite_finish(q);
        TRY(cached ? PROFD_OK : profd_no_memory(e));
    }
    *host = cached;
    return PROFD_OK;
}

typedef enum profd_status upload_sink(void *context, const struct store_row *row, struct profd_error *e);

/* Returns a row with what all rows of a series share. Builds and labels belong to the reading's arena. */
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

/* Gives a single upload, if the end of its window is between the limits. */
static enum profd_status give_upload(struct row_selection *r, const struct row_ref *ref, sqlite3_stmt *q,
                                     upload_sink *each, void *context, struct profd_error *e)
{
    const int64_t start = sqlite3_column_int64(q, 1), end = start + sqlite3_column_int64(q, 2);
    if ((r->since > 0 && end < r->since) || (r->until > 0 && end >= r->until)) {
        return PROFD_OK;
    }
    struct store_row row = begin_row(&r->series[ref->series], ref);
    row.uploads = sqlite_u64(q, 6);
    row.width = sqlite3_column_int(q, 7) * SQLITE_MINUTE;
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

enum profd_status sqlite_select_hosts(struct row_selection *r, struct arena *a, const uint8_t *bytes, size_t n,
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
                                       : sqlite_level_minutes(level) * SQLITE_MINUTE;
}

static enum profd_status give_sum(struct row_selection *r, const struct row_ref *ref, sqlite3_stmt *q,
                                  upload_sink *each, void *context, struct profd_error *e)
{
    struct store_row row = begin_row(&r->series[ref->series], ref);
    size_t hosts_size;
    row.rolled = true;
    row.uploads = sqlite_u64(q, ROLLUP_UPLOADS);
    row.processes_started = sqlite_u64(q, ROLLUP_PROCESSES);
    row.start = sqlite3_column_int64(q, ROLLUP_FIRST);
    row.end = sqlite3_column_int64(q, ROLLUP_LAST);
    row.inexact = (uint32_t)sqlite3_column_int64(q, ROLLUP_INEXACT);
    row.version = sqlite_u64(q, ROLLUP_AFTER);
    row.width = width_of(sqlite3_column_int(q, ROLLUP_AFTER + 1));
    row.counts = sqlite_blob(q, ROLLUP_COUNTS, &row.counts_size);
    const uint8_t *hosts = sqlite_blob(q, ROLLUP_HOSTS, &hosts_size);
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? sqlite_select_hosts(r, a, hosts, hosts_size, &row.hosts, &row.host_count, e) : profd_no_memory(e);
    status =
        status ? status : sqlite_processes_decode(r->s, q, ROLLUP_AFTER + 2, row.processes_started, &row.groups, e);
    if (!status && r->filter->spread) { /* it is large, and other readers of sums do not need it */
        sqlite3_stmt *of_spread;
        bool found = false;
        status = sqlite_first(r->s, SQL_ROLLUP_READ_SPREAD, VALUES(INTEGER((int64_t)row.id)), &of_spread, &found, e);
        if (!status && found) {
            row.spread = sqlite_blob(of_spread, 0, &row.spread_size);
            status = each(context, &row, e);
        }
        sqlite_finish(of_spread);
    } else if (!status) {
        status = each(context, &row, e);
    }
    arena_free(a);
    return status;
}

/* Notes a sum that is in a block, to be fetched later, and announces its series if this is the first row. If its counts
 * are not asked for, gives the row now. */
static enum profd_status take_sealed(struct row_selection *r, const struct row_ref *ref, sqlite3_stmt *q,
                                     upload_sink *each, void *context, struct profd_error *e)
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
                              .bytes = sqlite_u64(q, BYTES)};
    struct fetch_list *list = info->totals ? &r->totals : &r->sums;
    const char *name;
    sqlite_block_take(q, 0, &stub.block);
    if (info->totals) {
        stub.bytes = TOTAL_BYTES * sqlite_u64(q, TOTAL_HOSTS);
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
    row.uploads = sqlite_u64(q, UPLOADS);
    row.processes_started = sqlite_u64(q, PROCESSES);
    row.start = sqlite3_column_int64(q, FIRST);
    row.end = sqlite3_column_int64(q, LAST);
    row.inexact = (uint32_t)sqlite3_column_int64(q, INEXACT);
    row.width = width_of(stub.level);
    TRY(sqlite_processes_decode(r->s, q, GROUPS, row.processes_started, &row.groups, e));
    if (whole) {
        return each(context, &row, e);
    }
    if (info->totals && stub.bytes == 0) { /* all of it is stored by host */
        return PROFD_OK;
    }
    TRY(sqlite_series_key(r, info, &name, stub.series, e));
    list->rows[list->count] = row;
    list->stubs[list->count++] = stub;
    return PROFD_OK;
}

/* Gives the rows found, and notes those that are in blocks. */
static enum profd_status read_rows(struct row_selection *r, upload_sink *each, void *context, struct profd_error *e)
{
    static const struct {
        enum sqlite_sql which;
        enum profd_status (*give)(struct row_selection *r, const struct row_ref *ref, sqlite3_stmt *q,
                                  upload_sink *each, void *context, struct profd_error *e);
    } kinds[] = {{SQL_UPLOAD_GET, give_upload}, {SQL_ROLLUP_READ, give_sum}, {SQL_SEALED_READ, take_sealed}};
    struct fetch_list *const lists[] = {&r->sums, &r->totals};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        lists[i]->rows = ARENA_ARRAY(r->arena, r->sealed_count + 1, struct store_row);
        lists[i]->stubs = ARENA_ARRAY(r->arena, r->sealed_count + 1, struct store_stub);
        TRY(lists[i]->rows && lists[i]->stubs ? PROFD_OK : profd_no_memory(e));
    }
    for (size_t i = 0; i < r->ref_count; i++) {
        const struct row_ref *ref = &r->refs[i];
        const size_t kind = ref->sealed ? 2 : ref->id != 0;
        sqlite3_stmt *q;
        bool row = false;
        TRY(sqlite_first(r->s, kinds[kind].which, VALUES(INTEGER(ref->id ? ref->id : ref->number)), &q, &row, e));
        const enum profd_status status = row ? kinds[kind].give(r, ref, q, each, context, e) : PROFD_OK;
        sqlite_finish(q);
        TRY(status);
    }
    return PROFD_OK;
}

/* Totals by host that are being given. any: only *any is set if there is one, and nothing is given. */
struct giving {
    struct row_selection *r;
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

/* Gives the totals that are not in blocks. */
static enum profd_status give_totals(struct row_selection *r, upload_sink *each, void *context, bool *any,
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
    struct row_selection *r;
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
    FAIL_IF(row.uploads == 0, e, PROFD_DAMAGED, "the tier gave a sum twice, or one that it was not asked for");
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
static enum profd_status read_sealed(struct row_selection *r, struct fetch_list *list, upload_sink *each, void *context,
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
    FAIL_IF(!archive, e, PROFD_UNAVAILABLE, "past days were moved to the tier, and no tier is configured");
    TRY(archive->fetch(archive->context, list->stubs, list->count, part, give_sealed, &f, e));
    return f.given == list->count
               ? PROFD_OK
               : profd_error_set(e, PROFD_UNAVAILABLE, "the tier gave %zu of %zu sums", f.given, list->count);
}

enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    upload_sink *each, void *context, struct profd_error *e)
{
    struct row_selection r;
    bool began;
    enum profd_status status = reading_begin(&r, s, scope, filter, &began, e);
    status = status ? status : name_builds(&r, e);
    status = status ? status : select_rows(&r, e);
    status = status ? status : read_rows(&r, each, context, e);
    status = status ? status : give_totals(&r, each, context, NULL, e);
    status = sqlite_read_end(s, began, status, e);
    status = status ? status : read_sealed(&r, &r.sums, each, context, NULL, e);
    status = status ? status : read_sealed(&r, &r.totals, each, context, NULL, e);
    sqlite_reading_done(&r);
    return status;
}

enum profd_status store_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  int64_t *since, int64_t *until, struct profd_error *e)
{
    struct row_selection r;
    bool began;
    enum profd_status status = reading_begin(&r, s, scope, filter, &began, e);
    status = sqlite_read_end(r.s, began, status, e);
    if (!status) {
        *since = r.since;
        *until = r.until;
    }
    sqlite_reading_done(&r);
    return status;
}

enum profd_status store_each_mark(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  bool (*each)(void *context, const struct store_mark *mark), void *context,
                                  struct profd_error *e)
{
    sqlite3_stmt *q;
    bool fine = true;
    const int64_t from = filter->since > 0 ? filter->since / SQLITE_HOUR : 0,
                  to = filter->until > 0 ? (filter->until - 1) / SQLITE_HOUR : INT64_MAX,
                  first = scope->all || !store_is_tenant(scope->uid) ? SQLITE_MARK_LOCAL : SQLITE_MARK_HOSTS,
                  last = store_scope_has_tenants(scope) ? INT64_MAX : SQLITE_MARK_LOCAL;
    enum profd_status status = sqlite_start(s, SQL_HOUR_MARKS,
                                            VALUES(INTEGER(from), INTEGER(to), INTEGER(scope->all), SCOPE(scope),
                                                   INTEGER(STORE_TENANT), INTEGER(first), INTEGER(last)),
                                            &q, e);
    while (fine && sqlite_row(s, q, &status, e)) {
        const struct store_mark m = {.of = sqlite3_column_int64(q, 3) == SQLITE_MARK_LOCAL ? STORE_OF_LOCAL_USERS
                                                                                           : STORE_OF_HOSTS,
                                     .host = sqlite3_column_type(q, 1) == SQLITE_NULL ? NULL : sqlite_text(q, 1),
                                     .hour = sqlite3_column_int64(q, 2),
                                     .reasons = (uint32_t)sqlite3_column_int64(q, 0)};
        fine = (m.host && !labels_match_host(filter, m.host)) || each(context, &m);
    }
    if (!fine) {
        sqlite_finish(q);
        return profd_no_memory(e);
    }
    return status;
}

struct reasons {
    enum store_origin of;
    uint32_t bits;
};

static bool add_reasons(void *context, const struct store_mark *mark)
{
    struct reasons *r = context;
    r->bits |= r->of & mark->of ? mark->reasons : 0;
    return true;
}

enum profd_status store_get_marks(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  enum store_origin of, uint32_t *reasons, struct profd_error *e)
{
    struct reasons found = {.of = of};
    bool apart = false;
    if (of & STORE_OF_HOSTS && store_scope_has_tenants(scope) && filter->build_id && !filter->by_host &&
        labels_are_asked(filter, "host")) {
        /* Functions that are not stored by host cannot be selected by host. The totals tell whether the selected hosts
         * have any in the range. */
        struct row_selection r;
        struct store_filter by_host = *filter;
        bool began;
        by_host.by_host = true;
        enum profd_status status = reading_begin(&r, s, scope, &by_host, &began, e);
        r.totals_only = true;
        status = status ? status : give_totals(&r, NULL, NULL, &apart, e);
        if (!status && !apart) {
            status = name_builds(&r, e);
            status = status ? status : select_rows(&r, e);
            status = status ? status : read_rows(&r, NULL, NULL, e);
        }
        status = sqlite_read_end(s, began, status, e);
        status = status ? status : read_sealed(&r, &r.totals, NULL, NULL, &apart, e);
        sqlite_reading_done(&r);
        TRY(status);
    }
    TRY(store_each_mark(s, scope, filter, add_reasons, &found, e));
    *reasons = found.bits | (apart ? (uint32_t)INEXACT_HOST_TOTALS : 0);
    return PROFD_OK;
}
