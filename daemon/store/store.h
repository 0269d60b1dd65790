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

#include "core/provenance.h"
#include "core/rows.h"
#include "proto/buildid.h"
#include "proto/message.h"
#include "proto/status.h"

struct store;

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
    char host[33];             /* machine-id, or "" */
    uint32_t uid;              /* of the sender, from the kernel */
    uint8_t sender[UPLOAD_SENDER_SIZE];
    uint32_t sequence;
    int64_t received, start, end; /* window already judged (DECISIONS 30); start ≤ end */
    uint32_t inexact, processes_started;
    uint32_t program;          /* index into builds */
    size_t build_count;
    const struct store_build *builds; /* in load order */
    size_t label_count;
    const struct store_label *labels; /* ascending by name, no name twice */
    const uint8_t *counts;     /* stored encoding (proto/counts.h), validated */
    size_t counts_size;
    uint64_t ticks, calls;
};

/* Of a sender's sequences a contiguous mark and at most STORE_ID_RANGES ranges above it are kept. An upload that would open one
 * range more gets STORE_TOO_MANY_GAPS: it is not stored and its id stays new, so that a retry after the
 * missing ones came is counted once (nothing is ever forgotten or counted on a guess). */
#define STORE_ID_RANGES 1024u
enum store_outcome { STORE_STORED, STORE_DUPLICATE, STORE_TOO_MANY_GAPS };

/* Stores n uploads in one durable transaction: on OK, all are fsynced and outcomes[i] says whether the id
 * (host, uid, sender, sequence) was new. sequence ≥ 1. The first content wins. FULL, IO, DAMAGED, NO_MEMORY, BUSY: nothing is
 * stored and outcomes mean nothing. After IO or DAMAGED the handle never writes again and says so; FULL and NO_MEMORY recover by themselves. */
enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e);

/* Was this id counted? Only host, uid, sender and sequence are looked at. For what is refused now but was accepted when it first
 * came: a repeat gets the same answer. */
enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e);

/* One delivery of an executable (DECISIONS 11, 12). encoded is core/object.h's encoding, validated; empty when the worker
 * failed, and note says why. The same content from another uid only adds the sender. Equal variants with different bytes stay
 * apart: a worker owned by a hostile file can claim any variant. */
struct store_object {
    struct buildid id;
    char variant[65];         /* "" when the worker failed */
    uint32_t uid;
    bool trusted;             /* names functions for everybody */
    bool has_names;
    const uint8_t *encoded;
    size_t encoded_size;
    const uint8_t *bounds;    /* what ingest checks addresses against (ingest/bounds.h); the store does not look into it */
    size_t bounds_size;
    const char *name, *note;
    int64_t received;
};
enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e);

/* Would a process of this uid get names for the build: is there a trusted variant, or one (or a failure) sent by
 * the uid? */
enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e);

/* The encoded object that may name functions in a sum to which these uids (ascending) contributed: a trusted variant or one
 * that all of them sent; with names before without, then trusted before not, then the latest delivered. NOT_FOUND if
 * there is none. variants says how many different contents the build has. *bytes is a new block that the caller frees. */
enum profd_status store_get_object(struct store *s, const uint32_t *uids, size_t uid_count, const char *build_id,
                                   uint8_t **bytes, size_t *size, uint32_t *variants, struct profd_error *e);

/* The bounds of the object that store_get_object would give for this uid alone; *size is 0 when there is none. Borrowed until
 * the next store_put_object or store_get_bounds. Cached by the writer. */
enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e);

/* A build is visible when an upload in scope names it. No verb of the same handle may be called from inside an each.
 * Full id of the only visible build that text names: the exact id at any length, else a unique prefix of ≥ 4 characters.
 * NOT_FOUND, or AMBIGUOUS (the sentence names two of them), or REFUSED for what is neither an id nor a prefix of ≥ 4. */
enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e);

/* Visible builds by ascending build-id, those greater than after ("" for all), at most limit. each returns false to stop. */
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

enum store_match { STORE_MATCH_EQUAL, STORE_MATCH_NOT_EQUAL };
struct store_matcher {
    const char *name, *value;  /* an absent label equals "" */
    enum store_match match;
};

/* Which uploads: of programs or of any process that had the build; whose window ends after since and starts before until
 * (0: unbounded); whose labels satisfy every matcher. */
struct store_filter {
    const char *build_id;
    bool as_program;           /* only where the build is the main executable */
    int64_t since, until;
    size_t matcher_count;
    const struct store_matcher *matchers;
};

/* A stored upload as it is read back. Everything is borrowed until each returns. */
struct store_row {
    uint64_t commit;           /* ascending in order of acceptance; never reused */
    uint32_t uid;
    const char *host;
    int64_t start, end;
    uint32_t inexact, processes_started;
    uint32_t program;
    size_t build_count;
    const struct store_build *builds; /* ids and names; nanoseconds and calls are 0 */
    const uint8_t *counts;
    size_t counts_size;
    uint64_t series;           /* number of the (uid, program, builds, labels) set: the builds are the same for all its rows */
};
/* Matching uploads by ascending commit. each returns OK to go on; anything else stops and is returned. */
enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    enum profd_status (*each)(void *context, const struct store_row *row,
                                                              struct profd_error *e),
                                    void *context, struct profd_error *e);

/* A number that grows whenever a report on this build could change (uploads in scope, objects of it or its companions),
 * and not otherwise; for ETags. 0 for an invisible build. Its high bits are random per database. O(log n). */
enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id, uint64_t *epoch,
                              struct profd_error *e);
/* Likewise for the list of builds. */
enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, uint64_t *epoch,
                                  struct profd_error *e);

/* Totals for /metrics and status. */
struct store_totals {
    uint64_t builds, builds_without_names, uploads, ticks, calls;
    uint64_t file_bytes, wal_bytes;
};
enum profd_status store_get_totals(struct store *s, struct store_totals *t, struct profd_error *e);

/* Removes ids not seen since the given time, looking at the next 50,000 senders of a round; the writer calls it now and then. */
enum profd_status store_forget_ids(struct store *s, int64_t before, struct profd_error *e);

/* Engines. sqlite: path of the file, created with migrations when writing; with a sentence and the file untouched: CONFIG
 * (a directory, a device, a write-ahead log without its database), CANT_CREATE (no permission), DAMAGED (not a profd
 * database, or damaged), NEWER, NO_INPUT (nothing there to read), IO. Reading handles never write or checkpoint. In one process
 * the writer is opened before the readers. */
enum profd_status store_sqlite_open_writer(const char *path, struct store **out, struct profd_error *e);
enum profd_status store_sqlite_open_reader(const char *path, struct store **out, struct profd_error *e);
enum profd_status store_memory_open(struct store **out, struct profd_error *e);
/* Accepts NULL. */
void store_close(struct store *s);

#endif
