#include "clickhouse/import.h"

#include "clickhouse/importing.h"
#include "clickhouse/ledger.h"
#include "proto/hex.h"

#define FIRST_NUMBER 2u /* 1 is that of builds that hosts shall attest */
#define ROWS_BYTES (512u << 20)

static enum profd_status take_centre(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    if (row[0].size != sizeof x->incarnation) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has no incarnation");
    }
    memcpy(x->incarnation, row[0].bytes, sizeof x->incarnation);
    x->number = FIRST_NUMBER + (uint64_t)row[1].number;
    x->removed = (struct store_amount){(uint64_t)row[2].number, (uint64_t)row[3].number, (uint64_t)row[4].number};
    x->out->local = (uint64_t)row[5].number;
    return PROFD_OK;
}

/* What the database had removed when it was imported first. What it removes later stays in the tables, or is removed
 * there, too, with its program. */
static enum profd_status import_removed(struct importing *x, struct profd_error *e)
{
    struct ledger_row row = {.uid = STORE_TENANT, .number = x->number, .amount = x->removed};
    uint64_t known = 0;
    hex_put(row.program, x->incarnation, sizeof x->incarnation);
    const enum profd_status status = engine_query_number(
        x->to, &known, e, "SELECT toUInt64(count()) FROM removed WHERE program = '%s'", row.program);
    return status == PROFD_OK && known == 0 ? ledger_put(x->to, &row, 1, e) : status;
}

static enum profd_status import_all(struct importing *x, struct profd_error *e)
{
    enum profd_status status = store_sqlite_export(x->from, STORE_EXPORT_CENTRE, take_centre, x, e);
    if (status == PROFD_OK) {
        status = import_people(x, e);
    }
    if (status == PROFD_OK) {
        status = import_fleet(x, e);
    }
    if (status == PROFD_OK) {
        status = import_objects(x, e);
    }
    if (status == PROFD_OK) {
        status = import_removed(x, e);
    }
    return status == PROFD_OK ? import_hours(x, e) : status;
}

enum profd_status clickhouse_import(struct store *from, struct store *to, struct clickhouse_imported *out,
                                    struct profd_error *e)
{
    struct importing x = {.from = from, .to = engine_self(to), .arena = arena_new(0), .out = out};
    struct hashmap *const maps[] = {&x.tenants, &x.slots, &x.deletions, &x.epochs, &x.keys};
    *out = (struct clickhouse_imported){.hours = 0};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        hashmap_init(maps[i], 0);
    }
    buffer_init(&x.rows, ROWS_BYTES);
    enum profd_status status = x.arena ? store_sqlite_hold(from, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = import_all(&x, e);
        store_sqlite_let_go(from);
    }
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        hashmap_clear(maps[i]);
    }
    buffer_done(&x.rows);
    arena_free(x.arena);
    return status;
}
