/* What profd remembers, as domain verbs. No SQL crosses this line. Engines: sqlite (the daemon's), memory (tests).
 *
 * Threads: one handle opened for writing exists in a process and belongs to one thread; each reading thread has a
 * handle of its own. Every verb takes the scope it may see. Times are nanoseconds since the epoch, UTC.
 * A failed verb has changed nothing (a failed commit may still turn up after a crash: same id on every retry). */
#ifndef PROFD_STORE_STORE_H
#define PROFD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/provenance.h"
#include "core/rows.h"
#include "proto/buildid.h"
#include "proto/message.h"
#include "proto/status.h"

struct store;
struct store_filter;
struct store_pattern;
struct store_scope {
    bool all;     /* everybody's data */
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

/* A believed upload. Arrays and strings are borrowed for the call. */
struct store_upload {
    char host[33]; /* machine-id, or "" */
    uint32_t uid;  /* of the sender, from the kernel */
    uint8_t sender[UPLOAD_SENDER_SIZE];
    uint32_t sequence;
    int64_t received, start, end; /* window already judged (DECISIONS 30); start ≤ end */
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
enum store_outcome { STORE_STORED, STORE_DUPLICATE, STORE_TOO_MANY_GAPS };

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
#define STORE_GROWN_MOST (1u << 20) /* bytes of counts to which more is added; beyond that a new upload is begun */
struct store_harvest {
    struct store_upload
        upload; /* what is new; sender and sequence mean nothing. counts_size 0: only uid and received are looked at
                 * (a process or a reason without counts is told with the encoding of none) */
    uint8_t instance[STORE_INSTANCE_SIZE]; /* random, names the process for ever; with the uid it is the key */
    uint64_t base;           /* generation of the snapshot that the difference was taken from; 0: there was none */
    const uint8_t *snapshot; /* the new one; the store does not look into it */
    size_t snapshot_size;
    bool ended; /* nothing more is expected: it is forgotten after STORE_ENDED_DAYS; until then a harvest revives it */
};
enum store_harvest_outcome { STORE_HARVESTED, STORE_STALE };

/* Adds n differences in one durable transaction. A difference goes into the single upload that the instance has in the
 * current hour (of upload.end) and series; where there is none, or it has become part of a sum or was removed, a new
 * upload is made: uploads and the ledger count those. Sums are as if what an upload holds had come at once; window,
 * processes and reasons are of all its harvests, arcs in order of arrival. On OK outcomes[i] says whether base was the
 * stored generation: STALE items have changed nothing, read the snapshot again. A stored snapshot has generation base
 * + 1. An instance may stand in the list once. Errors as store_put_uploads. O(counts of the difference and of the
 * upload) each. */
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
    int64_t seen;            /* ns, received of the latest harvest */
    const uint8_t *snapshot; /* borrowed until each returns */
    size_t snapshot_size;
};
/* Every instance that has not ended, of all users, in no promised order; each returns false to stop. */
enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e);

/* One delivery of an executable (DECISIONS 11, 12). encoded is core/object.h's encoding, validated; empty when the
 * worker failed, and note says why. The same content from another uid only adds the sender. Equal variants with
 * different bytes stay apart: a worker owned by a hostile file can claim any variant. */
struct store_object {
    struct buildid id;
    char variant[65]; /* "" when the worker failed */
    uint32_t uid;
    bool trusted; /* names functions for everybody */
    bool has_names;
    const uint8_t *encoded;
    size_t encoded_size;
    const uint8_t *bounds; /* what ingest checks addresses against (ingest/bounds.h); the store does not look into it */
    size_t bounds_size;
    const char *name, *note;
    int64_t received;
};
enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e);

/* Would a process of this uid get names for the build: is there a trusted variant, or one (or a failure) sent by
 * the uid? */
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
/* LIMIT, naming the pattern, if it needed more steps, depth or memory than limits.h allows for some value: what was
 * selected by it since it was compiled is not to be believed. */
enum profd_status store_pattern_judge(const struct store_filter *filter, struct profd_error *e);

/* Which uploads: of programs or of any process that had the build; whose labels satisfy every matcher; whose window
 * ends within [since, until) (0: unbounded). Where uploads have become hour sums, an edge inside such an hour of a
 * matching series moves outward to the hour's border, for all rows alike: store_get_range says where the edges came to
 * lie. */
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
    int64_t width;    /* of a sum: the ns its window has, an hour or a day, in which end lies; 0: all time */
    uint64_t uploads; /* how many are in it */
    uint32_t uid;
    const char *host; /* of an upload, "" if unknown; of a sum NULL: hosts has them */
    size_t host_count;
    const char *const *hosts;
    size_t label_count;
    const struct store_label *labels; /* of the series */
    int64_t start, end;               /* earliest start and latest end */
    uint32_t inexact;
    uint64_t processes_started;
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

/* A number that grows whenever a report on this build could change (uploads in scope, objects of it or its companions),
 * and not otherwise; for ETags. 0 for an invisible build. Its high bits are random per database. O(log n). */
enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id, uint64_t *epoch,
                              struct profd_error *e);
/* Likewise for the list of builds. */
enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, uint64_t *epoch,
                                  struct profd_error *e);

/* Totals for /metrics and status. accepted = stored + retired (DECISIONS 31). */
struct store_totals {
    uint64_t builds, builds_without_names;
    uint64_t uploads, ticks, calls;                         /* accepted */
    uint64_t retired_uploads, retired_ticks, retired_calls; /* of these, removed by retention or by hand */
    uint64_t raw_uploads, raw_bytes, rollups;
    uint64_t file_bytes, wal_bytes, free_bytes;
};
enum profd_status store_get_totals(struct store *s, struct store_totals *t, struct profd_error *e);

/* Removes ids not seen since the given time, which is LIMIT_ID_DAYS ago, looking at the next 50,000 senders of a round;
 * and up to 2,000 of the instances that have ended and were last seen longer than STORE_ENDED_DAYS ago. The writer
 * calls it now and then. */
enum profd_status store_forget_ids(struct store *s, int64_t before, struct profd_error *e);

/* --- Upkeep (writing handle; each call one transaction of bounded work, about 20 ms, so that uploads go on in between)
 * --- */

struct store_policy {
    int64_t raw_age;     /* ns: an upload accepted longer ago becomes part of its hour's sum */
    uint64_t raw_bytes;  /* as do the oldest beyond this many bytes of single uploads */
    int64_t keep_age;    /* ns: whole days that ended longer ago are removed; 0: never */
    uint64_t keep_bytes; /* as are the oldest days while the database's content is larger; 0: never */
};
struct store_progress {
    bool more;        /* call again */
    uint64_t uploads; /* rolled up, or removed, by this call */
    uint64_t rows;    /* sums written or removed */
};
/* now is the caller's word: he judges whether his clock has jumped. What cannot be decoded is set aside and told of by
 * store_verify. Rolls single uploads up: (series, hour) by (series, hour), the sum written and its inputs removed in
 * one transaction; days that are over become day sums, and those one sum of all time. No answer changes but for edges
 * inside an hour. */
enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e);
/* Removes what the policy no longer keeps, oldest days first; ids stay, so that a late retry stays a no-op. For their
 * size only days before now's are removed. So are rows of deleted builds, and the symbols of builds that nobody has
 * seen for keep_age, or, when there is too much, for a day. */
enum profd_status store_retire(struct store *s, const struct store_policy *policy, int64_t now,
                               struct store_progress *progress, struct profd_error *e);
/* Removes every upload of which the build is the program, in scope, and, when nothing in the store names the build any
 * more, its symbols. It is gone for every reader when the call returns; the space comes back by store_retire.
 * NOT_FOUND; REFUSED for a build that is only a library (the sentence names a program). *uploads: how many it were. */
enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e);
/* Gives free pages back to the file system, at most about so many bytes. */
enum profd_status store_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e);

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
/* Accepts NULL. */
void store_close(struct store *s);

#endif
