/* profctl status: is the daemon there, what does it hold, what waits in the spool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/profctl.h"
#include "client/profctl_ask.h"
#include "client/profctl_rows.h"
#include "client/profctl_show.h"

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
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add(&target, "limit", "1000");
    enum profd_status status = rows_read(conn, &target, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
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

/* What only those may know who may read everything; absent where the daemon does not say. */
struct state {
    char *text; /* as the daemon said it, without the newline behind it */
    struct rows *rows;
};

static void state_read(struct profd_conn *conn, struct state *s)
{
    struct ask_target target;
    size_t n = 0;
    ask_target_init(&target, "/api/v1/status");
    if (ask_read(conn, &target, STATE_MAX, &s->text, &n, NULL) == PROFD_OK &&
        rows_parse_object(s->text ? s->text : "", n, &s->rows, NULL) == PROFD_OK) {
        s->text[strcspn(s->text, "\n")] = '\0';
    }
}

static void state_print(const struct state *s)
{
    const struct rows *r = s->rows;
    char raw[32], file[32], idle[32], age[32];
    show_bytes(rows_number(r, 0, "raw_bytes"), raw, sizeof raw);
    show_bytes(rows_number(r, 0, "file_bytes") + rows_number(r, 0, "wal_bytes"), file, sizeof file);
    show_bytes(rows_number(r, 0, "free_bytes"), idle, sizeof idle);
    printf("kept     single uploads %" PRIu64 " (%s), sums %" PRIu64 ", removed uploads %" PRIu64
           "; %s on disk, %s of it free\n",
           rows_number(r, 0, "raw_uploads"), raw, rows_number(r, 0, "rollups"), rows_number(r, 0, "retired_uploads"),
           file, idle);
    if (rows_text(r, 0, "http_url")[0]) {
        printf("page     %s%s\n", rows_text(r, 0, "http_url"),
               rows_flag(r, 0, "http_token") ? " for whoever has the token" : "");
    }
    if (rows_number(r, 0, "backlog_bytes")) {
        show_bytes(rows_number(r, 0, "backlog_bytes"), raw, sizeof raw);
        printf("backlog  %s of single uploads wait to become sums\n", raw);
    }
    if (rows_number(r, 0, "verified_at")) {
        show_age((int64_t)rows_number(r, 0, "verified_at"), (int64_t)time(NULL), age, sizeof age);
        printf("verified uploads %" PRIu64 ", %s, mismatches %" PRIu64 "\n", rows_number(r, 0, "verified_uploads"), age,
               rows_number(r, 0, "verified_mismatches"));
    } else {
        puts("verified not yet since the daemon's start");
    }
    if (rows_number(r, 0, "ledger_mismatches")) {
        printf("DAMAGED  mismatches %" PRIu64 " since the daemon's start: see profctl verify\n",
               rows_number(r, 0, "ledger_mismatches"));
    }
    for (int i = 0; i < 2; i++) {
        const char *why = rows_text(r, 0, i ? "no_space" : "write_error");
        if (*why) {
            printf("REFUSES  uploads: %s\n", why);
        }
    }
}

static void text_print(const struct profd_conn *conn, const struct totals *t, const struct state *state,
                       const struct spooled *s, const char *directory)
{
    if (conn) {
        char name[128];
        profctl_clean(profd_conn_daemon(conn)[0] ? profd_conn_daemon(conn) : "profd", name, sizeof name);
        printf("daemon   %s at %s\n", name, profd_conn_server(conn));
        printf("stored   uploads %" PRIu64 ", processes %" PRIu64 ", programs %zu, builds %zu (%zu without names)\n",
               t->uploads, t->processes, t->programs, t->builds, t->unnamed);
        if (state->rows) {
            state_print(state);
        }
    }
    if (s->count == 0) {
        puts("spool    empty");
        return;
    }
    char size[32], age[32];
    show_bytes(s->bytes, size, sizeof size);
    show_age((int64_t)(s->oldest / 1000000000u), (int64_t)time(NULL), age, sizeof age);
    printf("spool    uploads %zu (%s, oldest %s) in %s\n", s->count, size, age, directory);
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
    if (call->json) { /* the daemon's name is the only string of a stranger, and its alphabet is checked */
        const char *daemon = conn ? profd_conn_daemon(conn) : "";
        bool plain =
            daemon[strspn(daemon, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .+~_-")] == '\0';
        printf("{\"daemon\":\"%s\",\"reachable\":%s,\"uploads\":%" PRIu64 ",\"processes_started\":%" PRIu64
               ",\"programs\":%zu,\"builds\":%zu,\"builds_without_names\":%zu,\"store\":%s,\"spool\":{\"uploads\":%zu,"
               "\"bytes\":%" PRIu64 "}}\n",
               plain ? daemon : "", status == PROFD_OK ? "true" : "false", totals.uploads, totals.processes,
               totals.programs, totals.builds, totals.unnamed, state.rows ? state.text : "null", spooled.count,
               spooled.bytes);
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
    .summary = "Show the daemon, what it holds, and what waits in the spool",
    .details = "",
    .arguments_most = 0,
    .run = status_run,
};
