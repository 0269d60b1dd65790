#include "tier/retire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "tier/row_binary.h"
#include "tier/statement.h"
#include "tier/steps.h"

#define ROWS_BYTES (1u << 20)
#define STATEMENT_BYTES 1024u

static bool collect_gone(void *context, const struct store_block *b)
{
    struct retired *r = context;

    if (b->state == STORE_BLOCK_GONE) {
        r->blocks[r->count++] = *b;
    }
    return r->count < RETIRE_AT_ONCE;
}

struct day_asked {
    int64_t day;
    bool used;
};

static bool find_user_of_day(void *context, const struct store_block *b)
{
    struct day_asked *d = context;

    d->used |= b->day == d->day && b->state != STORE_BLOCK_GONE;
    return !d->used;
}

/* Drops this centre's day on one server, or its part of it. */
static enum profd_status drop_day(const struct clickhouse_address *address, struct clickhouse *server, int64_t now,
                                  const struct store_block *b, struct profd_error *e)
{
    struct buffer statement, row;
    char *reply = NULL;

    /* ClickHouse 18.16 refuses reads with select_sequential_consistency while the part that was inserted last with a
     * quorum is not there. So that it is never one of the day, a row that no manifest lists is inserted first. */
    if (address->replicated) {
        buffer_init(&row, ROWS_BYTES);
        rows_put_fixed(&row, b->centre, sizeof b->centre);
        rows_put_i64(&row, now);
        TRY(clickhouse_write(server, STATEMENT_PUT_NOTHING, &row, e));
    }
    buffer_init(&statement, STATEMENT_BYTES);
    statement_drop_day(&statement, b->centre, b->day, address->cluster[0]);
    const enum profd_status status =
        statement.failed ? profd_no_memory(e) : clickhouse_ask(server, statement.data, &reply, e);
    buffer_done(&statement);
    free(reply);
    return status;
}

static enum profd_status drop_days(struct steps *s, int64_t now, const struct retired *r, unsigned server,
                                   struct profd_error *e)
{
    struct clickhouse_address one = clickhouse_pick_server(s->config.address, server);
    struct clickhouse *client = NULL;
    enum profd_status status = clickhouse_open(&one, s->config.ca, &s->limits, &client, e);

    explicit_bzero(one.password, sizeof one.password);
    for (size_t i = 0; i < r->count && !status; i++) {
        struct day_asked day = {.day = r->blocks[i].day};

        status = store_each_block(s->store, find_user_of_day, &day, e);
        if (!status && !day.used) {
            status = drop_day(s->config.address, client, now, &r->blocks[i], e);
        }
        if (status) {
            status = profd_error_wrap(e, status, "the day %" PRId64 " since the epoch cannot be dropped at %s", day.day,
                                      clickhouse_place(client));
        }
    }
    clickhouse_close(client);
    return status;
}

enum profd_status retire_blocks(struct steps *s, int64_t now, struct retired *out, struct profd_error *e)
{
    struct buffer rows;
    enum profd_status status = PROFD_OK;

    out->count = 0;
    TRY(store_each_block(s->store, collect_gone, out, e));
    if (out->count == 0) {
        return PROFD_OK;
    }
    buffer_init(&rows, ROWS_BYTES);
    for (size_t i = 0; i < out->count; i++) {
        const struct statement_manifest row = {.block = &out->blocks[i],
                                               .name = s->config.name,
                                               .state = STATEMENT_DROPPED,
                                               .now = now,
                                               .version = STATEMENT_DROPPED_VERSION};
        statement_add_manifest(&rows, &row);
    }
    TRY(clickhouse_write(s->lanes[0].client, STATEMENT_PUT_MANIFEST, &rows, e));
    /* After a failure of one server, the others are asked, too. */
    for (unsigned i = 0; i < s->config.address->server_count; i++) {
        struct profd_error why;
        const enum profd_status one = drop_days(s, now, out, i, &why);

        if (one && !status) {
            status = one;
            *e = why;
        }
    }
    return status;
}
