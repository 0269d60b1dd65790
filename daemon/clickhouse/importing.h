/* An import that is going on. Private to import*.c. */
#ifndef PROFD_CLICKHOUSE_IMPORTING_H
#define PROFD_CLICKHOUSE_IMPORTING_H

#include <string.h>

#include "clickhouse/engine_internal.h"
#include "store/export.h"

#define IMPORT_EPOCHS_AT_ONCE 500u

/* A program that was deleted (table deletion). */
struct import_deletion {
    uint32_t generation;
    int64_t before;
};

struct clickhouse_imported; /* clickhouse/import.h */
struct importing {
    struct store *from;
    struct clickhouse_store *to;
    struct arena *arena;
    struct clickhouse_imported *out;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number; /* of rows that follow from the database: below all that daemons give, and never smaller in a later
                        state of the database */
    struct store_amount removed;
    struct hashmap tenants;   /* int64_t: id in the database → uint32_t: id in the tables */
    struct hashmap slots;     /* identities of hosts → uint32_t */
    struct hashmap deletions; /* struct import_program → struct import_deletion */
    struct hashmap epochs;    /* epochs → uint64_t: sequence up to which the database has all */
    struct hashmap keys;      /* epochs and sequences of table arrival */
    struct buffer rows;       /* that are being made */
};

struct import_program {
    uint32_t uid;
    char build_id[BUILDID_TEXT_SIZE];
};

/* Memory for what an export calls; each gives rows to insert. */
typedef enum profd_status import_row(void *context, const struct store_cell *row, struct profd_error *e);

/* Exports a table and inserts what `each` has appended to x->rows, in blocks. */
enum profd_status import_table(struct importing *x, enum store_export what, import_row *each, const char *columns,
                               struct profd_error *e);
/* Inserts x->rows if there are many, or all. */
enum profd_status import_flush(struct importing *x, const char *columns, bool all, struct profd_error *e);

/* The tenant that has this id in the database, in the tables; the same of a user. DAMAGED: the database has none. */
enum profd_status import_map_tenant(struct importing *x, int64_t id, uint32_t *out, struct profd_error *e);
enum profd_status import_map_user(struct importing *x, uint32_t uid, uint32_t *out, struct profd_error *e);

/* A cell with n bytes; others are zeros. */
static inline void import_put_fixed(struct buffer *b, const struct store_cell *cell, size_t n)
{
    static const uint8_t zeros[64];
    rows_put_fixed(b, cell->bytes && cell->size == n ? cell->bytes : zeros, n);
}
static inline void import_put_text(struct buffer *b, const struct store_cell *cell)
{
    rows_put_bytes(b, cell->bytes, cell->bytes ? cell->size : 0);
}

/* In this order. */
enum profd_status import_people(struct importing *x, struct profd_error *e);
enum profd_status import_fleet(struct importing *x, struct profd_error *e);
enum profd_status import_objects(struct importing *x, struct profd_error *e);
enum profd_status import_hours(struct importing *x, struct profd_error *e);

#endif
