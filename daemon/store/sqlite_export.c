/* What an import reads (export.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/export.h"
#include "store/labels.h"
#include "store/sqlite_host_total.h"
#include "store/sqlite_interval.h"

enum profd_status store_sqlite_hold(struct store *base, struct profd_error *e)
{
    bool began;
    return sqlite_read_begin(sqlite_self(base), &began, e);
}

void store_sqlite_let_go(struct store *base)
{
    struct profd_error ignored;
    (void)sqlite_read_end(sqlite_self(base), true, PROFD_OK, &ignored);
}

static const enum sqlite_sql tables[] = {
    [STORE_EXPORT_CENTRE] = SQL_EXPORT_CENTRE,
    [STORE_EXPORT_TENANTS] = SQL_EXPORT_TENANTS,
    [STORE_EXPORT_TOKENS] = SQL_EXPORT_TOKENS,
    [STORE_EXPORT_ENROLMENTS] = SQL_EXPORT_ENROLMENTS,
    [STORE_EXPORT_HOSTS] = SQL_EXPORT_HOSTS,
    [STORE_EXPORT_EPOCHS] = SQL_EXPORT_EPOCHS,
    [STORE_EXPORT_ARRIVALS] = SQL_EXPORT_ARRIVALS,
    [STORE_EXPORT_QUARANTINE] = SQL_EXPORT_QUARANTINE,
    [STORE_EXPORT_MARKS] = SQL_EXPORT_MARKS,
    [STORE_EXPORT_DELETIONS] = SQL_EXPORT_DELETIONS,
    [STORE_EXPORT_ATTESTATIONS] = SQL_EXPORT_ATTESTATIONS,
    [STORE_EXPORT_OBJECTS] = SQL_EXPORT_OBJECTS,
};

/* Reads the columns of a row; *unpacked, if it is set then, is the content of an object and is freed by the caller. */
static enum profd_status read_row(struct sqlite_store *s, sqlite3_stmt *q, enum store_export what,
                                  struct store_cell *row, uint8_t **unpacked, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (int i = 0; i < STORE_EXPORT_COLUMNS; i++) {
        row[i] = (struct store_cell){.number = 0};
        if (i < sqlite3_column_count(q) && sqlite3_column_type(q, i) == SQLITE_INTEGER) {
            row[i].number = sqlite3_column_int64(q, i);
        } else if (i < sqlite3_column_count(q) && sqlite3_column_type(q, i) != SQLITE_NULL) {
            row[i].bytes = sqlite_blob(q, i, &row[i].size);
            row[i].bytes = row[i].bytes ? row[i].bytes : (const uint8_t *)""; /* it is empty */
        }
    }
    if (what == STORE_EXPORT_OBJECTS) {
        status = sqlite_take_content(s, q, unpacked, &row[2].size, e);
        row[2].bytes = *unpacked;
    }
    return status;
}

enum profd_status store_sqlite_export(struct store *base, enum store_export what,
                                      enum profd_status (*each)(void *context, const struct store_cell *row,
                                                                struct profd_error *e),
                                      void *context, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        what == STORE_EXPORT_CENTRE
            ? sqlite_start(s, tables[what], VALUES(INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)), &q, e)
            : sqlite_start(s, tables[what], NULL, 0, &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        struct store_cell cells[STORE_EXPORT_COLUMNS];
        uint8_t *unpacked = NULL;
        status = read_row(s, q, what, cells, &unpacked, e);
        if (status == PROFD_OK) {
            status = each(context, cells, e);
        }
        free(unpacked);
        if (status != PROFD_OK) {
            sqlite_finish(q);
        }
    }
    return status;
}

/* --- Hours --- */

struct exporting {
    struct sqlite_store *s;
    struct arena *series, *hour; /* of what each is about */
    struct sqlite_identity identity;
    struct store_export_hour out; /* what all hours of the series have in common is set */
    struct store_export_host *hosts;
    uint32_t host_count, host_capacity;
    enum profd_status (*each)(void *context, const struct store_export_hour *x, struct profd_error *e);
    void *context;
};

static enum profd_status take_labels(struct exporting *x, sqlite3_stmt *q, struct profd_error *e)
{
    size_t n;
    struct store_label pair, *labels;
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    const char *text = arena_copy(x->series, (const char *)bytes, n), *end = text + n;
    for (const char *at = text; text && labels_next(&at, end, &pair);) {
        x->out.label_count++;
    }
    labels = text ? ARENA_ARRAY(x->series, x->out.label_count + 1, struct store_label) : NULL;
    if (!labels) {
        return profd_no_memory(e);
    }
    size_t i = 0;
    for (const char *at = text; labels_next(&at, end, &pair);) {
        labels[i++] = pair;
    }
    x->out.labels = labels;
    return PROFD_OK;
}

static enum profd_status name_builds(struct exporting *x, struct profd_error *e)
{
    struct store_build *builds = ARENA_ARRAY(x->series, x->identity.build_count + 1, struct store_build);
    enum profd_status status = builds ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; i < x->identity.build_count && status == PROFD_OK; i++) {
        sqlite3_stmt *q;
        bool row = false;
        status = sqlite_start(x->s, SQL_BUILD_NAME,
                              VALUES(INTEGER(x->identity.builds[i]), INTEGER(0), INTEGER(x->identity.uid)), &q, e);
        if (status == PROFD_OK) {
            status = sqlite_next(x->s, q, &row, e);
        }
        if (status == PROFD_OK && !row) {
            status = profd_error_set(e, PROFD_DAMAGED, "database %s: a build's row is missing", x->s->path);
        }
        if (row) {
            const char *name = sqlite_text(q, 1);
            (void)snprintf(builds[i].id.text, sizeof builds[i].id.text, "%s", sqlite_text(q, 0));
            builds[i].name = arena_copy(x->series, name, strlen(name));
            status = builds[i].name ? PROFD_OK : profd_no_memory(e);
            sqlite_finish(q);
        }
        if (x->identity.builds[i] == x->identity.program) {
            x->out.program = (uint32_t)i;
        }
    }
    x->out.builds = builds;
    x->out.build_count = x->identity.build_count;
    x->out.uid = x->identity.uid;
    return status;
}

static enum profd_status fold_row(struct exporting *x, struct folding *f, int level, int64_t at, struct profd_error *e)
{
    struct folded row;
    bool found;
    enum profd_status status =
        sqlite_rollup_load(x->s, x->hour, x->identity.id, level, at, x->identity.build_count, &row, &found, e);
    return status == PROFD_OK && found ? folding_add(f, &row, e) : status;
}

/* Adds up the hour's sum and those of its slices. */
static enum profd_status fold_hour(struct exporting *x, struct folding *f, int64_t hour, struct profd_error *e)
{
    enum profd_status status = folding_begin(f, x->hour, true, e);
    if (status == PROFD_OK) {
        status = fold_row(x, f, SQLITE_LEVEL_HOUR, hour, e);
    }
    for (int level = SQLITE_LEVEL_SLICE; status == PROFD_OK && level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t each = SQLITE_SLICE_WIDE / sqlite_level_minutes(level), last = hour * each + each - 1;
        int64_t at = hour * each;
        for (bool found = true; status == PROFD_OK && found; at++) {
            status = sqlite_find(x->s, SQL_ROLLUP_OPEN_AT,
                                 VALUES(INTEGER(x->identity.id), INTEGER(level), INTEGER(at), INTEGER(last)), &at,
                                 &found, e);
            if (status == PROFD_OK && found) {
                status = fold_row(x, f, level, at, e);
            }
        }
    }
    return status == PROFD_OK ? folding_finish(f, e) : status;
}

static bool read_identity(const char *digits, uint8_t out[STORE_HOST_SIZE])
{
    static const char all[] = "0123456789abcdef";
    bool fine = strlen(digits) == 2 * STORE_HOST_SIZE && strspn(digits, all) == 2 * STORE_HOST_SIZE;
    for (size_t i = 0; i < STORE_HOST_SIZE && fine; i++) {
        out[i] = (uint8_t)((strchr(all, digits[2 * i]) - all) << 4 | (strchr(all, digits[2 * i + 1]) - all));
    }
    return fine;
}

/* The host of an identity, 32 digits, added if it is not there. NULL: no memory, or it is none. */
static struct store_export_host *find_host(struct exporting *x, const char *digits)
{
    uint8_t identity[STORE_HOST_SIZE];
    if (!read_identity(digits, identity)) {
        return NULL;
    }
    for (size_t i = 0; i < x->host_count; i++) {
        if (memcmp(x->hosts[i].identity, identity, sizeof identity) == 0) {
            return &x->hosts[i];
        }
    }
    struct store_export_host *list = arena_extend(x->hour, x->hosts, x->host_count, &x->host_capacity, sizeof *list);
    if (list) {
        x->hosts = list;
        list[x->host_count] = (struct store_export_host){.has_totals = false};
        memcpy(list[x->host_count].identity, identity, sizeof identity);
        list = &list[x->host_count++];
    }
    return list;
}

static enum profd_status refuse_host(const struct exporting *x, struct profd_error *e)
{
    return profd_error_set(e, PROFD_DAMAGED, "database %s: series %" PRId64 " is of a host without an identity",
                           x->s->path, x->identity.id);
}

static enum profd_status add_total(void *context, const struct sqlite_host_total *t, struct profd_error *e)
{
    struct exporting *x = context;
    const struct sqlite_sums *m = &t->sums;
    struct store_export_host *h = find_host(x, t->identity);
    struct share *shares = ARENA_ARRAY(x->hour, x->identity.build_count + 1, struct share);
    if (!h || !shares) {
        return h ? profd_no_memory(e) : refuse_host(x, e);
    }
    memcpy(shares, m->shares, x->identity.build_count * sizeof *shares);
    h->has_totals = true;
    h->uploads = m->uploads;
    h->processes = m->processes;
    h->ticks = m->ticks;
    h->calls = m->calls;
    h->first = m->first;
    h->last = m->last;
    h->inexact = m->inexact;
    h->shares = shares;
    return PROFD_OK;
}

/* The hosts of a sum, with their totals if there are such. */
static enum profd_status take_hosts(struct exporting *x, const struct folded *row, int64_t hour, struct profd_error *e)
{
    x->hosts = NULL;
    x->host_count = x->host_capacity = 0;
    enum profd_status status =
        sqlite_host_totals_each(x->s, x->identity.id, x->identity.build_count, hour, hour, add_total, x, e);
    for (size_t i = 0; i < row->host_count && status == PROFD_OK; i++) {
        sqlite3_stmt *q;
        bool found = false;
        status = sqlite_start(x->s, SQL_HOST_GET, VALUES(INTEGER(row->hosts[i])), &q, e);
        if (status == PROFD_OK) {
            status = sqlite_next(x->s, q, &found, e);
        }
        if (status == PROFD_OK && (!found || !find_host(x, sqlite_text(q, 0)))) {
            status = refuse_host(x, e);
        }
        if (found) {
            sqlite_finish(q);
        }
    }
    x->out.hosts = x->hosts;
    x->out.host_count = x->host_count;
    return status;
}

/* Compares what was read with the ledger. */
static enum profd_status check_hour(const struct exporting *x, const struct folded *row, int64_t hour,
                                    const struct sqlite_sums *ledger, struct profd_error *e)
{
    uint64_t ticks, calls;
    rollup_totals(&row->counts, &ticks, &calls);
    if (row->uploads == ledger->uploads && row->processes == ledger->processes && ticks == ledger->ticks &&
        calls == ledger->calls && row->groups.unknown == 0) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_DAMAGED,
                           "database %s: series %" PRId64 ", hour %" PRId64 ": %" PRIu64 " uploads, %" PRIu64
                           " ticks and %" PRIu64 " calls are stored, %" PRIu64 ", %" PRIu64 " and %" PRIu64
                           " were accepted; see the daemon's report of verification",
                           x->s->path, x->identity.id, hour, row->uploads, ticks, calls, ledger->uploads, ledger->ticks,
                           ledger->calls);
}

static enum profd_status export_hour(struct exporting *x, int64_t hour, struct profd_error *e)
{
    struct sqlite_sums ledger;
    struct folding f;
    bool found = false;
    arena_reset(x->hour);
    enum profd_status status =
        sqlite_ledger_load(x->s, x->identity.id, hour, x->identity.build_count, &ledger, &found, e);
    if (status == PROFD_OK) {
        status = fold_hour(x, &f, hour, e);
    }
    if (status == PROFD_OK) {
        status = check_hour(x, &f.out, hour, &ledger, e);
    }
    if (status == PROFD_OK) {
        status = take_hosts(x, &f.out, hour, e);
    }
    struct store_build *builds =
        status == PROFD_OK ? ARENA_ARRAY(x->hour, x->out.build_count + 1, struct store_build) : NULL;
    if (!builds) {
        return status == PROFD_OK ? profd_no_memory(e) : status;
    }
    struct store_export_hour out = x->out;
    for (size_t i = 0; i < out.build_count; i++) {
        builds[i] = out.builds[i];
        builds[i].nanoseconds = ledger.shares[i].nanoseconds;
        builds[i].calls = ledger.shares[i].calls;
    }
    out.builds = builds;
    out.hour = hour;
    out.first = ledger.first;
    out.last = ledger.last;
    out.inexact = f.out.inexact;
    out.uploads = ledger.uploads;
    out.ticks = ledger.ticks;
    out.calls = ledger.calls;
    out.groups = f.out.groups;
    out.counts = f.out.counts;
    out.spread = f.out.spread;
    return x->each(x->context, &out, e);
}

/* The series in the current row of q. */
static enum profd_status export_series(struct exporting *x, sqlite3_stmt *q, struct profd_error *e)
{
    int64_t hour = INT64_MIN;
    bool found = false;
    arena_reset(x->series);
    x->out = (struct store_export_hour){.uid = 0};
    enum profd_status status = take_labels(x, q, e);
    if (status == PROFD_OK) {
        status = sqlite_series_identify(x->s, x->series, sqlite3_column_int64(q, 0), &x->identity, &found, e);
    }
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: a series has no set of builds", x->s->path);
    }
    if (status == PROFD_OK) {
        status = name_builds(x, e);
    }
    while (status == PROFD_OK && found) {
        status = sqlite_find(x->s, SQL_LEDGER_NEXT, VALUES(INTEGER(x->identity.id), INTEGER(hour)), &hour, &found, e);
        if (status == PROFD_OK && found) {
            status = export_hour(x, hour, e);
            hour++;
        }
    }
    return status;
}

enum profd_status store_sqlite_export_hours(struct store *base,
                                            enum profd_status (*each)(void *context, const struct store_export_hour *x,
                                                                      struct profd_error *e),
                                            void *context, struct profd_error *e)
{
    struct exporting x = {
        .s = sqlite_self(base), .series = arena_new(0), .hour = arena_new(0), .each = each, .context = context};
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        x.series && x.hour
            ? sqlite_start(x.s, SQL_EXPORT_SERIES, VALUES(INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)), &q, e)
            : profd_no_memory(e);
    while (status == PROFD_OK && (status = sqlite_next(x.s, q, &row, e)) == PROFD_OK && row) {
        status = export_series(&x, q, e);
        if (status != PROFD_OK) {
            sqlite_finish(q);
        }
    }
    arena_free(x.series);
    arena_free(x.hour);
    return status;
}
