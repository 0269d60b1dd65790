/* profctl status: is the daemon there, what does it hold, what waits in the spool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_json.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

struct spooled {
    size_t count;
    uint64_t bytes, oldest;
};

static void entry_add(void *context, const struct profd_spool_entry *entry)
{
    struct spooled *s = context;
    s->bytes += entry->size;
    s->oldest = s->count == 0 || entry->time < s->oldest ? entry->time : s->oldest;
    s->count++;
}

struct totals {
    size_t builds, programs, unnamed;
    uint64_t uploads, processes;
};

static enum profd_status totals_read(struct profd_conn *conn, struct totals *t, struct profd_error *e)
{
    struct rows *rows;
    struct ask_target target;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    TRY(rows_read(conn, &target, &rows, e));
    t->builds = rows_count(rows);
    for (size_t i = 0; i < t->builds; i++) {
        if (!rows_flag(rows, i, "symbols")) {
            t->unnamed++;
        }
        if (rows_flag(rows, i, "is_program")) { /* each upload has one program */
            t->programs++;
            t->uploads += rows_number(rows, i, "uploads");
            t->processes += rows_number(rows, i, "processes_started");
        }
    }
    rows_free(rows);
    return PROFD_OK;
}

#define STATE_MAX 65536

/* Only for users who may read everything; absent if the daemon does not send it. */
struct state {
    char *text; /* the daemon's text without its final newline */
    struct rows *rows;
};

static void state_read(struct profd_conn *conn, struct state *s)
{
    struct ask_target target;
    size_t n = 0;
    ask_target_init(&target, "/api/v1/status", NULL);
    if (ask_read(conn, &target, STATE_MAX, &s->text, &n, NULL) == PROFD_OK &&
        rows_parse_object(s->text ? s->text : "", n, &s->rows, NULL) == PROFD_OK) {
        s->text[strcspn(s->text, "\n")] = '\0';
    }
}

/* How the uploads are kept, and on how much space. */
static void kept_print(const struct rows *r)
{
    char raw[32], file[32], idle[32];
    show_bytes(rows_number(r, 0, "raw_bytes"), raw, sizeof raw);
    show_bytes(rows_number(r, 0, "file_bytes") + rows_number(r, 0, "wal_bytes"), file, sizeof file);
    show_bytes(rows_number(r, 0, "free_bytes"), idle, sizeof idle);
    const uint64_t single = rows_number(r, 0, "raw_uploads"), sums = rows_number(r, 0, "rollups"),
                   removed = rows_number(r, 0, "retired_uploads");
    printf("kept     %" PRIu64 " single %s (%s), %" PRIu64 " hourly and daily %s", single,
           noun_for(single, "upload", "uploads"), raw, sums, noun_for(sums, "sum", "sums"));
    if (removed) {
        printf("; %" PRIu64 " %s removed since", removed, noun_for(removed, "upload was", "uploads were"));
    }
    printf("\ndisk     the database takes %s, %s of it unused\n", file, idle);
    const uint64_t users = rows_number(r, 0, "users");
    show_bytes(rows_number(r, 0, "user_bytes"), raw, sizeof raw);
    printf("users    %" PRIu64 " %s %s; --json lists the largest\n", users,
           noun_for(users, "user stores", "users store"), raw);
}

static void state_print(const struct state *s)
{
    const struct rows *r = s->rows;
    char raw[32], age[32];
    kept_print(r);
    if (rows_text(r, 0, "http_url")[0]) {
        printf("page     %s%s\n", rows_text(r, 0, "http_url"), rows_flag(r, 0, "http_token") ? " with token" : "");
    }
    if (rows_number(r, 0, "backlog_bytes")) {
        show_bytes(rows_number(r, 0, "backlog_bytes"), raw, sizeof raw);
        printf("backlog  %s of uploads are to be rolled up\n", raw);
    }
    if (rows_text(r, 0, "verified_time")[0]) {
        show_age_of(rows_text(r, 0, "verified_time"), (int64_t)time(NULL), age, sizeof age);
        const uint64_t uploads = rows_number(r, 0, "verified_uploads"),
                       wrong = rows_number(r, 0, "verified_mismatches");
        printf("verified %s: %" PRIu64 " %s, %" PRIu64 " %s\n", age, uploads, noun_for(uploads, "upload", "uploads"),
               wrong, noun_for(wrong, "mismatch", "mismatches"));
    } else {
        puts("verified not yet since the daemon's start; verify now with: profctl verify");
    }
    if (rows_number(r, 0, "ledger_mismatches")) {
        const uint64_t n = rows_number(r, 0, "ledger_mismatches");
        printf("DAMAGED  %" PRIu64 " %s since the daemon's start: see profctl verify\n", n,
               noun_for(n, "mismatch", "mismatches"));
    }
    if (*rows_text(r, 0, "damaged_database")) {
        const uint64_t n = rows_number(r, 0, "damaged_databases");
        printf("DEGRADED %" PRIu64
               " damaged %s put aside, the latest as %s: nothing in %s is in a report; see profd(8)\n",
               n, noun_for(n, "database was", "databases were"), rows_text(r, 0, "damaged_database"),
               noun_for(n, "it", "them"));
    }
    if (rows_real(r, 0, "clock_ahead_seconds") > 0) {
        printf(
            "DEGRADED the clock is %.1f days ahead: nothing is removed because of its age until it has been so for 24 "
            "hours, or profctl retention --confirm-clock says that it is right\n",
            rows_real(r, 0, "clock_ahead_seconds") / 86400);
    }
    if (rows_flag(r, 0, "read_failed")) {
        puts(
            "DEGRADED profd could not read its database: profctl verify says what is affected; the next start of profd "
            "checks the whole file");
    }
    if (*rows_text(r, 0, "reserve") && strcmp(rows_text(r, 0, "reserve"), "held") != 0) {
        printf("reserve  %s: %s\n", rows_text(r, 0, "reserve"),
               strcmp(rows_text(r, 0, "reserve"), "missing")
                   ? "the disk is full; the reserve is used for removals"
                   : "the file system cannot keep a reserve for removals on a full disk");
    }
    for (int i = 0; i < 2; i++) {
        const char *why = rows_text(r, 0, i ? "no_space" : "write_error");
        if (*why) {
            printf("REFUSES  uploads: %s\n", why);
        }
    }
}

static uint64_t amount_uploads(const json_t *relay, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(json_object_get(relay, name), "uploads"));
}

/* What is forwarded to a centre, if anything is. */
static void relay_print(const struct state *s)
{
    json_t *status = json_loads(s->text, 0, NULL);
    const json_t *r = json_object_get(status, "relay");
    if (json_is_object(r)) {
        const int64_t now = (int64_t)time(NULL);
        const char *oldest = json_string_value(json_object_get(r, "oldest_time")),
                   *heard = json_string_value(json_object_get(r, "heard_time"));
        char url[256], error[512], age[32], kept[32];
        profctl_clean(json_string_value(json_object_get(r, "url")), url, sizeof url);
        printf("relay    to %s: accepted uploads %" PRIu64 " = acknowledged %" PRIu64 " + sealed %" PRIu64
               " + open %" PRIu64,
               url, amount_uploads(r, "accepted"), amount_uploads(r, "acknowledged"), amount_uploads(r, "sealed"),
               amount_uploads(r, "open"));
        if (amount_uploads(r, "withdrawn")) {
            printf(" + withdrawn %" PRIu64, amount_uploads(r, "withdrawn"));
        }
        puts("");
        show_bytes((uint64_t)json_integer_value(json_object_get(r, "kept_bytes")), kept, sizeof kept);
        show_age_of(oldest ? oldest : "", now, age, sizeof age);
        printf("unsent   %s%s; acknowledged uploads kept %s\n", oldest ? "the oldest upload was begun " : "nothing",
               oldest ? age : "", kept);
        if (amount_uploads(r, "not_counted")) {
            printf("LOST     uploads %" PRIu64 ": the centre did not count them; see the journal\n",
                   amount_uploads(r, "not_counted"));
        }
        if (json_string_value(json_object_get(r, "error"))) {
            profctl_clean(json_string_value(json_object_get(r, "error")), error, sizeof error);
            show_age_of(heard ? heard : "", now, age, sizeof age);
            printf("CENTRE   %s: %s\n", age, error);
        } else if (!heard) {
            puts("CENTRE   profd-relay has not connected since the daemon's start");
        }
    }
    json_decref(status);
}

/* What hosts have sent, if this is a centre. */
static void centre_print(const struct state *s)
{
    json_t *status = json_loads(s->text, 0, NULL);
    const json_t *c = json_object_get(status, "centre");
    if (json_is_object(c)) {
        const char *last = json_string_value(json_object_get(c, "last_time"));
        const int64_t damaged = json_integer_value(json_object_get(c, "damaged_sums")),
                      quarantined = json_integer_value(json_object_get(c, "quarantined")),
                      disputed = json_integer_value(json_object_get(c, "disputed_builds"));
        char age[32];
        show_age_of(last ? last : "", (int64_t)time(NULL), age, sizeof age);
        printf("centre   hosts %" JSON_INTEGER_FORMAT ", uploads counted %" PRIu64 ", received in %" JSON_INTEGER_FORMAT
               "%s%s\n",
               json_integer_value(json_object_get(c, "hosts")), amount_uploads(c, "counted"),
               json_integer_value(json_object_get(c, "received")), last ? ", the last " : "", last ? age : "");
        if (disputed) {
            printf("disputed %" PRId64
                   " %s: hosts have different symbols of a build-id, and the first name its functions; "
                   "reports of %s name two hosts\n",
                   disputed, disputed == 1 ? "build" : "builds", disputed == 1 ? "it" : "them");
        }
        if (damaged) {
            printf("CENTRE   stored sums that cannot be read: %" PRId64 "; see profctl verify\n", damaged);
        }
        if (quarantined) {
            printf("CENTRE   uploads of hosts that could not be read: %" PRId64 "; see the journal\n", quarantined);
        }
    }
    json_decref(status);
}

static void text_print(const struct profd_conn *conn, const struct totals *t, const struct state *state,
                       const struct spooled *s, const char *directory)
{
    if (conn) {
        char name[128];
        profctl_clean(profd_conn_daemon(conn)[0] ? profd_conn_daemon(conn) : "profd", name, sizeof name);
        printf("daemon   %s at %s\n", name, profd_conn_server(conn));
        printf("stored   %" PRIu64 " %s from %" PRIu64 " %s of %zu %s; with libraries %zu %s, %zu of them without "
               "function names\n",
               t->uploads, noun_for(t->uploads, "upload", "uploads"), t->processes,
               noun_for(t->processes, "process", "processes"), t->programs,
               noun_for(t->programs, "program", "programs"), t->builds, noun_for(t->builds, "build", "builds"),
               t->unnamed);
        if (state->rows) {
            state_print(state);
            relay_print(state);
            centre_print(state);
        }
    }
    if (s->count == 0) {
        puts("spool    empty: no upload of this user waits for a daemon");
        return;
    }
    char size[32], age[32];
    show_bytes(s->bytes, size, sizeof size);
    show_age((int64_t)(s->oldest / 1000000000u), (int64_t)time(NULL), age, sizeof age);
    printf("spool    %zu %s for a daemon (%s, oldest %s) in %s\n", s->count,
           noun_for(s->count, "upload waits", "uploads wait"), size, age, directory);
}

static enum profd_status state_print_json(const char *daemon, bool reachable, const struct totals *t,
                                          const struct state *state, const struct spooled *s, struct profd_error *e)
{
    json_t *name = json_string(daemon), *store = state->rows ? json_loads(state->text, 0, NULL) : json_null();
    return json_print(json_pack("{s:o,s:b,s:I,s:I,s:I,s:I,s:I,s:o,s:{s:I,s:I}}", "daemon",
                                name ? name : json_string(""), "reachable", reachable, "uploads",
                                json_count(t->uploads), "processes_started", json_count(t->processes), "programs",
                                json_count(t->programs), "builds", json_count(t->builds), "builds_without_names",
                                json_count(t->unnamed), "store", store, "spool", "uploads", json_count(s->count),
                                "bytes", json_count(s->bytes)),
                      e);
}

static enum profd_status status_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn = NULL;
    struct totals totals = {.builds = 0};
    struct state state = {.text = NULL};
    struct spooled spooled = {.count = 0};
    char directory[4096] = "";
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_error spool_error = {""};
    if (profd_spool_directory(directory, sizeof directory, NULL) == PROFD_OK &&
        profd_spool_list(entry_add, &spooled, &spool_error) != PROFD_OK) {
        profctl_complain("%s", spool_error.sentence);
    }
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = totals_read(conn, &totals, e);
    }
    if (status == PROFD_OK) {
        state_read(conn, &state);
    }
    if (call->json) {
        enum profd_status printed =
            state_print_json(conn ? profd_conn_daemon(conn) : "", status == PROFD_OK, &totals, &state, &spooled, e);
        status = status == PROFD_OK ? printed : status;
    } else {
        text_print(status == PROFD_OK ? conn : NULL, &totals, &state, &spooled, directory);
    }
    rows_free(state.rows);
    free(state.text);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_status = {
    .name = "status",
    .arguments = "",
    .summary = "Show the daemon, its stored data, and the spool",
    .details = "",
    .arguments_most = 0,
    .run = status_run,
};
