/* Verbs that are still to be written: each goes from here when it is. */
#include "clickhouse/engine_internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
enum profd_status engine_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                    struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "has_object is not written yet");
}
enum profd_status engine_get_object(struct store *s, const struct store_senders *of, const char *build_id,
                                    uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_object is not written yet");
}
enum profd_status engine_get_shared_object(struct store *s, const char *build_id, uint8_t **bytes, size_t *size,
                                           struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "get_shared_object is not written yet");
}
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
enum profd_status engine_find_enrolment(struct store *s, const uint8_t host[STORE_HOST_SIZE],
                                        struct store_enrolment *out, bool *found, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "find_enrolment is not written yet");
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
enum profd_status engine_each_reader(struct store *s, bool (*each)(void *context, const struct store_reader *r),
                                     void *context, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_reader is not written yet");
}
enum profd_status engine_each_watch_row(struct store *s, enum store_watch_kind kind,
                                        bool (*each)(void *context, const struct store_watch_row *row), void *context,
                                        struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "each_watch_row is not written yet");
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
enum profd_status engine_put_token(struct store *s, const struct store_token *token, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "put_token is not written yet");
}
enum profd_status engine_enrol(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "enrol is not written yet");
}
enum profd_status engine_renew(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "renew is not written yet");
}
enum profd_status engine_revoke(struct store *s, const char *which, int64_t now,
                                bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "revoke is not written yet");
}
enum profd_status engine_revoke_keys(struct store *s, const uint8_t *keys, const int64_t *times, size_t n,
                                     struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "revoke_keys is not written yet");
}
enum profd_status engine_attest(struct store *s, const struct store_attestation *list, size_t n,
                                struct store_attested *out, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "attest is not written yet");
}
enum profd_status engine_add_reader(struct store *s, const struct store_reader *reader, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "add_reader is not written yet");
}
enum profd_status engine_remove_reader(struct store *s, const char *name, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "remove_reader is not written yet");
}
enum profd_status engine_put_watch_rows(struct store *s, const struct store_watch_row *rows, size_t n,
                                        struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "put_watch_rows is not written yet");
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
enum profd_status engine_put_object(struct store *s, const struct store_object *object, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "put_object is not written yet");
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
