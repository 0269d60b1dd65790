/* Verbs that are still to be written: each goes from here when it is. */
#include "clickhouse/engine_internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
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
