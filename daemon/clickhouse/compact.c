/* Upkeep of sums: rollups of hours that are over, and totals of days by host. What is made follows from the segments
 * and replaces itself, so any number of daemons may do this at the same time. A day is looked at again when its changes
 * say so. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clickhouse/host_totals.h"
#include "clickhouse/removal.h"
#include "clickhouse/segment_sums.h"

#define CALL_NS INT64_C(200000000)     /* a call begins nothing new after that */
#define AGAIN_NS INT64_C(120000000000) /* a sum that this handle made is not made again before */
#define BATCH_SEGMENTS 8192u
#define BATCH_SUMS 64u
#define INSERT_BYTES (32u << 20)
#define HOURS_OF_DAY 24u
#define ROLLUP_TABLE                                                                                                   \
    "rollup (program, series, hour, generation, version, uid, commit, segments, uploads, processes, ticks, calls, "    \
    "stack_ticks, first, last, inexact, nanoseconds, into, hosts, counts, spread, stack_spread)"

/* A day, and what its changes were when all of it had been made. */
struct day_state {
    uint64_t changes;
    uint32_t closed; /* hours before this one */
};

struct day_todo {
    uint32_t day;
    struct day_state state;
};

/* An hour of a program of which rollups are to be made; whole: a day, of which totals are. */
struct task {
    const char *program;
    uint32_t hour; /* or the day */
    bool whole;
};

struct compacting {
    struct hashmap done;   /* day → struct day_state */
    struct hashmap made;   /* series, hour or day, whole → when: int64_t */
    struct day_todo *days; /* of this round */
    size_t day_count, day_at;
    struct arena *arena; /* of the tasks of a day */
    struct task *tasks;
    uint32_t task_count, task_capacity, task_at;
    bool listed;    /* tasks are those of days[day_at] */
    bool left;      /* something of the day was left for later */
    int64_t called; /* ns of CLOCK_MONOTONIC: when a call began last */
    /* A program's hour in work. */
    bool working;
    struct store_filter filter;
    struct plan plan;
    struct plan_ref *refs;           /* of the plan, that are to be made */
    size_t ref_count, ref_at, batch; /* batch: refs that are added up now */
    struct arena *sums_arena;
    struct sums *sums; /* of the batch */
};

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void end_batch(struct compacting *c)
{
    sums_close(c->sums);
    arena_free(c->sums_arena);
    c->sums = NULL;
    c->sums_arena = NULL;
    c->ref_at += c->batch;
    c->batch = 0;
}

static void end_work(struct compacting *c)
{
    if (c->working) {
        end_batch(c);
        plan_done(&c->plan);
    }
    c->working = false;
}

static void free_state(struct compacting *c)
{
    if (c) {
        end_work(c);
        hashmap_clear(&c->done);
        hashmap_clear(&c->made);
        arena_free(c->arena);
        free(c->days);
        free(c);
    }
}

static enum profd_status get_state(struct clickhouse_store *s, struct compacting **out, struct profd_error *e)
{
    struct compacting *c = s->compacting ? s->compacting : calloc(1, sizeof *c);
    if (c && !s->compacting) {
        hashmap_init(&c->done, 0);
        hashmap_init(&c->made, 1u << 24);
        c->arena = arena_new(0);
        s->compacting = c;
        s->compacting_free = free_state;
    }
    *out = c;
    return c && c->arena ? PROFD_OK : profd_no_memory(e);
}

/* --- What is to be done --- */

/* Lists the days that have changed since all of them was made. closed: hours before this one are over. */
static enum profd_status begin_round(struct clickhouse_store *s, struct compacting *c, uint32_t closed,
                                     struct profd_error *e)
{
    struct row_reader rows;
    size_t capacity;
    c->day_count = c->day_at = 0;
    c->listed = false;
    enum profd_status status =
        engine_query(s, &rows, e,
                     "SELECT toUInt32(intDiv(hour, 24)) AS day, sum(count) FROM change WHERE hour < %u AND " ENGINE_REAL
                     " GROUP BY day "
                     "ORDER BY day",
                     closed);
    if (status != PROFD_OK) {
        return status;
    }
    capacity = (size_t)(rows.end - rows.at) / 12 + 1;
    free(c->days);
    c->days = calloc(capacity, sizeof *c->days);
    while (c->days && rows_more(&rows) && c->day_count < capacity) {
        struct day_todo x = {.day = rows_u32(&rows)};
        x.state.changes = rows_u64(&rows);
        const uint32_t end = (x.day + 1) * HOURS_OF_DAY;
        x.state.closed = closed < end ? closed : end;
        const struct day_state *done = hashmap_find(&c->done, &x.day, sizeof x.day);
        if (!done || done->changes != x.state.changes || done->closed != x.state.closed) {
            c->days[c->day_count++] = x;
        }
    }
    status = c->days ? engine_rows_check(&rows, "days", e) : profd_no_memory(e);
    rows_close(&rows);
    c->day_count = status == PROFD_OK ? c->day_count : 0;
    return status;
}

/* Takes the rows of a reply: program, and hour or day. */
static enum profd_status take_tasks(struct compacting *c, struct row_reader *rows, bool whole, struct profd_error *e)
{
    while (rows_more(rows)) {
        struct task *grown = arena_extend(c->arena, c->tasks, c->task_count, &c->task_capacity, sizeof *grown);
        const char *program = rows_copy(rows, c->arena);
        const uint32_t hour = rows_u32(rows);
        if (rows->cut) {
            break;
        }
        if (!grown || !program) {
            return profd_no_memory(e);
        }
        c->tasks = grown;
        c->tasks[c->task_count++] = (struct task){program, hour, whole};
    }
    return engine_rows_check(rows, "hours to roll up", e);
}

/* Lists what of a day is not made: hours of which the version is greater than that of their rollups, and the day's
 * totals. */
static enum profd_status list_tasks(struct clickhouse_store *s, struct compacting *c, struct profd_error *e)
{
    const struct day_todo *d = &c->days[c->day_at];
    const uint32_t first = d->day * HOURS_OF_DAY;
    struct row_reader rows;
    arena_reset(c->arena);
    c->tasks = NULL;
    c->task_count = c->task_capacity = c->task_at = 0;
    c->left = false;
    enum profd_status status = engine_query(
        s, &rows, e,
        "SELECT program, hour FROM (SELECT program, hour, sum(v) AS changed, max(r) AS rolled FROM ("
        "SELECT program, series, hour, generation, max(count) AS v, toUInt64(0) AS r FROM change WHERE hour >= %u AND "
        "hour < %u GROUP BY program, series, hour, generation, writer UNION ALL "
        "SELECT program, series, hour, generation, toUInt64(0) AS v, max(version) AS r FROM rollup WHERE hour >= %u "
        "AND "
        "hour < %u GROUP BY program, series, hour, generation) "
        "GROUP BY program, series, hour, generation HAVING changed > rolled) GROUP BY program, hour ORDER BY program, "
        "hour",
        first, d->state.closed, first, d->state.closed);
    if (status == PROFD_OK) {
        status = take_tasks(c, &rows, false, e);
        rows_close(&rows);
    }
    if (status != PROFD_OK || d->state.closed < first + HOURS_OF_DAY) {
        return status;
    }
    status = engine_query(
        s, &rows, e,
        "SELECT program, toUInt32(%u) FROM (SELECT program, series, generation, sum(v) AS changed, max(r) AS rolled "
        "FROM ("
        "SELECT program, series, generation, max(count) AS v, toUInt64(0) AS r FROM change WHERE hour >= %u AND "
        "hour < %u GROUP BY program, series, hour, generation, writer UNION ALL "
        "SELECT program, series, generation, toUInt64(0) AS v, max(version) AS r FROM host_day WHERE day = %u "
        "GROUP BY program, series, generation) "
        "GROUP BY program, series, generation HAVING changed > rolled) GROUP BY program ORDER BY program",
        d->day, first, first + HOURS_OF_DAY, d->day);
    if (status == PROFD_OK) {
        status = take_tasks(c, &rows, true, e);
        rows_close(&rows);
    }
    return status;
}

/* Was it made a short while ago? If not, it is now. */
static bool is_fresh(struct compacting *c, const struct plan_series *x, uint32_t at, bool whole, bool *failed)
{
    struct {
        uint8_t hash[ENGINE_SERIES_SIZE];
        uint32_t generation, at, whole;
    } key = {.generation = x->generation, .at = at, .whole = whole};
    memcpy(key.hash, x->hash, sizeof key.hash);
    const int64_t now = clock_now();
    int64_t *made = hashmap_find(&c->made, &key, sizeof key);
    const bool fresh = made && now - *made < AGAIN_NS;
    if (made && !fresh) {
        *made = now;
    } else if (!made) {
        *failed |= !hashmap_put(&c->made, &key, sizeof key, &now, sizeof now);
    }
    c->left |= fresh;
    return fresh;
}

/* --- Rollups --- */

/* Plans the rollups of a program's hour. */
static enum profd_status begin_hour(struct clickhouse_store *s, struct compacting *c, const struct task *t,
                                    struct profd_error *e)
{
    static const struct store_scope all = {.all = true};
    bool failed = false;
    c->filter = (struct store_filter){.build_id = t->program, .as_program = true};
    c->working = true;
    c->ref_count = c->ref_at = c->batch = 0;
    enum profd_status status = plan_init(&c->plan, s, &all, &c->filter, e);
    if (status == PROFD_OK) {
        status = plan_find_hours(&c->plan, t->hour, t->hour, e);
    }
    if (status == PROFD_OK) {
        status = plan_find_refs(&c->plan, e);
    }
    c->refs = c->plan.refs;
    for (uint32_t i = 0; status == PROFD_OK && i < c->plan.ref_count; i++) {
        const struct plan_ref *r = &c->plan.refs[i];
        if (!r->rolled && !is_fresh(c, &c->plan.series[c->plan.hours[r->hour].series], t->hour, false, &failed)) {
            c->refs[c->ref_count++] = *r;
        }
    }
    return status == PROFD_OK && failed ? profd_no_memory(e) : status;
}

static void put_sums(struct buffer *b, const struct share *shares, size_t n, bool calls)
{
    rows_put_count(b, n);
    for (size_t i = 0; i < n; i++) {
        rows_put_u64(b, calls ? shares[i].calls : shares[i].nanoseconds);
    }
}

/* Appends a row of ROLLUP_TABLE. */
static enum profd_status put_rollup(const struct plan *p, const struct plan_ref *ref, const struct summed *x,
                                    struct arena *a, struct buffer *b, struct profd_error *e)
{
    const struct plan_hour *h = &p->hours[ref->hour];
    const struct plan_series *s = &p->series[h->series];
    uint8_t *counts = NULL, *spread = NULL, *stacks = NULL;
    size_t counts_size = 0, spread_size = 0, stacks_size = 0, hosts_size = 0;
    int64_t *slots = ARENA_ARRAY(a, x->host_count + 1, int64_t);
    for (size_t i = 0; slots && i < x->host_count; i++) {
        slots[i] = x->hosts[i];
    }
    const uint8_t *hosts = slots ? folded_encode_hosts(a, slots, x->host_count, &hosts_size) : NULL;
    enum profd_status status = hosts ? rollup_encode(&x->row.counts, &counts, &counts_size, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = rollup_encode_spread(&x->row.counts, &x->row.spread, &spread, &spread_size, e);
    }
    if (status == PROFD_OK && x->row.counts.tree_count > 0) {
        status = rollup_encode_stack_spread(&x->row.counts, &x->row.spread, &stacks, &stacks_size, e);
    }
    if (status == PROFD_OK) {
        rows_put_text(b, s->builds[s->program].id.text);
        rows_put_fixed(b, s->hash, sizeof s->hash);
        rows_put_u32(b, h->hour);
        rows_put_u32(b, s->generation);
        rows_put_u64(b, h->version);
        rows_put_u32(b, s->uid);
        rows_put_u64(b, (uint64_t)x->row.number);
        rows_put_u64(b, x->segments);
        rows_put_u64(b, x->row.uploads);
        rows_put_array_u64(b, x->row.groups.of, RANDOM_GROUPS);
        rows_put_u64(b, x->row.ticks);
        rows_put_u64(b, x->row.calls);
        rows_put_u64(b, x->stack_ticks);
        rows_put_i64(b, x->row.first);
        rows_put_i64(b, x->row.last);
        rows_put_u32(b, x->row.inexact);
        put_sums(b, x->shares, s->build_count, false);
        put_sums(b, x->shares, s->build_count, true);
        rows_put_bytes(b, hosts, hosts_size);
        rows_put_bytes(b, counts, counts_size);
        rows_put_bytes(b, spread, spread_size);
        rows_put_bytes(b, stacks, stacks_size);
    }
    free(counts);
    free(spread);
    free(stacks);
    return status;
}

/* Stores the sums of the batch, which are whole. */
static enum profd_status store_batch(struct clickhouse_store *s, struct compacting *c, struct store_progress *progress,
                                     struct profd_error *e)
{
    struct summed *sums = ARENA_ARRAY(c->sums_arena, c->batch, struct summed);
    struct buffer rows;
    enum profd_status status = sums ? sums_finish(c->sums, sums, e) : profd_no_memory(e);
    buffer_init(&rows, SIZE_MAX);
    for (size_t i = 0; status == PROFD_OK && i < c->batch; i++) {
        status = put_rollup(&c->plan, &c->refs[c->ref_at + i], &sums[i], c->sums_arena, &rows, e);
        progress->uploads += sums[i].row.uploads;
        progress->rows++;
        if (status == PROFD_OK && rows.size > INSERT_BYTES) {
            status = engine_insert(s, ROLLUP_TABLE, &rows, e);
            rows.size = 0;
        }
    }
    if (status == PROFD_OK) {
        status = engine_insert(s, ROLLUP_TABLE, &rows, e);
    }
    buffer_done(&rows);
    return status;
}

/* How many of the rest are added up together. */
static size_t measure_batch(const struct compacting *c)
{
    uint64_t segments = 0;
    size_t n = 0;
    for (; c->ref_at + n < c->ref_count && n < BATCH_SUMS; n++) {
        segments += c->refs[c->ref_at + n].segments;
        if (n > 0 && segments > BATCH_SEGMENTS) {
            break;
        }
    }
    return n;
}

/* Reads a part of the segments of an hour, or stores what they add up to. *ended: the hour is done. */
static enum profd_status work_on_hour(struct clickhouse_store *s, struct compacting *c, const struct task *t,
                                      bool *ended, struct store_progress *progress, struct profd_error *e)
{
    enum profd_status status = c->working ? PROFD_OK : begin_hour(s, c, t, e);
    bool more = false;
    if (status != PROFD_OK || c->ref_at == c->ref_count) {
        *ended = true;
        return status;
    }
    if (!c->sums) {
        c->batch = measure_batch(c);
        c->sums_arena = arena_new(0);
        status = c->sums_arena ? sums_open(&c->plan, c->refs + c->ref_at, c->batch, true, c->sums_arena, &c->sums, e)
                               : profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        status = sums_step(c->sums, &more, e);
    }
    if (status == PROFD_OK && !more) {
        status = store_batch(s, c, progress, e);
        end_batch(c);
    }
    *ended = status != PROFD_OK || c->ref_at == c->ref_count;
    return status;
}

/* --- Totals by host --- */

/* Totals of a series' day that are being stored. */
struct day_store {
    uint64_t version;
    struct buffer rows;
};

static enum profd_status put_total(void *context, const struct host_total *x, struct profd_error *e)
{
    struct day_store *d = context;
    totals_put(x, d->version, &d->rows);
    return d->rows.failed ? profd_no_memory(e) : PROFD_OK;
}

/* Stores the totals of one series, of which these hours of the plan are. */
static enum profd_status store_day(struct clickhouse_store *s, const struct plan *p,
                                   const struct plan_hour *const *hours, size_t n, struct store_progress *progress,
                                   struct profd_error *e)
{
    struct day_store d = {.version = 0};
    for (size_t i = 0; i < n; i++) {
        d.version += hours[i]->version;
    }
    buffer_init(&d.rows, SIZE_MAX);
    enum profd_status status = totals_of_day(p, hours, n, put_total, &d, e);
    if (status == PROFD_OK) {
        status = engine_insert(s, TOTALS_TABLE, &d.rows, e);
        progress->rows++;
    }
    buffer_done(&d.rows);
    return status;
}

static enum profd_status store_days(struct clickhouse_store *s, struct compacting *c, struct plan *p, uint32_t day,
                                    struct store_progress *progress, struct profd_error *e)
{
    enum profd_status status = plan_find_hours(p, day * HOURS_OF_DAY, day * HOURS_OF_DAY + HOURS_OF_DAY - 1, e);
    bool failed = false;
    for (uint32_t i = 0; status == PROFD_OK && i < p->series_count; i++) {
        const struct plan_hour *hours[HOURS_OF_DAY];
        size_t n = 0;
        for (uint32_t k = 0; k < p->hour_count && p->series[i].totals; k++) {
            if (p->hours[k].series == i && n < HOURS_OF_DAY) {
                hours[n++] = &p->hours[k];
            }
        }
        if (n > 0 && !is_fresh(c, &p->series[i], day, true, &failed)) {
            status = store_day(s, p, hours, n, progress, e);
        }
    }
    return status == PROFD_OK && failed ? profd_no_memory(e) : status;
}

/* Makes the totals of a program's day, of the series that do not have the host among their labels. */
static enum profd_status work_on_day(struct clickhouse_store *s, struct compacting *c, const struct task *t,
                                     struct store_progress *progress, struct profd_error *e)
{
    static const struct store_scope all = {.all = true};
    const struct store_filter filter = {.build_id = t->program, .as_program = true, .by_host = true};
    struct plan p;
    enum profd_status status = plan_init(&p, s, &all, &filter, e);
    if (status == PROFD_OK) {
        status = store_days(s, c, &p, t->hour, progress, e);
    }
    plan_done(&p);
    return status;
}

/* --- Rounds --- */

/* Does one piece of work on the day of this round. */
static enum profd_status work_once(struct clickhouse_store *s, struct compacting *c, struct store_progress *progress,
                                   struct profd_error *e)
{
    bool ended = true;
    enum profd_status status = PROFD_OK;
    if (!c->listed) {
        status = list_tasks(s, c, e);
        c->listed = status == PROFD_OK;
        return status;
    }
    if (c->task_at == c->task_count) {
        const struct day_todo *d = &c->days[c->day_at++];
        struct day_state *done = hashmap_find(&c->done, &d->day, sizeof d->day);
        c->listed = false;
        if (c->left) {
            return PROFD_OK;
        }
        if (done) {
            *done = d->state;
        }
        return done || hashmap_put(&c->done, &d->day, sizeof d->day, &d->state, sizeof d->state) ? PROFD_OK
                                                                                                 : profd_no_memory(e);
    }
    const struct task *t = &c->tasks[c->task_at];
    status = t->whole ? work_on_day(s, c, t, progress, e) : work_on_hour(s, c, t, &ended, progress, e);
    if (ended) {
        end_work(c);
        c->task_at++;
    }
    c->left |= status != PROFD_OK;
    return status;
}

enum profd_status engine_compact(struct store *base, const struct store_policy *policy, int64_t now,
                                 struct store_progress *progress, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct store_progress done = {.more = false};
    struct compacting *c;
    const int64_t begin = clock_now();
    enum profd_status status = get_state(s, &c, e);
    (void)policy; /* hours are rolled up when they are over: what changes them later is added by another rollup */
    const uint64_t until = s->base.until, mine = (uint64_t)(begin / 1000000) + ENGINE_STORING_MS;
    uint32_t first_day = 0;
    s->base.until = until > 0 && until < mine ? until : mine;
    if (status == PROFD_OK) {
        status = engine_begin_storing(s, &first_day, e);
    }
    if (status == PROFD_OK && begin - c->called > ENGINE_STORING_MS * INT64_C(1000000)) { /* the plan is old */
        end_work(c);
        c->listed = false;
    }
    if (status == PROFD_OK) {
        c->called = begin;
    }
    if (status == PROFD_OK && c->day_at == c->day_count) {
        const int64_t closed = now / ENGINE_HOUR - 1;
        status = begin_round(s, c, closed > 0 ? (uint32_t)closed : 0, e);
    }
    while (status == PROFD_OK && c->day_at < c->day_count && clock_now() - begin < CALL_NS) {
        if (c->days[c->day_at].day < first_day) { /* it is being removed */
            end_work(c);
            c->listed = false;
            c->day_at++;
        } else {
            status = work_once(s, c, &done, e);
        }
    }
    s->base.until = until;
    if (status == PROFD_DAMAGED) {
        status = PROFD_OK; /* a row of segments that cannot be read: verification says so, and the rest is made */
    }
    done.more = status == PROFD_OK && c->day_at < c->day_count;
    if (status == PROFD_OK) {
        *progress = done;
    }
    return status;
}
