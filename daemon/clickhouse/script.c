#include "clickhouse/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word $NAME(TABLE, REST) of the text. */
struct word {
    int name_size, table_size, rest_size;
    const char *name, *table, *rest; /* rest: NULL if there is none */
    const char *end;                 /* behind it */
};

/* Reads the word at a '$'. False: the statement ends before its ')'. */
static bool word_read(const char *at, const char *end, struct word *w)
{
    const char *open = memchr(at, '(', (size_t)(end - at)), *p = open;
    size_t depth = 0;
    if (!open) {
        return false;
    }
    do {
        depth += *p == '(';
        depth -= *p == ')';
        p++;
    } while (depth > 0 && p < end);
    const char *table = open + 1, *comma = memchr(table, ',', (size_t)(p - table));
    *w = (struct word){.name = at + 1, .name_size = (int)(open - at - 1), .table = table, .end = p};
    w->table_size = (int)((comma ? comma : p - 1) - table);
    if (comma) {
        w->rest = comma + 1 + strspn(comma + 1, " ");
        w->rest_size = (int)(p - 1 - w->rest);
    }
    return depth == 0;
}

static bool word_is(const struct word *w, const char *name)
{
    return (size_t)w->name_size == strlen(name) && memcmp(w->name, name, strlen(name)) == 0;
}

/* Prints what the word stands for. */
static enum profd_status word_print(const struct word *w, const struct clickhouse_address *a, FILE *out,
                                    struct profd_error *e)
{
    const char *db = a->database, *part = a->cluster[0] ? "_local" : "";
    if (word_is(w, "local")) {
        (void)fprintf(out, "%s.%.*s%s", db, w->table_size, w->table, part);
    } else if (word_is(w, "copied")) {
        (void)fprintf(out, "%s.%.*s", db, w->table_size, w->table);
    } else if (word_is(w, "replacing") && w->rest && a->replicated) {
        (void)fprintf(out, "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/%s/%.*s%s', '{replica}', %.*s)",
                      db, w->table_size, w->table, part, w->rest_size, w->rest);
    } else if (word_is(w, "replacing") && w->rest) {
        (void)fprintf(out, "ReplacingMergeTree(%.*s)", w->rest_size, w->rest);
    } else if (word_is(w, "distributed") && w->rest) {
        if (a->cluster[0]) {
            (void)fprintf(out,
                          "CREATE TABLE IF NOT EXISTS %s.%.*s AS %s.%.*s%s ENGINE = Distributed('%s', '%s', "
                          "'%.*s%s', %.*s)",
                          db, w->table_size, w->table, db, w->table_size, w->table, part, a->cluster, db, w->table_size,
                          w->table, part, w->rest_size, w->rest);
        }
    } else {
        return profd_error_set(e, PROFD_INTERNAL, "a migration of ClickHouse has the unknown word $%.*s", w->name_size,
                               w->name);
    }
    return PROFD_OK;
}

/* Prints the statement of n bytes, with what its words stand for and without lines of comment. */
static enum profd_status statement_print(const char *text, size_t n, const struct clickhouse_address *a, FILE *out,
                                         struct profd_error *e)
{
    const char *end = text + n;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop + 1 : end;
        if (strncmp(text, "--", 2) == 0 || *text == '\n') {
            text = stop;
            continue;
        }
        for (; text < stop;) {
            struct word w;
            if (*text != '$') {
                (void)fputc(*text++, out);
                continue;
            }
            if (!word_read(text, end, &w)) {
                return profd_error_set(e, PROFD_INTERNAL, "a migration of ClickHouse has a '$' without \"NAME(…)\"");
            }
            const enum profd_status status = word_print(&w, a, out, e);
            if (status != PROFD_OK) {
                return status;
            }
            text = w.end;
        }
    }
    return PROFD_OK;
}

enum profd_status clickhouse_each_statement(const char *text, const struct clickhouse_address *address,
                                            enum profd_status (*each)(void *context, const char *statement,
                                                                      struct profd_error *e),
                                            void *context, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && *text) {
        const char *semicolon = strstr(text, ";\n");
        const size_t n = semicolon ? (size_t)(semicolon - text) : strlen(text);
        char *statement = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&statement, &size);
        if (!out) {
            return profd_no_memory(e);
        }
        status = statement_print(text, n, address, out, e);
        if (fclose(out) != 0 && status == PROFD_OK) {
            status = profd_no_memory(e);
        }
        if (status == PROFD_OK && statement[0]) {
            status = each(context, statement, e);
        }
        free(statement);
        text += n + (semicolon ? 2 : 0);
    }
    return status;
}
