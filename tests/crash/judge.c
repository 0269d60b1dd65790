#include "tests/crash/judge.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/counts.h"
#include "store/store_internal.h"

#define DAY INT64_C(86400000000000)

struct answer {
    uint8_t *bytes;
    size_t n;
    int status;
};

static enum profd_status keep_piece(void *context, const struct profd_answer *head, const void *bytes, size_t n,
                                    struct profd_error *e)
{
    struct answer *a = context;
    uint8_t *more = realloc(a->bytes, a->n + n + 1);

    if (!more) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the answer");
    }
    if (n) {
        memcpy(more + a->n, bytes, n);
    }
    a->bytes = more;
    a->n += n;
    a->bytes[a->n] = 0;
    a->status = head->http_status;
    return PROFD_OK;
}

static bool ask(const struct daemon *d, const char *target, struct answer *a, char why[512])
{
    const struct profd_options options = {.server = d->socket, .connect_ms = 20000, .answer_ms = 120000};
    struct profd_conn *conn = NULL;
    struct profd_error e = {""};
    enum profd_status status = profd_conn_open(&options, &conn, &e);

    *a = (struct answer){.status = 0};
    if (!status) {
        status = profd_query(conn, target, NULL, keep_piece, a, &e);
    }
    profd_conn_close(conn);
    if (status) {
        snprintf(why, 512, "%s: %s", target, e.sentence);
    }
    return !status;
}

uint8_t *judge_note(const struct stream *s)
{
    uint8_t *states = malloc(STREAM_IDS);

    for (uint32_t i = 0; states && i < STREAM_IDS; i++) {
        states[i] = s->state[i];
    }
    return states;
}

/* What the sums say of each upload. */
struct sum_shares {
    uint32_t limit; /* uploads begun are below */
    uint64_t everybody, strange;
    uint64_t first[STREAM_IDS], second[STREAM_IDS], ticks[STREAM_IDS];
};

static uint32_t limit_of(const struct stream *s)
{
    uint32_t most = 0;

    for (unsigned i = 0; i < STREAM_LANES; i++) {
        most = s->lanes[i].next > most ? s->lanes[i].next : most;
    }
    return most * STREAM_LANES < STREAM_IDS ? most * STREAM_LANES : STREAM_IDS;
}

static void share_one(struct sum_shares *h, uint64_t *column, uint64_t n, uint64_t count)
{
    if (n < h->limit) {
        column[n] += count;
    } else {
        h->strange++;
    }
}

static void share_arc(struct sum_shares *h, uint64_t to, uint64_t calls)
{
    if (to == STREAM_SHARED_CALLEE) {
        h->everybody += calls;
    } else if (to >= STREAM_SECOND && to < STREAM_SECOND + 16 * (uint64_t)STREAM_IDS) {
        share_one(h, h->second, (to - STREAM_SECOND) / 16, calls);
    } else if (to >= STREAM_LOW && to < STREAM_HIGH) {
        share_one(h, h->first, (to - STREAM_LOW) / 16, calls);
    }
}

static bool read_shares(const struct answer *a, struct sum_shares *h, char why[512])
{
    struct counts c;
    struct profd_error e = {""};

    if (a->status == 404) {
        return true; /* nothing was stored yet */
    }
    if (a->status != 200) {
        snprintf(why, 512, "the sum was refused with %d: %.200s", a->status, a->bytes ? (const char *)a->bytes : "");
        return false;
    }
    if (counts_decode(a->bytes, a->n, 64, &c, &e)) {
        snprintf(why, 512, "the sum cannot be read: %.200s", e.sentence);
        return false;
    }
    for (uint32_t i = 0; i < c.arc_count; i++) {
        share_arc(h, c.to[i], c.calls[i]);
    }
    for (uint32_t i = 0; i < c.histogram_count; i++) {
        for (uint32_t j = 0; j < c.histograms[i].used; j++) {
            share_one(h, h->ticks,
                      c.histograms[i].low == STREAM_LOW ? c.bin_index[c.histograms[i].first + j] : STREAM_IDS,
                      c.bin_ticks[c.histograms[i].first + j]);
        }
    }
    counts_done(&c);
    return true;
}

/* May the daemon have removed the day by now? */
static bool may_be_retired(const struct stream *s, uint32_t n)
{
    const int64_t over = (stream_end(s, n) / DAY + 1) * DAY;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return s->keep && over + s->keep <= now.tv_sec * INT64_C(1000000000);
}

static void judge_upload(const struct stream *s, const struct sum_shares *h, uint32_t n, uint8_t acked, bool whole,
                         struct verdict *v)
{
    const uint8_t now = s->state[n];
    const uint64_t times = h->first[n] / stream_first_calls(n);

    if (h->first[n] != times * stream_first_calls(n) || h->second[n] != times * stream_second_calls(n) ||
        h->ticks[n] != times * stream_ticks(n)) {
        v->half++;
    } else if (times > 1) {
        v->doubled++;
    } else if (times == 0 && (acked == STREAM_ACKED || (whole && now != STREAM_NEW))) {
        if (may_be_retired(s, n)) {
            v->retired++;
            v->retired_calls += stream_calls(n);
        } else {
            v->lost++;
        }
    }
    if (times && now == STREAM_NEW) {
        v->strange++;
    }
    v->present += times;
    v->stack_ticks += times * stream_ticks(n);
}

bool judge_sums(const struct daemon *d, const struct stream *s, const uint8_t *acked, bool whole, struct verdict *v,
                char why[512])
{
    struct sum_shares *h = calloc(1, sizeof *h);
    struct answer a = {.status = 0};
    bool ok;

    ok = h && ask(d, "/api/v1/builds/" STREAM_BUILD "/counts?scope=everywhere", &a, why);
    if (ok) {
        h->limit = limit_of(s);
        ok = read_shares(&a, h, why);
    }
    *v = (struct verdict){.present = 0};
    for (uint32_t n = 0; ok && n < h->limit; n++) {
        judge_upload(s, h, n, acked[n], whole, v);
    }
    if (ok && h->everybody != v->present) {
        v->half++;
    }
    if (ok) {
        v->strange += h->strange;
    }
    free(a.bytes);
    free(h);
    return ok;
}

/* The value of a metric; UINT64_MAX if it is not there. */
static uint64_t find_metric(const struct answer *a, const char *name)
{
    const size_t n = strlen(name);

    for (const char *line = (const char *)a->bytes; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, n) && line[n] == ' ') {
            return strtoull(line + n + 1, NULL, 10);
        }
    }
    return UINT64_MAX;
}

bool judge_totals(const struct daemon *d, const struct stream *s, struct verdict *v, char why[512])
{
    struct answer a = {.status = 0};
    bool ok = ask(d, "/metrics", &a, why);
    const uint64_t accepted = find_metric(&a, "profd_accepted_uploads_total"),
                   stored = find_metric(&a, "profd_stored_uploads"),
                   retired = find_metric(&a, "profd_retired_uploads_total"),
                   calls = find_metric(&a, "profd_retired_calls_total");

    v->rollups = find_metric(&a, "profd_rollups");
    free(a.bytes);
    if (!ok) {
        return false;
    }
    snprintf(why, 512,
             "%llu accepted, %llu stored, %llu retired with %llu calls by the ledger; in the sums %llu of %llu, "
             "without %llu with %llu calls",
             (unsigned long long)accepted, (unsigned long long)stored, (unsigned long long)retired,
             (unsigned long long)calls, (unsigned long long)v->present, (unsigned long long)stream_acked(s),
             (unsigned long long)v->retired, (unsigned long long)v->retired_calls);
    return accepted == stream_acked(s) && stored == v->present && retired == v->retired && calls == v->retired_calls;
}

bool judge_stacks(const struct daemon *d, const struct verdict *v, char why[512])
{
    static const char name[] = "\"stacks\":", number[] = "\"count\":";
    struct answer a = {.status = 0};
    uint64_t said = 0;

    if (!ask(d, "/api/v1/builds/" STREAM_BUILD "/report?scope=everywhere", &a, why)) {
        return false;
    }
    const char *at = a.status == 200 ? strstr((const char *)a.bytes, name) : NULL;
    at = at ? strstr(at, number) : NULL;
    said = at ? strtoull(at + sizeof number - 1, NULL, 10) : 0;
    free(a.bytes);
    snprintf(why, 512, "%llu ticks have stacks by the report, %llu by what was sent", (unsigned long long)said,
             (unsigned long long)v->stack_ticks);
    return said == v->stack_ticks;
}

/* May the daemon have removed the build and its names since they were stored, because no upload of it was left? It is
 * there again without names as soon as a later upload has it. */
static bool may_be_forgotten(const struct stream *s)
{
    for (uint32_t i = 0; i < STREAM_IDS / STREAM_EVERY; i++) {
        if (s->sent_before[i] && !may_be_retired(s, stream_naming(i))) {
            return false;
        }
    }
    return s->keep;
}

bool judge_executable(const struct daemon *d, const struct stream *s, char why[512])
{
    const bool acked = s->executable_acked;
    char target[256];
    struct answer a;
    bool ok;

    snprintf(target, sizeof target, "/api/v1/builds/%s", s->executable);
    ok = !acked || ask(d, target, &a, why);
    if (ok && acked) {
        ok = (a.status == 200 && strstr((const char *)a.bytes, "\"symbols\":true")) ||
             ((a.status == 404 || a.status == 200) && may_be_forgotten(s));
        snprintf(why, 512, "the names of an acknowledged executable are lost: %d %.300s", a.status,
                 a.bytes ? (const char *)a.bytes : "");
        free(a.bytes);
    }
    return ok;
}

bool judge_add(struct tally *t, const struct verdict *v, const char *where)
{
    t->checks++;
    t->lost += v->lost;
    t->doubled += v->doubled;
    t->half += v->half + v->strange;
    if (v->lost || v->doubled || v->half || v->strange) {
        printf("# %s: %llu lost, %llu double, %llu half there, %llu never sent; %llu are there\n", where,
               (unsigned long long)v->lost, (unsigned long long)v->doubled, (unsigned long long)v->half,
               (unsigned long long)v->strange, (unsigned long long)v->present);
    }
    return !v->lost && !v->doubled && !v->half && !v->strange;
}

bool judge_integrity(const struct daemon *d, const char *folder, char why[512])
{
    char copy[PLACE_PATH], path[PLACE_PATH];
    sqlite3_stmt *q = NULL;
    sqlite3 *db = NULL;
    bool ok;

    place_join(copy, folder, "integrity");
    snprintf(why, 512, "its files cannot be copied");
    ok = place_copy(d->state, copy);
    if (ok) {
        place_join(path, copy, "profd.db");
        sqlite_seal_register(); /* each page must have its checksum, too */
        ok = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(db, "PRAGMA integrity_check(3)", -1, &q, NULL) == SQLITE_OK &&
             sqlite3_step(q) == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(q, 0), "ok");
        snprintf(why, 512, "%.300s",
                 q && sqlite3_data_count(q) ? (const char *)sqlite3_column_text(q, 0) : sqlite3_errmsg(db));
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    place_remove(copy);
    return ok;
}

bool judge_ledger(const struct daemon *d, char why[512])
{
    const char *slash = strrchr(d->program, '/');
    char profctl[PLACE_PATH];
    int status;

    snprintf(profctl, sizeof profctl, "%.*sprofctl", slash ? (int)(slash - d->program) + 1 : 0, d->program);
    status = place_run((const char *const[]){profctl, "verify", "--socket", d->socket, NULL});
    snprintf(why, 512, "profctl verify ended with %d", status);
    return status == 0;
}

void judge_point(struct tally *t, bool ok, const char *format, ...)
{
    va_list arguments;

    printf("%s %llu - ", ok ? "ok" : "not ok", (unsigned long long)++t->points);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    t->failed += !ok;
    fflush(stdout);
}

void judge_skip(struct tally *t, const char *what, const char *why)
{
    printf("ok %llu - %s # SKIP %s\n", (unsigned long long)++t->points, what, why);
    fflush(stdout);
}
