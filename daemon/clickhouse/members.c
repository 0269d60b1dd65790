#include "clickhouse/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 3000
#define ANSWER_MS 20000
#define REPLY_BYTES (1u << 20)

bool engine_is_spread(const char *table, size_t size)
{
    static const char *const spread[] = {"segment_group", "arrival", "rollup", "host_day"};
    bool is = false;
    for (size_t i = 0; i < sizeof spread / sizeof spread[0] && !is; i++) {
        is = strlen(spread[i]) == size && memcmp(table, spread[i], size) == 0;
    }
    return is;
}

enum profd_status engine_open_server(const struct clickhouse_store *s, unsigned server, struct clickhouse **out,
                                     struct profd_error *e)
{
    const struct clickhouse_limits limits = {
        .connect_ms = CONNECT_MS, .answer_ms = ANSWER_MS, .reply_bytes = REPLY_BYTES, .until = &s->base.until};
    struct clickhouse_address one = clickhouse_pick_server(&s->address, server);
    const enum profd_status status = clickhouse_open(&one, s->ca, &limits, out, e);
    explicit_bzero(&one, sizeof one);
    return status;
}

/* Connects to a server of the address, unless it is connected, and reads of which shard it is. */
static enum profd_status member_open(struct clickhouse_store *s, unsigned server, struct engine_member **out,
                                     struct profd_error *e)
{
    struct engine_member *m = &s->members[server];
    char statement[160 + CLICKHOUSE_NAME_MAX], *reply = NULL;
    enum profd_status status = m->server ? PROFD_OK : engine_open_server(s, server, &m->server, e);
    if (status == PROFD_OK && m->shard == 0) {
        (void)snprintf(statement, sizeof statement,
                       "SELECT max(shard_num) FROM system.clusters WHERE cluster = '%s' AND is_local",
                       s->address.cluster);
        status = clickhouse_ask(m->server, statement, &reply, e);
        m->shard = status == PROFD_OK ? (unsigned)strtoul(reply, NULL, 10) : 0;
        free(reply);
        if (status == PROFD_OK && m->shard == 0) {
            status = profd_error_set(e, PROFD_REFUSED, "the server %s says that it is in no shard of cluster \"%s\"",
                                     s->address.servers[server].host, s->address.cluster);
        }
        if (status == PROFD_OK) {
            status = clickhouse_use(m->server, &s->address, e);
        }
        m->shard = status == PROFD_OK ? m->shard : 0;
    }
    *out = m;
    return status;
}

static enum profd_status count_shards(struct clickhouse_store *s, struct profd_error *e)
{
    char statement[160 + CLICKHOUSE_NAME_MAX], *reply = NULL;
    (void)snprintf(statement, sizeof statement, "SELECT max(shard_num) FROM system.clusters WHERE cluster = '%s'",
                   s->address.cluster);
    const enum profd_status status = s->shards > 0 ? PROFD_OK : clickhouse_ask(s->server, statement, &reply, e);
    if (status == PROFD_OK && s->shards == 0) {
        s->shards = (unsigned)strtoul(reply, NULL, 10);
    }
    free(reply);
    return status;
}

/* Inserts on the first server of a shard that can. *named: the address has one. */
static enum profd_status insert_shard(struct clickhouse_store *s, unsigned shard, const char *statement,
                                      const struct buffer *rows, bool *named, struct profd_error *e)
{
    struct profd_error other;
    enum profd_status status = PROFD_UNAVAILABLE;
    *named = false;
    for (unsigned i = 0; i < s->address.server_count && status != PROFD_OK; i++) {
        struct engine_member *m;
        const enum profd_status opened = member_open(s, i, &m, &other);
        if (opened == PROFD_OK && m->shard == shard) {
            *named = true;
            status = clickhouse_insert(m->server, statement, rows->data, rows->size, e);
        } else if (opened != PROFD_OK && !*named) {
            *e = other;
            status = opened;
        }
    }
    return status;
}

enum profd_status engine_insert_everywhere(struct clickhouse_store *s, const char *statement, const struct buffer *rows,
                                           struct profd_error *e)
{
    enum profd_status status = count_shards(s, e);
    for (unsigned shard = 1; shard <= s->shards && status == PROFD_OK; shard++) {
        bool named;
        status = insert_shard(s, shard, statement, rows, &named, e);
        if (status == PROFD_UNAVAILABLE && !named) {
            status = profd_error_set(e, PROFD_REFUSED,
                                     "no server that the URL names, and that can be asked, has shard %u of cluster "
                                     "\"%s\": name a server of each shard",
                                     shard, s->address.cluster);
        }
    }
    return status;
}
