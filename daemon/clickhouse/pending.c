/* Verbs that are still to be written: each goes from here when it is. */
#include "clickhouse/engine_internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
enum profd_status engine_remove_ids(struct store *s, int64_t before, struct profd_error *e)
{
    return profd_error_set(e, PROFD_INTERNAL, "remove_ids is not written yet");
}
