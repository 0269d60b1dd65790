/* Storage, as domain verbs. No SQL crosses this interface. Engines: sqlite (the daemon's), memory (tests).
 *
 * Threads: a process has at most one handle opened for writing, which belongs to one thread; each reader thread has a
 * handle of its own. Every verb takes the scope that it may read. Times are nanoseconds since the epoch, UTC.
 *
 * A verb that fails has changed nothing. A failed commit may still be found after a crash, so every retry must have the
 * same id. */
#ifndef PROFD_STORE_STORE_H
#define PROFD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/process_groups.h"
#include "core/provenance.h"
#include "core/rows.h"
#include "proto/buildid.h"
#include "proto/message.h"
#include "proto/status.h"
#include "store/arrivals.h"
#include "store/segments.h"

struct store;
struct store_filter;
struct store_pattern;
struct store_scope {
    bool all;     /* the data of all users */
    uint32_t uid; /* else this user's */
};

struct store_label {
    const char *name, *value;
};

struct store_build {
    struct buildid id;
    const char *name;
    uint64_t nanoseconds, calls; /* this upload's share: Σ ticks/rate of the build's histograms; Σ calls into it */
};

/* A validated upload. Arrays and strings are borrowed for the call. */
struct store_upload {
    char host[33]; /* machine-id, or "" */
    uint32_t uid;  /* of the sender, from the kernel */
    uint8_t sender[UPLOAD_SENDER_SIZE];
    uint32_t sequence;
    int64_t received, start, end; /* window already validated (DECISIONS 30); start ≤ end */
    uint32_t inexact, processes_started;
    uint32_t program; /* index into builds */
    size_t build_count;
    const struct store_build *builds; /* in load order */
    size_t label_count;
    const struct store_label *labels; /* ascending by name, no name twice */
    const uint8_t *counts;            /* stored encoding (proto/counts.h), validated */
    size_t counts_size;
    uint64_t ticks, calls;
    uint32_t group; /* of its process, < 16: random, the same for all uploads of a process (DECISIONS 29) */
};

/* Of a sender's sequences a contiguous mark and at most STORE_ID_RANGES ranges above it are kept. An upload that would
 * open one range more gets STORE_TOO_MANY_GAPS: it is not stored and its id stays new, so that a retry after the
 * missing ones came is counted once (nothing is ever forgotten or counted on a guess). */
#define STORE_ID_RANGES 1024u
enum store_outcome { STORE_STORED, STORE_DUPLICATE, STORE_TOO_MANY_GAPS, STORE_OVER_SHARE };

/* A user may store at most percent of what the others leave of limit: (limit − bytes of others) × percent / 100. What
 * would exceed it gets STORE_OVER_SHARE: nothing of it is stored, its id stays new; other users' items of the same call
 * are stored. */
struct store_share {
    uint64_t limit;   /* bytes; 0: no bound */
    unsigned percent; /* 100 or more: no bound */
};
void store_set_share(struct store *s, const struct store_share *share);
struct store_use {
    uint64_t bytes,
        others; /* counts of uploads, sums, snapshots, symbols that no other user sent, and rows that refer to them */
    uint64_t most; /* that the user may have; UINT64_MAX: no bound */
};
/* What an older version stored counts as the migration gets to it. O(number of users). */
enum profd_status store_get_use(struct store *s, uint32_t uid, struct store_use *use, struct profd_error *e);
/* FULL and the sentence for an item of this user that was over its share. */
enum profd_status store_share_refuse(struct store *s, uint32_t uid, struct profd_error *e);

/* Stores n uploads in one durable transaction: on OK, all are fsynced and outcomes[i] says whether the id
 * (host, uid, sender, sequence) was new. sequence ≥ 1. The first content wins. FULL, IO, DAMAGED, NO_MEMORY, BUSY:
 * nothing is stored and outcomes mean nothing. After IO or DAMAGED the handle never writes again and says so; FULL and
 * NO_MEMORY recover by themselves. */
enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e);

/* Was this id counted? Only host, uid, sender and sequence are looked at. For what is refused now but was accepted when
 * it first came: a repeat gets the same answer. */
enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e);

/* --- Live processes (DECISIONS 23): what was counted since the durable snapshot is added, and the new snapshot is
 * durable with it --- */

#define STORE_INSTANCE_SIZE 16
#define STORE_ENDED_DAYS 1          /* that one which has ended is remembered */
#define STORE_LIVE_PART 10u         /* of raw_bytes: when live processes exceed this, their slices become wider */
#define STORE_GROWN_MOST (1u << 20) /* bytes of counts to which more is added; beyond that a new upload is begun */
struct store_harvest {
    struct store_upload
        upload; /* the difference; sender and sequence are unused. counts_size 0: only uid and received are used (to
                   store a process or a reason without counts, use an encoding without counts) */
    uint8_t instance[STORE_INSTANCE_SIZE]; /* random, identifies the process; the key together with the uid */
    uint64_t base;           /* generation of the snapshot that the difference was taken from; 0: there was none */
    const uint8_t *snapshot; /* the new one; the store does not look into it */
    size_t snapshot_size;
    bool ended; /* nothing more is expected: it is forgotten after STORE_ENDED_DAYS; until then a harvest revives it */
    uint64_t children; /* that began to count since base: each is missing until a harvest of it names this process */
    const uint8_t *parents; /* names of the processes that count this one among their children, one after the other, if
                             * no earlier harvest named them. They must be of the same user or of user 0 */
    size_t parent_count;
    bool told; /* this harvest is itself the reason why sums are not exact: no child is missing any more */
};
/* OVER_SHARE: nothing is stored; what was counted stays in the process' memory and comes with a later harvest. Until
 * then the instance is one that is not read (STORE_UNREAD), so that no report is exact by mistake. One that brings
 * neither ticks nor calls is never over the share: it may say why something is not exact. */
enum store_harvest_outcome { STORE_HARVESTED, STORE_STALE, STORE_HARVEST_OVER_SHARE };

/* Adds the differences of n harvests in one durable transaction.
 *
 * Each difference is added to the instance's upload for the slice of time that contains upload.end, and for its series.
 * If that upload does not exist, was rolled up or was removed, a new upload is created, and counted in the ledger. A
 * slice is one minute of the clock; store_compact widens slices to 5, 15 and 60 minutes. Sums are as if the contents of
 * an upload had arrived at once; window, processes and reasons are those of all its harvests, and arcs are in order of
 * arrival.
 *
 * Returns PROFD_OK if the transaction was committed. Then outcomes[i] states whether base was the stored generation:
 * STALE items have changed nothing, and the caller must read their snapshots again. A stored snapshot has generation
 * base + 1. An instance may be in the list once. Errors as store_put_uploads. Cost: O(size of the difference + size of
 * the upload) for each harvest. */
enum profd_status store_put_harvests(struct store *s, const struct store_harvest *harvests, size_t n,
                                     enum store_harvest_outcome *outcomes, struct profd_error *e);

/* The durable snapshot, ended or not. generation 0: there is none, *snapshot is NULL; else a new block that the caller
 * frees. */
enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e);

struct store_instance {
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
    uint64_t generation;
    int64_t seen;          /* ns, received of the latest harvest */
    int64_t missing_since; /* ns: children are missing since; 0: none are */
    bool ended;
    const uint8_t *snapshot; /* borrowed until each returns */
    size_t snapshot_size;
};
/* Every instance of this name, of all users, ended or not; each returns false to stop. */
enum profd_status store_each_namesake(struct store *s, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      bool (*each)(void *context, const struct store_instance *i), void *context,
                                      struct profd_error *e);
/* Every instance that has not ended, or of which children are missing, of all users, in no promised order; each returns
 * false to stop. */
enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e);

/* A run of the daemon has a number that no other has; 0: it has none. It belongs to the handle. An instance that has
 * not ended and was not harvested in this run is not read: what it counted since its latest harvest is not stored. */
void store_set_run(struct store *s, uint64_t run);
/* A part of the salt of the epochs that this handle gives, if the database has none of its own (DECISIONS 46). 0: it
 * has. */
void store_set_salt(struct store *s, uint64_t salt);
enum store_living_kind {
    STORE_UNREAD, /* that are not read, and could have counted before until. since of the filter means nothing: they
                   * may be counting now. And children that are missing: those since before until */
    STORE_READ,   /* the latest harvest is of this run, and between since and until of the filter */
};
struct store_living {
    uint64_t processes;
    int64_t earliest, latest; /* ns: of their latest harvests; 0 if there are none */
};
/* The processes of this kind that have not ended and have a latest upload that matches the filter (build_id NULL: any
 * build). None without a run. O(log n) if there are none, otherwise O(processes of the kind). Must be called before the
 * uploads are read: a process that is found again in between is then reported once too often rather than too rarely,
 * and everything stored up to its latest harvest is among the uploads. */
enum profd_status store_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                   const struct store_filter *filter, struct store_living *out, struct profd_error *e);

/* One delivery of an executable (DECISIONS 11, 12). encoded is core/object.h's encoding, validated; empty when the
 * worker failed, and note says why. The same content from another uid only adds the sender. Equal variants with
 * different bytes stay apart: a worker owned by a hostile file can claim any variant. But an outdated object of the
 * variant is removed as soon as one that is not outdated may name functions wherever it may. */
struct store_object {
    struct buildid id;
    char variant[65]; /* "" when the worker failed */
    uint32_t uid;
    bool trusted; /* names functions for all users */
    bool has_names;
    bool outdated; /* encoded lacks what workers say today: the executable is asked for again */
    const uint8_t *encoded;
    size_t encoded_size;
    const uint8_t *bounds; /* what ingest checks addresses against (core/bounds.h); the store does not look into it */
    size_t bounds_size;
    const char *name, *note;
    int64_t received;
};
/* FULL, with the sentence of store_share_refuse and without effect on the store's health, if the sender would exceed
 * its share. */
enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e);

/* Would a process of this uid get names for the build, all that workers say today: is there a trusted variant, or one
 * sent by the uid, that is not outdated, or a failure sent by the uid? */
enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e);

/* The encoded object that may name functions in a sum to which these uids (ascending) contributed: a trusted variant or
 * one that all of them sent; with names before without, then trusted before not, then the latest delivered. NOT_FOUND
 * if there is none. variants says how many different contents the build has. *bytes is a new block that the caller
 * frees. */
enum profd_status store_get_object(struct store *s, const uint32_t *uids, size_t uid_count, const char *build_id,
                                   uint8_t **bytes, size_t *size, uint32_t *variants, struct profd_error *e);

/* The bounds of the object that store_get_object would give for this uid alone; *size is 0 when there is none. Borrowed
 * until the next store_put_object or store_get_bounds. Cached by the writer. */
enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e);

/* A build is visible when an upload in scope names it. No verb of the same handle may be called from inside an each.
 * Full id of the only visible build that text names: the exact id at any length, else a unique prefix of ≥ 4
 * characters. NOT_FOUND, or AMBIGUOUS (the sentence names two of them), or REFUSED for what is neither an id nor a
 * prefix of ≥ 4. */
enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e);

/* Visible builds by ascending build-id, those greater than after ("" for all), at most limit. each returns false to
 * stop. */
enum profd_status store_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                   bool (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e);
/* One row. NOT_FOUND when invisible. each is called once. */
enum profd_status store_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                  void (*each)(void *context, const struct build_row *row), void *context,
                                  struct profd_error *e);
/* Labels seen with the build (all builds when NULL), ascending by name and value. */
enum profd_status store_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e);
/* Builds that were in one process with this one, ascending by build-id (the build itself left out). */
enum profd_status store_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                       bool (*each)(void *context, const char *companion, const char *name),
                                       void *context, struct profd_error *e);

enum store_match { STORE_MATCH_EQUAL, STORE_MATCH_NOT_EQUAL, STORE_MATCH_LIKE, STORE_MATCH_UNLIKE };
struct store_matcher {
    const char *name, *value; /* an absent label equals "" */
    enum store_match match;
    struct store_pattern *pattern; /* of LIKE and UNLIKE: the value compiled; else NULL */
};

/* A regular expression for LIKE and UNLIKE: PCRE2's, over UTF-8, for the whole value as in Prometheus, and a dot is any
 * character. It lives in the arena and belongs to one thread. BAD_QUERY with the offset for what is none, is longer
 * than LIMIT_PATTERN or too large. */
enum profd_status store_pattern_compile(struct arena *a, const char *text, struct store_pattern **out,
                                        struct profd_error *e);
/* LIMIT, naming the pattern, if it exceeded the limits of limits.h on steps, depth or memory for some value: the
 * selection since it was compiled is invalid. */
enum profd_status store_pattern_judge(const struct store_filter *filter, struct profd_error *e);

/* Selects uploads: of programs or of any process that had the build; with labels that satisfy every matcher; with a
 * window that ends within [since, until) (0: unbounded). Where uploads have become hour sums, an edge inside such an
 * hour of a matching series moves outward to the hour's border, for all rows alike; so does an edge inside a slice of a
 * live process, to the slice's border. store_get_range says where the edges came to lie. */
struct store_filter {
    const char *build_id;
    bool as_program; /* only where the build is the main executable */
    int64_t since, until;
    size_t matcher_count;
    const struct store_matcher *matchers;
};

/* A stored upload, or the sum of many of one series, as it is read back. Everything is borrowed until each returns. */
struct store_row {
    uint64_t commit;  /* ascending in order of acceptance; never reused. Of a sum: its first upload's */
    bool rolled;      /* counts are core/rollup.h's encoding; else proto/counts.h's of one upload */
    uint64_t version; /* of a sum: differs whenever its content does; with id it names the content, for caches */
    uint64_t id;
    int64_t width; /* ns of the clock in which end lies, and everything that is in it ended: of a sum an hour, a day or
                    * (0) all time; of a live process its slice; of another upload 0 */
    uint64_t uploads; /* how many are in it; of a live process, slices that became one count as before */
    uint32_t uid;
    const char *host; /* of an upload, "" if unknown; of a sum NULL: hosts has them */
    size_t host_count;
    const char *const *hosts;
    size_t label_count;
    const struct store_label *labels; /* of the series */
    int64_t start, end;               /* earliest start and latest end */
    uint32_t inexact;
    uint64_t processes_started;
    struct process_groups groups; /* of these processes */
    uint32_t program;
    size_t build_count;
    const struct store_build *builds; /* ids and names; nanoseconds and calls are 0 */
    const uint8_t *counts;
    size_t counts_size;
    uint64_t series; /* number of the (uid, program, builds, labels) set: the builds are the same for all its rows */
};
/* What matches, each upload in exactly one row, by ascending commit, as coarse as since and until allow: one sum for
 * all time, days, hours, then single uploads. each returns OK to go on; anything else stops and is returned. */
enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    enum profd_status (*each)(void *context, const struct store_row *row,
                                                              struct profd_error *e),
                                    void *context, struct profd_error *e);

/* The edges that store_each_upload would use now. For ETags and for saying so in the report. */
enum profd_status store_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  int64_t *since, int64_t *until, struct profd_error *e);

/* The state of the data that an answer depends on, for ETags. number counts the uploads of all users: no reader may
 * learn it. */
struct store_epoch {
    uint64_t number;
    uint64_t salt; /* random; drawn anew with each database and each restore, so that no pair comes twice */
};

/* number grows whenever a report on this build could change (uploads in scope, which live processes are read and when,
 * objects of it or its companions), and not otherwise. It is 0 for an invisible build. O(log n). */
enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id,
                              struct store_epoch *epoch, struct profd_error *e);
/* Likewise for the list of builds. */
enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, struct store_epoch *epoch,
                                  struct profd_error *e);

/* Is what this handle would write still found by its name? IO: a file of it was removed or replaced, or the handle has
 * failed before; it never writes again. Every writing verb looks, before it writes and after its commit. Microseconds.
 */
enum profd_status store_look(struct store *s, struct profd_error *e);

#define STORE_LARGEST_USERS 20u
/* Totals for /metrics and status. accepted = stored + retired (DECISIONS 31). */
struct store_totals {
    uint64_t builds, builds_without_names;
    uint64_t uploads, ticks, calls;                         /* accepted */
    uint64_t retired_uploads, retired_ticks, retired_calls; /* of these, removed by retention or by delete */
    uint64_t raw_uploads, raw_bytes, rollups;
    uint64_t file_bytes, wal_bytes, free_bytes;
    uint64_t migration_steps, migration_done,
        migration_total; /* steps that are left, and of their rows; 0: there is none */
    /* What users store, as store_get_use counts it; rows of an older version as their migration reaches them. */
    uint64_t users, user_bytes; /* users that store anything, and their bytes together */
    size_t largest_count;
    struct store_user {
        uint32_t uid;
        uint64_t bytes;
    } largest[STORE_LARGEST_USERS]; /* those that store most, descending */
};
enum profd_status store_get_totals(struct store *s, struct store_totals *t, struct profd_error *e);

/* Removes ids not seen since the given time, which is LIMIT_ID_DAYS ago, looking at the next 50,000 senders of a round;
 * and up to 2,000 of the instances that have ended and were last seen longer than STORE_ENDED_DAYS ago, and of the
 * digests of segments that arrived longer than STORE_ARRIVAL_DAYS ago. The writer calls it now and then. */
enum profd_status store_remove_ids(struct store *s, int64_t before, struct profd_error *e);

/* --- Upkeep (writing handle; each call one transaction of bounded work, about 20 ms, so that uploads go on in between)
 * --- */

struct store_policy {
    int64_t raw_age; /* ns: uploads accepted longer ago are rolled up */
    /* The oldest single uploads are rolled up while all single uploads take more bytes than this. Slices of live
     * processes become wider, the oldest and narrowest first, while they take more than 1/STORE_LIVE_PART of it. */
    uint64_t raw_bytes;
    int64_t keep_age;     /* ns: whole days that ended longer ago are removed; 0: never */
    uint64_t keep_bytes;  /* the oldest days are removed while the database's content is larger; 0: never */
    uint64_t relay_bytes; /* of acknowledged segments, at most */
    int64_t relay_age;    /* ns: an acknowledged segment is kept this long, if relay_bytes allow it */
};
struct store_progress {
    bool more;        /* call again */
    uint64_t uploads; /* rolled up, or removed, by this call */
    uint64_t rows;    /* sums written or removed */
};
/* now: the caller has checked its clock for jumps. Data that cannot be decoded is excluded, and store_verify reports
 * it. Rolls up uploads, one (series, hour) after the other; one transaction writes a sum and removes its inputs.
 * Completed days become daily sums, and those one sum of all time. No answer changes, except for edges inside an hour.
 */
enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e);
/* Removes days that the policy no longer keeps, oldest first. Ids are kept, so that a late repeat is not counted.
 * Because of size, only days before now's are removed. Also removes rows of deleted builds, and the symbols of builds
 * that have not been used for keep_age, or, above keep_bytes, for a day. */
enum profd_status store_retire(struct store *s, const struct store_policy *policy, int64_t now,
                               struct store_progress *progress, struct profd_error *e);
/* Removes every upload of which the build is the program, in scope, and, when nothing in the store names the build any
 * more, its symbols. It is gone for every reader when the call returns; the space comes back by store_retire.
 * NOT_FOUND; REFUSED for a build that is only a library (the sentence names a program). *uploads: how many it were. */
enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e);
/* Fills in some of what rows of an older schema version lack. No answer changes but where a verb says so. A store that
 * was not older has nothing to do. */
enum profd_status store_migrate(struct store *s, struct store_progress *progress, struct profd_error *e);
/* Returns about that many bytes of free pages to the file system. */
enum profd_status store_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e);

/* --- What a host forwards to a centre (segments.h). On the writing handle, each call one transaction --- */

/* What this handle accepts from now on goes into segments of this epoch; nothing is added to those of earlier epochs.
 * To be called at every start, with an epoch that was never used before. Writes nothing itself. Without it nothing that
 * the handle accepts is forwarded; segments that are there stay. */
enum profd_status store_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e);
/* What the centre says of itself. When its incarnation is another one, it was restored, and may not have what it had
 * acknowledged: all that is kept is sealed again, and what was removed too early is sent as SEGMENT_DROPPED. *again:
 * how many segments. backup: its latest backup contains what it gave numbers up to this one. */
enum profd_status store_relay_meet(struct store *s, const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup,
                                   uint64_t *again, struct profd_error *e);
/* Seals segments with ids up to through, the oldest first, until LIMIT_SEGMENTS_SEALED wait for an
 * acknowledgement. *sealed: how many. */
enum profd_status store_seal_segments(struct store *s, uint64_t through, int64_t now, uint64_t *sealed,
                                      struct profd_error *e);
/* Sealed segments that are not acknowledged, with ids greater than after, ascending; each returns false to
 * stop. */
enum profd_status store_each_segment(struct store *s, uint64_t after,
                                     bool (*each)(void *context, const struct store_segment *segment), void *context,
                                     struct profd_error *e);
/* The centre has committed these segments. One that is not sealed, or of another incarnation than store_relay_meet was
 * told, changes nothing. */
enum profd_status store_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                             int64_t now, struct profd_error *e);
/* Removes acknowledged segments that the policy no longer keeps: those that are old enough and in the centre's backup,
 * and the oldest while there are too many bytes of them. And folds parts of open segments. */
enum profd_status store_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                      struct store_progress *progress, struct profd_error *e);
/* On any handle. */
enum profd_status store_get_relay(struct store *s, struct store_relay *out, struct profd_error *e);

/* --- What a centre accepts from hosts (arrivals.h). On the writing handle, each call one transaction --- */

/* restored[i]: the host's database gave greater numbers before: it was restored from a backup. Its live processes may
 * be counted twice in the hour of now, which is marked. */
enum profd_status store_admit_hosts(struct store *s, const struct store_arrival *list, size_t n, bool *restored,
                                    struct profd_error *e);
/* Counts segments, and says what became of each. A key that came before with the same digest changes nothing. Of one
 * with another digest, the first stays, and its hour is marked; so is an hour of a segment that was dropped or cannot
 * be read. A segment lands in the hour in which it ended, whenever that was. Errors as store_put_uploads: nothing is
 * stored, and receipts mean nothing. */
enum profd_status store_put_segments(struct store *s, const struct store_delivery *list, size_t n,
                                     struct store_receipt *receipts, struct profd_error *e);
/* On any handle. */
enum profd_status store_get_centre(struct store *s, struct store_centre *out, struct profd_error *e);
/* The reasons for which hours of the filter are marked, of hosts that its matchers of the label `host` select: bits of
 * enum message_inexact. On any handle. */
enum profd_status store_get_marks(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  uint32_t *reasons, struct profd_error *e);

/* Backup, on the writing handle: a copy that is whole at the moment the last step returns, while uploads go on. */
struct store_backup;
/* It ends before the store is closed. path must not exist (CANT_CREATE); the file, of mode 0600, appears under its name
 * when the copy is whole and synced. */
enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e);
/* Copies about bytes more. *left: bytes to go, 0 when done. */
enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e);
/* Ends it; an unfinished file is removed. Accepts NULL. */
void store_backup_end(struct store_backup *b);

/* Verification, on any handle: recomputes sums from what is stored and compares. */
struct store_cursor {
    uint64_t series;
    int64_t hour;
    bool done; /* everything was looked at since the cursor was zeroed */
};
/* Looks at the next (series, hour) pairs, about 100 ms of work in one snapshot: Σ of the single uploads and the hour's
 * sum equal the ledger; spread equals totals; the day's sum equals its hours', the sum of all time its days'; once a
 * round, Σ ledger and retired equal what was accepted, and every live process has a snapshot and names no upload but
 * its own. mismatch is called with a sentence for every difference. */
enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e);

/* Engines. sqlite: path of the file, created with migrations when writing; with a sentence and the file untouched:
 * CONFIG (a directory, a device, a write-ahead log without its database), CANT_CREATE (no permission), DAMAGED (not a
 * profd database, or damaged), NEWER, NO_INPUT (nothing there to read), IO. Reading handles never write or checkpoint.
 * In one process the writer is opened before the readers. */
enum profd_status store_sqlite_open_writer(const char *path, struct store **out, struct profd_error *e);
enum profd_status store_sqlite_open_reader(const char *path, struct store **out, struct profd_error *e);
enum profd_status store_memory_open(struct store **out, struct profd_error *e);
/* Reads the whole file of a sqlite handle; fault is called with a sentence for what is wrong with its structure, at
 * most 100 of them. Minutes for many gigabytes: for restore, not for a running daemon. */
enum profd_status store_sqlite_check(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                                     struct profd_error *e);
/* What the writing verbs of a handle have met: put, forget, compact, retire, delete, shrink and look. Nothing else
 * changes it, so that no sender, process or worker can end writing (DECISIONS 45). */
struct store_health {
    bool damaged;             /* what it found was damage */
    bool failed;              /* a verb had an input/output error or found damage; stays (DECISIONS 31) */
    bool full;                /* a verb found no space, and none has stored anything since */
    uint64_t changes;         /* grows with each of these outcomes */
    struct profd_error error; /* why it failed or is full */
};
/* Lives as long as the handle; read it on the thread that calls the verbs. */
const struct store_health *store_get_health(const struct store *s);

/* Checks a database file that no process writes, by its first 100 bytes and its size, without opening the database:
 * DAMAGED if it does not begin as one of profd or does not have the stated size; NEWER, IO. path is for sentences. */
enum profd_status store_sqlite_judge(int fd, const char *path, uint64_t size, struct profd_error *e);
/* Does the file begin as a database of profd, of a version that this one knows? What is wrong with such a file is
 * damage. Not while it is open. */
bool store_sqlite_is_ours(const char *path);
/* One more file that must keep its name for as long as the writing handle may write: path, which fd has open. At most
 * one. */
enum profd_status store_sqlite_watch(struct store *s, const char *path, int fd, struct profd_error *e);
/* Makes a restored sqlite database one of its own: no ETag of the database that it was copied from is given again. For
 * a writing handle on which no verb is running. The same holds for the next two. */
enum profd_status store_sqlite_renew(struct store *s, struct profd_error *e);
/* Commits without a change, so that the log is not empty: an empty one can then be told from one that was lost. */
enum profd_status store_sqlite_touch(struct store *s, struct profd_error *e);
/* What is stored as of now: two databases with the same salt are the same if their numbers and texts are. A later state
 * has a number that is not smaller. IO when the handle has failed and what was committed is not all in the file. */
#define STORE_STATE_TEXT 192
struct store_sqlite_state {
    int64_t salt, number;
    char text[STORE_STATE_TEXT]; /* printable ASCII without spaces */
};
enum profd_status store_sqlite_describe(struct store *s, struct store_sqlite_state *out, struct profd_error *e);
/* Accepts NULL. */
void store_close(struct store *s);

#endif
