/* profctl clickhouse: profd's tables on servers of ClickHouse. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "clickhouse/address.h"
#include "clickhouse/client.h"
#include "clickhouse/engine.h"
#include "clickhouse/import.h"
#include "clickhouse/migrate.h"
#include "clickhouse/state.h"
#include "profctl/profctl.h"
#include "store/store.h"

#define REPLY_BYTES 65536u
#define CONNECT_MS 5000u
#define ANSWER_MS 60000u
#define SERVERS_MOST 64

static const struct profctl_option options[] = {
    {"password-file", 0, "FILE", "file with the password of the user in the URLs (default: none)"},
    {"timeout", 0, "SECONDS", "how long a server may take for a statement, 1 to 3600 (default 60)"},
};

/* The milliseconds of --timeout. */
static enum profd_status timeout_take(const struct profctl_call *call, unsigned *out, struct profd_error *e)
{
    const char *text = profctl_value(call, "timeout");
    char *end = NULL;
    const unsigned long seconds = text ? strtoul(text, &end, 10) : 0;
    if (text && (text[0] < '0' || text[0] > '9' || *end || seconds < 1 || seconds > 3600)) {
        return profd_error_set(e, PROFD_USAGE, "--timeout %s: give 1 to 3600 seconds", text);
    }
    *out = text ? 1000u * (unsigned)seconds : ANSWER_MS;
    return PROFD_OK;
}

/* Prints what was made, or adds it to the rows. */
static void init_report(json_t *made, const struct clickhouse_address *a, const struct clickhouse_migrated *m)
{
    if (made) {
        (void)json_array_append_new(made,
                                    json_pack("{s:s, s:i, s:s, s:s, s:i, s:i}", "host", a->servers[0].host, "port",
                                              (int)a->servers[0].port, "database", a->database, "server_version",
                                              m->server, "before", (int)m->before, "after", (int)m->after));
    } else if (m->before == m->after) {
        printf("%s:%u: the tables of database %s already have version %u (ClickHouse %s)\n", a->servers[0].host,
               a->servers[0].port, a->database, m->after, m->server);
    } else {
        printf("%s:%u: the tables of database %s now have version %u, before %u (ClickHouse %s)\n", a->servers[0].host,
               a->servers[0].port, a->database, m->after, m->before, m->server);
    }
}

/* The servers of all URLs, one after the other. */
struct servers {
    const struct profctl_call *call;
    const struct clickhouse_address *addresses;
    size_t count; /* of addresses */
    unsigned named;
    struct clickhouse_limits limits;
    json_t *made;
    struct clickhouse_state state;
    bool has_state;
    int64_t before;
};
typedef enum profd_status server_work(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                      struct profd_error *e);

static enum profd_status each_server(struct servers *s, server_work *work, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < s->count && status == PROFD_OK; i++) {
        for (unsigned k = 0; k < s->addresses[i].server_count && status == PROFD_OK; k++) {
            struct clickhouse_address one = clickhouse_pick_server(&s->addresses[i], k);
            struct clickhouse *c;
            status = clickhouse_open(&one, s->call->ca_file, &s->limits, &c, e);
            if (status == PROFD_OK) {
                status = work(s, c, &one, e);
                clickhouse_close(c);
            }
            explicit_bzero(&one, sizeof one);
        }
    }
    return status;
}

static enum profd_status make_tables(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                     struct profd_error *e)
{
    struct clickhouse_migrated m;
    const enum profd_status status = clickhouse_migrate(c, a, s->named, &m, e);
    if (status == PROFD_OK) {
        init_report(s->made, a, &m);
    }
    return status;
}

/* Finds what the servers have that were initialized before. */
static enum profd_status find_state(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                    struct profd_error *e)
{
    struct clickhouse_state state;
    bool found = false;
    const enum profd_status status = clickhouse_get_state(c, a, &state, &found, e);
    if (status == PROFD_OK && found && (!s->has_state || state.number > s->state.number)) {
        s->state = state;
        s->has_state = true;
    }
    return status;
}

/* A server without state is new. What every shard has whole, it gets from the others. */
static enum profd_status complete_server(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                         struct profd_error *e)
{
    struct clickhouse_state state;
    bool found = false;
    const enum profd_status status = clickhouse_get_state(c, a, &state, &found, e);
    return status != PROFD_OK || found || !s->has_state || !a->cluster[0] ? status : clickhouse_copy_tables(c, a, e);
}

static enum profd_status put_state(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                   struct profd_error *e)
{
    struct clickhouse_state state;
    bool found = false;
    const enum profd_status status = clickhouse_get_state(c, a, &state, &found, e);
    return status != PROFD_OK || (found && state.number == s->state.number) ? status
                                                                            : clickhouse_put_state(c, a, &s->state, e);
}

static enum profd_status put_backup(struct servers *s, struct clickhouse *c, const struct clickhouse_address *a,
                                    struct profd_error *e)
{
    return clickhouse_put_backup(c, a, s->before, e);
}

/* Makes the tables on all servers, in order. With --json, prints those that were made also if one fails. */
static enum profd_status init_all(struct servers *s, struct profd_error *e)
{
    s->made = s->call->json ? json_array() : NULL;
    enum profd_status status = each_server(s, make_tables, e);
    if (status == PROFD_OK) {
        status = each_server(s, find_state, e);
    }
    if (status == PROFD_OK) {
        status = each_server(s, complete_server, e);
    }
    if (status == PROFD_OK && !s->has_state) {
        status = clickhouse_draw_state(&s->state, e);
    }
    if (status == PROFD_OK) {
        status = each_server(s, put_state, e);
    }
    if (json_array_size(s->made) > 0) {
        json_t *document = json_pack("{s:O}", "rows", s->made);
        (void)json_dumpf(document, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(document);
    }
    json_decref(s->made);
    return status;
}

static enum profd_status note_restore(struct servers *s, struct profd_error *e)
{
    const enum profd_status status = clickhouse_draw_state(&s->state, e);
    return status == PROFD_OK ? each_server(s, put_state, e) : status;
}

static enum profd_status note_backup(struct servers *s, struct profd_error *e)
{
    const char *text = s->call->arguments[2];
    char *end;
    const unsigned long long seconds = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || seconds > INT64_MAX / 1000000000) {
        return profd_error_set(e, PROFD_USAGE, "clickhouse backed-up: \"%s\" is not a time in seconds since 1970",
                               text);
    }
    s->before = (int64_t)seconds * 1000000000;
    return each_server(s, put_backup, e);
}

/* Prints what was imported. */
static void import_report(const struct profctl_call *call, const struct clickhouse_imported *m)
{
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {
        {"tenants", m->tenants},
        {"tokens", m->tokens},
        {"enrolments", m->enrolments},
        {"readers", m->readers},
        {"hosts", m->hosts},
        {"epochs", m->epochs},
        {"arrivals", m->arrivals},
        {"quarantined", m->quarantined},
        {"marks", m->marks},
        {"deletions", m->deletions},
        {"objects", m->objects},
        {"attestations", m->attestations},
        {"watch_rows", m->watch_rows},
        {"hours", m->hours},
        {"uploads", m->counted.uploads},
        {"ticks", m->counted.ticks},
        {"calls", m->counted.calls},
        {"deleted_since", m->deleted},
        {"removed_since", m->removed},
        {"local_series", m->local},
    };
    json_t *document = call->json ? json_object() : NULL;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (call->json) {
            (void)json_object_set_new(document, counts[i].name, json_integer((json_int_t)counts[i].n));
        } else {
            printf("%-14s %llu\n", counts[i].name, (unsigned long long)counts[i].n);
        }
    }
    if (document) {
        (void)json_dumpf(document, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(document);
    } else if (m->local > 0) {
        printf("%llu series are of users of the centre's own machine: they stay in the database. Let its profd relay "
               "what they do from now on.\n",
               (unsigned long long)m->local);
    }
}

static enum profd_status import_run(const struct profctl_call *call, const struct clickhouse_address *a,
                                    struct profd_error *e)
{
    struct store *from, *to;
    struct clickhouse_imported imported;
    enum profd_status status = store_sqlite_open_reader(call->arguments[2], &from, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = store_clickhouse_open(a, call->ca_file, true, &to, e);
    if (status == PROFD_OK) {
        status = clickhouse_import(from, to, &imported, e);
        store_close(to);
    }
    store_close(from);
    if (status == PROFD_OK) {
        import_report(call, &imported);
    }
    return status;
}

/* The verbs of the verb. */
enum work { WORK_INIT, WORK_BACKED_UP, WORK_RESTORED, WORK_IMPORT, WORKS };
static const struct {
    const char *name, *wants;
    size_t arguments; /* 0: any number */
} works[WORKS] = {
    [WORK_INIT] = {"init", "URLs", 0},
    [WORK_BACKED_UP] = {"backed-up", "a URL and the time before the backup, in seconds since 1970", 3},
    [WORK_RESTORED] = {"restored", "one URL", 2},
    [WORK_IMPORT] = {"import", "a URL and the database file of a centre", 3},
};

static enum profd_status work_find(const struct profctl_call *call, enum work *out, struct profd_error *e)
{
    int i = 0;
    while (i < WORKS && strcmp(call->arguments[0], works[i].name) != 0) {
        i++;
    }
    if (i == WORKS) {
        return profd_error_set(e, PROFD_USAGE, "clickhouse: \"%s\" is not init, import, backed-up or restored",
                               call->arguments[0]);
    }
    *out = (enum work)i;
    return works[i].arguments == 0 || call->argument_count == works[i].arguments
               ? PROFD_OK
               : profd_error_set(e, PROFD_USAGE, "clickhouse %s: give %s", works[i].name, works[i].wants);
}

static enum profd_status clickhouse_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *file = profctl_value(call, "password-file");
    struct clickhouse_address addresses[SERVERS_MOST];
    struct servers servers = {
        .call = call, .addresses = addresses, .limits = {.connect_ms = CONNECT_MS, .reply_bytes = REPLY_BYTES}};
    enum work work = WORK_INIT;
    enum profd_status status = work_find(call, &work, e);
    const size_t n = work == WORK_INIT ? call->argument_count - 1 : 1;
    if (status == PROFD_OK) {
        status = timeout_take(call, &servers.limits.answer_ms, e);
    }
    for (size_t i = 0; i < n && status == PROFD_OK; i++) { /* all URLs are checked before anything is made */
        status = clickhouse_parse_address(call->arguments[i + 1], &addresses[i], e);
        if (status == PROFD_OK && file) {
            status = clickhouse_read_password(file, &addresses[i], e);
        }
        if (status == PROFD_OK) {
            servers.count++;
            servers.named += addresses[i].server_count;
        }
    }
    if (status == PROFD_OK) {
        status = work == WORK_INIT       ? init_all(&servers, e)
                 : work == WORK_IMPORT   ? import_run(call, &addresses[0], e)
                 : work == WORK_RESTORED ? note_restore(&servers, e)
                                         : note_backup(&servers, e);
    }
    explicit_bzero(addresses, sizeof addresses);
    return status;
}

const struct profctl_verb verb_clickhouse = {
    .name = "clickhouse",
    .arguments = "init URL [URL ...] | import URL DATABASE | backed-up URL SECONDS | restored URL",
    .summary = "Make profd's tables on servers of ClickHouse; move a centre there; tell of backups",
    .details =
        "A URL is clickhouse://[USER@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?cluster=NAME&replicated=1&tls=1].\n"
        "Each server of a cluster wants its tables: name all. Tables of an older profd are brought to this version. "
        "The command may be\n"
        "repeated: what is there already stays as it is.\n"
        "import: moves a centre from its SQLite database, which is only read. Before hosts send to the tables. It may "
        "be repeated, and\n"
        "then moves what the database got since.\n"
        "backed-up: what arrived before SECONDS since 1970 is in a backup of the servers, so that hosts may remove "
        "it.\n"
        "restored: the servers were restored from a backup, so that hosts send again what they kept.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 2,
    .arguments_most = 1 + SERVERS_MOST,
    .run = clickhouse_run,
};
