/* Adds a batch of uploads to the ledger: one row for each series and hour, whatever the number of uploads. */
#include <string.h>

#include "store/sqlite_sums.h"

struct hour_key {
    int64_t series, hour;
};

void sqlite_tally_init(struct sqlite_tally *t)
{
    hashmap_init(&t->hours, 0);
    hashmap_init(&t->series, 0);
}

void sqlite_tally_done(struct sqlite_tally *t)
{
    hashmap_clear(&t->hours);
    hashmap_clear(&t->series);
}

/* Returns the sums of a key, zero on first use. */
static struct sqlite_sums *sums_of(struct hashmap *table, const void *key, size_t key_size, size_t builds)
{
    struct sqlite_sums *sums = hashmap_find(table, key, key_size), none;
    if (!sums) {
        sqlite_sums_init(&none, builds);
        sums = hashmap_put(table, key, key_size, &none, SQLITE_SUMS_SIZE(builds));
    }
    return sums;
}

struct sqlite_sums *sqlite_tally_sums(struct sqlite_tally *t, int64_t series, int64_t hour, size_t builds)
{
    struct hour_key key = {.series = series, .hour = hour};
    return sums_of(&t->hours, &key, sizeof key, builds);
}

/* Adds an hour's sums to the ledger and to those of its series. */
static enum profd_status flush_hour(struct store *s, struct sqlite_tally *t, const struct hour_key *key,
                                    const struct sqlite_sums *sums, struct profd_error *e)
{
    struct sqlite_sums stored;
    bool found;
    struct sqlite_sums *series = sums_of(&t->series, &key->series, sizeof key->series, sums->build_count);
    if (!series) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to sum up a batch of uploads");
    }
    sqlite_sums_add(series, sums);
    TRY(sqlite_ledger_load(s, key->series, key->hour, sums->build_count, &stored, &found, e));
    if (!found) {
        return sqlite_ledger_add(s, key->series, key->hour, sums, e);
    }
    bool older = sums->raw_since < stored.raw_since;
    sqlite_sums_add(&stored, sums);
    TRY(sqlite_ledger_set(s, key->series, key->hour, &stored, e));
    if (older) {
        TRY(sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(key->series), INTEGER(key->hour), INTEGER(stored.raw_since)),
                       e));
    }
    return PROFD_OK;
}

static enum profd_status flush_series(struct store *s, int64_t id, const struct sqlite_sums *sums,
                                      struct profd_error *e)
{
    struct sqlite_sums stored;
    bool found;
    TRY(sqlite_series_load(s, id, sums->build_count, &stored, &found, e));
    if (!found) {
        return profd_error_set(e, PROFD_INTERNAL, "series %lld vanished", (long long)id);
    }
    sqlite_sums_add(&stored, sums);
    return sqlite_series_save(s, id, &stored, e);
}

enum profd_status sqlite_tally_flush(struct store *s, struct sqlite_tally *t, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t position = 0;
    const void *key;
    for (const struct sqlite_sums *sums; status == PROFD_OK && (sums = hashmap_next(&t->hours, &position, &key));) {
        struct hour_key copy;
        memcpy(&copy, key, sizeof copy);
        status = flush_hour(s, t, &copy, sums, e);
    }
    position = 0;
    for (const struct sqlite_sums *sums; status == PROFD_OK && (sums = hashmap_next(&t->series, &position, &key));) {
        int64_t id;
        memcpy(&id, key, sizeof id);
        status = flush_series(s, id, sums, e);
    }
    sqlite_tally_done(t);
    return status;
}
