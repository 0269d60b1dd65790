#include "tier/tombstone.h"

#include "tier/clickhouse.h"
#include "tier/row_binary.h"
#include "tier/statement.h"

#define ROWS_BYTES (64u << 20)
#define ROUNDS 100 /* in which centres make blocks visible while a deletion is written */

/* The tombstones that were written so far. */
struct writing {
    const struct tombstone_order *order;
    struct arena *arena;
    struct store_tombstone *list;
    uint32_t count, capacity;
};

/* Covers a block of a centre; nothing changes if it is covered already. */
static enum profd_status writing_cover(struct writing *w, const uint8_t centre[STORE_CENTRE_SIZE], uint64_t block,
                                       struct profd_error *e)
{
    const bool own = !memcmp(centre, w->order->centre, STORE_CENTRE_SIZE);
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->list[i].block >= block && !memcmp(w->list[i].centre, centre, STORE_CENTRE_SIZE)) {
            return PROFD_OK;
        }
    }
    for (size_t i = 0; i < w->order->tenant_count; i++) {
        if (!own && !strncmp(w->order->tenants[i], "uid ", 4)) {
            continue; /* another centre's user of that number is another user */
        }
        w->list = arena_extend(w->arena, w->list, w->count, &w->capacity, sizeof *w->list);
        TRY(w->list ? PROFD_OK : profd_no_memory(e));
        struct store_tombstone *t = &w->list[w->count++];
        *t = (struct store_tombstone){
            .tenant = w->order->tenants[i], .build = w->order->build, .block = block, .deleted = w->order->deleted};
        memcpy(t->centre, centre, sizeof t->centre);
    }
    return PROFD_OK;
}

/* Covers the last block of each centre. */
static enum profd_status writing_look(struct writing *w, struct clickhouse *client, struct profd_error *e)
{
    struct row_reader r;
    enum profd_status status = PROFD_OK;
    TRY(clickhouse_take(client, STATEMENT_LAST_BLOCKS, &r, e));
    while (rows_more(&r) && !status) {
        uint8_t centre[STORE_CENTRE_SIZE];
        rows_fixed(&r, centre, sizeof centre);
        const uint32_t block = rows_u32(&r);
        status = r.cut ? PROFD_OK : writing_cover(w, centre, block, e);
    }
    status = status || !r.cut ? status : profd_error_set(e, PROFD_PROTOCOL, "a list of ClickHouse's blocks is cut off");
    rows_close(&r);
    return status;
}

static void add_tombstone(struct buffer *rows, const struct store_tombstone *t)
{
    rows_put_text(rows, t->tenant);
    rows_put_text(rows, t->build);
    rows_put_fixed(rows, t->centre, sizeof t->centre);
    rows_put_u32(rows, (uint32_t)t->block);
    rows_put_i64(rows, t->deleted);
}

static enum profd_status writing_insert(const struct writing *w, uint32_t from, struct clickhouse *client,
                                        struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, ROWS_BYTES);
    for (uint32_t i = from; i < w->count; i++) {
        add_tombstone(&rows, &w->list[i]);
    }
    return clickhouse_write(client, STATEMENT_PUT_TOMBSTONES, &rows, e);
}

enum profd_status tombstone_write(struct clickhouse *c, const struct tombstone_order *order, struct arena *a,
                                  struct store_tombstone **out, size_t *count, struct profd_error *e)
{
    struct writing w = {.order = order, .arena = a};
    uint32_t written = 0;
    enum profd_status status = writing_cover(&w, order->centre, order->block, e);
    /* A block that became visible before the tombstones did has only what was there before them. */
    for (int round = 0; !status && round < ROUNDS; round++) {
        status = writing_look(&w, c, e);
        if (status || written == w.count) {
            break;
        }
        status = writing_insert(&w, written, c, e);
        written = w.count;
    }
    TRY(status);
    *out = w.list;
    *count = w.count;
    return PROFD_OK;
}

static bool is_same(const struct store_tombstone *a, const struct store_tombstone *b)
{
    return a->block == b->block && a->deleted == b->deleted && !memcmp(a->centre, b->centre, sizeof a->centre) &&
           !strcmp(a->build, b->build) && !strcmp(a->tenant, b->tenant);
}

enum profd_status tombstone_cover(struct clickhouse *c, const struct store_tombstone *list, size_t n,
                                  struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, ROWS_BYTES);
    for (size_t i = 0; i < n; i++) {
        struct store_tombstone cover = list[i];
        cover.block = list[i].beyond;
        cover.deleted = store_cover_deleted(&list[i]);
        bool there = !cover.block;
        for (size_t k = 0; k < n && !there; k++) {
            there = is_same(&cover, &list[k]);
        }
        if (!there) {
            add_tombstone(&rows, &cover);
        }
    }
    return rows.size || rows.failed ? clickhouse_write(c, STATEMENT_PUT_TOMBSTONES, &rows, e) : PROFD_OK;
}

enum profd_status tombstone_read(struct clickhouse *c, struct arena *a, uint64_t *known, struct store_tombstone **out,
                                 size_t *count, struct profd_error *e)
{
    struct row_reader r;
    uint64_t there;
    size_t n = 0;
    TRY(clickhouse_take_number(c, STATEMENT_COUNT_TOMBSTONES, &there, e));
    *count = 0;
    if (there == *known) {
        return PROFD_OK;
    }
    TRY(clickhouse_take(c, STATEMENT_LIST_TOMBSTONES, &r, e));
    const size_t most = (size_t)(r.end - r.at) / (STORE_CENTRE_SIZE + 14); /* bytes of the smallest row */
    struct store_tombstone *list = ARENA_ARRAY(a, most + 1, struct store_tombstone);
    enum profd_status status = list ? PROFD_OK : profd_no_memory(e);
    for (; !status && rows_more(&r) && n < most; n++) {
        struct store_tombstone *t = &list[n];
        struct buildid id;
        t->beyond = 0;
        t->tenant = rows_text(&r, a);
        t->build = rows_text(&r, a);
        rows_fixed(&r, t->centre, sizeof t->centre);
        t->block = rows_u32(&r);
        t->deleted = rows_i64(&r);
        if (r.cut || !t->tenant || !t->build || buildid_parse(t->build, strlen(t->build), &id, e)) {
            status = profd_error_set(e, PROFD_PROTOCOL, "tombstone %zu of ClickHouse names no tenant and build", n + 1);
        }
    }
    rows_close(&r);
    TRY(status);
    *known = n;
    *out = list;
    *count = n;
    return PROFD_OK;
}
