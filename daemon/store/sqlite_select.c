/* Selects series and their rows: single uploads, hours, days, or all time at once. */
#include "store/sqlite_select.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/arrivals.h"
#include "store/labels.h"
#include "store/sqlite_interval.h"

#define MINUTE INT64_C(60000000000)

static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = reallocarray(array, wanted, size);
    if (grown) {
        *capacity = wanted;
    }
    return grown;
}

/* Reads the set of builds in the current row of q; names are read later. */
static enum profd_status take_set(struct reading *r, sqlite3_stmt *q, struct series_info *info, struct profd_error *e)
{
    size_t n;
    const uint8_t *set = sqlite_blob(q, 4, &n);
    uint32_t *rows = ARENA_ARRAY(r->arena, n / 4 + 1, uint32_t);
    info->build_count = n / 4;
    info->builds = ARENA_ARRAY(r->arena, n / 4 + 1, struct store_build);
    info->rows = rows;
    if (!rows || !info->builds) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < info->build_count; i++) {
        rows[i] = sqlite_set_build(set, i);
    }
    return PROFD_OK;
}

static enum profd_status take_labels(struct reading *r, const uint8_t *text, size_t n, struct series_info *info,
                                     struct profd_error *e)
{
    struct store_label pair;
    size_t count = 0;
    char *copy = arena_copy(r->arena, (const char *)text, n);
    if (!copy) {
        return profd_no_memory(e);
    }
    for (const char *p = copy; labels_next(&p, copy + n, &pair);) {
        count++;
    }
    struct store_label *labels = ARENA_ARRAY(r->arena, count + 1, struct store_label);
    if (!labels) {
        return profd_no_memory(e);
    }
    count = 0;
    for (const char *p = copy; labels_next(&p, copy + n, &labels[count]);) {
        count++;
    }
    info->labels = labels;
    info->label_count = count;
    return PROFD_OK;
}

/* Is it of hosts, and has no label `host`? */
static bool is_apart(uint32_t uid, const uint8_t *labels, size_t n)
{
    struct store_label pair;
    bool named = false;
    for (const char *p = (const char *)labels, *end = p + n; store_is_tenant(uid) && labels_next(&p, end, &pair);) {
        named |= strcmp(pair.name, "host") == 0;
    }
    return store_is_tenant(uid) && !named;
}

/* Selects the series in the current row of q if its labels match; totals are selected later, each by its host. */
static enum profd_status take_series(struct reading *r, sqlite3_stmt *q, struct profd_error *e)
{
    size_t n;
    const uint8_t *labels = sqlite_blob(q, 3, &n);
    const bool apart = is_apart((uint32_t)sqlite3_column_int64(q, 1), labels, n), totals = apart && r->filter->by_host;
    if ((apart && !totals && labels_are_asked(r->filter, "host")) ||
        (!totals && !labels_match((const char *)labels, n, r->filter->matchers, r->filter->matcher_count))) {
        return PROFD_OK;
    }
    struct series_info *grown = grow(r->series, r->series_count, &r->series_capacity, sizeof *grown);
    if (!grown) {
        return profd_no_memory(e);
    }
    r->series = grown;
    struct series_info *info = &r->series[r->series_count];
    *info = (struct series_info){.id = sqlite3_column_int64(q, 0),
                                 .set = sqlite3_column_int64(q, 5),
                                 .uid = (uint32_t)sqlite3_column_int64(q, 1),
                                 .totals = totals};
    TRY(take_labels(r, labels, n, info, e));
    const struct series_info *before = r->series_count > 0 ? info - 1 : NULL;
    if (before && before->set == info->set && before->uid == info->uid) {
        info->build_count = before->build_count;
        info->rows = before->rows;
        info->builds = before->builds;
    } else {
        TRY(take_set(r, q, info, e));
    }
    while (info->program < info->build_count && info->rows[info->program] != sqlite3_column_int64(q, 2)) {
        info->program++;
    }
    r->series_count++;
    return PROFD_OK;
}

static enum profd_status name_build(struct reading *r, uint32_t id, uint32_t uid, struct store_build *build,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(r->s, SQL_BUILD_NAME, VALUES(INTEGER(id), INTEGER(0), INTEGER(uid)), &q, &row, e));
    if (!row) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: a build's row is missing", r->s->path);
    }
    const char *text = sqlite_text(q, 0), *name = sqlite_text(q, 1);
    if (strlen(text) < sizeof build->id.text) {
        memcpy(build->id.text, text, strlen(text) + 1);
    }
    build->name = arena_copy(r->arena, name, strlen(name));
    sqlite_finish(q);
    return build->name ? PROFD_OK : profd_no_memory(e);
}

static enum profd_status name_series(struct reading *r, const struct series_info *info, struct profd_error *e)
{
    for (size_t i = 0; i < info->build_count && !info->builds[i].name; i++) {
        TRY(name_build(r, info->rows[i], info->uid, &info->builds[i], e));
    }
    return PROFD_OK;
}

/* Has a series a slice of a live process, or a sum of what hosts have sent, of that width there? */
static enum profd_status has_slice(struct reading *r, int64_t series, int width, int64_t at, bool live, bool *found,
                                   struct profd_error *e)
{
    int64_t one;
    *found = false;
    if (live) {
        TRY(sqlite_find(r->s, SQL_SLICE_EXISTS, VALUES(INTEGER(series), INTEGER(width), INTEGER(at)), &one, found, e));
    }
    return !*found && width < SQLITE_SLICE_WIDE
               ? sqlite_find(r->s, SQL_ROLLUP_EXISTS,
                             VALUES(INTEGER(series), INTEGER(sqlite_level_of(width)), INTEGER(at)), &one, found, e)
               : PROFD_OK;
}

/* Moves a limit outward to the border of the widest slice that contains it in a matching series. */
static enum profd_status settle_slice(struct reading *r, int64_t *edge, bool up, struct profd_error *e)
{
    int64_t one;
    for (size_t w = SQLITE_SLICE_WIDTHS; w > 0; w--) {
        int width = sqlite_slice_widths[w - 1];
        int64_t at = sqlite_slice_at(width, *edge), minutes = (at + up) * width;
        bool found = false;
        if (at * width * MINUTE == *edge) { /* not inside it */
            continue;
        }
        TRY(sqlite_find(r->s, SQL_SLICE_ANY, VALUES(INTEGER(width), INTEGER(at)), &one, &found, e));
        const bool live = found;
        found = false;
        for (size_t i = 0; !found && i < r->series_count; i++) {
            if (r->series[i].totals) {
                continue;
            }
            TRY(has_slice(r, r->series[i].id, width, at, live, &found, e));
        }
        if (found) {
            *edge = minutes > INT64_MAX / MINUTE ? INT64_MAX : minutes * MINUTE;
            return PROFD_OK;
        }
    }
    return PROFD_OK;
}

/* Moves a limit outward if the hour that contains it is a sum in a matching series. */
static enum profd_status settle_edge(struct reading *r, int64_t *edge, bool up, struct profd_error *e)
{
    int64_t one, hour = *edge / SQLITE_HOUR;
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
    }
    return !found ? settle_slice(r, edge, up, e) : PROFD_OK;
}

enum profd_status sqlite_select_series(struct reading *r, const struct store_scope *scope, struct profd_error *e)
{
    int64_t build = 0;
    bool found = false;
    r->since = r->filter->since;
    r->until = r->filter->until;
    TRY(sqlite_find(r->s, SQL_BUILD_FIND, VALUES(TEXT(r->filter->build_id)), &build, &found, e));
    if (found) {
        sqlite3_stmt *q;
        TRY(sqlite_start(r->s, SQL_SERIES_OF_BUILD,
                         VALUES(INTEGER(build), INTEGER(scope->all), SCOPE(scope), INTEGER(r->filter->as_program)), &q,
                         e));
        enum profd_status status = PROFD_OK;
        while (sqlite_row(r->s, q, &status, e)) {
            status = take_series(r, q, e);
        }
        TRY(status);
    }
    if (r->series_count > UINT32_MAX) {
        return profd_error_set(e, PROFD_LIMIT, "more than 2^32 series");
    }
    TRY(settle_edge(r, &r->since, false, e));
    return settle_edge(r, &r->until, true, e);
}

enum profd_status sqlite_select_one(struct reading *r, int64_t series, bool *found, struct profd_error *e)
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
    return status == PROFD_OK ? sqlite_select_names(r, e) : status;
}

enum profd_status sqlite_select_names(struct reading *r, struct profd_error *e)
{
    for (size_t i = 0; i < r->series_count; i++) {
        TRY(name_series(r, &r->series[i], e));
    }
    return PROFD_OK;
}

/* Records the rows that a statement finds: number, and id if they are sums. */
static enum profd_status take_refs(struct reading *r, uint32_t series, enum sqlite_sql which,
                                   const struct sqlite_value *values, size_t count, struct profd_error *e)
{
    const bool sums = which != SQL_UPLOAD_NUMBERS, sealed = which == SQL_SEALED_IDS;
    sqlite3_stmt *q;
    TRY(sqlite_start(r->s, which, values, count, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(r->s, q, &status, e)) {
        struct row_ref *grown = grow(r->refs, r->ref_count, &r->ref_capacity, sizeof *grown);
        if (!grown) {
            sqlite_finish(q);
            return profd_no_memory(e);
        }
        r->refs = grown;
        r->refs[r->ref_count++] = (struct row_ref){.number = sqlite3_column_int64(q, 0),
                                                   .id = sums ? sqlite3_column_int64(q, 1) : 0,
                                                   .sealed = sealed,
                                                   .series = series};
        r->sealed_count += sealed;
    }
    return status;
}

static enum profd_status take_sums(struct reading *r, uint32_t series, int level, bool open_only, int64_t from,
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
    /* An hour that is sealed is in its day, and a day that is sealed in no other sum. */
    return level == SQLITE_LEVEL_DAY || (level == SQLITE_LEVEL_HOUR && !open_only)
               ? take_refs(r, series, SQL_SEALED_IDS, which, n, e)
               : PROFD_OK;
}

/* The sums of slices in [since, until); no slice contains one of these limits. */
static enum profd_status take_slices(struct reading *r, uint32_t series, int64_t since, int64_t until,
                                     struct profd_error *e)
{
    for (int level = SQLITE_LEVEL_SLICE; level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t width = sqlite_level_minutes(level) * MINUTE;
        TRY(take_sums(r, series, level, true, since / width + (since % width != 0), (until - 1) / width, e));
    }
    return PROFD_OK;
}

/* All uploads of a series: the sum of all time, the days and hours that it does not contain, and single uploads. */
static enum profd_status select_all(struct reading *r, uint32_t series, struct profd_error *e)
{
    TRY(take_sums(r, series, SQLITE_LEVEL_ALL, false, 0, 0, e));
    TRY(take_sums(r, series, SQLITE_LEVEL_DAY, true, INT64_MIN, INT64_MAX, e));
    TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, true, INT64_MIN, INT64_MAX, e));
    TRY(take_slices(r, series, 0, INT64_MAX, e));
    return take_refs(r, series, SQL_UPLOAD_NUMBERS,
                     VALUES(INTEGER(r->series[series].id), INTEGER(INT64_MIN), INTEGER(INT64_MAX)), e);
}

/* Days that are completely inside the window, and the hours that they do not contain; hours at the limits; single
 * uploads. Of totals what is sealed: days are exact for each step, because steps divide a day or are whole days. */
static enum profd_status select_window(struct reading *r, uint32_t series, struct profd_error *e)
{
    int64_t since = r->since > 0 ? r->since : 0;
    int64_t first = since / SQLITE_HOUR, last = r->until > 0 ? (r->until - 1) / SQLITE_HOUR : INT64_MAX;
    int64_t from = since / SQLITE_DAY + (since % SQLITE_DAY != 0),
            to = r->until > 0 ? r->until / SQLITE_DAY : INT64_MAX / 24;
    if (r->until > 0 && r->until <= since) {
        return PROFD_OK;
    }
    if (from < to && (r->filter->widest == 0 || r->filter->widest >= SQLITE_DAY)) {
        TRY(take_sums(r, series, SQLITE_LEVEL_DAY, false, from, to - 1, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, true, 24 * from, 24 * to - 1, e));
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, first, 24 * from - 1, e));
        if (r->until > 0) {
            TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, 24 * to, last, e));
        }
    } else {
        TRY(take_sums(r, series, SQLITE_LEVEL_HOUR, false, first, last, e));
    }
    if (r->series[series].totals) {
        return PROFD_OK;
    }
    TRY(take_slices(r, series, since, r->until > 0 ? r->until : INT64_MAX, e));
    return take_refs(r, series, SQL_UPLOAD_NUMBERS,
                     VALUES(INTEGER(r->series[series].id), INTEGER(first), INTEGER(last)), e);
}

static int compare_refs(const void *a, const void *b)
{
    const struct row_ref *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

enum profd_status sqlite_select_rows(struct reading *r, struct profd_error *e)
{
    for (size_t i = 0; i < r->series_count; i++) {
        const bool totals = r->series[i].totals;
        if (totals || !r->totals_only) {
            TRY(r->since <= 0 && r->until <= 0 && !totals ? select_all(r, (uint32_t)i, e)
                                                          : select_window(r, (uint32_t)i, e));
        }
    }
    if (r->ref_count > 1) {
        qsort(r->refs, r->ref_count, sizeof *r->refs, compare_refs);
    }
    return PROFD_OK;
}

void sqlite_block_take(sqlite3_stmt *q, int column, struct store_block *out)
{
    size_t n;
    const uint8_t *centre = sqlite_blob(q, column + 1, &n);
    *out = (struct store_block){.number = (uint64_t)sqlite3_column_int64(q, column + 8),
                                .attempt = (uint32_t)sqlite3_column_int64(q, column + 2),
                                .day = sqlite3_column_int64(q, column + 3),
                                .state = (enum store_block_state)sqlite3_column_int(q, column + 4),
                                .sums = (uint64_t)sqlite3_column_int64(q, column + 5),
                                .bytes = (uint64_t)sqlite3_column_int64(q, column + 6),
                                .sealed = sqlite3_column_int64(q, column + 7),
                                .row = (uint64_t)sqlite3_column_int64(q, column)};
    memcpy(out->centre, centre, n < sizeof out->centre ? n : sizeof out->centre);
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

enum profd_status sqlite_series_key(struct reading *r, const struct series_info *info, const char **name,
                                    uint8_t key[STORE_SERIES_KEY_SIZE], struct profd_error *e)
{
    char local[32];
    sqlite3_stmt *q = NULL;
    bool tenant = false;
    if (store_is_tenant(info->uid)) {
        TRY(sqlite_first(r->s, SQL_TENANT_NAME, VALUES(INTEGER(store_tenant_id(info->uid))), &q, &tenant, e));
    }
    snprintf(local, sizeof local, "uid %u", info->uid);
    const char *text = tenant ? sqlite_text(q, 0) : local;
    *name = arena_copy(r->arena, text, strlen(text));
    sqlite_finish(tenant ? q : NULL);
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

enum profd_status sqlite_reading_init(struct reading *r, struct store *s, const struct store_filter *filter,
                                      struct profd_error *e)
{
    *r = (struct reading){.s = s, .filter = filter, .arena = arena_new(0)};
    hashmap_init(&r->hosts, 0);
    return r->arena ? PROFD_OK : profd_no_memory(e);
}

void sqlite_reading_done(struct reading *r)
{
    hashmap_clear(&r->hosts);
    free(r->refs);
    free(r->series);
    arena_free(r->arena);
}
