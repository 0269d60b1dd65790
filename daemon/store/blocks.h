/* Sums of past days that leave the database for the tier, and what stays of them. Included by store/store.h only.
 *
 * A block is the sums of one day that moved together. Its number is unique in this database and never reused. For each
 * sum that moved, the database keeps a stub: everything but the counts, their spread and the hosts. A sum is either in
 * the database or in a block that is released, never in both. */
#ifndef PROFD_STORE_BLOCKS_H
#define PROFD_STORE_BLOCKS_H

#include "store/segments.h"

/* The first bytes of SHA-256 over tenant, program, number of builds, builds, number of labels, and name and value of
 * each label: numbers have 8 bytes, little-endian, and texts begin with their length. */
#define STORE_SERIES_KEY_SIZE 16

struct buffer;
struct store;
struct store_build;
struct store_label;
struct store_progress;

enum store_block_state {
    STORE_BLOCK_OPEN = 1, /* being written; its day's sums do not change. A new attempt begins after each failure */
    STORE_BLOCK_WRITTEN,  /* complete in the tier; sums are being released */
    STORE_BLOCK_SEALED,   /* all of its sums are released */
    STORE_BLOCK_GONE,     /* the database has nothing of it any more: the tier may drop it */
    STORE_BLOCK_ARRIVING, /* foreign_blocks.h: being mirrored; no reader sees anything of it */
    STORE_BLOCK_MIRRORED, /* visible */
    STORE_BLOCK_LEAVING,  /* its rows are being removed; no reader sees anything of it */
    STORE_BLOCK_LISTED,   /* another centre has it, and nothing of it is here yet */
};

struct store_block {
    uint64_t number;                   /* in the tier, of its centre */
    uint64_t row;                      /* in this database; the same, unless another centre sealed it */
    uint8_t centre[STORE_CENTRE_SIZE]; /* that sealed it */
    uint32_t attempt;                  /* ≥ 1: rows of earlier attempts in the tier are not part of it */
    int64_t day;                       /* since the epoch */
    enum store_block_state state;
    uint64_t sums, bytes; /* released so far. bytes: of counts, spread and the database's list of hosts */
    int64_t sealed;       /* ns: when it was written; 0: it was not */
};

/* Identifies a sum in the tier. */
struct store_stub {
    struct store_block block; /* centre, number, attempt and day are set */
    const char *program;      /* build-id; borrowed */
    uint8_t series[STORE_SERIES_KEY_SIZE];
    int level;      /* 0: an hour, 1: a day */
    int64_t at;     /* number of the hour or day */
    uint64_t bytes; /* of counts, spread and the database's list of hosts; about those of totals if these are fetched */
};

/* What the tier keeps of a sum. Borrowed until each returns. totals: by host, in the store's encoding; of no bytes if
 * the series has the label `host`, or is of a local user. */
struct store_bulk {
    const uint8_t *counts, *spread, *totals;
    size_t counts_size, spread_size, totals_size;
    size_t host_count;
    const char *const *hosts; /* machine-ids */
};

/* A sum of an open block as it is written to the tier. Borrowed until each returns. */
struct store_block_sum {
    struct store_stub stub;
    struct store_bulk bulk;
    const char *tenant; /* its name; of a local user "uid N" */
    size_t build_count;
    const struct store_build *builds; /* ids and names */
    size_t label_count;
    const struct store_label *labels;
    uint64_t number, uploads, processes, ticks, calls;
    int64_t first, last; /* ns */
    uint32_t inexact;
    const uint8_t *groups, *shares; /* in the database's encoding; groups: of no bytes if unknown; shares: of level 0 */
    size_t groups_size, shares_size;
};

enum store_archive_part {
    STORE_ARCHIVE_COUNTS, /* and hosts */
    STORE_ARCHIVE_SPREAD, /* and these two */
    STORE_ARCHIVE_TOTALS, /* alone */
};

/* Where blocks are read from. fetch calls each once for each of the n stubs, in any order, with the stub's index, and
 * returns OK only if it did so for all of them. UNAVAILABLE, TIMEOUT: the tier cannot be reached; NOT_FOUND: a sum is
 * not there. part: what is wanted of them. Any thread that reads with the handle. */
struct store_archive {
    enum profd_status (*fetch)(void *context, const struct store_stub *stubs, size_t n, enum store_archive_part part,
                               enum profd_status (*each)(void *each_context, size_t stub, const struct store_bulk *bulk,
                                                         struct profd_error *e),
                               void *each_context, struct profd_error *e);
    void *context;
};
/* Sets where this handle reads blocks from; borrowed. Without it, reading a stub is UNAVAILABLE. */
void store_set_archive(struct store *s, const struct store_archive *archive);

/* Writing handle. True: past days are sealed. Then no sums of all time are made. Call it at every start. */
void store_set_tier(struct store *s, bool tier);

/* Writing handle. Begins a block of the oldest day that ended before `before` (ns), has sums of hours and of the day
 * only, and has no block that was written since then. If a block is OPEN, its next attempt begins; if one is WRITTEN,
 * it is returned unchanged. *found false: nothing is to be sealed now. There is at most one block that is OPEN or
 * WRITTEN, and its day's sums are frozen: what comes late is added after it is SEALED. Deleting or removing data of the
 * day of an OPEN block also begins its next attempt. */
enum profd_status store_block_begin(struct store *s, int64_t before, struct store_block *block, bool *found,
                                    struct profd_error *e);
/* Place of the next sum of an open block; zeroed: the first. */
struct store_block_cursor {
    int64_t series, at;
    int level;
    bool done; /* everything was read */
};
/* Any handle. Calls each with the next sums of an open block, by ascending series, level and time, until about `bytes`
 * bytes were given. One short read transaction. CONFLICT: it is not OPEN, or in another attempt. */
enum profd_status
store_block_read(struct store *s, const struct store_block *block, struct store_block_cursor *cursor, size_t bytes,
                 enum profd_status (*each)(void *context, const struct store_block_sum *sum, struct profd_error *e),
                 void *context, struct profd_error *e);
/* Any handle. Appends the keys of the uploads of hosts that the open block may contain (block_keys.h), but of those
 * only that a host may still send again: what is older is in every database that hosts talk to. Short read
 * transactions. O(arrivals of the last days). CONFLICT: it is not OPEN, or in another attempt. */
enum profd_status store_block_keys(struct store *s, const struct store_block *block, struct buffer *keys,
                                   struct profd_error *e);
/* Writing handle. The block is complete in the tier: OPEN becomes WRITTEN. CONFLICT: it is not OPEN, or in another
 * attempt. */
enum profd_status store_block_written(struct store *s, const struct store_block *block, int64_t now,
                                      struct profd_error *e);
/* Writing handle. Releases sums of the written block, series by series, each in one transaction with its stubs; about
 * 20 ms a call. The last call makes it SEALED. Answers do not change. */
enum profd_status store_block_release(struct store *s, struct store_progress *progress, struct profd_error *e);
/* Writing handle. Forgets a block that is GONE, after the tier has dropped it. */
enum profd_status store_block_forget(struct store *s, uint64_t number, struct profd_error *e);
/* Any handle. Calls each with every block, by ascending number. each returns false to stop. */
enum profd_status store_each_block(struct store *s, bool (*each)(void *context, const struct store_block *block),
                                   void *context, struct profd_error *e);
struct store_tier_totals {
    uint64_t days_sealed, days_waiting; /* waiting: days that ended before `before` and have sums here */
    uint64_t sums, bytes;               /* that are released */
    int64_t sealed_to;                  /* ns: every day that ended before then has been sealed; 0: none has */
    uint64_t newest;                    /* number that was given to a block last; 0: none was */
    uint64_t gone;                      /* blocks that are GONE and not forgotten */
    int64_t first;                      /* the oldest day that is sealed; none is: the day of `before` */
};
enum profd_status store_get_tier_totals(struct store *s, int64_t before, struct store_tier_totals *out,
                                        struct profd_error *e);

#endif
