/* What an engine implements. store.c checks the arguments that all engines would check, and dispatches. */
#ifndef PROFD_STORE_STORE_OPS_H
#define PROFD_STORE_STORE_OPS_H

#include <stdbool.h>

#include "proto/limits.h"
#include "store/store.h"

#define STORE_ENDED_BEFORE                                                                                             \
    ((LIMIT_ID_DAYS - STORE_ENDED_DAYS) * INT64_C(86400000000000)) /* added to the before of remove_ids */

#define STORE_DIGESTS_BEFORE ((LIMIT_ID_DAYS - STORE_ARRIVAL_DAYS) * INT64_C(86400000000000)) /* likewise */

/* Every verb of an engine, once: V(name, parameters, arguments). From this come the table of functions, the prototypes
 * of the engines, sqlite_NAME and memory_NAME, their tables, and store_NAME where it only passes on. The verbs are as
 * in store.h, with these differences: put_uploads and put_harvests get n ≥ 1 on a writing handle; find_builds looks for
 * visible builds with an id that begins with prefix (or equals it, if exact) and gives the first two in ascending
 * order; set_unread makes an instance count as one that this run has not read; get_use gives the bytes of one user and
 * of all.
 *
 * store_NAME passes on as it is: */
#define STORE_VERBS_READ(V)                                                                                            \
    V(get_instance,                                                                                                    \
      (struct store * s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE], uint64_t *generation,              \
       uint8_t **snapshot, size_t *size, struct profd_error *e),                                                       \
      (s, uid, instance, generation, snapshot, size, e))                                                               \
    V(each_namesake,                                                                                                   \
      (struct store * s, const uint8_t instance[STORE_INSTANCE_SIZE],                                                  \
       bool (*each)(void *context, const struct store_instance *i), void *context, struct profd_error *e),             \
      (s, instance, each, context, e))                                                                                 \
    V(each_instance,                                                                                                   \
      (struct store * s, bool (*each)(void *context, const struct store_instance *i), void *context,                   \
       struct profd_error *e),                                                                                         \
      (s, each, context, e))                                                                                           \
    V(has_upload, (struct store * s, const struct store_upload *upload, bool *counted, struct profd_error *e),         \
      (s, upload, counted, e))                                                                                         \
    V(has_object, (struct store * s, uint32_t uid, const char *build_id, bool *known, struct profd_error *e),          \
      (s, uid, build_id, known, e))                                                                                    \
    V(get_object,                                                                                                      \
      (struct store * s, const struct store_senders *of, const char *build_id, uint8_t **bytes, size_t *size,          \
       struct store_naming *naming, struct profd_error *e),                                                            \
      (s, of, build_id, bytes, size, naming, e))                                                                       \
    V(get_shared_object,                                                                                               \
      (struct store * s, const char *build_id, uint8_t **bytes, size_t *size, struct profd_error *e),                  \
      (s, build_id, bytes, size, e))                                                                                   \
    V(get_bounds,                                                                                                      \
      (struct store * s, uint32_t uid, const char *build_id, const uint8_t **bytes, size_t *size,                      \
       struct profd_error *e),                                                                                         \
      (s, uid, build_id, bytes, size, e))                                                                              \
    V(get_build,                                                                                                       \
      (struct store * s, const struct store_scope *scope, const char *build_id,                                        \
       void (*each)(void *context, const struct build_row *row), void *context, struct profd_error *e),                \
      (s, scope, build_id, each, context, e))                                                                          \
    V(each_label,                                                                                                      \
      (struct store * s, const struct store_scope *scope, const char *build_id,                                        \
       bool (*each)(void *context, const struct label_row *row), void *context, struct profd_error *e),                \
      (s, scope, build_id, each, context, e))                                                                          \
    V(each_companion,                                                                                                  \
      (struct store * s, const struct store_scope *scope, const char *build_id,                                        \
       bool (*each)(void *context, const char *companion, const char *name), void *context, struct profd_error *e),    \
      (s, scope, build_id, each, context, e))                                                                          \
    V(each_upload,                                                                                                     \
      (struct store * s, const struct store_scope *scope, const struct store_filter *filter,                           \
       enum profd_status (*each)(void *context, const struct store_row *row, struct profd_error *e), void *context,    \
       struct profd_error *e),                                                                                         \
      (s, scope, filter, each, context, e))                                                                            \
    V(epoch,                                                                                                           \
      (struct store * s, const struct store_scope *scope, const char *build_id, struct store_epoch *epoch,             \
       struct profd_error *e),                                                                                         \
      (s, scope, build_id, epoch, e))                                                                                  \
    V(epoch_all,                                                                                                       \
      (struct store * s, const struct store_scope *scope, struct store_epoch *epoch, struct profd_error *e),           \
      (s, scope, epoch, e))                                                                                            \
    V(get_totals, (struct store * s, struct store_totals * t, struct profd_error * e), (s, t, e))                      \
    V(get_range,                                                                                                       \
      (struct store * s, const struct store_scope *scope, const struct store_filter *filter, int64_t *since,           \
       int64_t *until, struct profd_error *e),                                                                         \
      (s, scope, filter, since, until, e))                                                                             \
    V(each_segment,                                                                                                    \
      (struct store * s, uint64_t after, bool (*each)(void *context, const struct store_segment *segment),             \
       void *context, struct profd_error *e),                                                                          \
      (s, after, each, context, e))                                                                                    \
    V(get_greeting, (struct store * s, struct store_centre * out, struct profd_error * e), (s, out, e))                \
    V(get_centre, (struct store * s, struct store_centre * out, struct profd_error * e), (s, out, e))                  \
    V(find_enrolments,                                                                                                 \
      (struct store * s, const uint8_t *hosts, size_t n, struct store_enrolment *out, bool *found,                     \
       struct profd_error *e),                                                                                         \
      (s, hosts, n, out, found, e))                                                                                    \
    V(each_host,                                                                                                       \
      (struct store * s, bool (*each)(void *context, const struct store_fleet_host *host), void *context,              \
       struct profd_error *e),                                                                                         \
      (s, each, context, e))                                                                                           \
    V(get_marks,                                                                                                       \
      (struct store * s, const struct store_scope *scope, const struct store_filter *filter, uint32_t *reasons,        \
       struct profd_error *e),                                                                                         \
      (s, scope, filter, reasons, e))                                                                                  \
    V(each_mark,                                                                                                       \
      (struct store * s, const struct store_scope *scope, const struct store_filter *filter,                           \
       bool (*each)(void *context, const struct store_mark *mark), void *context, struct profd_error *e),              \
      (s, scope, filter, each, context, e))                                                                            \
    V(each_reader,                                                                                                     \
      (struct store * s, bool (*each)(void *context, const struct store_reader *r), void *context,                     \
       struct profd_error *e),                                                                                         \
      (s, each, context, e))                                                                                           \
    V(each_watch_row,                                                                                                  \
      (struct store * s, bool (*each)(void *context, const struct store_watch_row *row), void *context,                \
       struct profd_error *e),                                                                                         \
      (s, each, context, e))                                                                                           \
    V(get_relay, (struct store * s, struct store_relay * out, struct profd_error * e), (s, out, e))                    \
    V(verify,                                                                                                          \
      (struct store * s, struct store_cursor * cursor, void (*mismatch)(void *context, const char *sentence),          \
       void *context, uint64_t *uploads_checked, struct profd_error *e),                                               \
      (s, cursor, mismatch, context, uploads_checked, e))

/* store_NAME wants a writing handle, and notes in the store's health what comes back: */
#define STORE_VERBS_WRITE(V)                                                                                           \
    V(look, (struct store * s, struct profd_error * e), (s, e))                                                        \
    V(remove_ids, (struct store * s, int64_t before, struct profd_error * e), (s, before, e))                          \
    V(compact,                                                                                                         \
      (struct store * s, const struct store_policy *policy, int64_t now, struct store_progress *progress,              \
       struct profd_error *e),                                                                                         \
      (s, policy, now, progress, e))                                                                                   \
    V(retire,                                                                                                          \
      (struct store * s, const struct store_policy *policy, int64_t now, struct store_progress *progress,              \
       struct profd_error *e),                                                                                         \
      (s, policy, now, progress, e))                                                                                   \
    V(relay_begin, (struct store * s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e), (s, epoch, e))  \
    V(relay_resolve, (struct store * s, const struct store_verdict *verdict, bool *apart, struct profd_error *e),      \
      (s, verdict, apart, e))                                                                                          \
    V(relay_meet,                                                                                                      \
      (struct store * s, const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup, uint64_t *again,          \
       struct profd_error *e),                                                                                         \
      (s, incarnation, backup, again, e))                                                                              \
    V(seal_segments,                                                                                                   \
      (struct store * s, uint64_t through, bool stacks, int64_t now, struct store_sealed *sealed,                      \
       struct profd_error *e),                                                                                         \
      (s, through, stacks, now, sealed, e))                                                                            \
    V(acknowledge_segments,                                                                                            \
      (struct store * s, const struct store_acknowledgement *list, size_t n, int64_t now, struct profd_error *e),      \
      (s, list, n, now, e))                                                                                            \
    V(keep_segments,                                                                                                   \
      (struct store * s, const struct store_policy *policy, int64_t now, struct store_progress *progress,              \
       struct profd_error *e),                                                                                         \
      (s, policy, now, progress, e))                                                                                   \
    V(admit_hosts,                                                                                                     \
      (struct store * s, const struct store_arrival *list, size_t n, struct store_admission *out,                      \
       struct profd_error *e),                                                                                         \
      (s, list, n, out, e))                                                                                            \
    V(put_token, (struct store * s, const struct store_token *token, struct profd_error *e), (s, token, e))            \
    V(enrol,                                                                                                           \
      (struct store * s, const struct store_enrolling *x, struct store_enrolment *out,                                 \
       enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e),                                         \
      (s, x, out, verdict, spent, e))                                                                                  \
    V(renew,                                                                                                           \
      (struct store * s, const struct store_enrolling *x, struct store_enrolment *out,                                 \
       enum store_enrol_verdict *verdict, struct profd_error *e),                                                      \
      (s, x, out, verdict, e))                                                                                         \
    V(revoke,                                                                                                          \
      (struct store * s, const char *which, int64_t now,                                                               \
       bool (*each)(void *context, const struct store_enrolment *host), void *context, struct profd_error *e),         \
      (s, which, now, each, context, e))                                                                               \
    V(revoke_keys, (struct store * s, const uint8_t *keys, const int64_t *times, size_t n, struct profd_error *e),     \
      (s, keys, times, n, e))                                                                                          \
    V(attest,                                                                                                          \
      (struct store * s, const struct store_attestation *list, size_t n, struct store_attested *out,                   \
       struct profd_error *e),                                                                                         \
      (s, list, n, out, e))                                                                                            \
    V(add_reader, (struct store * s, const struct store_reader *reader, struct profd_error *e), (s, reader, e))        \
    V(remove_reader, (struct store * s, const char *name, struct profd_error *e), (s, name, e))                        \
    V(put_watch_rows, (struct store * s, const struct store_watch_row *rows, size_t n, struct profd_error *e),         \
      (s, rows, n, e))                                                                                                 \
    V(shrink, (struct store * s, uint64_t bytes, struct store_progress * progress, struct profd_error * e),            \
      (s, bytes, progress, e))

/* store.c has a function of its own for it: */
#define STORE_VERBS_OWN(V)                                                                                             \
    V(put_uploads,                                                                                                     \
      (struct store * s, const struct store_upload *uploads, size_t n, enum store_outcome *outcomes,                   \
       struct profd_error *e),                                                                                         \
      (s, uploads, n, outcomes, e))                                                                                    \
    V(put_segments,                                                                                                    \
      (struct store * s, const struct store_delivery *list, size_t n, struct store_receipt *receipts,                  \
       struct profd_error *e),                                                                                         \
      (s, list, n, receipts, e))                                                                                       \
    V(put_harvests,                                                                                                    \
      (struct store * s, const struct store_harvest *harvests, size_t n, enum store_harvest_outcome *outcomes,         \
       struct profd_error *e),                                                                                         \
      (s, harvests, n, outcomes, e))                                                                                   \
    V(get_living,                                                                                                      \
      (struct store * s, enum store_living_kind kind, const struct store_scope *scope,                                 \
       const struct store_filter *filter, struct store_living *out, struct profd_error *e),                            \
      (s, kind, scope, filter, out, e))                                                                                \
    V(set_unread,                                                                                                      \
      (struct store * s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE], struct profd_error *e),            \
      (s, uid, instance, e))                                                                                           \
    V(get_use, (struct store * s, uint32_t uid, uint64_t * bytes, uint64_t * total, struct profd_error * e),           \
      (s, uid, bytes, total, e))                                                                                       \
    V(put_object, (struct store * s, const struct store_object *object, struct profd_error *e), (s, object, e))        \
    V(find_builds,                                                                                                     \
      (struct store * s, const struct store_scope *scope, const char *prefix, bool exact, struct buildid found[2],     \
       size_t *count, struct profd_error *e),                                                                          \
      (s, scope, prefix, exact, found, count, e))                                                                      \
    V(each_build,                                                                                                      \
      (struct store * s, const struct store_scope *scope, const char *after, size_t limit,                             \
       bool (*each)(void *context, const struct build_row *row), void *context, struct profd_error *e),                \
      (s, scope, after, limit, each, context, e))                                                                      \
    V(delete_build,                                                                                                    \
      (struct store * s, const struct store_scope *scope, const char *build_id, uint64_t *uploads,                     \
       struct profd_error *e),                                                                                         \
      (s, scope, build_id, uploads, e))                                                                                \
    V(backup_begin, (struct store * s, const char *path, struct store_backup **out, struct profd_error *e),            \
      (s, path, out, e))

#define STORE_VERBS(V) STORE_VERBS_READ(V) STORE_VERBS_WRITE(V) STORE_VERBS_OWN(V)

struct store_ops {
    void (*close)(struct store *s);
#define STORE_FIELD(name, parameters, arguments) enum profd_status(*name) parameters;
    STORE_VERBS(STORE_FIELD)
#undef STORE_FIELD
};

/* First member of every engine's backup. */
struct store_backup {
    enum profd_status (*step)(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e);
    void (*end)(struct store_backup *b);
};

/* First member of every engine's handle. */
struct store {
    const struct store_ops *ops;
    bool writable;
    struct store_health health; /* store.c keeps it */
    uint64_t run;               /* store_set_run */
    uint64_t salt;              /* store_set_salt */
    struct store_share share;
    struct store_detail detail;
    struct profd_error unasked; /* why a writing verb failed, where its caller does not ask */
};

#endif
