/* ADMIN tier-init: on a thread of its own, because it waits for ClickHouse. */
#include "core/container.h"
#include "base/log.h"
#include "requests/admin_internal.h"
#include "tier/init.h"

#define CONNECT_MS 10000
#define ANSWER_MS 120000 /* of a statement: replicated tables are made slowly */
#define REPLY_BYTES (1u << 20)

static bool admin_tier_stopped(void *context)
{
    const struct admin *a = context;

    return atomic_load(&a->gone) || atomic_load(&a->service->stopped);
}

static void admin_tier_run(void *context, struct work_item *const *items, size_t n)
{
    struct admin *a = container_of(items[0], struct admin, item); /* the batches are of one */
    const struct clickhouse_limits limits = {.connect_ms = CONNECT_MS,
                                             .answer_ms = ANSWER_MS,
                                             .reply_bytes = REPLY_BYTES,
                                             .stopped = admin_tier_stopped,
                                             .context = a};
    const struct admin_config *c = &a->service->config;
    struct tier_made made;
    json_t *rows;

    (void)context;
    (void)n;
    a->status = tier_init(c->tier, c->tier_ca, &limits, &made, &a->error);
    if (a->status) {
        return;
    }
    rows = json_array();
    for (unsigned i = 0; i < made.count; i++) {
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:b}", "server", made.servers[i].place, "version",
                                              made.servers[i].version, "database", c->tier->database, "made",
                                              made.servers[i].made));
    }
    a->answer = json_pack("{s:o}", "rows", rows);
}

static void admin_tier_done(void *context, struct work_item *item)
{
    struct admin *a = container_of(item, struct admin, item);

    (void)context;
    if (!a->status) {
        log_write(LOG_LEVEL_NOTICE, NULL, "user %u made the tables of the tier, or found them there", a->uid);
    }
    admin_end(a);
}

enum profd_status admin_start_tier(struct admin_service *s, struct profd_error *e)
{
    const struct work_config config = {.name = "profd-tier-init",
                                       .threads = 1,
                                       .queue_max = 4,
                                       .queue_max_uid = 4,
                                       .batch_max = 1,
                                       .run = admin_tier_run,
                                       .done = admin_tier_done};

    return s->config.tier ? work_new(s->config.loop, &config, &s->tier, e) : PROFD_OK;
}

enum profd_status admin_begin_tier(struct admin *a, struct profd_error *e)
{
    if (!a->service->tier) {
        return profd_error_set(e, PROFD_REFUSED, "no tier is configured: the key tier of profd.conf(5) names it");
    }
    a->item.uid = a->uid;
    return work_put(a->service->tier, &a->item)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "too many requests for the tier are in progress");
}
