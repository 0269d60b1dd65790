/* What an engine implements. store.c checks the arguments that all engines would check, and dispatches. */
#ifndef PROFD_STORE_STORE_OPS_H
#define PROFD_STORE_STORE_OPS_H

#include <stdbool.h>

#include "proto/limits.h"
#include "store/store.h"
#include "store/store_backup.h"
#include "store/store_verify.h"

#define STORE_OPS_VERSION 3
#define STORE_ENDED_BEFORE                                                                                             \
    ((LIMIT_ID_DAYS - STORE_ENDED_DAYS) * INT64_C(86400000000000)) /* added to the before of forget_ids */

/* Verbs as in store.h, with these differences: put_uploads and put_harvests get n ≥ 1 on a writing handle; find_builds
 * looks for visible builds whose id begins with prefix (or is it, if exact) and gives the first two in ascending order.
 */
struct store_ops {
    unsigned version; /* STORE_OPS_VERSION: an engine built against another table is refused */
    void (*close)(struct store *s);
    enum profd_status (*put_uploads)(struct store *s, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e);
    enum profd_status (*put_harvests)(struct store *s, const struct store_harvest *harvests, size_t n,
                                      enum store_harvest_outcome *outcomes, struct profd_error *e);
    enum profd_status (*get_instance)(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e);
    enum profd_status (*each_instance)(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e);
    enum profd_status (*has_upload)(struct store *s, const struct store_upload *upload, bool *counted,
                                    struct profd_error *e);
    enum profd_status (*put_object)(struct store *s, const struct store_object *object, struct profd_error *e);
    enum profd_status (*has_object)(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                    struct profd_error *e);
    enum profd_status (*get_object)(struct store *s, const uint32_t *uids, size_t uid_count, const char *build_id,
                                    uint8_t **bytes, size_t *size, uint32_t *variants, struct profd_error *e);
    enum profd_status (*get_bounds)(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                    size_t *size, struct profd_error *e);
    enum profd_status (*find_builds)(struct store *s, const struct store_scope *scope, const char *prefix, bool exact,
                                     struct buildid found[2], size_t *count, struct profd_error *e);
    enum profd_status (*each_build)(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                    bool (*each)(void *context, const struct build_row *row), void *context,
                                    struct profd_error *e);
    enum profd_status (*get_build)(struct store *s, const struct store_scope *scope, const char *build_id,
                                   void (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e);
    enum profd_status (*each_label)(struct store *s, const struct store_scope *scope, const char *build_id,
                                    bool (*each)(void *context, const struct label_row *row), void *context,
                                    struct profd_error *e);
    enum profd_status (*each_companion)(struct store *s, const struct store_scope *scope, const char *build_id,
                                        bool (*each)(void *context, const char *companion, const char *name),
                                        void *context, struct profd_error *e);
    enum profd_status (*each_upload)(struct store *s, const struct store_scope *scope,
                                     const struct store_filter *filter,
                                     enum profd_status (*each)(void *context, const struct store_row *row,
                                                               struct profd_error *e),
                                     void *context, struct profd_error *e);
    enum profd_status (*epoch)(struct store *s, const struct store_scope *scope, const char *build_id, uint64_t *epoch,
                               struct profd_error *e);
    enum profd_status (*epoch_all)(struct store *s, const struct store_scope *scope, uint64_t *epoch,
                                   struct profd_error *e);
    enum profd_status (*get_totals)(struct store *s, struct store_totals *t, struct profd_error *e);
    enum profd_status (*forget_ids)(struct store *s, int64_t before, struct profd_error *e);
    enum profd_status (*get_range)(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                   int64_t *since, int64_t *until, struct profd_error *e);
    enum profd_status (*compact)(struct store *s, const struct store_policy *policy, int64_t now,
                                 struct store_progress *progress, struct profd_error *e);
    enum profd_status (*retire)(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e);
    enum profd_status (*delete_build)(struct store *s, const struct store_scope *scope, const char *build_id,
                                      uint64_t *uploads, struct profd_error *e);
    enum profd_status (*shrink)(struct store *s, uint64_t bytes, struct store_progress *progress,
                                struct profd_error *e);
    enum profd_status (*verify)(struct store *s, struct store_cursor *cursor,
                                void (*mismatch)(void *context, const char *sentence), void *context,
                                uint64_t *uploads_checked, struct profd_error *e);
    enum profd_status (*backup_begin)(struct store *s, const char *path, struct store_backup **out,
                                      struct profd_error *e);
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
};

#endif
