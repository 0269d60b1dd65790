/* Which rows a filter chooses. Only sqlite_read.c, sqlite_select.c and sqlite_blocks.c include this. */
#ifndef PROFD_STORE_SQLITE_SELECT_H
#define PROFD_STORE_SQLITE_SELECT_H

#include "store/sqlite_rollup.h"

/* A series that matches, with what its rows share. */
struct series_info {
    int64_t id, set;
    uint32_t uid, program;
    bool totals; /* it is given as totals by host: row_refs are of blocks */
    size_t build_count;
    const uint32_t *rows; /* of the builds, in load order; shared with the adjacent rows of the same set and user */
    struct store_build *builds; /* likewise */
    size_t label_count;
    const struct store_label *labels;
    bool begun; /* one of its rows was given or announced */
};

/* A row of table upload, rollup or sealed. */
struct row_ref {
    int64_t number; /* its place among the others */
    int64_t id;     /* of a sum; 0: a single upload */
    bool sealed;
    uint32_t series; /* index of the series_info */
};

/* Sums of blocks that are fetched after the transaction. Arrays live in the reading's arena. */
struct fetch_list {
    struct store_row *rows; /* what is known of them */
    struct store_stub *stubs;
    size_t count;
};

struct reading {
    struct store *s;
    struct arena *arena;
    const struct store_filter *filter;
    int64_t since, until; /* the filter's, as they can be had: see store_get_range */
    struct series_info *series;
    size_t series_count, series_capacity;
    struct row_ref *refs;
    size_t ref_count, ref_capacity;
    struct hashmap hosts; /* int64_t → text */
    bool totals_only;     /* other series are not read */
    size_t sealed_count;  /* of the refs */
    struct fetch_list sums, totals;
};

/* Finds the series that match, and the edges that their sums allow. Names of builds are left out. */
enum profd_status sqlite_select_series(struct reading *r, const struct store_scope *scope, struct profd_error *e);
/* Names the builds of all series found. */
enum profd_status sqlite_select_names(struct reading *r, struct profd_error *e);
/* Finds the rows of the series found, each upload in exactly one, by ascending number. */
enum profd_status sqlite_select_rows(struct reading *r, struct profd_error *e);
/* Has a host that the filter's matchers select totals in its range, with functions that are not kept by host? */
enum profd_status sqlite_has_totals(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    bool *any, struct profd_error *e);
/* Finds the series of a row id, with names; it becomes the only one. *found: false if it is not there. */
enum profd_status sqlite_select_one(struct reading *r, int64_t series, bool *found, struct profd_error *e);
/* Decodes a list of hosts of table rollup. The array lives in the arena a, names until the reading ends. */
enum profd_status sqlite_select_hosts(struct reading *r, struct arena *a, const uint8_t *bytes, size_t n,
                                      const char *const **hosts, size_t *count, struct profd_error *e);
/* Memory of a reading, from arena on. */
enum profd_status sqlite_reading_init(struct reading *r, struct store *s, const struct store_filter *filter,
                                      struct profd_error *e);
void sqlite_reading_done(struct reading *r);

/* Reads the columns of a block from this one on. */
void sqlite_block_take(sqlite3_stmt *q, int column, struct store_block *out);
#define SQLITE_BLOCK_COLUMNS 9
/* Computes the key of a sum's series (STORE_SERIES_KEY_SIZE). */
void sqlite_series_key_make(const struct store_block_sum *sum, uint8_t key[STORE_SERIES_KEY_SIZE]);
/* Reads the name of the user of a series, and its key. *name lives in the reading's arena. */
enum profd_status sqlite_series_key(struct reading *r, const struct series_info *info, const char **name,
                                    uint8_t key[STORE_SERIES_KEY_SIZE], struct profd_error *e);

#endif
