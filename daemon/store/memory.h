/* The engine for tests' own names: the same answers as SQLite's, from plain arrays that are searched from end to end.
 */
#ifndef PROFD_STORE_MEMORY_H
#define PROFD_STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/share.h"
#include "proto/buildid.h"
#include "store/attestations.h"
#include "store/memory_segment.h"
#include "store/sequence.h"
#include "store/store_ops.h"

/* What a centre has accepted, of the engine in memory. Only memory*.c include this. */

struct memory_host {
    uint8_t identity[STORE_HOST_SIZE];
    char *name;
    int64_t clock;
    uint64_t number;
    uint32_t uid; /* of its tenant */
};

struct memory_arrival {
    uint8_t epoch[SEGMENT_EPOCH_SIZE], digest[SEGMENT_DIGEST_SIZE];
    uint64_t sequence, number;
    size_t host; /* index */
    enum store_segment_outcome outcome;
    struct store_amount amount;
};

/* A marked hour. */
struct memory_mark {
    int64_t hour;
    size_t host;
    uint32_t reasons;
};

/* A program that was deleted. */
struct memory_deletion {
    char build_id[BUILDID_TEXT_SIZE];
    int64_t before; /* ns */
};

/* What a host attests of a build. */
struct memory_attestation {
    char build_id[BUILDID_TEXT_SIZE];
    size_t host;
    bool has;
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t size;
    int64_t due;
};

struct memory_tenant {
    char name[STORE_NAME_SIZE];
};
struct memory_token {
    uint8_t hash[STORE_HASH_SIZE];
    size_t tenant; /* index */
    uint64_t uses;
    int64_t expires;
};
struct memory_enrolment {
    struct store_enrolment row;
    size_t token; /* index */
};

struct memory_centre {
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number, quarantined, quarantine_bytes;
    int64_t last;
    struct store_amount counted, removed;
    struct memory_host *hosts;
    struct memory_arrival *arrivals;
    struct memory_mark *marks;
    struct memory_deletion *deletions;
    struct memory_attestation *attestations;
    struct memory_tenant *tenants;
    struct memory_token *tokens;
    struct memory_enrolment *enrolments;
    size_t tenant_count, tenant_capacity, token_count, token_capacity, enrolment_count, enrolment_capacity;
    size_t attestation_count, attestation_capacity;
    size_t deletion_count, deletion_capacity;
    size_t host_count, host_capacity, arrival_count, arrival_capacity, mark_count, mark_capacity;
};

/* False: there are no random bytes. */
bool memory_centre_init(struct memory_centre *c);
void memory_centre_done(struct memory_centre *c);
/* The index of the tenant of a name, made if there is none: 0 is `default`. */
enum profd_status memory_find_tenant(struct memory_centre *c, const char *name, size_t *index, struct profd_error *e);

/* A copy of an upload; everything is owned. */
struct memory_upload {
    uint64_t number, series;
    uint64_t uploads;            /* 1, unless it is a segment's */
    bool rolled;                 /* counts are core/rollup.h's encoding: a segment's */
    int64_t width;               /* then: as in struct incoming */
    struct random_groups groups; /* then */
    char host[33];
    uint32_t uid, inexact, program, group;
    uint64_t processes_started;
    int64_t start, end;
    uint64_t ticks, calls;
    struct store_build *builds; /* names are this user's first */
    struct share *shares;       /* of the builds */
    size_t build_count;
    struct store_label *label_list; /* into labels */
    size_t label_count;
    bool gone; /* about to be removed */
    bool live; /* it holds a slice of a live process */
    char *labels;
    size_t labels_size;
    uint8_t *counts;
    size_t counts_size;
    uint8_t *spread; /* of a segment */
    size_t spread_size;
};

struct memory_sender {
    char host[33];
    uint32_t uid;
    uint8_t sender[UPLOAD_SENDER_SIZE];
    int64_t seen;
    struct sequence_set set;
};

/* A build as one user sees it. */
struct memory_build {
    struct buildid id;
    uint32_t uid;
    char *name;
    uint64_t added, epoch;
    uint64_t epoch_all; /* for readers of all users' data: another user's may have been removed */
    struct build_row sums;
};

struct memory_object {
    struct buildid id;
    char variant[65];
    bool has_names, outdated, hashed;
    uint8_t hash[STORE_HASH_SIZE]; /* if hashed */
    uint8_t *encoded, *bounds;
    size_t encoded_size, bounds_size;
    int64_t seen; /* latest end of what was removed of the build */
    bool old;     /* about to be removed */
};

struct memory_object_sender {
    size_t object; /* index */
    uint32_t uid;
    bool trusted, by_operator;
    uint64_t delivered;
    int64_t received;
    char *note;
};

struct memory_user {
    uint32_t uid;
    uint64_t epoch;
};

/* A live process. */
struct memory_instance {
    uint32_t uid;
    uint8_t name[STORE_INSTANCE_SIZE];
    uint64_t generation, upload; /* number of its latest upload, 0: none */
    uint64_t run;
    int64_t seen, missing, missing_since;
    bool ended;
    uint8_t waits[8][STORE_INSTANCE_SIZE]; /* for these parents */
    size_t wait_count;
    uint8_t *snapshot;
    size_t snapshot_size;
};

struct memory_watch_row {
    char *key, *document; /* owned */
    int64_t changed;
};

/* Arrays with the given capacity. */
struct memory_store {
    struct store base;
    struct store_reader *readers;
    size_t reader_count, reader_capacity;
    uint64_t reader_number;              /* of the latest */
    struct memory_watch_row *watch_rows; /* ascending by key */
    size_t watch_row_count, watch_row_capacity;
    uint64_t number, list_epoch, series;
    uint64_t uploads_total, ticks, calls;
    uint64_t retired_uploads, retired_ticks, retired_calls;
    struct memory_relay relay;
    struct memory_centre centre;
    struct memory_upload *uploads;
    struct memory_sender **senders;
    struct memory_build *builds;
    struct memory_object *objects;
    struct memory_object_sender *object_senders;
    struct memory_user *users;
    struct memory_instance *instances;
    size_t instance_count, instance_capacity;
    size_t upload_count, upload_capacity, sender_count, sender_capacity, build_count, build_capacity;
    size_t object_count, object_capacity, object_sender_count, object_sender_capacity, user_count, user_capacity;
};

/* Frees the rows of the watch list. */
void memory_remove_watch_rows(struct memory_store *s);
static inline struct memory_store *memory_self(struct store *s)
{
    return (struct memory_store *)s;
}
#define MEMORY_SLICE INT64_C(60000000000) /* ns: of a live process; they stay as they are */

/* Ensures capacity for n more elements; the array is unchanged on failure. */
enum profd_status memory_reserve(void *array, size_t count, size_t *capacity, size_t n, size_t size,
                                 struct profd_error *e);
/* The user's epoch; NULL if there is none. */
struct memory_user *memory_find_user(struct memory_store *s, uint32_t uid);
/* The latest upload of an instance, by its number; NULL if it is gone. */
const struct memory_upload *memory_find_upload(const struct memory_store *s, uint64_t number);

/* The object of a build that may name functions for these uids, as in sqlite_choose.c; object is −1 if there is none.
 */
struct memory_choice {
    ptrdiff_t object;
    const char *note;
    struct store_naming naming; /* by, hosts */
};
struct memory_choice memory_choose_object(const struct memory_store *s, const char *build_id,
                                          const struct store_senders *of);
/* Reports of the users from one to another with this build are new from the store's number on. */
void memory_touch_object(struct memory_store *s, const char *build_id, uint32_t from, uint32_t to);
/* Does a host of a tenant of the scope attest it? */
bool memory_attests_for(const struct memory_store *s, const struct memory_object *o, const struct store_scope *scope);
/* May it name functions of what these hosts have sent? */
bool memory_judge_hosts(const struct memory_store *s, const struct memory_object *o, const struct store_senders *of,
                        struct store_naming *naming);
/* The number of hosts that attest this hash, or any (NULL). */
uint64_t memory_count_attesting(const struct memory_store *s, const char *build_id, const uint8_t *hash);
bool memory_has_quorum(const struct memory_store *s, const char *build_id);
/* The host shall attest the builds of this upload. */
enum profd_status memory_await_objects(struct memory_store *s, const struct store_upload *u, const uint8_t *identity,
                                       struct profd_error *e);
void memory_forget_attestations(struct memory_store *s, const char *build_id);

/* Everything a batch may need, taken before anything changes. */
struct memory_spares {
    struct memory_upload *copies;
    struct memory_sender **senders;
    char **names; /* one per build of all uploads */
    struct memory_staged *staged;
    size_t name_count, n;
};
enum profd_status memory_spares_take(struct memory_store *s, const struct store_upload *uploads, size_t n,
                                     struct memory_spares *p, struct profd_error *e);
void memory_spares_done(struct memory_spares *p);
/* Adds an upload. Takes over its copy and the names of its builds. */
void memory_put_upload(struct memory_store *s, const struct store_upload *u, struct memory_upload *copy, char **names);
bool memory_same_series(const struct memory_upload *a, const struct memory_upload *b);
/* A batch is one event: what it touched carries its last number. before: the number before it. */
void memory_level_epochs(struct memory_store *s, uint64_t before);

/* A program was deleted: what hosts send of it later is not stored. */
enum profd_status memory_note_deletion(struct memory_store *s, const char *build_id, struct profd_error *e);
/* Compares what was counted of segments with their marks and with what is stored. */
void memory_verify_arrivals(const struct memory_store *s, void (*mismatch)(void *context, const char *sentence),
                            void *context);
/* Compares what is forwarded with what was accepted. */
void memory_verify_segments(struct memory_store *s, void (*mismatch)(void *context, const char *sentence),
                            void *context);
/* Adds an upload to the sums of each of its builds that is this one. */
void memory_add_sums(struct memory_build *b, const struct memory_upload *u);
void memory_free_upload(struct memory_upload *u);

/* Fills in what users store. */
enum profd_status memory_add_users(struct memory_store *s, struct store_totals *t, struct profd_error *e);
void memory_remove_instances(struct memory_store *s, int64_t before);
/* Removes the object at that index, and its senders. */
void memory_remove_object(struct memory_store *s, size_t at);

/* The verbs of store.h, made from the list in store_ops.h. */
#define MEMORY_VERB(name, parameters, arguments) enum profd_status memory_##name parameters;
STORE_VERBS(MEMORY_VERB)
#undef MEMORY_VERB

#endif
