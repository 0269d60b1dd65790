/* profctl clickhouse: profd's tables on servers of ClickHouse. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "clickhouse/address.h"
#include "clickhouse/client.h"
#include "clickhouse/migrate.h"
#include "clickhouse/state.h"
#include "profctl/profctl.h"

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

static enum profd_status init_one(const struct profctl_call *call, const struct clickhouse_address *a,
                                  const struct clickhouse_limits *limits, json_t *made, struct profd_error *e)
{
    struct clickhouse *c;
    struct clickhouse_migrated m;
    enum profd_status status = clickhouse_open(a, call->ca_file, limits, &c, e);
    if (status == PROFD_OK) {
        status = clickhouse_migrate(c, a, &m, e);
        clickhouse_close(c);
    }
    if (status == PROFD_OK) {
        init_report(made, a, &m);
    }
    return status;
}

/* Makes the tables on all servers, in order. With --json, prints those that were made also if one fails. */
static enum profd_status init_all(const struct profctl_call *call, const struct clickhouse_address *addresses, size_t n,
                                  const struct clickhouse_limits *limits, struct profd_error *e)
{
    json_t *made = call->json ? json_array() : NULL;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        for (unsigned k = 0; k < addresses[i].server_count && status == PROFD_OK; k++) {
            struct clickhouse_address one = clickhouse_pick_server(&addresses[i], k);
            status = init_one(call, &one, limits, made, e);
            explicit_bzero(&one, sizeof one);
        }
    }
    if (json_array_size(made) > 0) {
        json_t *document = json_pack("{s:O}", "rows", made);
        (void)json_dumpf(document, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(document);
    }
    json_decref(made);
    return status;
}

/* Changes what the tables say of the centre. A cluster has it once, so that its first server that answers is asked. */
static enum profd_status state_change(const struct profctl_call *call, const struct clickhouse_address *a,
                                      const struct clickhouse_limits *limits, struct profd_error *e)
{
    struct clickhouse *c;
    const bool restored = strcmp(call->arguments[0], "restored") == 0;
    const char *text = restored ? "0" : call->arguments[2];
    char *end;
    const unsigned long long seconds = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || seconds > INT64_MAX / 1000000000) {
        return profd_error_set(e, PROFD_USAGE, "clickhouse backed-up: \"%s\" is not a time in seconds since 1970",
                               text);
    }
    enum profd_status status = clickhouse_open(a, call->ca_file, limits, &c, e);
    if (status == PROFD_OK) {
        status =
            restored ? clickhouse_renew_state(c, a, e) : clickhouse_set_backup(c, a, (int64_t)seconds * 1000000000, e);
        clickhouse_close(c);
    }
    return status;
}

static enum profd_status clickhouse_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *file = profctl_value(call, "password-file");
    struct clickhouse_limits limits = {.connect_ms = CONNECT_MS, .reply_bytes = REPLY_BYTES};
    struct clickhouse_address addresses[SERVERS_MOST];
    const bool init = strcmp(call->arguments[0], "init") == 0, restored = strcmp(call->arguments[0], "restored") == 0;
    const size_t n = init ? call->argument_count - 1 : 1;
    if (!init && !restored && strcmp(call->arguments[0], "backed-up") != 0) {
        return profd_error_set(e, PROFD_USAGE, "clickhouse: \"%s\" is not init, backed-up or restored",
                               call->arguments[0]);
    }
    if (!init && call->argument_count != (restored ? 2u : 3u)) {
        return profd_error_set(e, PROFD_USAGE, "clickhouse %s: give %s", call->arguments[0],
                               restored ? "one URL" : "a URL and the time before the backup, in seconds since 1970");
    }
    enum profd_status status = timeout_take(call, &limits.answer_ms, e);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) { /* all URLs are checked before anything is made */
        status = clickhouse_parse_address(call->arguments[i + 1], &addresses[i], e);
        if (status == PROFD_OK && file) {
            status = clickhouse_read_password(file, &addresses[i], e);
        }
    }
    if (status == PROFD_OK) {
        status = init ? init_all(call, addresses, n, &limits, e) : state_change(call, &addresses[0], &limits, e);
    }
    explicit_bzero(addresses, sizeof addresses);
    return status;
}

const struct profctl_verb verb_clickhouse = {
    .name = "clickhouse",
    .arguments = "init URL [URL ...] | backed-up URL SECONDS | restored URL",
    .summary = "Make profd's tables on servers of ClickHouse; say that they are in a backup, or restored",
    .details =
        "A URL is clickhouse://[USER@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?cluster=NAME&replicated=1&tls=1].\n"
        "Each server of a cluster wants its tables: name all. Tables of an older profd are brought to this version. "
        "The command may be\n"
        "repeated: what is there already stays as it is.\n"
        "backed-up: what arrived before SECONDS since 1970 is in a backup of the servers, so that hosts may remove "
        "it.\n"
        "restored: the servers were restored from a backup, so that hosts send again what they kept.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 2,
    .arguments_most = 1 + SERVERS_MOST,
    .run = clickhouse_run,
};
