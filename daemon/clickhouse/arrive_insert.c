/* What a batch of segments inserts. */
#include <string.h>

#include "clickhouse/arriving.h"
#include "clickhouse/removal.h"

#define ROWS_BYTES (32u << 20) /* of an insert, about */
#define BUFFER_BYTES (512u << 20)

/* --- Rows of tables that are divided by days --- */

enum profd_status engine_rows_flush(struct clickhouse_store *s, struct engine_rows *rows, struct profd_error *e)
{
    const enum profd_status status = engine_insert(s, rows->columns, &rows->rows, e);
    rows->rows.size = 0;
    rows->day_count = 0;
    return status;
}

/* The position of a day among those of the rows; their number: it is none of them. */
static size_t find_day(const struct engine_rows *rows, int64_t day)
{
    size_t i = 0;
    while (i < rows->day_count && rows->days[i] != day) {
        i++;
    }
    return i;
}

bool engine_rows_are_full(const struct engine_rows *rows, int64_t day)
{
    return rows->rows.size > ROWS_BYTES || find_day(rows, day) == sizeof rows->days / sizeof rows->days[0];
}

enum profd_status engine_rows_reserve(struct clickhouse_store *s, struct engine_rows *rows, int64_t day,
                                      struct profd_error *e)
{
    const enum profd_status status = engine_rows_are_full(rows, day) ? engine_rows_flush(s, rows, e) : PROFD_OK;
    if (find_day(rows, day) == rows->day_count) {
        rows->days[rows->day_count++] = day;
    }
    return status;
}

/* --- The batch --- */

enum profd_status arriving_insert_series(struct arriving *x, struct profd_error *e)
{
    const enum profd_status status = engine_insert(x->s,
                                                   "series (series, number, writer, uid, program, builds, names, "
                                                   "label_names, label_values)",
                                                   &x->series, e);
    x->series.size = 0;
    return status;
}

static enum profd_status insert_hosts(struct arriving *x, struct profd_error *e)
{
    struct buffer rows;
    size_t position = 0;
    const void *key;
    buffer_init(&rows, BUFFER_BYTES);
    for (struct engine_host *const *h; (h = hashmap_next(&x->changed, &position, &key));) {
        engine_put_host(x->s, *h, &rows);
    }
    const enum profd_status status = engine_insert(x->s, ENGINE_HOST_COLUMNS, &rows, e);
    buffer_done(&rows);
    return status;
}

/* Everything that arrivals refer to. */
static enum profd_status insert_first(struct arriving *x, struct profd_error *e)
{
    enum profd_status status = arriving_insert_series(x, e);
    if (status == PROFD_OK) {
        status = engine_rows_flush(x->s, &x->groups, e);
    }
    if (status == PROFD_OK) {
        status = engine_insert(x->s, "quarantine (epoch, sequence, number, received, reason, size, bytes)",
                               &x->quarantine, e);
    }
    if (status == PROFD_OK) {
        status = engine_insert(x->s, ENGINE_MARK_COLUMNS, &x->marks, e);
    }
    for (size_t i = 0; i < x->marked_count && status == PROFD_OK; i++) {
        status = engine_touch_tenant(x->s, x->marked_uids[i], e);
    }
    if (status == PROFD_OK) {
        status = engine_await_objects(x->s, x->awaited, x->awaited_count, e);
    }
    if (status == PROFD_OK) {
        status = insert_hosts(x, e);
    }
    return status == PROFD_OK ? engine_insert(x->s, "epoch_host (epoch, number, host)", &x->epoch_rows, e) : status;
}

static bool is_rival(const struct arriving *x, const struct store_delivery *d)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    return hashmap_find(&x->rivals, key, sizeof key);
}

/* rivals: only those that have some. */
static enum profd_status insert_arrivals(struct arriving *x, bool rivals, struct profd_error *e)
{
    struct engine_rows to = {.columns = "arrival (epoch, sequence, received, number, digest, outcome, host, program, "
                                        "series, hour, uid, generation, uploads, ticks, calls)"};
    enum profd_status status = PROFD_OK;
    buffer_init(&to.rows, BUFFER_BYTES);
    for (size_t i = 0; i < x->fresh_count && status == PROFD_OK; i++) {
        const struct store_delivery *d = x->fresh[i];
        uint8_t key[ARRIVAL_KEY_SIZE];
        struct buffer *b = &to.rows;
        if (rivals && !is_rival(x, d)) {
            continue;
        }
        arrival_key(d->epoch, d->sequence, key);
        const struct arrival *v = hashmap_find(&x->keys, key, sizeof key);
        status = engine_rows_reserve(x->s, &to, v->received / ENGINE_DAY, e);
        rows_put_fixed(b, d->epoch, sizeof d->epoch);
        rows_put_u64(b, d->sequence);
        rows_put_i64(b, v->received);
        rows_put_u64(b, v->number);
        rows_put_fixed(b, v->digest, sizeof v->digest);
        rows_put_u8(b, (uint8_t)v->outcome);
        rows_put_u32(b, v->slot);
        rows_put_text(b, v->program);
        rows_put_fixed(b, v->series, sizeof v->series);
        rows_put_u32(b, v->hour);
        rows_put_u32(b, v->uid);
        rows_put_u32(b, v->generation);
        rows_put_u64(b, v->amount.uploads);
        rows_put_u64(b, v->amount.ticks);
        rows_put_u64(b, v->amount.calls);
    }
    if (status == PROFD_OK) {
        status = engine_rows_flush(x->s, &to, e);
    }
    buffer_done(&to.rows);
    return status;
}

struct change_key {
    uint8_t series[ENGINE_SERIES_SIZE];
    uint32_t hour, generation;
};
struct change {
    uint64_t count;
    uint32_t sent_from, sent_to;
};

/* Increments the handle's counter of each hour that has changed, once. */
static enum profd_status insert_changes(struct arriving *x, struct profd_error *e)
{
    struct engine_rows to = {.columns =
                                 "change (program, series, hour, generation, writer, count, sent_from, sent_to)"};
    struct hashmap done; /* struct change_key → struct counted * */
    enum profd_status status = PROFD_OK;
    size_t position = 0;
    const void *key;
    hashmap_init(&done, 0);
    buffer_init(&to.rows, BUFFER_BYTES);
    for (const struct counted *c = x->counted; c && status == PROFD_OK; c = c->next) {
        struct change_key k = {.hour = c->hour, .generation = c->generation};
        const struct change none = {.sent_from = c->sent, .sent_to = c->sent};
        memcpy(k.series, c->series, sizeof k.series);
        struct change *change = hashmap_find(&x->s->changes, &k, sizeof k);
        if (!change) {
            change = hashmap_put(&x->s->changes, &k, sizeof k, &none, sizeof none);
        }
        if (!change || (!hashmap_find(&done, &k, sizeof k) && !hashmap_put(&done, &k, sizeof k, &c, sizeof(void *)))) {
            status = profd_no_memory(e);
        } else {
            change->sent_from = c->sent < change->sent_from ? c->sent : change->sent_from;
            change->sent_to = c->sent > change->sent_to ? c->sent : change->sent_to;
        }
    }
    for (struct counted **c; status == PROFD_OK && (c = hashmap_next(&done, &position, &key));) {
        struct change_key k;
        memcpy(&k, key, sizeof k);
        struct change *change = hashmap_find(&x->s->changes, &k, sizeof k);
        status = engine_rows_reserve(x->s, &to, k.hour / 24, e);
        rows_put_text(&to.rows, (*c)->program);
        rows_put_fixed(&to.rows, k.series, sizeof k.series);
        rows_put_u32(&to.rows, k.hour);
        rows_put_u32(&to.rows, k.generation);
        rows_put_u64(&to.rows, x->s->writer);
        rows_put_u64(&to.rows, ++change->count);
        rows_put_u32(&to.rows, change->sent_from);
        rows_put_u32(&to.rows, change->sent_to);
    }
    if (status == PROFD_OK) {
        status = engine_rows_flush(x->s, &to, e);
    }
    hashmap_clear(&done);
    buffer_done(&to.rows);
    return status;
}

/* Merges the partitions of the segments that have rivals, so that only the latest of their rows are left. */
static enum profd_status merge_days(struct arriving *x, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint32_t before = UINT32_MAX;
    for (size_t i = 0; i < x->n && status == PROFD_OK; i++) {
        if (!is_rival(x, &x->list[i])) {
            continue;
        }
        const uint32_t day = segment_row_sent(x->list[i].segment) / 24;
        status = day == before ? PROFD_OK : engine_merge_day(x->s, "segment_group", day, e);
        before = day;
    }
    return status;
}

static enum profd_status yield_all(struct arriving *x, arriving_yield *yield, struct profd_error *e)
{
    enum profd_status status = arriving_load_settled(x, e);
    for (size_t i = 0; i < x->n && status == PROFD_OK; i++) {
        status = is_rival(x, &x->list[i]) ? yield(x, &x->list[i], e) : PROFD_OK;
    }
    if (status == PROFD_OK) {
        status = engine_rows_flush(x->s, &x->groups, e);
    }
    if (status == PROFD_OK) {
        status = merge_days(x, e);
    }
    return status == PROFD_OK ? insert_arrivals(x, true, e) : status;
}

/* Two daemons were given the same segments at the same time, and stored them in two places. At least one of them sees
 * that here, after its insert. The other may have seen nothing, and its arrival is on the way: so the place of the
 * other one counts. If both have seen it, the first that has the lock says where they have arrived. The host sends
 * again, to what has arrived then. */
static enum profd_status settle_rivals(struct arriving *x, arriving_yield *yield, struct profd_error *e)
{
    struct engine_lock lock;
    enum profd_status status = arriving_load_rivals(x, e);
    if (status != PROFD_OK || x->rivals.count == 0) {
        return status;
    }
    status = engine_lock_take(x->s, "segment", &lock, e);
    if (status == PROFD_OK) {
        status = engine_lock_give(x->s, &lock, yield_all(x, yield, e));
    }
    return status == PROFD_OK ? profd_error_set(e, PROFD_BUSY,
                                                "store: another daemon was given the same segments at the same time; "
                                                "send them again")
                              : status;
}

enum profd_status arriving_insert(struct arriving *x, arriving_yield *yield, struct profd_error *e)
{
    enum profd_status status = insert_first(x, e);
    if (status == PROFD_OK) {
        status = settle_rivals(x, yield, e);
    }
    if (status == PROFD_OK) {
        status = insert_arrivals(x, false, e);
    }
    if (status == PROFD_OK) {
        status = insert_changes(x, e);
    }
    return status == PROFD_OK ? engine_touch(x->s, x->touched, x->touched_count, e) : status;
}
