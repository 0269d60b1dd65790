#include "clickhouse/migrate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/script.h"

extern const unsigned char embed_schema_clickhouse_001_store_sql[];

/* In the order of their numbers, from 1. */
static const unsigned char *const migrations[] = {embed_schema_clickhouse_001_store_sql};
#define VERSION (unsigned)(sizeof migrations / sizeof migrations[0])

#define NUMBERS_MOST 3

/* Formats a statement and runs it. *reply may be NULL: it is not wanted. */
__attribute__((format(printf, 4, 5))) static enum profd_status ask(struct clickhouse *c, char **reply,
                                                                   struct profd_error *e, const char *format, ...)
{
    char statement[1024], *got = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(statement, sizeof statement, format, arguments);
    va_end(arguments);
    if (n < 0 || n >= (int)sizeof statement) {
        return profd_error_set(e, PROFD_INTERNAL, "a statement for ClickHouse has %d bytes", n);
    }
    const enum profd_status status = clickhouse_ask(c, statement, &got, e);
    if (status == PROFD_OK && reply) {
        *reply = got;
    } else {
        free(got);
    }
    return status;
}

/* Reads a reply of n numbers, and frees it. */
static enum profd_status numbers_read(char *reply, unsigned long *numbers, size_t n, struct profd_error *e)
{
    char *at = reply;
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        char *end;
        numbers[i] = strtoul(at, &end, 10);
        fine = end != at && *end == (i + 1 < n ? '\t' : '\n');
        at = end + fine;
    }
    free(reply);
    return fine
               ? PROFD_OK
               : profd_error_set(e, PROFD_PROTOCOL, "ClickHouse replied to a query for %zu numbers with other text", n);
}

/* Runs a query for n numbers. */
__attribute__((format(printf, 5, 6))) static enum profd_status
ask_numbers(struct clickhouse *c, unsigned long *numbers, size_t n, struct profd_error *e, const char *format, ...)
{
    char statement[512], *reply = NULL;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(statement, sizeof statement, format, arguments);
    va_end(arguments);
    const enum profd_status status = ask(c, &reply, e, "%s", statement);
    return status == PROFD_OK ? numbers_read(reply, numbers, n, e) : status;
}

static enum profd_status server_read(struct clickhouse *c, char out[32], struct profd_error *e)
{
    char *reply;
    const enum profd_status status = ask(c, &reply, e, "SELECT version()");
    if (status != PROFD_OK) {
        return status;
    }
    const size_t n = strcspn(reply, "\n");
    const bool fine = n > 0 && n < 32 && strspn(reply, "0123456789.") > 2;
    if (fine) {
        (void)snprintf(out, 32, "%.*s", (int)n, reply);
    }
    free(reply);
    return fine ? PROFD_OK
                : profd_error_set(e, PROFD_PROTOCOL, "what answers is not ClickHouse: it does not say its version");
}

static enum profd_status cluster_check(struct clickhouse *c, const struct clickhouse_address *a, unsigned named,
                                       struct profd_error *e)
{
    unsigned long n[3];
    if (!a->cluster[0]) {
        return PROFD_OK;
    }
    enum profd_status status = ask_numbers(
        c, n, 3, e,
        "SELECT uniq(shard_num), max(replica_num), uniqExact(host_name, port) FROM system.clusters WHERE cluster = "
        "'%s'",
        a->cluster);
    if (status == PROFD_OK && n[0] == 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "the server %s has no cluster \"%s\" in its configuration (remote_servers)",
                               a->servers[0].host, a->cluster);
    }
    if (status == PROFD_OK && n[1] > 1 && !a->replicated) {
        return profd_error_set(e, PROFD_REFUSED,
                               "a shard of cluster \"%s\" has %lu replicas: add replicated=1 to the URL, so that the "
                               "tables replicate",
                               a->cluster, n[1]);
    }
    if (status == PROFD_OK && n[2] > named) {
        return profd_error_set(e, PROFD_REFUSED,
                               "cluster \"%s\" has %lu servers, and %u get tables: name all servers in one command",
                               a->cluster, n[2], named);
    }
    if (status != PROFD_OK || !a->replicated) {
        return status;
    }
    /* A replicated table that cannot be made leaves a directory, which an old server cannot remove again. */
    status = ask_numbers(c, n, 1, e,
                         "SELECT count() FROM system.tables WHERE database = 'system' AND name = "
                         "'zookeeper'");
    if (status == PROFD_OK) {
        status = ask_numbers(c, n + 1, 1, e,
                             "SELECT uniq(macro) FROM system.macros WHERE macro IN ('shard', "
                             "'replica')");
    }
    if (status == PROFD_OK && (n[0] == 0 || n[1] < 2)) {
        return profd_error_set(e, PROFD_REFUSED,
                               "the server %s has %s in its configuration, which replicated tables want",
                               a->servers[0].host, n[0] == 0 ? "no zookeeper" : "no macros \"shard\" and \"replica\"");
    }
    return status;
}

static void layout_print(const struct clickhouse_address *a, char *out, size_t size)
{
    (void)snprintf(out, size, "%s%s%s", a->cluster[0] ? "cluster=" : "one server", a->cluster,
                   a->replicated ? ",replicated=1" : "");
}

/* Makes the database and the table of migrations. */
static enum profd_status database_make(struct clickhouse *c, const struct clickhouse_address *a, struct profd_error *e)
{
    unsigned long n[2];
    enum profd_status status =
        ask_numbers(c, n, 2, e, "SELECT count(), countIf(name = 'migration') FROM system.tables WHERE database = '%s'",
                    a->database);
    if (status == PROFD_OK && n[0] > 0 && n[1] == 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "the database \"%s\" has %lu tables, but not those of profd: name another database in "
                               "the URL",
                               a->database, n[0]);
    }
    if (status == PROFD_OK) {
        status = ask(c, NULL, e, "CREATE DATABASE IF NOT EXISTS %s", a->database);
    }
    if (status == PROFD_OK) {
        status = ask(c, NULL, e,
                     "CREATE TABLE IF NOT EXISTS %s.migration (number UInt32, layout String, profd String, made "
                     "DateTime('UTC') DEFAULT now()) ENGINE = MergeTree ORDER BY number",
                     a->database);
    }
    return status;
}

/* Version 1 had another form before any release: rows of segments had arrays in place of columns of planes. */
static enum profd_status form_check(struct clickhouse *c, const struct clickhouse_address *a, struct profd_error *e)
{
    unsigned long n[2];
    const enum profd_status status =
        ask_numbers(c, n, 2, e,
                    "SELECT countIf(name = 'a_n'), countIf(name = 'arcs') FROM "
                    "system.columns WHERE database = '%s' AND table LIKE 'segment_group%%'",
                    a->database);
    return status == PROFD_OK && n[0] > n[1]
               ? profd_error_set(e, PROFD_REFUSED,
                                 "the tables of database \"%s\" were made by a profd before its release, and this one "
                                 "stores segments in another form: drop the database, or name another in the URL",
                                 a->database)
               : status;
}

/* The version of the tables. */
static enum profd_status version_read(struct clickhouse *c, const struct clickhouse_address *a, unsigned *out,
                                      struct profd_error *e)
{
    unsigned long n[NUMBERS_MOST];
    char layout[128], *other = NULL;
    layout_print(a, layout, sizeof layout);
    enum profd_status status =
        ask_numbers(c, n, 3, e, "SELECT uniqExact(number), max(number), countIf(layout != '%s') FROM %s.migration",
                    layout, a->database);
    if (status == PROFD_OK && n[1] > VERSION) {
        return profd_error_set(e, PROFD_NEWER,
                               "the tables of database \"%s\" have version %lu, of a newer profd: this one knows %u",
                               a->database, n[1], VERSION);
    }
    if (status == PROFD_OK && n[0] != n[1]) {
        return profd_error_set(e, PROFD_DAMAGED, "of the %lu migrations of database \"%s\" %lu are recorded", n[1],
                               a->database, n[0]);
    }
    if (status == PROFD_OK && n[2] > 0) {
        status = ask(c, &other, e, "SELECT any(layout) FROM %s.migration WHERE layout != '%s'", a->database, layout);
    }
    if (other) {
        other[strcspn(other, "\n")] = '\0';
        status = profd_error_set(e, PROFD_REFUSED, "the tables of database \"%s\" were made for: %s. The URL says: %s",
                                 a->database, other, layout);
        free(other);
    }
    if (status == PROFD_OK && n[1] > 0) {
        status = form_check(c, a, e);
    }
    if (status == PROFD_OK) {
        *out = (unsigned)n[1];
    }
    return status;
}

static enum profd_status statement_run(void *context, const char *statement, struct profd_error *e)
{
    char *reply = NULL;
    const enum profd_status status = clickhouse_ask(context, statement, &reply, e);
    free(reply);
    return status;
}

enum profd_status clickhouse_migrate(struct clickhouse *c, const struct clickhouse_address *address, unsigned named,
                                     struct clickhouse_migrated *out, struct profd_error *e)
{
    struct clickhouse_migrated m = {.before = 0};
    char layout[128];
    layout_print(address, layout, sizeof layout);
    enum profd_status status = server_read(c, m.server, e);
    if (status == PROFD_OK) {
        status = cluster_check(c, address, named, e);
    }
    if (status == PROFD_OK) {
        status = database_make(c, address, e);
    }
    if (status == PROFD_OK) {
        status = version_read(c, address, &m.before, e);
    }
    for (m.after = m.before; m.after < VERSION && status == PROFD_OK;) {
        status = clickhouse_each_statement((const char *)migrations[m.after], address, statement_run, c, e);
        if (status == PROFD_OK) {
            m.after++;
            status = ask(c, NULL, e, "INSERT INTO %s.migration (number, layout, profd) VALUES (%u, '%s', '%s')",
                         address->database, m.after, layout, PROFD_VERSION);
        }
    }
    if (status == PROFD_OK) {
        *out = m;
    }
    return status;
}

#define COPIED "$copied("

enum profd_status clickhouse_copy_tables(struct clickhouse *c, const struct clickhouse_address *address,
                                         struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < VERSION; i++) {
        const char *at = (const char *)migrations[i];
        while (status == PROFD_OK && (at = strstr(at, "CREATE TABLE IF NOT EXISTS " COPIED))) {
            at = strstr(at, COPIED) + strlen(COPIED);
            const int n = (int)strcspn(at, ")");
            status = ask(c, NULL, e, "INSERT INTO %s.%.*s SELECT * FROM cluster('%s', %s, %.*s)", address->database, n,
                         at, address->cluster, address->database, n, at);
        }
    }
    return status;
}
