/* Storage, as domain verbs. No SQL crosses this interface.
 *
 * Threads: a process has at most one handle opened for writing, which belongs to one thread; each reader thread has a
 * handle of its own. Every verb takes the scope that it may read. Times are nanoseconds since the epoch, UTC.
 *
 * A verb that fails has changed nothing. A failed commit may still be found after a crash, so every retry must have the
 * same id. */
#ifndef PROFD_STORE_STORE_H
#define PROFD_STORE_STORE_H

#include "core/arena.h"
#include "core/rows.h"
#include "core/spread.h"
#include "store/blocks.h"
#include "store/foreign_blocks.h"
#include "store/offers.h"
#include "store/segments.h"
#include "store/tombstones.h"

struct store_filter;
struct store_pattern;
/* The users whose data a verb may read or remove: all, or one. */
struct store_scope {
    bool all;     /* the data of all users and tenants */
    uint32_t uid; /* if not all: the data of this user */
};
/* Returns whether the scope contains the data of this user. */
static inline bool store_scope_has(const struct store_scope *scope, uint32_t uid)
{
    return scope->all || scope->uid == uid;
}
/* Returns whether it contains the data of a tenant or of all tenants. */
static inline bool store_scope_has_tenants(const struct store_scope *scope)
{
    return scope->all || store_is_tenant(scope->uid);
}
/* Returns whether both contain the same users. */
static inline bool store_scope_equal(const struct store_scope *a, const struct store_scope *b)
{
    return a->all == b->all && (a->all || a->uid == b->uid);
}

struct store_label {
    const char *name, *value;
};

struct store_build {
    struct buildid id;
    const char *name;
    uint64_t nanoseconds, calls; /* in this upload: Σ ticks/rate of the build's histograms; Σ calls of its functions */
};

#define STORE_INSTANCE_SIZE 16
#define STORE_ENDED_DAYS 1          /* time for which an ended instance is remembered */
#define STORE_LIVE_PART 10u         /* slices of live processes become wider above this part of raw_bytes */
#define STORE_GROWN_MOST (1u << 20) /* limit of the bytes of counts of an upload that grows */

/* How an upload that is sent again is recognised. Senders of our own count their uploads. The profiles of other tools
 * have one id each, which is remembered for a day, or none. */
enum store_id_kind {
    STORE_ID_SEQUENCE, /* sender and sequence */
    STORE_ID_OF_DAY,   /* uid and sender; remembered for STORE_ID_HOURS */
    STORE_ID_NONE,     /* it is stored each time */
};
#define STORE_ID_HOURS 24

/* A validated upload. Arrays and strings are borrowed for the call. */
struct store_upload {
    char host[33]; /* machine-id, or "" */
    uint32_t uid;  /* of the sender, as the kernel reports it */
    enum store_id_kind ids;
    uint8_t sender[UPLOAD_SENDER_SIZE];
    uint32_t sequence;
    int64_t received, start, end; /* window already validated; start ≤ end */
    uint32_t inexact, processes_started;
    uint32_t program; /* index into builds */
    size_t build_count;
    const struct store_build *builds; /* in load order */
    size_t label_count;
    const struct store_label *labels; /* ascending by name, no name twice */
    const uint8_t *counts;            /* stored encoding (proto/counts.h), validated */
    size_t counts_size;
    uint64_t ticks, calls, stack_ticks; /* stack_ticks: Σ over all nodes of stacks */
    uint32_t group;                     /* random group of its process, < 16; the same for all uploads of a process */

    /* A harvest of a live process: the counts since the durable snapshot, and the new snapshot. It has no sender and
     * sequence. If counts_size is 0, only uid, received and the following members are used. To store a process or a
     * reason without counts, use an encoding without counts. */
    bool live;
    uint8_t instance[STORE_INSTANCE_SIZE]; /* random; with the uid it identifies the process */
    uint64_t base;           /* generation of the snapshot from which the difference was computed; 0: there was none */
    const uint8_t *snapshot; /* the new snapshot; the store does not interpret it */
    size_t snapshot_size;
    bool ended;        /* the process has ended: it is forgotten after STORE_ENDED_DAYS, unless it is harvested again */
    uint64_t children; /* children that began to count since base: each is missing until a harvest of it names this
                          process */
    const uint8_t *parents; /* instances of the processes that count this one among their children, one after the other,
                               if no earlier harvest named them. They must be of the same user or of user 0 */
    size_t parent_count;
    int64_t since; /* ns: its counts began then or later; 0: no later state of this database can have forwarded them */
    bool told;     /* the sums are inexact by the reasons of this harvest: no child is reported as missing any more */
    bool marks; /* the reasons of this harvest report its missing children. They are still missing; the process runs */
};

/* Limit of the ranges of sequences that are stored above a sender's contiguous mark. An upload that would exceed it
 * gets STORE_TOO_MANY_GAPS. It is not stored and its id remains new, so a retry after the missing uploads is counted
 * once. */
#define STORE_ID_RANGES 1024u
/* Only STORED and RELABELLED have stored anything. RELABELLED: the series is new, and a label has more new
 * values in this hour than its user may use (LIMIT_LABEL_VALUES_…), so that the value is stored as STORE_OTHER, and
 * INEXACT_LABEL_LEFT_OUT says so. What was counted of an hour is forgotten when the store is closed. STALE: base of a
 * harvest is not the stored generation; read the snapshot again. OVER_SHARE: the counts of a harvest stay in the memory
 * of the process until a later harvest stores them. Until then the instance counts as not read (STORE_UNREAD), so its
 * reports are not exact. A harvest without ticks and calls never exceeds the share, because it may state why something
 * is not exact. */
enum store_outcome {
    STORE_STORED,
    STORE_RELABELLED,
    STORE_DUPLICATE,
    STORE_TOO_MANY_GAPS,
    STORE_OVER_SHARE,
    STORE_STALE
};

#define STORE_OTHER "other"

/* Share of the space: a user may store at most (limit − bytes of the other users) × percent / 100. An item that would
 * exceed it gets STORE_OVER_SHARE: it is not stored and its id remains new. Items of other users in the same call are
 * stored. */
struct store_share {
    uint64_t limit;   /* bytes; 0: no bound */
    unsigned percent; /* 100 or more: no bound */
};
void store_set_share(struct store *s, const struct store_share *share);
struct store_use {
    uint64_t bytes, others; /* counts of uploads, sums, snapshots, symbols that no other user has sent, and rows that
                               refer to them */
    uint64_t most;          /* that the user may store; UINT64_MAX: no limit */
};
/* Reads how much a user stores. O(number of users). */
enum profd_status store_get_use(struct store *s, uint32_t uid, struct store_use *use, struct profd_error *e);
/* Sets the sentence for an item of this user that exceeded the share; returns FULL. */
enum profd_status store_share_refuse(struct store *s, uint32_t uid, struct profd_error *e);

/* Stores n uploads in one durable transaction. On OK, all are synced, and outcomes[i] states whether the id (host, uid,
 * sender, sequence) was new. The first content of an id is stored. sequence ≥ 1. On FULL, IO, DAMAGED, NO_MEMORY or
 * BUSY nothing is stored and outcomes are undefined. After IO or DAMAGED the handle never writes again, and every
 * writing verb returns that status; after FULL and NO_MEMORY it may succeed later.
 *
 * The difference of a harvest is added to the instance's upload for the slice of time that contains its end, and for
 * its series. If that upload does not exist, was rolled up or was removed, a new upload is created, and counted in the
 * ledger. A slice is one minute of the clock; store_compact widens slices to 5, 15 and 60 minutes. Sums are as if the
 * contents of an upload had arrived at once; window, processes and reasons are those of all its harvests, and arcs are
 * in order of arrival. The stored snapshot has generation base + 1. Cost: O(size of the difference + size of the
 * upload) for each harvest. */
enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e);

/* Reads whether this id was counted. Only host, uid, sender and sequence are used. For uploads that are refused now but
 * were accepted when they came first, so that a repeat gets the same answer. */
enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e);

/* --- Live processes --- */

/* Reads the durable snapshot of an instance, ended or not. generation 0: there is none, and *snapshot is NULL;
 * otherwise *snapshot is a new block that the caller frees. */
enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e);

struct store_instance {
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
    uint64_t generation;
    int64_t seen;          /* ns: received of the latest harvest */
    int64_t missing_since; /* ns: since when children are missing that no upload marks; 0: there are none */
    bool ended;
    const uint8_t *snapshot; /* borrowed until each returns */
    size_t snapshot_size;
};
/* Calls each with every instance of this name, of all users, ended or not. each returns false to stop. */
enum profd_status store_each_namesake(struct store *s, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      bool (*each)(void *context, const struct store_instance *i), void *context,
                                      struct profd_error *e);
/* Calls each with all users' instances that have not ended or have missing children, in no order, until it is false. */
enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e);

/* Sets the number of the daemon's run for this handle; no other run has it; 0: none. An instance that has not ended and
 * was not harvested in this run counts as not read: its counts since its latest harvest are not stored. */
void store_set_run(struct store *s, uint64_t run);
/* Sets a part of the salt of epochs, used if the database has no salt of its own. 0: it has. */
void store_set_salt(struct store *s, uint64_t salt);
enum store_living_kind {
    STORE_UNREAD, /* not read, and with counts that may lie before until (since is ignored: they may be counting now).
                     Also missing children, if they are missing since a time before until */
    STORE_READ,   /* the latest harvest is of this run and between since and until of the filter */
};
struct store_living {
    uint64_t processes;
    int64_t earliest, latest; /* ns: of their latest harvests; 0: none */
};
/* Reads the processes of this kind that have not ended and have a latest upload that matches the filter (build_id NULL:
 * any build). None without a run. Call it before the uploads are read: a process that is harvested in between is then
 * reported as not read although it is, and never the reverse, and the uploads include everything up to its latest
 * harvest. O(log n) if there are none, otherwise O(processes of the kind). */
enum profd_status store_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                   const struct store_filter *filter, struct store_living *out, struct profd_error *e);

/* One delivery of an executable. encoded is the validated encoding of core/object.h; it is empty if
 * the worker failed, and note then states why. The same content from another uid only adds the sender. Variants with
 * equal hashes but different bytes are stored separately, because a worker controlled by a hostile file can claim any
 * variant. */
struct store_object {
    struct buildid id;
    char variant[65]; /* "" if the worker failed */
    uint32_t uid;
    bool trusted;       /* may name functions for all users */
    bool by_operator;   /* uid is a tenant, and one of its operators has sent it */
    bool grows;         /* it replaces what uid has sent of the build: it has all symbols of that */
    unsigned has_names; /* 1: of exported functions only; 2: of all; 3: and lines; 0: none */
    const uint8_t *encoded;
    size_t encoded_size;
    const uint8_t *bounds; /* ranges for ingest's address check (core/bounds.h); the store does not interpret them */
    size_t bounds_size;
    const char *name, *note;
    int64_t received;
    /* If a host sent it: the host's identity (STORE_HOST_SIZE bytes), and the SHA-256 of encoded (STORE_HASH_SIZE
     * bytes). The store then sets uid to that of the host's tenant. Otherwise NULL. */
    const uint8_t *host, *hash;
};
/* Stores a delivery. FULL, with the sentence of store_share_refuse and without effect on the store's health: the sender
 * would exceed the share. For a host also FORBIDDEN: the host has sent no counts of the build. LIMIT: the host has too
 * many objects (offers.h). CONFLICT: an operator or another host has sent an object before, so this one is not used;
 * the offer is recorded, and the sentence names both. */
enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e);

/* Reads whether the executable of a build need not be requested for this uid: there is a trusted variant or one sent by
 * the uid, or a failure sent by the uid. */
enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e);

/* Reads the encoded object that names functions in a sum to which these senders contributed: a trusted variant, or one
 * that all of them sent. A tenant has sent those with names that its operators sent; if these sent none, the first that
 * a host sent (offers.h). Objects with names come before those without, then those whose senders are all tenants
 * with operators, then trusted ones, then the latest delivered. NOT_FOUND if there is none; then, too, *naming is set.
 * *bytes is a new block that the caller frees. */
enum profd_status store_get_object(struct store *s, const struct store_senders *of, const char *build_id,
                                   uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e);
/* Reads the object that a host offers of a build: a trusted variant, or one that every user of the build has sent. As
 * store_get_object. */
enum profd_status store_get_shared_object(struct store *s, const char *build_id, uint8_t **bytes, size_t *size,
                                          struct profd_error *e);

/* Reads the bounds of the object that store_get_object would return for this uid alone; *size is 0 if there is none.
 * Borrowed until the next store_put_object or store_get_bounds. Cached by the writer. */
enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e);

/* A build is visible if an upload in scope names it. An each must not call a verb of the same handle. Finds the full id
 * of the visible build that text names: an exact id of any length, otherwise a unique prefix of at least 4 characters.
 * NOT_FOUND; AMBIGUOUS: the sentence names two builds; REFUSED: text is neither an id nor a prefix of at least 4
 * characters. */
enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e);

/* Calls each with visible builds by ascending build-id, those greater than after ("": all), at most limit. each returns
 * false to stop. */
enum profd_status store_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                   bool (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e);
/* Calls each once, with the row of one build. NOT_FOUND if it is not visible. */
enum profd_status store_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                  void (*each)(void *context, const struct build_row *row), void *context,
                                  struct profd_error *e);
/* Calls each with the labels of uploads of the build (NULL: of all builds), ascending by name and value. */
enum profd_status store_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e);
/* Calls each with the other builds of processes that loaded this build, by ascending build-id. */
enum profd_status store_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                       bool (*each)(void *context, const char *companion, const char *name),
                                       void *context, struct profd_error *e);

enum store_match { STORE_MATCH_EQUAL, STORE_MATCH_NOT_EQUAL, STORE_MATCH_LIKE, STORE_MATCH_UNLIKE };
struct store_matcher {
    const char *name, *value; /* an absent label equals "" */
    enum store_match match;
    struct store_pattern *pattern; /* of LIKE and UNLIKE: the compiled value; otherwise NULL */
    /* What an absent label equals instead of "": the label `instead`, else `absent`. NULL: there is none. */
    const char *instead, *absent;
};

/* Compiles a regular expression for LIKE and UNLIKE: PCRE2 over UTF-8, which must match the whole value, as in
 * Prometheus; a dot matches every character. The pattern lives in the arena and may be used by one thread. BAD_QUERY,
 * with the offset: it is not valid, too large, or longer than LIMIT_PATTERN. */
enum profd_status store_pattern_compile(struct arena *a, const char *text, struct store_pattern **out,
                                        struct profd_error *e);
/* LIMIT, with the pattern in the sentence: matching a value exceeded the limits of steps, depth or memory in limits.h.
 * Every selection since it was compiled is then invalid. */
enum profd_status store_pattern_judge(const struct store_filter *filter, struct profd_error *e);

/* Selects uploads: of programs, or of every process that loaded the build; with labels that satisfy every matcher; with
 * a window that ends within [since, until) (0: no limit). If a limit lies inside an hour of a matching series that was
 * rolled up, it is moved outward to the border of the hour, for all rows; likewise inside a slice of a live process.
 * store_get_range returns the limits used. */
struct store_filter {
    const char *build_id;
    bool as_program; /* only where the build is the main executable */
    bool by_host; /* gives series without the label `host` as totals by host, with the label; the range is that of their
                     hours. Otherwise matchers of the label `host` do not select these series, and store_get_marks
                     reports INEXACT_HOST_TOTALS */
    bool spread;  /* sums have their spread */
    bool metadata;  /* the caller ignores counts, spread and hosts of sums: sums of blocks come without them */
    bool arcs_only; /* the caller reads only the arcs of counts: sums of blocks may come without the rest and hosts */
    int64_t since, until, widest; /* widest: longest time of a sum, ns, at least an hour; 0: any. Needs since */
    size_t matcher_count;
    const struct store_matcher *matchers;
};

struct share; /* core/shares.h */

/* A stored upload, or a sum of uploads of one series. Everything is borrowed until each returns. */
struct store_row {
    uint64_t commit;      /* ascending in order of acceptance; never reused. A sum has that of its first upload */
    bool rolled;          /* a sum: counts have the encoding of core/rollup.h; otherwise that of proto/counts.h */
    uint64_t version, id; /* with `rolled` they identify the row's content, for caches. Of an upload version is 0 */
    int64_t width;    /* ns: the time that contains the ends of everything in the row. A sum: an hour, a day or (0) all
                         time; a live process: its slice; another upload: 0 */
    uint64_t uploads; /* number of uploads in it. 0: this announces a series whose first row comes later; only the
                         commit of that row, uid, program, builds, labels and series are set */
    uint32_t uid;
    const char *host; /* of an upload; "" if unknown. Of a sum NULL; it has hosts */
    size_t host_count;
    const char *const *hosts;
    size_t label_count;
    const struct store_label *labels; /* of the series */
    int64_t start, end;               /* earliest start and latest end */
    uint32_t inexact;
    uint64_t processes_started;
    struct random_groups groups; /* of these processes */
    uint32_t group, program;     /* group: of the process of an upload, < RANDOM_GROUPS; of a sum 0 */
    const uint8_t *spread;       /* of a sum, if the filter asks for it, for rollup_decode_spread. NULL: none */
    size_t spread_size, build_count;
    const struct store_build *builds; /* ids and names; nanoseconds and calls are 0 */
    const uint8_t *counts;            /* of a total NULL */
    const struct share *shares;       /* of a total: of each build; calls are those of arcs that begin or end in it */
    uint64_t calls;                   /* of a total */
    size_t counts_size;
    uint64_t series; /* number of the (uid, program, builds, labels) set: all its rows have the same builds */
};
/* Calls each with the matching rows. Each upload is in exactly one of them. They come by ascending commit; those that
 * are fetched from blocks come last, in any order. Every series first appears in the order of its smallest commit. The
 * rows are as coarse as since and until allow: one sum for all time, days, hours, then single uploads. each returns OK
 * to continue; any other status stops and is returned. UNAVAILABLE: a sum is in a block, and there is no tier, or it
 * does not answer. */
enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    enum profd_status (*each)(void *context, const struct store_row *row,
                                                              struct profd_error *e),
                                    void *context, struct profd_error *e);

/* Reads the limits of time that store_each_upload would use now, for ETags and for the report. Never fetches. */
enum profd_status store_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  int64_t *since, int64_t *until, struct profd_error *e);

/* State of the data on which an answer depends, for ETags. number counts the uploads of all users, so no reader may see
 * it; of a scope of several users it is a hash of the number of each. */
struct store_epoch {
    uint64_t number;
    uint64_t salt; /* random; drawn for each database and each restore, so that no pair repeats */
};

/* Reads the epoch of a build. number grows if and only if a report on the build may change: by uploads in scope, by
 * live processes that are read or not, by objects of the build or its companions. It is 0 if the build is not visible.
 * O(log n). */
enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id,
                              struct store_epoch *epoch, struct profd_error *e);
/* Reads the epoch of the list of builds. */
enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, struct store_epoch *epoch,
                                  struct profd_error *e);

/* Checks that the files of this handle still have their names. IO: a file was removed or replaced, or the handle has
 * failed before; it never writes again. Writing verbs check before they write and after their commit. Microseconds. */
enum profd_status store_look(struct store *s, struct profd_error *e);

#define STORE_LARGEST_USERS 20u
/* Totals for /metrics and status. accepted = stored + retired. */
struct store_totals {
    uint64_t builds, builds_without_names;
    int64_t nameless_since;         /* ns: first count of the build without names that was stored first; 0: none */
    uint64_t uploads, ticks, calls; /* accepted */
    uint64_t retired_uploads, retired_ticks, retired_calls; /* uploads removed by retention or by delete */
    uint64_t raw_uploads, raw_bytes, rollups;
    uint64_t file_bytes, wal_bytes, free_bytes;
    int64_t clock; /* ns: the latest time that store_remove_ids was given, to ten minutes; 0: unknown */
    /* What users store, as in store_get_use. */
    uint64_t users, user_bytes; /* number of users with stored data, and the bytes of all */
    size_t largest_count;
    struct store_user {
        uint32_t uid;
        uint64_t bytes;
    } largest[STORE_LARGEST_USERS]; /* the users that store most, descending */
};
enum profd_status store_get_totals(struct store *s, struct store_totals *t, struct profd_error *e);

/* Removes ids that were last seen before the given time, which is LIMIT_ID_DAYS before a trusted now, among the next
 * 50,000 senders of a round, up to 20,000 ids of a day that are older than STORE_ID_HOURS, and up to 2,000 ended
 * instances that were last seen before STORE_ENDED_DAYS. Stores that trusted now (struct store_totals, clock). The
 * writer calls it periodically. */
enum profd_status store_remove_ids(struct store *s, int64_t before, struct profd_error *e);

/* --- Upkeep (writing handle): each call is one transaction of about 20 ms, so that uploads continue in between --- */

struct store_policy {
    int64_t raw_age; /* ns: uploads that were accepted longer ago are rolled up */
    /* The oldest single uploads are rolled up while all single uploads exceed this. While slices of live processes
     * exceed 1/STORE_LIVE_PART of it, they become wider, the oldest and narrowest first. */
    uint64_t raw_bytes;
    int64_t keep_age;     /* ns: days that ended longer ago are removed; 0: never */
    uint64_t keep_bytes;  /* the oldest days are removed while the content of the database and what it released to the
                             tier are larger; 0: never */
    uint64_t relay_bytes; /* limit of kept acknowledged outgoing uploads */
    int64_t relay_age;    /* ns: time for which they are kept, if relay_bytes allows */
};
struct store_progress {
    bool more;        /* call again */
    uint64_t uploads; /* uploads that this call rolled up or removed */
    uint64_t rows;    /* sums written or removed */
};
/* Rolls up uploads, one (series, hour) after the other. One transaction writes a sum and removes its inputs. Completed
 * days become daily sums, and these one sum of all time. Answers do not change, except for limits of time inside an
 * hour. Data that cannot be decoded is skipped, and store_verify reports it. now must have been checked for jumps of
 * the clock. */
enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e);
/* Removes days that exceed the policy, oldest first. Ids are kept, so that a late repeat is not counted. Because of
 * size, only days before the one of now are removed. Also removes rows of deleted builds, and symbols of builds that
 * have not been used for keep_age, or, above keep_bytes, for a day. */
enum profd_status store_retire(struct store *s, const struct store_policy *policy, int64_t now,
                               struct store_progress *progress, struct profd_error *e);
/* Removes every upload in scope whose program is the build, and the symbols of the build if nothing else in the
 * store names it. Every reader sees this when the call returns; store_retire returns the space. NOT_FOUND; REFUSED: the
 * build is only a library; the sentence names a program. *uploads is the number of removed uploads. */
enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e);
/* Returns about this number of bytes of free pages to the file system. */
enum profd_status store_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e);

/* --- Outgoing uploads of a host (segments.h), on the writing handle; each call is one transaction --- */

/* Adds uploads that this handle accepts from now on to outgoing uploads of this epoch. Those of earlier epochs do not
 * change. Call it at every start, and with a new epoch if another machine has this one. Writes nothing itself. Without
 * this call nothing is forwarded, and existing outgoing uploads stay. since: ns, the start of the daemon; counts that
 * began earlier are held (segments.h). */
enum profd_status store_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t since,
                                    struct profd_error *e);
/* Releases or withdraws the counts that are held since the start (segments.h), before anything is sealed. If the
 * database went back, *apart is true, and its numbers continue behind those that the centre knows, so that this is
 * noticed once. Does nothing if nothing is held. */
enum profd_status store_relay_resolve(struct store *s, const struct store_verdict *verdict, bool *apart,
                                      struct profd_error *e);
/* Records the state of the centre. centre: its name; NULL: it has none. REFUSED if the host sends to another centre. If
 * the incarnation has changed, the centre was restored and may lack acknowledged uploads. All kept uploads are then
 * sealed again, and removed ones are sent as SEGMENT_DROPPED; *again is their number. backup: the latest backup of the
 * centre contains all numbers up to this one. */
enum profd_status store_relay_meet(struct store *s, const uint8_t centre[STORE_CENTRE_SIZE],
                                   const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup, uint64_t *again,
                                   struct profd_error *e);
/* Forgets the centre and the uploads kept for it. The next centre that answers is then the centre of this host. Sealed
 * uploads may have reached the old centre: they are withdrawn, and the new centre gets their keys as SEGMENT_WITHDRAWN.
 * *withdrawn: the number of accepted uploads in them. NOT_FOUND if nothing was ever forwarded. */
enum profd_status store_relay_move(struct store *s, uint64_t *withdrawn, struct profd_error *e);
/* Seals outgoing uploads with ids up to through, oldest first, at most LIMIT_SEGMENTS_AT_ONCE, and until
 * LIMIT_SEGMENTS_SEALED are not acknowledged. A sealed one never changes. */
enum profd_status store_seal_segments(struct store *s, uint64_t through, int64_t now, uint64_t *sealed,
                                      struct profd_error *e);
/* Calls each with the sealed unacknowledged uploads with ids greater than after, ascending. each returns false to stop.
 */
enum profd_status store_each_segment(struct store *s, uint64_t after,
                                     bool (*each)(void *context, const struct store_segment *segment), void *context,
                                     struct profd_error *e);
/* Records that the centre has committed these uploads. Nothing changes for an upload that is not sealed, or if the
 * incarnation is not that of the last store_relay_meet. */
enum profd_status store_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                             int64_t now, struct profd_error *e);
/* Removes acknowledged uploads that exceed the policy: those that are old enough and in the centre's backup, and the
 * oldest while they exceed relay_bytes. Also folds parts of open ones. */
enum profd_status store_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                      struct store_progress *progress, struct profd_error *e);
/* Reads the state of forwarding. On any handle. */
enum profd_status store_get_relay(struct store *s, struct store_relay *out, struct profd_error *e);
/* Reads only number and held. O(1). */
enum profd_status store_get_relay_head(struct store *s, struct store_relay *out, struct profd_error *e);

/* --- Uploads of hosts at a centre (arrivals.h). On the writing handle, each call is one transaction --- */

/* Admits hosts. If a host's database gave greater numbers before, it was restored from a backup: out[i].restored is
 * true, and the hour of now is marked, because counts of the host's live processes may be missing in it. */
enum profd_status store_admit_hosts(struct store *s, const struct store_arrival *list, size_t n,
                                    struct store_admission *out, struct profd_error *e);
void store_set_detail(struct store *s, const struct store_detail *detail);

/* Counts uploads of hosts; receipts[i] is the outcome of each. A repeated key with the same digest changes nothing. A
 * repeated key with another digest is not counted, and its hour is marked. The hour of an upload that was dropped or
 * cannot be read is also marked. An upload counts in the hour of its end. Uploads that belong to many large sums are
 * not all stored at once: receipts[i].later. On an error nothing is stored, as with store_put_uploads, and receipts are
 * undefined. */
enum profd_status store_put_segments(struct store *s, const struct store_delivery *list, size_t n,
                                     struct store_receipt *receipts, struct profd_error *e);
/* Records offers of symbols (offers.h). out[i] states whether the offer is accepted, and whether the host shall send
 * the object, because its tenant has none. */
enum profd_status store_offer(struct store *s, const struct store_offer *list, size_t n, struct store_offered *out,
                              struct profd_error *e);
/* Lists at most `most` builds that the host shall offer now, the longest overdue first. On any handle. */
enum profd_status store_wanted(struct store *s, const uint8_t host[STORE_HOST_SIZE], int64_t now, struct buildid *out,
                               size_t most, size_t *count, struct profd_error *e);
/* Reads the state of a centre. On any handle. */
enum profd_status store_get_centre(struct store *s, struct store_centre *out, struct profd_error *e);
/* Reads the members that an answer to a host needs; counts of hosts, sums and quarantine are 0. series may be a second
 * old. O(1), except for one pass over the series and hosts of two hours in each second. On the writing handle. */
enum profd_status store_get_greeting(struct store *s, struct store_centre *out, struct profd_error *e);
/* Calls each with every host that has connected, by name. each returns false to stop. On any handle. */
enum profd_status store_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                  void *context, struct profd_error *e);
/* Returns the origin of what this user has counted. */
static inline enum store_origin store_origin_of(uint32_t uid)
{
    return store_is_tenant(uid) ? STORE_OF_HOSTS : STORE_OF_LOCAL_USERS;
}
/* Reads the reasons of the marked hours of the filter, as bits of enum message_inexact, for a sum of these origins.
 * Only hosts that the filter's matchers of the label `host` select are considered. On any handle. */
enum profd_status store_get_marks(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  enum store_origin of, uint32_t *reasons, struct profd_error *e);
/* Calls each with the marks of all origins that store_get_marks considers, except HOST_TOTALS, in no order. each
 * returns false when out of memory. On any handle. */
enum profd_status store_each_mark(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  bool (*each)(void *context, const struct store_mark *mark), void *context,
                                  struct profd_error *e);

/* --- Tokens of the HTTP API, and their tenants --- */

#define STORE_NAME_MOST 64u /* bytes of the name of a token or tenant, and of a pattern of names */
#define STORE_TOKENS_MOST 65536u
#define STORE_TOKEN_HASH 32u

/* Rights. STORE_MAY_ADMIN includes sending symbols that name functions for the tenant. */
enum { STORE_MAY_READ = 1, STORE_MAY_WRITE = 2, STORE_MAY_ADMIN = 4 };

struct store_token {
    uint64_t id; /* never used again */
    char name[STORE_NAME_MOST + 1];
    unsigned rights;                  /* sum */
    bool all;                         /* for all users and tenants: uid is UINT32_MAX, tenant is "all" */
    uint32_t uid;                     /* of the tenant */
    char tenant[STORE_NAME_MOST + 1]; /* name */
    char hosts[STORE_NAME_MOST + 1];  /* pattern of the names of hosts; "": the host is name */
    bool has_hash;                    /* false: a proxy names the token */
    uint8_t hash[STORE_TOKEN_HASH];   /* SHA-256 of the token */
    int64_t expires, created;         /* ns; expires 0: never */
};

/* Adds a token, and its tenant if it does not exist. Sets id and uid. REFUSED: a token has this name. LIMIT: there are
 * STORE_TOKENS_MOST tokens, or too many tenants. On the writing handle, one transaction, like store_remove_token. */
enum profd_status store_add_token(struct store *s, struct store_token *token, struct profd_error *e);
/* Removes a token; *id is its number. NOT_FOUND: no token has this name. */
enum profd_status store_remove_token(struct store *s, const char *name, uint64_t *id, struct profd_error *e);
/* Calls each with every token, in the order of their addition. each returns false to stop. On any handle. */
enum profd_status store_each_token(struct store *s, bool (*each)(void *context, const struct store_token *t),
                                   void *context, struct profd_error *e);

/* --- Counts of the watch list --- */

#define STORE_WATCH_DOCUMENT 8192u /* bytes */

/* The store does not interpret keys and documents. */
struct store_watch_row {
    const char *key;
    int64_t changed;      /* ns */
    const char *document; /* JSON; NULL, to store_put_watch_rows only: the row is removed */
};

/* Stores or replaces n rows by key, in one transaction. A document has at most STORE_WATCH_DOCUMENT bytes.
 * Neither deletes nor retention remove rows. On the writing handle. */
enum profd_status store_put_watch_rows(struct store *s, const struct store_watch_row *rows, size_t n,
                                       struct profd_error *e);
/* Calls each with every row, by ascending key. The row is borrowed until each returns. each returns false to stop. On
 * any handle. */
enum profd_status store_each_watch_row(struct store *s, bool (*each)(void *context, const struct store_watch_row *row),
                                       void *context, struct profd_error *e);

/* Backup, on the writing handle: a copy that is consistent as of the last step, while uploads continue. */
struct store_backup;
/* Begins a backup, which must end before the store is closed. path must not exist (CANT_CREATE). The file has mode 0600
 * and appears under its name when it is complete and synced. */
enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e);
/* Copies about this number of bytes. *left: remaining bytes, 0 when done. */
enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e);
/* Ends the backup; an unfinished file is removed. Accepts NULL. */
void store_backup_end(struct store_backup *b);

/* Verification, on any handle: computes sums from the stored data and compares. */
struct store_cursor {
    uint64_t series;
    int64_t hour;
    int64_t page;   /* of the file: the next to be read; pages come before objects, */
    int64_t object; /* the next, and objects before series */
    bool pages_done;
    bool objects_done;
    bool done; /* everything was verified since the cursor was zeroed */
};
/* Verifies the next pages of the file, then the next objects, then the next (series, hour) pairs, about 100 ms of work
 * in one snapshot. Every page and every object must have its checksum. The single uploads and the hour's sum must equal
 * the ledger (its ticks of stacks, too), the groups the totals, the day's sum its hours, the sum of all time its days.
 * Once a round, ledger and retired uploads must equal what was accepted, and every live process must have a snapshot
 * and name no upload but its own. Calls mismatch with a sentence for every difference. */
enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e);

/* Opens the database at path; the writer creates it or brings it to the newest schema version. The file is unchanged
 * on failure: CONFIG (a directory, a device, a write-ahead log without its database), CANT_CREATE (no permission),
 * DAMAGED (not a profd database, or damaged), NEWER, NO_INPUT (no file to read), IO. Reading handles never write or
 * checkpoint. In one process, open the writer before the readers. */
enum profd_status store_sqlite_open_writer(const char *path, struct store **out, struct profd_error *e);
enum profd_status store_sqlite_open_reader(const char *path, struct store **out, struct profd_error *e);
/* Reads the whole file; calls fault with a sentence for each fault of its structure, at most 100. Takes minutes for
 * many gigabytes: for restore, not for a running daemon. */
enum profd_status store_sqlite_check(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                                     struct profd_error *e);

/* Adds page checksums to a database that another program made from a damaged one. No other process may have the file
 * open. */
enum profd_status store_sqlite_seal(const char *path, struct profd_error *e);

/* Returns the number of a page that this handle could not read because of its checksum; 0: none. */
int64_t store_sqlite_bad_page(const struct store *s);

/* Errors that a writing handle met. Only the database changes them, so no sender, process or worker can stop the
 * writer. */
struct store_health {
    bool damaged;             /* the error was damage */
    bool failed;              /* a verb had an input/output error or found damage; permanent */
    bool full;                /* a verb found no space, and no verb has stored anything since */
    uint64_t changes;         /* incremented by each of these outcomes */
    struct profd_error error; /* why it failed or is full */
};
/* Lives as long as the handle. Read it on the thread that calls the verbs. */
const struct store_health *store_get_health(const struct store *s);

/* Checks the header (100 bytes) and the size of a database file that no process writes, without opening the database.
 * DAMAGED: it is not the header of a profd database, or states another size; NEWER, IO. path is for sentences. */
enum profd_status store_sqlite_judge(int fd, const char *path, uint64_t size, struct profd_error *e);
/* Returns whether the file has the header of a profd database of a known version, so that any fault in it is damage.
 * Must not be called while it is open. */
bool store_sqlite_is_ours(const char *path);
/* Adds a file that must keep its name as long as the writing handle may write: path, which fd has open. At most one. */
enum profd_status store_sqlite_watch(struct store *s, const char *path, int fd, struct profd_error *e);
/* Gives a restored database a new salt, so that no ETag of the original database is used again, and a new
 * incarnation, so that hosts send again the uploads that it may lack. The hours since the backup are marked for local
 * users, whose processes do not send again. If it forwards uploads, a SEGMENT_DROPPED for each hour since the backup
 * tells the centre that counts may be missing. For a writing handle on which no verb is
 * running, like the next three functions. */
enum profd_status store_sqlite_renew(struct store *s, struct profd_error *e);
/* Gives it a new salt only. */
enum profd_status store_sqlite_resalt(struct store *s, struct profd_error *e);
/* Commits without a change, so that the log is not empty; an empty log then means a lost one. */
enum profd_status store_sqlite_touch(struct store *s, struct profd_error *e);
/* Identifies the stored state: two databases with the same salt are equal if number and text are equal. number never
 * decreases. IO: the handle has failed, and the file may lack commits. */
#define STORE_STATE_TEXT 192
struct store_sqlite_state {
    int64_t salt, number;
    char text[STORE_STATE_TEXT]; /* printable ASCII without spaces */
};
enum profd_status store_sqlite_describe(struct store *s, struct store_sqlite_state *out, struct profd_error *e);
/* Accepts NULL. */
void store_close(struct store *s);

#endif
