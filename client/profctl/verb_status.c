/* profctl status: the daemon, its stored data, and the spool. profctl health: whether it works, for probes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
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
    int64_t unnamed_since; /* first counts of one of them */
    uint64_t uploads, processes;
};

static void state_print(json_t *r)
{
    char age[32], raw[32], file[32], idle[32];
    show_bytes(row_number(r, "raw_bytes"), raw, sizeof raw);
    show_bytes(row_number(r, "file_bytes") + row_number(r, "wal_bytes"), file, sizeof file);
    show_bytes(row_number(r, "free_bytes"), idle, sizeof idle);
    const uint64_t single = row_number(r, "raw_uploads"), sums = row_number(r, "rollups"),
                   removed = row_number(r, "retired_uploads");
    printf("kept     %" PRIu64 " single %s (%s), %" PRIu64 " hourly and daily %s", single,
           noun_for(single, "upload", "uploads"), raw, sums, noun_for(sums, "sum", "sums"));
    if (removed) {
        printf("; %" PRIu64 " %s removed since", removed, noun_for(removed, "upload was", "uploads were"));
    }
    printf("\ndisk     the database takes %s, %s of it unused\n", file, idle);
    const uint64_t users = row_number(r, "users");
    show_bytes(row_number(r, "user_bytes"), raw, sizeof raw);
    printf("users    %" PRIu64 " %s %s; --json lists the largest\n", users,
           noun_for(users, "user stores", "users store"), raw);
    if (row_text(r, "http_url")[0]) {
        printf("page     %s%s\n", row_text(r, "http_url"), row_flag(r, "http_token") ? " with token" : "");
    }
    if (row_number(r, "backlog_bytes")) {
        show_bytes(row_number(r, "backlog_bytes"), raw, sizeof raw);
        printf("backlog  %s of uploads are to be rolled up\n", raw);
    }
    if (row_text(r, "verified_time")[0]) {
        show_age_of(row_text(r, "verified_time"), (int64_t)time(NULL), age, sizeof age);
        const uint64_t uploads = row_number(r, "verified_uploads"), wrong = row_number(r, "verified_mismatches");
        printf("verified %s: %" PRIu64 " %s, %" PRIu64 " %s\n", age, uploads, noun_for(uploads, "upload", "uploads"),
               wrong, noun_for(wrong, "mismatch", "mismatches"));
    } else {
        puts("verified not yet since the daemon's start; verify now with: profctl verify");
    }
    if (row_number(r, "ledger_mismatches")) {
        const uint64_t n = row_number(r, "ledger_mismatches");
        printf("DAMAGED  %" PRIu64 " %s since the daemon's start: see profctl verify\n", n,
               noun_for(n, "mismatch", "mismatches"));
    }
    if (*row_text(r, "damaged_database")) {
        const uint64_t n = row_number(r, "damaged_databases");
        printf("DEGRADED %" PRIu64
               " damaged %s put aside, the latest as %s: nothing in %s is in a report; see profd(8)\n",
               n, noun_for(n, "database was", "databases were"), row_text(r, "damaged_database"),
               noun_for(n, "it", "them"));
    }
    if (row_real(r, "clock_ahead_seconds") > 0) {
        printf(
            "DEGRADED the clock is %.1f days ahead: nothing is removed because of its age until it has been so for 24 "
            "hours, or profctl retention --confirm-clock says that it is right\n",
            row_real(r, "clock_ahead_seconds") / 86400);
    }
    if (row_flag(r, "read_failed")) {
        puts(
            "DEGRADED profd could not read its database: profctl verify says what is affected; the next start of profd "
            "checks the whole file");
    }
    if (*row_text(r, "reserve") && strcmp(row_text(r, "reserve"), "held") != 0) {
        printf("reserve  %s: %s\n", row_text(r, "reserve"),
               strcmp(row_text(r, "reserve"), "missing")
                   ? "the disk is full; the reserve is used for removals"
                   : "the file system cannot keep a reserve for removals on a full disk");
    }
    for (int i = 0; i < 2; i++) {
        const char *why = row_text(r, i ? "no_space" : "write_error");
        if (*why) {
            printf("REFUSES  uploads: %s\n", why);
        }
    }
}

static uint64_t amount_uploads(const json_t *relay, const char *name)
{
    return row_number(json_object_get(relay, name), "uploads");
}

/* The uploads that this host forwards to its centre. */
static void relay_print(json_t *r)
{
    const int64_t now = (int64_t)time(NULL);
    const char *oldest = row_text(r, "oldest_time"), *heard = row_text(r, "heard_time"), *error = row_text(r, "error");
    char age[32], kept[32];
    printf("relay    to %.255s: accepted uploads %" PRIu64 " = acknowledged %" PRIu64 " + sealed %" PRIu64
           " + open %" PRIu64,
           row_text(r, "url"), amount_uploads(r, "accepted"), amount_uploads(r, "acknowledged"),
           amount_uploads(r, "sealed"), amount_uploads(r, "open"));
    if (amount_uploads(r, "withdrawn")) {
        printf(" + withdrawn %" PRIu64, amount_uploads(r, "withdrawn"));
    }
    puts("");
    show_bytes(row_number(r, "kept_bytes"), kept, sizeof kept);
    show_age_of(oldest, now, age, sizeof age);
    printf("unsent   %s%s; acknowledged uploads kept %s\n", oldest[0] ? "the oldest upload was begun " : "nothing",
           oldest[0] ? age : "", kept);
    if (amount_uploads(r, "not_counted")) {
        printf("LOST     uploads %" PRIu64 ": the centre did not count them; see the journal\n",
               amount_uploads(r, "not_counted"));
    }
    if (error[0]) {
        show_age_of(heard, now, age, sizeof age);
        printf("CENTRE   %s: %.511s\n", age, error);
    } else if (!heard[0]) {
        puts("CENTRE   profd-relay has not connected since the daemon's start");
    }
}

/* The uploads that hosts have sent to this centre. */
static void centre_print(json_t *c)
{
    const char *last = row_text(c, "last_time");
    const uint64_t disputed = row_number(c, "disputed_builds");
    char age[32];
    show_age_of(last, (int64_t)time(NULL), age, sizeof age);
    printf("centre   hosts %" PRIu64 ", uploads counted %" PRIu64 ", received in %" PRIu64 "%s%s\n",
           row_number(c, "hosts"), amount_uploads(c, "counted"), row_number(c, "received"),
           last[0] ? ", the last " : "", last[0] ? age : "");
    if (disputed) {
        printf("disputed %" PRIu64 " %s: hosts have different symbols of a build-id, and the first name its functions; "
               "reports of %s name two hosts\n",
               disputed, noun_for(disputed, "build", "builds"), noun_for(disputed, "it", "them"));
    }
    if (row_number(c, "damaged_sums")) {
        printf("CENTRE   stored sums that cannot be read: %" PRIu64 "; see profctl verify\n",
               row_number(c, "damaged_sums"));
    }
    if (row_number(c, "quarantined")) {
        printf("CENTRE   uploads of hosts that could not be read: %" PRIu64 "; see the journal\n",
               row_number(c, "quarantined"));
    }
}

static void text_print(const struct profd_conn *conn, const struct totals *t, const struct answer *state,
                       const struct spooled *s, const char *directory)
{
    if (conn) {
        char name[128], age[32];
        profctl_clean(profd_conn_daemon(conn)[0] ? profd_conn_daemon(conn) : "profd", name, sizeof name);
        printf("daemon   %s at %s\n", name, profd_conn_server(conn));
        show_age(t->unnamed_since, (int64_t)time(NULL), age, sizeof age);
        printf("stored   %" PRIu64 " %s from %" PRIu64 " %s of %zu %s; with libraries %zu %s, %zu of them without "
               "function names%s%s\n",
               t->uploads, noun_for(t->uploads, "upload", "uploads"), t->processes,
               noun_for(t->processes, "process", "processes"), t->programs,
               noun_for(t->programs, "program", "programs"), t->builds, noun_for(t->builds, "build", "builds"),
               t->unnamed, t->unnamed > 0 ? ", the oldest counted " : "", t->unnamed > 0 ? age : "");
        if (state->whole) {
            json_t *relay = json_object_get(state->whole, "relay"), *centre = json_object_get(state->whole, "centre");
            state_print(state->whole);
            if (json_is_object(relay)) {
                relay_print(relay);
            }
            if (json_is_object(centre)) {
                centre_print(centre);
            }
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

static enum profd_status status_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn = NULL;
    struct totals t = {.builds = 0};
    struct answer state = {.whole = NULL}, builds = {.whole = NULL};
    struct ask_target target;
    struct spooled spooled = {.count = 0};
    json_t *build;
    size_t i;
    char directory[4096] = "";
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_error spool_error = {""};
    if (profd_spool_directory(directory, sizeof directory, NULL) == PROFD_OK &&
        profd_spool_list(entry_add, &spooled, &spool_error) != PROFD_OK) {
        profctl_complain("%s", spool_error.sentence);
    }
    enum profd_status status = profd_conn_open(&o, &conn, e);
    status = status ? status : ask_builds(conn, &builds, e);
    json_array_foreach(builds.rows, i, build)
    {
        t.builds++;
        if (!row_flag(build, "symbols")) {
            const int64_t first = show_time_of(row_text(build, "first_seen"));
            t.unnamed_since = t.unnamed++ == 0 || first < t.unnamed_since ? first : t.unnamed_since;
        }
        if (row_flag(build, "is_program")) { /* each upload has one program */
            t.programs++;
            t.uploads += row_number(build, "uploads");
            t.processes += row_number(build, "processes_started");
        }
    }
    if (status == PROFD_OK) { /* only users with all rights get it */
        ask_target_init(&target, "/api/v1/status", NULL);
        (void)ask_object(conn, &target, &state, NULL);
    }
    if (call->json) {
        json_t *name = json_string(conn ? profd_conn_daemon(conn) : ""),
               *store = state.whole ? json_incref(state.whole) : json_null();
        enum profd_status printed = json_print(
            json_pack("{s:o,s:b,s:I,s:I,s:I,s:I,s:I,s:o,s:{s:I,s:I}}", "daemon", name ? name : json_string(""),
                      "reachable", status == PROFD_OK, "uploads", json_count(t.uploads), "processes_started",
                      json_count(t.processes), "programs", json_count(t.programs), "builds", json_count(t.builds),
                      "builds_without_names", json_count(t.unnamed), "store", store, "spool", "uploads",
                      json_count(spooled.count), "bytes", json_count(spooled.bytes)),
            e);
        status = status ? status : printed;
    } else {
        text_print(status == PROFD_OK ? conn : NULL, &t, &state, &spooled, directory);
    }
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_status = {
    .name = "status",
    .arguments = "",
    .summary = "Show the daemon, its stored data, and the spool",
    .details = "",
    .run = status_run,
};

#define HEALTH_MS 10000

static const struct profctl_option health_options[] = {
    {"live", 0, NULL, "succeed if the daemon answers, also if it refuses uploads"},
};

static enum profd_status health_run(const struct profctl_call *call, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, HEALTH_MS);
    struct ask_target target;
    struct profd_conn *conn;
    struct answer answer;
    ask_target_init(&target, profctl_value(call, "live") ? "/healthz" : "/readyz", NULL);
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = ask_object(conn, &target, &answer, e);
    profd_conn_close(conn);
    if (status == PROFD_OK) {
        printf("%s\n", call->json ? answer.text : row_text(answer.whole, "status"));
    }
    return status;
}

const struct profctl_verb verb_health = {
    .name = "health",
    .arguments = "",
    .summary = "Succeed if the daemon works, for the probes of containers",
    .details = "Prints \"ready\", or \"degraded\" if a fault does not keep the daemon from storing uploads.\n",
    OPTIONS(health_options),
    .run = health_run,
};
