/* Verbs that are still to be written: each goes from here when it is. */
#include "clickhouse/engine_internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
enum profd_status engine_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                   void (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_build is not written yet");
}
enum profd_status engine_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                    bool (*each)(void *context, const struct label_row *row), void *context,
                                    struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_label is not written yet");
}
enum profd_status engine_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                        bool (*each)(void *context, const char *companion, const char *name),
                                        void *context, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_companion is not written yet");
}
enum profd_status
engine_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                   enum profd_status (*each)(void *context, const struct store_row *row, struct profd_error *e),
                   void *context, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_upload is not written yet");
}
enum profd_status engine_epoch(struct store *s, const struct store_scope *scope, const char *build_id,
                               struct store_epoch *epoch, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "epoch is not written yet");
}
enum profd_status engine_epoch_all(struct store *s, const struct store_scope *scope, struct store_epoch *epoch,
                                   struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "epoch_all is not written yet");
}
enum profd_status engine_get_totals(struct store *s, struct store_totals *t, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_totals is not written yet");
}
enum profd_status engine_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                   int64_t *since, int64_t *until, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_range is not written yet");
}
enum profd_status engine_get_greeting(struct store *s, struct store_centre *out, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_greeting is not written yet");
}
enum profd_status engine_get_centre(struct store *s, struct store_centre *out, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_centre is not written yet");
}
enum profd_status engine_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                   void *context, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_host is not written yet");
}
enum profd_status engine_get_marks(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                   uint32_t *reasons, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_marks is not written yet");
}
enum profd_status engine_verify(struct store *s, struct store_cursor *cursor,
                                void (*mismatch)(void *context, const char *sentence), void *context,
                                uint64_t *uploads_checked, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "verify is not written yet");
}
enum profd_status engine_remove_ids(struct store *s, int64_t before, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "remove_ids is not written yet");
}
enum profd_status engine_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                 struct store_progress *progress, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "compact is not written yet");
}
enum profd_status engine_retire(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "retire is not written yet");
}
enum profd_status engine_admit_hosts(struct store *s, const struct store_arrival *list, size_t n,
                                     struct store_admission *out, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "admit_hosts is not written yet");
}
enum profd_status engine_put_segments(struct store *s, const struct store_delivery *list, size_t n,
                                      struct store_receipt *receipts, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "put_segments is not written yet");
}
enum profd_status engine_get_use(struct store *s, uint32_t uid, uint64_t *bytes, uint64_t *total, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_use is not written yet");
}
enum profd_status engine_find_builds(struct store *s, const struct store_scope *scope, const char *prefix, bool exact,
                                     struct buildid found[2], size_t *count, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "find_builds is not written yet");
}
enum profd_status engine_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                    bool (*each)(void *context, const struct build_row *row), void *context,
                                    struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_build is not written yet");
}
enum profd_status engine_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                      uint64_t *uploads, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "delete_build is not written yet");
}
