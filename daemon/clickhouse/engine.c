#include "clickhouse/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clickhouse/engine_internal.h"

#define REPLY_BYTES (512u << 20)
#define STATEMENT_BYTES (64u << 20)
#define CONNECT_MS 3000
#define ANSWER_MS 20000
#define CACHE_BYTES (32u << 20)
#define AWAITED_BYTES (96u << 20)

static void engine_close(struct store *base)
{
    struct clickhouse_store *s = engine_self(base);
    if (s->compacting) {
        s->compacting_free(s->compacting);
    }
    if (s->end_storing) {
        s->end_storing(s);
    }
    clickhouse_close(s->server);
    for (unsigned i = 0; i < CLICKHOUSE_SERVERS_MOST; i++) {
        clickhouse_close(s->members[i].server);
    }
    buffer_done(&s->statement);
    hashmap_clear(&s->series);
    hashmap_clear(&s->changes);
    hashmap_clear(&s->versions);
    hashmap_clear(&s->deletions);
    hashmap_clear(&s->tenants);
    hashmap_clear(&s->awaited);
    hashmap_clear(&s->rows);
    hashmap_clear(&s->row_hours);
    free(s->ca);
    explicit_bzero(&s->address, sizeof s->address);
    free(s);
}

#define ENGINE_VERB(name, parameters, arguments) .name = engine_##name,
static const struct store_ops engine_ops = {.close = engine_close, STORE_VERBS(ENGINE_VERB)};
#undef ENGINE_VERB

enum profd_status store_clickhouse_open(const struct clickhouse_address *address, const char *ca, bool writable,
                                        struct store **out, struct profd_error *e)
{
    struct clickhouse_store *s = calloc(1, sizeof *s);
    if (!s) {
        return profd_no_memory(e);
    }
    const struct clickhouse_limits limits = {
        .connect_ms = CONNECT_MS, .answer_ms = ANSWER_MS, .reply_bytes = REPLY_BYTES, .until = &s->base.until};
    s->base = (struct store){.ops = &engine_ops, .writable = writable};
    s->address = *address;
    buffer_init(&s->statement, STATEMENT_BYTES);
    hashmap_init(&s->series, CACHE_BYTES);
    hashmap_init(&s->changes, 0);
    hashmap_init(&s->versions, 0);
    hashmap_init(&s->deletions, CACHE_BYTES);
    hashmap_init(&s->tenants, 0);
    hashmap_init(&s->awaited, AWAITED_BYTES);
    hashmap_init(&s->rows, 0);
    hashmap_init(&s->row_hours, 0);
    if (getrandom(&s->writer, sizeof s->writer, 0) != (ssize_t)sizeof s->writer) {
        engine_close(&s->base);
        return profd_error_set(e, PROFD_INTERNAL, "no random numbers");
    }
    s->ca = ca ? strdup(ca) : NULL;
    if (ca && !s->ca) {
        engine_close(&s->base);
        return profd_no_memory(e);
    }
    enum profd_status status = clickhouse_open(address, ca, &limits, &s->server, e);
    if (status == PROFD_OK) {
        status = clickhouse_use(s->server, address, e);
    }
    if (status != PROFD_OK) {
        engine_close(&s->base);
        return status;
    }
    *out = &s->base;
    return PROFD_OK;
}
