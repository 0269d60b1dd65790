/* What the files of the engine share. */
#ifndef PROFD_CLICKHOUSE_ENGINE_INTERNAL_H
#define PROFD_CLICKHOUSE_ENGINE_INTERNAL_H

#include "clickhouse/client.h"
#include "clickhouse/engine.h"
#include "clickhouse/rows.h"
#include "core/buffer.h"
#include "core/hashmap.h"
#include "store/store_ops.h"

#define ENGINE_SERIES_SIZE 16
#define ENGINE_HOUR INT64_C(3600000000000) /* ns */
#define ENGINE_DAY (24 * ENGINE_HOUR)

/* What hosts are told of the centre, remembered for seconds. */
struct engine_greeting {
    bool read;
    int64_t since; /* s: when it was read */
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t backup;
    int64_t last;            /* ns: when a segment came last to this handle */
    int64_t hour;            /* of which series were counted, */
    int64_t counted_since;   /* s: when; 0: they were not */
    uint64_t counted, added; /* and how many segments came since then */
};

/* A server of the address, for inserts into tables of which all have all rows. */
struct engine_member {
    struct clickhouse *server; /* NULL: not connected */
    unsigned shard;            /* from 1; 0: not known */
};

struct clickhouse_store {
    struct store base;
    struct clickhouse_address address;
    char *ca; /* as store_clickhouse_open; NULL: the system's */
    struct clickhouse *server;
    struct engine_member members[CLICKHOUSE_SERVERS_MOST]; /* of a cluster */
    unsigned shards;                                       /* of the cluster; 0: not known */
    uint64_t writer;                                       /* random: names the counters of this handle */
    uint64_t number;                                       /* last number given */
    struct buffer statement;                               /* that is being printed */
    struct compacting *compacting;                         /* of store_compact; NULL: none */
    void (*compacting_free)(struct compacting *c);
    bool too_large; /* the reply to the last query would have been longer than the limit */
    /* Caches; a handle without them does the same, slower. */
    struct hashmap series;    /* hashes of series that this handle has inserted */
    struct hashmap changes;   /* (series, hour, generation) → count of table change */
    struct hashmap versions;  /* (build, uid) → count of table version */
    struct hashmap tenants;   /* ids of tenants → their names, which never change */
    struct hashmap awaited;   /* hosts and builds that table attestation has */
    uint64_t awaited_since;   /* ns: when that was empty */
    struct hashmap deletions; /* of programs of users: the generations that ingest has seen */
    uint32_t forgotten_day;   /* day of which the keys are moved from table arrival to table known; 0: none */
    unsigned forgotten_parts; /* how much of it is done */
    struct hashmap rows;      /* of rollups: what a row is the sum of → its bytes, as the server sent it (read.c) */
    struct hashmap row_hours; /* series and hours of which it has some */
    struct engine_greeting greeting;
    uint64_t
        storing_since; /* ms of CLOCK_MONOTONIC: when table state was told that this handle stores; 0: it was not */
    void (*end_storing)(struct clickhouse_store *s); /* NULL: it was not */
};

static inline struct clickhouse_store *engine_self(struct store *s)
{
    return (struct clickhouse_store *)s;
}

/* A number of table columns `number`: nanoseconds by the clock, greater than the one before. */
uint64_t engine_number(struct clickhouse_store *s);
/* A row has this number: the handle's next are greater, so that a row in its place counts, whatever the clock of the
 * daemon that made it says. */
static inline void engine_saw(struct clickhouse_store *s, uint64_t number)
{
    s->number = number > s->number ? number : s->number;
}

/* Runs a SELECT, printed from the format and with " FORMAT RowBinary" behind it, and opens its rows; rows_close frees
 * them. Table names need no database. Any failure of the server but FULL and NO_MEMORY is BUSY, "store: …": what the
 * server has stays unknown. */
enum profd_status engine_query(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same of what was appended to s->statement since engine_begin. */
void engine_begin(struct clickhouse_store *s);
enum profd_status engine_query_printed(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e);
/* A SELECT for one UInt64. */
enum profd_status engine_query_number(struct clickhouse_store *s, uint64_t *out, struct profd_error *e,
                                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Of a handle that answers from what can be asked (store_set_partial): whether a shard cannot be asked now. */
enum profd_status engine_find_missing(struct clickhouse_store *s, bool *missing, struct profd_error *e);
/* BUSY if the server that is asked was added to the cluster and has not got yet what every shard has whole: then that
 * it knows nothing of something says nothing. */
enum profd_status engine_check_complete(struct clickhouse_store *s, struct profd_error *e);
/* What the reply lacks if r->cut: PROTOCOL, of which a reader of `what` can tell what was asked. Else OK. */
enum profd_status engine_rows_check(const struct row_reader *r, const char *what, struct profd_error *e);

/* Inserts rows of RowBinary into columns: "table (a, b)". Nothing if there are none. On OK every shard, and with
 * replicas a majority of each shard's, has stored its part. */
enum profd_status engine_insert(struct clickhouse_store *s, const char *columns, const struct buffer *rows,
                                struct profd_error *e);

/* What stands for a table of which every shard has all rows, in a SELECT that wants what any shard has: an insert that
 * failed may have reached some. So every server of the cluster answers the same. */
#define ENGINE_UNION_SIZE (2 * CLICKHOUSE_NAME_MAX + 64)
const char *engine_name_union(const struct clickhouse_store *s, const char *table, char out[ENGINE_UNION_SIZE]);

/* Literals of SQL: a quoted text, unhex('…'), and a condition on column uid that holds what the scope has. */
void engine_put_quoted(struct buffer *b, const char *text);
void engine_put_unhex(struct buffer *b, const void *bytes, size_t n);
void engine_put_scope(struct buffer *b, const struct store_scope *scope);

/* Adds to the version (table version) of these builds for readers of the uid, and of lists. Called after what answers
 * say was changed, before that is acknowledged. builds may have one more than once. */
struct engine_touch {
    const char *build; /* borrowed */
    uint32_t uid;
};
enum profd_status engine_touch(struct clickhouse_store *s, const struct engine_touch *list, size_t n,
                               struct profd_error *e);
/* Bounds the memory of the handle's counters: above it, they begin again under another name. */
enum profd_status engine_bound_counters(struct clickhouse_store *s, struct profd_error *e);

/* Mutual exclusion of all writing handles, of any daemon, for rare decisions that no key can make. what: letters.
 * BUSY: others have had it for seconds. A lock of a daemon that died is free again after a minute. */
struct engine_lock {
    const char *what;
    int64_t since; /* ns: of the monotonic clock */
};
enum profd_status engine_lock_take(struct clickhouse_store *s, const char *what, struct engine_lock *lock,
                                   struct profd_error *e);
/* As engine_insert, if the lock is still held: BUSY if that took too long. */
enum profd_status engine_insert_locked(struct clickhouse_store *s, const struct engine_lock *lock, const char *columns,
                                       const struct buffer *rows, struct profd_error *e);
/* Gives status, of what was done meanwhile; a failure to release is none, since the lock becomes free by itself. */
enum profd_status engine_lock_give(struct clickhouse_store *s, const struct engine_lock *lock,
                                   enum profd_status status);

/* The id of the tenant of a name, made if there is none. LIMIT: there are too many. */
enum profd_status engine_find_tenant(struct clickhouse_store *s, const char *name, uint32_t *id, struct profd_error *e);
/* The name of a tenant, "" of an id that no tenant has; lives as long as the handle. From a cache, but once. */
enum profd_status engine_tenant_name(struct clickhouse_store *s, uint32_t id, const char **name, struct profd_error *e);

struct naming_build; /* clickhouse/naming.h */
/* What is known of the objects of n builds but their bytes: list has the build-ids; the rest is filled in and lives in
 * the arena. of: which hosts are asked and what is seen; its uids are not read. O(rows of the builds). */
enum profd_status engine_load_naming(struct clickhouse_store *s, const struct store_senders *of,
                                     struct naming_build *list, size_t n, struct arena *a, struct profd_error *e);
/* Compares the names of the objects that hosts attest of these builds, where none has a quorum. After
 * engine_load_naming; for naming_choose. engine_names_done frees what was read. */
enum profd_status engine_compare_names(struct clickhouse_store *s, struct naming_build *list, size_t n,
                                       struct profd_error *e);
void engine_names_done(struct naming_build *list, size_t n);
/* Removes the senders for which goes is true, and objects that had such and have no other, from tables and list. */
struct naming_object;
struct naming_sender;
enum profd_status engine_remove_objects(struct clickhouse_store *s, struct naming_build *b,
                                        bool (*goes)(const void *context, const struct naming_object *o,
                                                     const struct naming_sender *x),
                                        const void *context, struct profd_error *e);
/* Removes the objects of a build and what hosts attest of it. */
enum profd_status engine_forget_objects(struct clickhouse_store *s, const char *build_id, struct profd_error *e);
enum profd_status engine_forget_attestations(struct clickhouse_store *s, const char *build_id, struct profd_error *e);
/* Hosts shall attest builds that their segments name: enters into table attestation what it does not have. */
struct engine_awaited {
    const uint8_t *host; /* identity */
    uint32_t uid;        /* of its tenant */
    const char *build_id;
};
enum profd_status engine_await_objects(struct clickhouse_store *s, const struct engine_awaited *list, size_t n,
                                       struct profd_error *e);
/* Something was removed from table attestation, by any daemon, as after a program was deleted. */
void engine_forget_awaited(struct clickhouse_store *s);
/* Reports of the users from one to another on this build, and on those that were in one process with it, are new. */
enum profd_status engine_touch_object(struct clickhouse_store *s, const char *build_id, uint32_t from, uint32_t to,
                                      struct profd_error *e);

/* The verbs of store.h, engine_NAME, made from the list in store_ops.h. */
#define ENGINE_VERB(name, parameters, arguments) enum profd_status engine_##name parameters;
STORE_VERBS(ENGINE_VERB)
#undef ENGINE_VERB

#endif
