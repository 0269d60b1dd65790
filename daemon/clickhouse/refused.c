/* Verbs that do not apply to a centre of many daemons: a host's own profd takes uploads and live processes, and
 * forwards them. */
#include <string.h>

#include "clickhouse/engine_internal.h"

static enum profd_status refuse(struct profd_error *e, const char *what)
{
    return profd_error_set(e, PROFD_REFUSED,
                           "this centre keeps its data in ClickHouse and takes segments of hosts only: %s", what);
}

enum profd_status engine_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e)
{
    (void)s, (void)uploads, (void)n, (void)outcomes;
    return refuse(e, "upload to the profd of a host that relays to it");
}

enum profd_status engine_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                    struct profd_error *e)
{
    (void)s, (void)upload, (void)e;
    *counted = false;
    return PROFD_OK;
}

enum profd_status engine_put_harvests(struct store *s, const struct store_harvest *harvests, size_t n,
                                      enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    (void)s, (void)harvests, (void)n, (void)outcomes;
    return refuse(e, "live processes are read by the profd of a host that relays to it");
}

/* There are no live processes. */

enum profd_status engine_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    (void)s, (void)uid, (void)instance, (void)e;
    *generation = 0;
    *snapshot = NULL;
    *size = 0;
    return PROFD_OK;
}

enum profd_status engine_each_namesake(struct store *s, const uint8_t instance[STORE_INSTANCE_SIZE],
                                       bool (*each)(void *context, const struct store_instance *i), void *context,
                                       struct profd_error *e)
{
    (void)s, (void)instance, (void)each, (void)context, (void)e;
    return PROFD_OK;
}

enum profd_status engine_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e)
{
    (void)s, (void)each, (void)context, (void)e;
    return PROFD_OK;
}

enum profd_status engine_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                    const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    (void)s, (void)kind, (void)scope, (void)filter, (void)e;
    *out = (struct store_living){.processes = 0};
    return PROFD_OK;
}

enum profd_status engine_set_unread(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                    struct profd_error *e)
{
    (void)s, (void)uid, (void)instance;
    return refuse(e, "it has no live processes");
}

enum profd_status engine_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                    size_t *size, struct profd_error *e)
{
    (void)s, (void)uid, (void)build_id, (void)e;
    *bytes = NULL;
    *size = 0; /* only uploads are compared with bounds */
    return PROFD_OK;
}

/* It forwards nothing, so it attests nothing. */

enum profd_status engine_get_shared_object(struct store *s, const char *build_id, uint8_t **bytes, size_t *size,
                                           struct profd_error *e)
{
    (void)s, (void)build_id, (void)bytes, (void)size;
    return refuse(e, "it cannot relay to another centre");
}

enum profd_status engine_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e)
{
    (void)s, (void)epoch;
    return refuse(e, "it cannot relay to another centre");
}

enum profd_status engine_relay_resolve(struct store *s, const struct store_verdict *verdict, bool *apart,
                                       struct profd_error *e)
{
    (void)s, (void)verdict, (void)apart;
    return refuse(e, "it cannot relay to another centre");
}

enum profd_status engine_relay_meet(struct store *s, const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup,
                                    uint64_t *again, struct profd_error *e)
{
    (void)s, (void)incarnation, (void)backup, (void)again;
    return refuse(e, "it cannot relay to another centre");
}

enum profd_status engine_seal_segments(struct store *s, uint64_t through, bool stacks, int64_t now,
                                       struct store_sealed *sealed, struct profd_error *e)
{
    (void)s, (void)through, (void)stacks, (void)now, (void)e;
    *sealed = (struct store_sealed){.segments = 0};
    return PROFD_OK;
}

enum profd_status engine_each_segment(struct store *s, uint64_t after,
                                      bool (*each)(void *context, const struct store_segment *segment), void *context,
                                      struct profd_error *e)
{
    (void)s, (void)after, (void)each, (void)context, (void)e;
    return PROFD_OK;
}

enum profd_status engine_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                              int64_t now, struct profd_error *e)
{
    (void)s, (void)list, (void)n, (void)now;
    return refuse(e, "it cannot relay to another centre");
}

enum profd_status engine_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                       struct store_progress *progress, struct profd_error *e)
{
    (void)s, (void)policy, (void)now, (void)e;
    *progress = (struct store_progress){.more = false};
    return PROFD_OK;
}

enum profd_status engine_get_relay(struct store *s, struct store_relay *out, struct profd_error *e)
{
    (void)s, (void)e;
    *out = (struct store_relay){.active = false};
    return PROFD_OK;
}

/* ClickHouse does that. */

enum profd_status engine_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                      struct profd_error *e)
{
    (void)s, (void)path, (void)out;
    return profd_error_set(e, PROFD_REFUSED,
                           "this centre keeps its data in ClickHouse: make backups with ClickHouse's own tools, as "
                           "profd(8) says under \"Outgrowing one machine\"");
}

enum profd_status engine_migrate(struct store *s, struct store_progress *progress, struct profd_error *e)
{
    (void)s, (void)e;
    *progress = (struct store_progress){.more = false};
    return PROFD_OK;
}

enum profd_status engine_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e)
{
    (void)s, (void)bytes, (void)e;
    *progress = (struct store_progress){.more = false};
    return PROFD_OK;
}

enum profd_status engine_look(struct store *s, struct profd_error *e)
{
    (void)s, (void)e;
    return PROFD_OK; /* there is no file */
}
