#include "tier/retire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "tier/row_binary.h"
#include "tier/statement.h"

#define ROWS_BYTES (1u << 20)
#define STATEMENT_BYTES 1024u

struct retiring {
    const struct retire_setup *setup;
    struct store_block *gone;
    size_t gone_count, capacity;
    struct clickhouse *server; /* one of the servers */
    bool failed;               /* no memory for a block */
};

static bool collect_gone(void *context, const struct store_block *b)
{
    struct retiring *r = context;

    if (b->state != STORE_BLOCK_GONE || r->gone_count == RETIRE_AT_ONCE) {
        return r->gone_count < RETIRE_AT_ONCE;
    }
    if (r->gone_count == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 16;
        struct store_block *more = realloc(r->gone, capacity * sizeof *more);

        if (!more) {
            r->failed = true;
            return false;
        }
        r->gone = more;
        r->capacity = capacity;
    }
    r->gone[r->gone_count++] = *b;
    return true;
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
static enum profd_status drop_on_server(struct retiring *r, const struct store_block *b, struct profd_error *e)
{
    const bool cluster = r->setup->address->cluster[0];
    struct buffer statement, row;
    char *reply = NULL;

    /* ClickHouse 18.16 refuses reads with select_sequential_consistency while the part that was inserted last with a
     * quorum is not there. So that it is never one of the day, a row that no manifest lists is inserted first. */
    if (r->setup->address->replicated) {
        buffer_init(&row, ROWS_BYTES);
        rows_put_fixed(&row, b->centre, sizeof b->centre);
        rows_put_i64(&row, r->setup->now);
        TRY(clickhouse_write(r->server, STATEMENT_PUT_NOTHING, &row, e));
    }
    buffer_init(&statement, STATEMENT_BYTES);
    statement_drop_day(&statement, b->centre, b->day, cluster);
    const enum profd_status status =
        statement.failed ? profd_no_memory(e) : clickhouse_ask(r->server, statement.data, &reply, e);
    buffer_done(&statement);
    free(reply);
    return status;
}

static enum profd_status drop_days(struct retiring *r, struct store *s, unsigned server, struct profd_error *e)
{
    struct clickhouse_address one = clickhouse_pick_server(r->setup->address, server);
    enum profd_status status = clickhouse_open(&one, r->setup->ca, r->setup->limits, &r->server, e);

    explicit_bzero(one.password, sizeof one.password);
    for (size_t i = 0; i < r->gone_count && !status; i++) {
        struct day_asked day = {.day = r->gone[i].day};

        status = store_each_block(s, find_user_of_day, &day, e);
        if (!status && !day.used) {
            status = drop_on_server(r, &r->gone[i], e);
        }
        if (status) {
            status = profd_error_wrap(e, status, "the day %" PRId64 " since the epoch cannot be dropped at %s",
                                      r->gone[i].day, clickhouse_place(r->server));
        }
    }
    clickhouse_close(r->server);
    r->server = NULL;
    return status;
}

static enum profd_status hide_blocks(const struct retiring *r, struct clickhouse *client, struct profd_error *e)
{
    struct buffer rows;

    buffer_init(&rows, ROWS_BYTES);
    for (size_t i = 0; i < r->gone_count; i++) {
        const struct statement_manifest row = {.block = &r->gone[i],
                                               .name = r->setup->name,
                                               .state = STATEMENT_DROPPED,
                                               .now = r->setup->now,
                                               .version = STATEMENT_DROPPED_VERSION};
        statement_add_manifest(&rows, &row);
    }
    return clickhouse_write(client, STATEMENT_PUT_MANIFEST, &rows, e);
}

enum profd_status retire_blocks(const struct retire_setup *setup, struct clickhouse *client, struct store *s,
                                struct retired *out, struct profd_error *e)
{
    struct retiring r = {.setup = setup};
    enum profd_status status = store_each_block(s, collect_gone, &r, e);

    status = status || !r.failed ? status : profd_no_memory(e);
    if (!status && r.gone_count > 0) {
        status = hide_blocks(&r, client, e);
    }
    /* After a failure of one server, the others are asked, too. */
    const unsigned servers = !status && r.gone_count > 0 ? setup->address->server_count : 0;
    for (unsigned i = 0; i < servers; i++) {
        struct profd_error why;
        const enum profd_status one = drop_days(&r, s, i, &why);

        if (one && !status) {
            status = one;
            *e = why;
        }
    }
    out->count = 0;
    for (size_t i = 0; i < r.gone_count && !status; i++) {
        out->numbers[out->count++] = r.gone[i].number;
    }
    free(r.gone);
    return status;
}
