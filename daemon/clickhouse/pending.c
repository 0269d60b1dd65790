/* Verbs that are still to be written: each goes from here when it is. */
#include "clickhouse/engine_internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
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
