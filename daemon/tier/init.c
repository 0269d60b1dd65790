#include "tier/init.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tier/row_binary.h"
#include "tier/statement.h"

#define VERSION 1u
#define STATEMENT_MAX (64u << 10)
#define LINE_MAX 256
#define SHOWN_BYTES 90 /* of a statement, in a sentence */

extern const unsigned char embed_schema_tier_sql[];

/* One server while its tables are made. */
struct init {
    const struct clickhouse_address *address; /* of all servers */
    const char *ca;
    const struct clickhouse_limits *limits;
    struct clickhouse *server; /* with the database, or without */
    char layout[2 * CLICKHOUSE_NAME_MAX];
    bool durable; /* the server knows settings that write inserts to the disk */
};

static enum profd_status init_connect(struct init *n, unsigned server, bool database, struct profd_error *e)
{
    struct clickhouse_address one = clickhouse_pick_server(n->address, server);
    one.database[0] = database ? one.database[0] : 0;
    one.replicated &= database;
    clickhouse_close(n->server);
    n->server = NULL;
    const enum profd_status status = clickhouse_open(&one, n->ca, n->limits, &n->server, e);
    explicit_bzero(one.password, sizeof one.password);
    return status;
}

/* Runs a statement, and returns the first line of its reply, cut, and the numbers that it begins with. */
__attribute__((format(printf, 6, 7))) static enum profd_status init_ask(struct init *n, char line[LINE_MAX],
                                                                        unsigned long *numbers, size_t count,
                                                                        struct profd_error *e, const char *format, ...)
{
    char statement[1024], *reply = NULL, *at = line;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(statement, sizeof statement, format, arguments);
    va_end(arguments);
    TRY(clickhouse_ask(n->server, statement, &reply, e));
    (void)snprintf(line, LINE_MAX, "%.*s", (int)strcspn(reply, "\n"), reply);
    free(reply);
    for (size_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtoul(at, &end, 10);
        FAIL_IF(end == at, e, PROFD_PROTOCOL, "ClickHouse at %s replied with \"%.60s\" instead of numbers",
                clickhouse_place(n->server), line);
        at = end;
    }
    return PROFD_OK;
}

/* The cluster must be as the URL says, and this server one that can have its tables. */
static enum profd_status init_check_cluster(struct init *n, struct profd_error *e)
{
    const struct clickhouse_address *a = n->address;
    const char *place = clickhouse_place(n->server);
    char line[LINE_MAX];
    unsigned long c[3];
    if (!a->cluster[0]) {
        return PROFD_OK;
    }
    TRY(init_ask(n, line, c, 3, e,
                 "SELECT uniqExact(shard_num), max(replica_num), uniqExact(host_name, port) FROM system.clusters WHERE "
                 "cluster = '%s' FORMAT TabSeparated",
                 a->cluster));
    FAIL_IF(!c[0], e, PROFD_REFUSED, "ClickHouse at %s has no cluster \"%s\" in its configuration (remote_servers)",
            place, a->cluster);
    FAIL_IF(c[1] > 1 && !a->replicated, e, PROFD_REFUSED,
            "a shard of cluster \"%s\" has %lu replicas: add replicated=1 to the URL of the tier", a->cluster, c[1]);
    if (c[2] != a->server_count) {
        return profd_error_set(e, PROFD_REFUSED,
                               "cluster \"%s\" has %lu servers, and the URL of the tier names %u: name all of them, "
                               "because each gets tables",
                               a->cluster, c[2], a->server_count);
    }
    if (!a->replicated) {
        return PROFD_OK;
    }
    /* A replicated table that cannot be made leaves a directory, which an old server cannot remove again. */
    TRY(init_ask(n, line, c, 2, e,
                 "SELECT countIf(macro IN ('shard', 'replica')), (SELECT count() FROM system.tables WHERE database = "
                 "'system' AND name = 'zookeeper') FROM system.macros FORMAT TabSeparated"));
    return c[0] == 2 && c[1]
               ? PROFD_OK
               : profd_error_set(e, PROFD_REFUSED,
                                 "ClickHouse at %s has no %s in its configuration, which replicated=1 "
                                 "needs",
                                 place, c[1] ? "macros \"shard\" and \"replica\"" : "Keeper or ZooKeeper");
}

/* Makes the database, and refuses one with tables of others. */
static enum profd_status init_make_database(struct init *n, struct profd_error *e)
{
    const char *database = n->address->database;
    char line[LINE_MAX];
    unsigned long c[4];
    TRY(init_ask(
        n, line, c, 4, e,
        "SELECT count(), countIf(name = 'layout'), (SELECT count() FROM system.databases WHERE name = '%s'), "
        "toUInt32(splitByChar('.', version())[1]) FROM system.tables WHERE database = '%s' FORMAT TabSeparated",
        database, database));
    FAIL_IF(c[0] && !c[1], e, PROFD_REFUSED,
            "the database \"%s\" at %s has %lu tables, but not those of profd: name another database in the URL of the "
            "tier",
            database, clickhouse_place(n->server), c[0]);
    n->durable = c[3] >= 21; /* fsync_after_insert came in 20.10; the table of such settings needs a GRANT */
    return c[2] ? PROFD_OK : init_ask(n, line, NULL, 0, e, "CREATE DATABASE IF NOT EXISTS `%s`", database);
}

/* Appends what a word in braces stands for. */
static bool init_add_word(const struct init *n, const char *word, size_t size, struct buffer *out)
{
    const struct clickhouse_address *a = n->address;
    static const char tree[] = "MergeTree ", suffix[] = "_local";
    const char *local = a->cluster[0] ? suffix : "";
    const int name = (int)size - (int)strlen(tree);
    if (!strncmp(word, "local}", 6)) {
        buffer_add_text(out, local);
    } else if (!strncmp(word, "cluster}", 8)) {
        buffer_add_text(out, a->cluster);
    } else if (!strncmp(word, "database}", 9)) {
        buffer_add_text(out, a->database);
    } else if (!strncmp(word, "durable}", 8)) {
        buffer_add_text(out, n->durable ? ", fsync_after_insert = 1, fsync_part_directory = 1" : "");
    } else if (name > 0 && !strncmp(word, tree, strlen(tree))) {
        if (a->replicated) {
            buffer_add_format(out, "ReplicatedMergeTree('/clickhouse/tables/{shard}/%s/%.*s', '{replica}')",
                              a->database, name, word + strlen(tree));
        } else {
            buffer_add_text(out, "MergeTree");
        }
    } else {
        return false;
    }
    return true;
}

/* Makes the statement of n bytes for this server; empty: it is not for it. */
static enum profd_status init_expand(const struct init *n, const char *text, size_t size, struct buffer *out,
                                     struct profd_error *e)
{
    const char *end = text + size;
    while (text < end) {
        const char *line = memchr(text, '\n', (size_t)(end - text)), *stop = line ? line + 1 : end;
        if (!strncmp(text, "--", 2) || *text == '\n') {
            text = stop;
        }
        while (text < stop) {
            const char *close = *text == '{' ? memchr(text, '}', (size_t)(stop - text)) : NULL;
            FAIL_IF(close && !init_add_word(n, text + 1, (size_t)(close - text) - 1, out), e, PROFD_INTERNAL,
                    "schema/tier.sql has an unknown word %.20s", text);
            if (!close) {
                buffer_add_char(out, *text);
            }
            text = close ? close + 1 : text + 1;
        }
    }
    buffer_add_char(out, 0);
    return out->failed ? profd_no_memory(e) : PROFD_OK;
}

/* Prepends which statement it was. */
static enum profd_status init_name(enum profd_status status, const char *statement, struct profd_error *e)
{
    return status == PROFD_REFUSED ? profd_error_wrap(e, status, "\"%.*s…\" fails", SHOWN_BYTES, statement) : status;
}

static enum profd_status init_make_tables(struct init *n, struct profd_error *e)
{
    const char *text = (const char *)embed_schema_tier_sql;
    enum profd_status status = PROFD_OK;
    for (const char *end; !status && (end = strstr(text, ";\n")); text = end + 2) {
        struct buffer b;
        buffer_init(&b, STATEMENT_MAX);
        /* A statement that names the cluster is for clusters. */
        if (n->address->cluster[0] || !memmem(text, (size_t)(end - text), "'{cluster}'", 11)) {
            status = init_expand(n, text, (size_t)(end - text), &b, e);
            char *reply = NULL;
            status = status ? status : init_name(clickhouse_ask(n->server, b.data, &reply, e), b.data, e);
            free(reply);
        }
        buffer_done(&b);
    }
    return status;
}

/* Makes the tables, after what is there was found to be of this layout and no newer one. */
static enum profd_status init_make(struct init *n, struct profd_error *e)
{
    char other[LINE_MAX];
    unsigned long newest;
    TRY(init_make_tables(n, e));
    TRY(init_ask(n, other, &newest, 1, e, "SELECT max(version) FROM layout FORMAT TabSeparated"));
    FAIL_IF(newest > VERSION, e, PROFD_NEWER,
            "the tables of database \"%s\" have version %lu, of a newer profd: this one knows %u", n->address->database,
            newest, VERSION);
    TRY(init_ask(n, other, NULL, 0, e, "SELECT described FROM layout WHERE described != '%s' FORMAT TabSeparated",
                 n->layout));
    return other[0] ? profd_error_set(e, PROFD_REFUSED,
                                      "the tables of database \"%s\" are for %s, and the URL of the tier says %s",
                                      n->address->database, other, n->layout)
                    : PROFD_OK;
}

/* Runs a query that finds nothing, or a row of numbers, for the sums of nothing. */
static enum profd_status init_try_query(struct init *n, struct buffer *query, struct profd_error *e)
{
    struct row_reader reply = {.bytes = NULL};
    char shown[SHOWN_BYTES + 1];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)query->size, query->failed ? "" : query->data);
    const enum profd_status status = init_name(clickhouse_read(n->server, query, &reply, e), shown, e);
    rows_close(&reply);
    buffer_init(query, STATEMENT_MAX);
    return status;
}

/* Drops a day, or marks, of no centre. */
static enum profd_status init_try_drop(struct init *n, bool marks, struct profd_error *e)
{
    const uint8_t nobody[STORE_CENTRE_SIZE] = {0};
    struct buffer b;
    buffer_init(&b, STATEMENT_MAX);
    (marks ? statement_drop_marks : statement_drop_day)(&b, nobody, 0, n->address->cluster[0]);
    return init_name(clickhouse_do(n->server, &b, e),
                     marks ? "ALTER TABLE mark DELETE" : "ALTER TABLE sum DROP PARTITION", e);
}

/* Runs every statement of the tier: inserts of no row, queries for a block that nothing has. */
static enum profd_status init_try(struct init *n, struct profd_error *e)
{
    static const char *const inserts[] = {STATEMENT_PUT_SERIES, STATEMENT_PUT_SUMS, STATEMENT_PUT_MANIFEST,
                                          STATEMENT_PUT_TOMBSTONES, STATEMENT_PUT_MARKS};
    static const char *const queries[] = {STATEMENT_COUNT_TOMBSTONES, STATEMENT_LIST_TOMBSTONES, STATEMENT_LAST_BLOCKS,
                                          STATEMENT_DIGEST_BLOCKS,    STATEMENT_LIST_BLOCKS,     STATEMENT_COUNT_MARKS,
                                          STATEMENT_LIST_MARKS};
    const struct store_stub stub = {.program = "00", .block = {.attempt = 1}}, *const stubs[] = {&stub, &stub};
    struct buffer b;
    buffer_init(&b, STATEMENT_MAX);
    for (size_t i = 0; i < sizeof inserts / sizeof *inserts; i++) {
        TRY(init_name(clickhouse_insert(n->server, inserts[i], "", 0, e), inserts[i], e));
    }
    if (n->address->replicated) {
        TRY(init_name(clickhouse_insert(n->server, STATEMENT_PUT_NOTHING, "", 0, e), STATEMENT_PUT_NOTHING, e));
    }
    statement_check_block(&b, &stub.block);
    TRY(init_try_query(n, &b, e));
    for (int part = STORE_ARCHIVE_COUNTS; part <= STORE_ARCHIVE_TOTALS; part++) {
        statement_fetch(&b, stubs, 2, (enum store_archive_part)part);
        TRY(init_try_query(n, &b, e));
    }
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct row_reader reply;
        TRY(init_name(clickhouse_take(n->server, queries[i], &reply, e), queries[i], e));
        rows_close(&reply);
    }
    statement_find_keys(&b, &stub.block);
    TRY(init_try_query(n, &b, e));
    statement_list_sums(&b, &stub.block, &stub, 1);
    TRY(init_try_query(n, &b, e));
    statement_find_series(&b, stubs, 2);
    TRY(init_try_query(n, &b, e));
    TRY(init_try_drop(n, false, e));
    return init_try_drop(n, true, e);
}

/* The first half on each server, before the second on any: in a cluster, tables of one server read those of others. */
static enum profd_status init_first(struct init *n, unsigned i, struct tier_made *out, struct profd_error *e)
{
    TRY(init_connect(n, i, false, e));
    (void)snprintf(out->servers[i].place, sizeof out->servers[i].place, "%s", clickhouse_place(n->server));
    char version[LINE_MAX];
    TRY(init_ask(n, version, NULL, 0, e, "SELECT version() FORMAT TabSeparated"));
    (void)snprintf(out->servers[i].version, sizeof out->servers[i].version, "%.*s",
                   (int)sizeof out->servers[i].version - 1, version);
    TRY(init_check_cluster(n, e));
    TRY(init_make_database(n, e));
    TRY(init_connect(n, i, true, e));
    return init_make(n, e);
}

static enum profd_status init_second(struct init *n, unsigned i, struct tier_made *out, struct profd_error *e)
{
    char line[LINE_MAX];
    unsigned long there;
    TRY(init_connect(n, i, true, e));
    TRY(init_try(n, e));
    TRY(init_ask(n, line, &there, 1, e, "SELECT count() FROM layout FORMAT TabSeparated"));
    out->servers[i].made = !there;
    return there
               ? PROFD_OK
               : init_ask(n, line, NULL, 0, e, "INSERT INTO layout (version, described, profd) VALUES (%u, '%s', '%s')",
                          VERSION, n->layout, PROFD_VERSION);
}

enum profd_status tier_init(const struct clickhouse_address *address, const char *ca,
                            const struct clickhouse_limits *limits, struct tier_made *out, struct profd_error *e)
{
    struct init n = {.address = address, .ca = ca, .limits = limits};
    struct tier_made made = {.count = address->server_count};
    enum profd_status status = PROFD_OK;
    (void)snprintf(n.layout, sizeof n.layout, "%s%s%s", address->cluster[0] ? "cluster=" : "one server",
                   address->cluster, address->replicated ? "&replicated=1" : "");
    FAIL_IF(!address->cluster[0] && address->server_count > 1, e, PROFD_REFUSED,
            "the URL of the tier names %u servers, but no cluster: add cluster=NAME", address->server_count);
    for (unsigned i = 0; i < 2 * made.count && !status; i++) {
        status = i < made.count ? init_first(&n, i, &made, e) : init_second(&n, i - made.count, &made, e);
    }
    clickhouse_close(n.server);
    if (!status) {
        *out = made;
    }
    return status;
}
