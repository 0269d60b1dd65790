/* A batch of segments that arrives. Private to arrive*.c. */
#ifndef PROFD_CLICKHOUSE_ARRIVING_H
#define PROFD_CLICKHOUSE_ARRIVING_H

#include "clickhouse/fleet.h"
#include "clickhouse/ledger.h"
#include "clickhouse/segment.h"
#include "store/incoming.h"

/* What was, or is being, written of a key. */
struct arrival {
    uint64_t number;
    uint8_t digest[SEGMENT_DIGEST_SIZE];
    bool known; /* of old ones, the digest is not */
    bool fresh; /* its rows were made by this batch */
    enum store_segment_outcome outcome;
    int64_t received;
    uint32_t slot, hour, uid, generation;
    char program[BUILDID_TEXT_SIZE]; /* "": nothing was counted */
    uint8_t series[ENGINE_SERIES_SIZE];
    struct store_amount amount;
};

/* A segment that has rows but no arrival, because a daemon ended in between. It stays where it is, even if the clock or
 * the name of its host is another now: sums may have it. */
struct stored {
    struct segment_row head; /* program is in the batch's arena */
    uint32_t groups;         /* that are there, as bits */
};

/* The host that has an epoch. */
struct epoch_owner {
    uint8_t host[STORE_HOST_SIZE];
    uint64_t number;
};

/* Sequences of an epoch of which only that they arrived is known. */
struct known_range {
    struct known_range *next;
    uint64_t first, last, number;
};

/* A day of a program that was removed. */
struct removed_key {
    char program[BUILDID_TEXT_SIZE];
    uint32_t uid, generation, day;
};

struct deletion {
    uint32_t generation;
    int64_t before; /* ns: what ended before then is gone */
};

/* Something that counts in an hour. */
struct counted {
    struct counted *next;
    const char *program;
    uint8_t series[ENGINE_SERIES_SIZE];
    uint32_t hour, generation, sent;
};

/* Rows for a table that is divided by days: a block may have no more than 100 of them. */
struct engine_rows {
    const char *columns; /* as engine_insert wants them */
    struct buffer rows;
    int64_t days[90];
    size_t day_count;
};

struct arriving {
    struct clickhouse_store *s;
    struct arena *arena, *scratch; /* scratch: of one segment */
    const struct store_delivery *list;
    size_t n;
    bool detail;
    struct hashmap hosts;     /* identity → struct engine_host * */
    struct hashmap changed;   /* identities of hosts of which the row has changed */
    struct hashmap epochs;    /* epoch → struct epoch_owner */
    struct hashmap ranges;    /* epoch → struct known_range * */
    struct hashmap keys;      /* epoch, sequence → struct arrival */
    struct hashmap deletions; /* uid, program → struct deletion */
    struct hashmap stored;    /* epoch, sequence → struct stored */
    struct hashmap removed;  /* struct removed_key → uint64_t: segments of the day with numbers up to this are gone */
    struct hashmap settled;  /* epoch, sequence → struct arrival, of rivals */
    struct hashmap rivals;   /* epoch, sequence → "": another daemon stored it at the same time, elsewhere */
    uint32_t first_day;      /* days since the epoch; earlier ones are being removed. 0: none is */
    struct counted *counted; /* hours that have changed */
    struct engine_touch *touched;
    uint32_t touched_count, touched_capacity;
    const struct store_delivery **fresh; /* new keys, in their order */
    size_t fresh_count;
    uint32_t marked_uids[64]; /* tenants of hosts that were marked */
    size_t marked_count;
    bool quarantined;
    struct engine_awaited *awaited; /* builds that hosts shall attest */
    uint32_t awaited_count, awaited_capacity;
    struct engine_rows groups;
    struct buffer series, epoch_rows, marks, quarantine;
};

/* A key as the tables keys and arrival have it. */
#define ARRIVAL_KEY_SIZE (SEGMENT_EPOCH_SIZE + sizeof(uint64_t))
static inline void arrival_key(const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence,
                               uint8_t out[ARRIVAL_KEY_SIZE])
{
    memcpy(out, epoch, SEGMENT_EPOCH_SIZE);
    memcpy(out + SEGMENT_EPOCH_SIZE, &sequence, sizeof sequence);
}

/* Loads what is known of the hosts, epochs, keys and programs of the batch. */
enum profd_status arriving_load(struct arriving *x, struct profd_error *e);
/* The deletion of a program, or NULL. */
const struct deletion *arriving_deletion(const struct arriving *x, uint32_t uid, const char *program);
static inline uint32_t arriving_generation(const struct arriving *x, uint32_t uid, const char *program)
{
    const struct deletion *d = arriving_deletion(x, uid, program);
    return d ? d->generation : 0;
}

/* Was the day of a segment that has arrived removed since? */
bool arriving_was_removed(const struct arriving *x, const struct arrival *v);

/* Finds keys of the batch, which has inserted its rows, that are also in another series or hour, since another daemon
 * was given them at the same time, when a host had another name, or its clock another difference: x->rivals. */
enum profd_status arriving_load_rivals(struct arriving *x, struct profd_error *e);
/* Loads what has arrived of these, into x->settled, and the rows of others that are there, into x->stored. */
enum profd_status arriving_load_settled(struct arriving *x, struct profd_error *e);
/* Adds an hour that has changed, and its builds. */
bool arriving_count(struct arriving *x, const char *program, const uint8_t series[ENGINE_SERIES_SIZE], uint32_t hour,
                    uint32_t generation, uint32_t sent);
bool arriving_touch(struct arriving *x, const char *build, uint32_t uid);

/* Would a block with a row of this day have too many days or bytes? */
bool engine_rows_are_full(const struct engine_rows *rows, int64_t day);
/* The row's day is about to be added: inserts what is there if the block would have too many days or bytes. */
enum profd_status engine_rows_reserve(struct clickhouse_store *s, struct engine_rows *rows, int64_t day,
                                      struct profd_error *e);
enum profd_status engine_rows_flush(struct clickhouse_store *s, struct engine_rows *rows, struct profd_error *e);

/* Inserts the rows of series that are waiting; and then all that the batch has, in the order that arrive.c states.
 * yield adds the rows of a segment that has a rival once more, with a greater number, so that these count: where it has
 * arrived, else where the other daemon has put it, which may know nothing of this one. Its arrival is the same then. */
typedef enum profd_status arriving_yield(struct arriving *x, const struct store_delivery *d, struct profd_error *e);
enum profd_status arriving_insert_series(struct arriving *x, struct profd_error *e);
enum profd_status arriving_insert(struct arriving *x, arriving_yield *yield, struct profd_error *e);

/* The hash that names a series: of its user, program, builds and labels. */
void engine_hash_series(const struct store_upload *u, uint8_t out[ENGINE_SERIES_SIZE]);

#endif
