/* Verification: rollups against segments, hour by hour; then the ledger's arrivals against segments. What is inserted
 * meanwhile is no difference: segments come before their arrival, and that before the count of changes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clickhouse/ledger.h"
#include "clickhouse/removal.h"
#include "core/rollup.h"
#include "core/sum.h"

#define BUDGET_NS INT64_C(100000000)
#define ARRIVALS_FROM (INT64_C(1) << 40) /* cursors from here on are hours of receipt */
#define PART_BYTES (64u << 20)           /* of rollups that are read at once */
#define ATTEMPTS 3
#define PAUSE_NS 100000000
#define FLIGHT_S                                                                                                       \
    600 /* for which a segment may be without its arrival: its daemon has ended, and the host sends again */
#define SAID_MOST 1000u

struct verifying {
    struct clickhouse_store *s;
    struct arena *a;
    struct engine_catalogue c;
    void (*mismatch)(void *context, const char *sentence);
    void *context;
    uint64_t *checked;
};

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- Rollups and segments --- */

static void say(const struct verifying *v, const struct engine_series *x, uint32_t hour, const char *what,
                uint64_t rollup, uint64_t segments)
{
    char sentence[320];
    (void)snprintf(sentence, sizeof sentence,
                   "program %s, hour %" PRIu32 ", user %" PRIu32 ": %s: the sum has %" PRIu64 ", its segments %" PRIu64,
                   x->program, hour, x->uid, what, rollup, segments);
    v->mismatch(v->context, sentence);
}

/* True if both say the same; else, if told to, says what differs. */
static bool compare(const struct verifying *v, const struct engine_series *x, uint32_t hour,
                    const struct engine_sums *rollup, const struct engine_sums *segments, bool tell)
{
    const struct {
        const char *what;
        uint64_t rollup, segments;
    } fields[] = {{"uploads", rollup->uploads, segments->uploads},
                  {"processes", rollup->processes, segments->processes},
                  {"ticks", rollup->ticks, segments->ticks},
                  {"calls", rollup->calls, segments->calls},
                  {"ticks of stacks", rollup->stack_ticks, segments->stack_ticks},
                  {"earliest start", (uint64_t)rollup->first, (uint64_t)segments->first},
                  {"latest end", (uint64_t)rollup->last, (uint64_t)segments->last},
                  {"inexactness", rollup->inexact, segments->inexact}};
    bool same = true;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].rollup != fields[i].segments) {
            same = false;
            if (tell) {
                say(v, x, hour, fields[i].what, fields[i].rollup, fields[i].segments);
            }
        }
    }
    for (size_t k = 0; k < x->build_count; k++) {
        const bool time = rollup->nanoseconds[k] == segments->nanoseconds[k],
                   calls = rollup->into[k] == segments->into[k];
        same = same && time && calls;
        if (!time && tell) {
            say(v, x, hour, "nanoseconds of a build", rollup->nanoseconds[k], segments->nanoseconds[k]);
        }
        if (!calls && tell) {
            say(v, x, hour, "calls into a build", rollup->into[k], segments->into[k]);
        }
    }
    return same;
}

/* Segments that have come, or are coming, and that no arrival tells of yet. */
static enum profd_status count_in_flight(struct verifying *v, uint32_t hour, uint64_t *out, struct profd_error *e)
{
    const uint64_t since = ((uint64_t)time(NULL) - FLIGHT_S) * 1000000000u;
    return engine_query_number(
        v->s, out, e,
        "SELECT toUInt64(count()) FROM (SELECT epoch, sequence FROM segment_group WHERE head = 1 "
        "AND hour = %" PRIu32 " AND number > %" PRIu64
        " GROUP BY epoch, sequence) ANY LEFT JOIN (SELECT epoch, sequence, toUInt8(1) AS there "
        "FROM arrival WHERE number > %" PRIu64 ") USING (epoch, sequence) WHERE there = 0",
        hour, since, since);
}

static enum profd_status compare_hour(struct verifying *v, uint32_t hour, bool tell, bool *same, struct profd_error *e)
{
    char where[32];
    struct engine_sums *sums = ARENA_ARRAY(v->a, v->c.count + 1, struct engine_sums),
                       *segments = ARENA_ARRAY(v->a, v->c.count + 1, struct engine_sums);
    (void)snprintf(where, sizeof where, "hour = %" PRIu32, hour);
    *same = true;
    enum profd_status status =
        sums && segments ? engine_load_sums(v->s, v->a, &v->c, where, sums, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_sum_segments(v->s, v->a, &v->c, where, segments, e);
    }
    for (size_t i = 0; i < v->c.count && status == PROFD_OK; i++) {
        const bool rolled = sums[i].hours > 0 && sums[i].single == 0;
        *same &= !rolled || compare(v, &v->c.list[i], hour, &sums[i], &segments[i], tell);
        if (tell || !rolled) {
            *v->checked += segments[i].uploads;
        }
    }
    return status;
}

/* Compares again, after a pause, what differs: something may have arrived in between. */
static enum profd_status verify_sums(struct verifying *v, uint32_t hour, struct profd_error *e)
{
    bool same = false;
    uint64_t flying = 0;
    const uint64_t before = *v->checked;
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < ATTEMPTS && !same && status == PROFD_OK; i++) {
        const struct timespec pause = {.tv_nsec = i > 0 ? PAUSE_NS : 0};
        nanosleep(&pause, NULL);
        *v->checked = before;
        status = compare_hour(v, hour, false, &same, e);
    }
    if (status == PROFD_OK && !same) {
        status = count_in_flight(v, hour, &flying, e);
    }
    *v->checked = before;
    return status == PROFD_OK ? compare_hour(v, hour, flying == 0, &same, e) : status;
}

/* --- What rollups contain --- */

/* A rollup's columns of bytes. */
struct content {
    const void *counts, *spread, *stacks;
    size_t counts_size, spread_size, stacks_size;
};

static enum profd_status decode_content(const struct content *c, uint32_t builds, struct arena *a, struct rollup *r,
                                        struct profd_error *e)
{
    struct rollup_spread all, stacks;
    enum profd_status status = rollup_decode(a, c->counts, c->counts_size, builds, false, r, e);
    if (status == PROFD_OK) {
        status = rollup_decode_spread(a, r, c->spread, c->spread_size, &all, e);
    }
    if (status != PROFD_OK || r->tree_count == 0) {
        return status;
    }
    status = rollup_decode_stack_spread(a, r, c->stacks, c->stacks_size, &stacks, e);
    if (status != PROFD_OK) {
        return status;
    }
    const size_t size = (size_t)r->node_count * ROLLUP_GROUPS * sizeof *all.nodes;
    return memcmp(all.nodes, stacks.nodes, size) == 0
               ? PROFD_OK
               : profd_error_set(e, PROFD_DAMAGED, "its stacks have two different spreads");
}

static void check_content(struct verifying *v, const struct engine_series *x, uint32_t hour, const uint64_t said[3],
                          const struct content *c)
{
    struct arena *a = arena_new_child(v->a);
    struct rollup r;
    struct profd_error why;
    char sentence[BUILDID_TEXT_SIZE + 64 + sizeof why.sentence];
    uint64_t ticks = 0, calls = 0;
    const enum profd_status status =
        a ? decode_content(c, (uint32_t)x->build_count, a, &r, &why) : profd_no_memory(&why);
    if (status != PROFD_OK) {
        (void)snprintf(sentence, sizeof sentence, "program %s, hour %" PRIu32 ": its sum cannot be read: %s",
                       x->program, hour, why.sentence);
        v->mismatch(v->context, sentence);
    } else {
        rollup_totals(&r, &ticks, &calls);
        const uint64_t has[3] = {ticks, calls, sum_all(r.node_ticks, r.node_count)};
        if (memcmp(has, said, sizeof has) != 0) {
            (void)snprintf(sentence, sizeof sentence,
                           "program %s, hour %" PRIu32 ": its sum has %" PRIu64 " ticks, %" PRIu64 " calls and %" PRIu64
                           " ticks of stacks; it says %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                           x->program, hour, has[0], has[1], has[2], said[0], said[1], said[2]);
            v->mismatch(v->context, sentence);
        }
    }
    arena_free(a);
}

static enum profd_status verify_part(struct verifying *v, uint32_t hour, uint64_t part, uint64_t parts,
                                     struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(
        v->s, &r, e,
        "SELECT series, generation, ticks, calls, stack_ticks, counts, spread, stack_spread FROM (SELECT series, "
        "generation, ticks, calls, stack_ticks, counts, spread, stack_spread FROM rollup WHERE hour = %" PRIu32
        " AND cityHash64(series) %% %" PRIu64 " = %" PRIu64 " ORDER BY version DESC LIMIT 1 BY series, generation)",
        hour, parts, part);
    while (status == PROFD_OK && rows_more(&r)) {
        uint8_t hash[ENGINE_SERIES_SIZE];
        struct content c;
        rows_fixed(&r, hash, sizeof hash);
        const uint32_t generation = rows_u32(&r);
        const uint64_t ticks = rows_u64(&r), calls = rows_u64(&r), stacks = rows_u64(&r);
        c.counts = rows_string(&r, &c.counts_size);
        c.spread = rows_string(&r, &c.spread_size);
        c.stacks = rows_string(&r, &c.stacks_size);
        const struct engine_series *x = engine_find_series(&v->c, hash);
        status = engine_rows_check(&r, "rollups", e);
        if (status == PROFD_OK && x && x->generation == generation) {
            check_content(v, x, hour, (const uint64_t[3]){ticks, calls, stacks}, &c);
        }
    }
    rows_close(&r);
    return status;
}

static enum profd_status verify_content(struct verifying *v, uint32_t hour, struct profd_error *e)
{
    uint64_t bytes = 0;
    enum profd_status status = engine_query_number(v->s, &bytes, e,
                                                   "SELECT toUInt64(sum(length(counts) + length(spread) + "
                                                   "length(stack_spread))) FROM rollup WHERE hour = %" PRIu32,
                                                   hour);
    const uint64_t parts = bytes / PART_BYTES + 1;
    for (uint64_t i = 0; i < parts && bytes > 0 && status == PROFD_OK; i++) {
        status = verify_part(v, hour, i, parts, e);
    }
    return status;
}

/* Appends "program IN (…)" of the rows that a query gives, and a range that has all of theirs. *any: there are some. */
static enum profd_status put_programs(struct verifying *v, struct row_reader *r, struct buffer *b, uint32_t *from,
                                      uint32_t *to, bool *any, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    *from = UINT32_MAX;
    *to = 0;
    buffer_add_text(b, "program IN (");
    for (*any = false; status == PROFD_OK && rows_more(r); *any = true) {
        const char *program = rows_copy(r, v->a);
        const uint32_t first = rows_u32(r), last = rows_u32(r);
        status = engine_rows_check(r, "programs", e);
        if (status == PROFD_OK) {
            buffer_add_text(b, *any ? "," : "");
            engine_put_quoted(b, program ? program : "");
            b->failed |= !program;
            *from = first < *from ? first : *from;
            *to = last > *to ? last : *to;
        }
    }
    buffer_add_char(b, ')');
    rows_close(r);
    return status;
}

static void put_sent(struct buffer *b, uint64_t from, uint64_t to)
{
    buffer_add_format(b, " AND sent >= toDateTime(%" PRIu64 ", 'UTC') AND sent <= toDateTime(%" PRIu64 ", 'UTC')",
                      from * 3600, to * 3600);
}

/* Appends a condition that holds for the segments of an hour, on the key and the partitions of their table. */
static enum profd_status put_hour(struct verifying *v, uint32_t hour, struct buffer *b, bool *any,
                                  struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    uint32_t from = 0, to = 0;
    enum profd_status status =
        engine_query(v->s, &r, e,
                     "SELECT program, min(sent_from), max(sent_to) FROM change WHERE hour = %" PRIu32
                     " AND " ENGINE_REAL " GROUP BY program",
                     hour);
    if (status == PROFD_OK) {
        status = put_programs(v, &r, b, &from, &to, any, e);
    }
    put_sent(b, from, to);
    buffer_add_format(b, " AND hour = %" PRIu32, hour);
    return status;
}

/* Every segment has all of its rows. */
static enum profd_status verify_rows(struct verifying *v, uint32_t hour, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer *b = &v->s->statement, where;
    char sentence[256];
    bool any = false;
    buffer_init(&where, 1 << 20);
    enum profd_status status = put_hour(v, hour, &where, &any, e);
    engine_begin(v->s);
    buffer_add_text(b, "SELECT p, toUInt64(count()) FROM (SELECT epoch, sequence, digest, any(q) AS p, count() AS n, "
                       "any(g) AS wanted FROM (SELECT epoch, sequence, digest, grp, any(program) AS q, any(group_rows) "
                       "AS g FROM segment_group WHERE ");
    buffer_add(b, where.data, where.size);
    buffer_add_text(b, " GROUP BY epoch, sequence, digest, grp) GROUP BY epoch, sequence, digest) WHERE n != wanted "
                       "GROUP BY p");
    b->failed |= where.failed;
    buffer_done(&where);
    if (status == PROFD_OK && any) {
        status = engine_query_printed(v->s, &r, e);
    }
    while (status == PROFD_OK && rows_more(&r)) {
        size_t n;
        const char *program = rows_string(&r, &n);
        const uint64_t segments = rows_u64(&r);
        status = engine_rows_check(&r, "rows of segments", e);
        if (status == PROFD_OK) {
            (void)snprintf(sentence, sizeof sentence,
                           "program %.*s, hour %" PRIu32 ": of %" PRIu64 " segments some rows are missing", (int)n,
                           program, hour, segments);
            v->mismatch(v->context, sentence);
        }
    }
    rows_close(&r);
    return status;
}

/* --- Arrivals and segments --- */

static bool was_removed(const struct ledger *l, const char *program, uint32_t uid, uint32_t generation, uint32_t hour,
                        uint64_t number)
{
    const struct ledger_row *day = ledger_find_day(l, program, uid, generation, hour / 24);
    bool removed = day && day->number >= number;
    for (uint32_t i = 0; i < l->deletion_count && !removed; i++) {
        const struct ledger_deletion *x = &l->deletions[i];
        removed = x->uid == uid && generation < x->generation && strcmp(x->program, program) == 0;
    }
    return removed;
}

static enum profd_status take_arrival(struct verifying *v, const struct ledger *l, struct row_reader *r,
                                      struct profd_error *e)
{
    char program[BUILDID_TEXT_SIZE], sentence[320];
    size_t n;
    const char *text = rows_string(r, &n);
    (void)snprintf(program, sizeof program, "%.*s", text && n < sizeof program ? (int)n : 0, text ? text : "");
    const uint32_t uid = rows_u32(r), generation = rows_u32(r), hour = rows_u32(r);
    const uint64_t sequence = rows_u64(r), number = rows_u64(r);
    const bool there = rows_u8(r) != 0;
    const enum profd_status status = engine_rows_check(r, "arrivals", e);
    if (status == PROFD_OK && !was_removed(l, program, uid, generation, hour, number)) {
        (void)snprintf(sentence, sizeof sentence,
                       "program %s, hour %" PRIu32 ", user %" PRIu32 ": the segment that arrived with sequence %" PRIu64
                       " %s",
                       program, hour, uid, sequence, there ? "has other sums now" : "is missing");
        v->mismatch(v->context, sentence);
    }
    return status;
}

/* Appends a condition that holds for the segments of what was received then; *any: something was. */
static enum profd_status put_reach(struct verifying *v, const char *received, struct buffer *b, bool *any,
                                   struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    uint32_t from = 0, to = 0;
    enum profd_status status =
        engine_query(v->s, &r, e,
                     "SELECT program, min(hour), max(hour) FROM arrival WHERE outcome = 0 AND program != '' AND %s "
                     "GROUP BY program",
                     received);
    if (status == PROFD_OK) {
        status = put_programs(v, &r, b, &from, &to, any, e);
    }
    if (status == PROFD_OK && *any) {
        status =
            engine_query(v->s, &r, e,
                         "SELECT toUInt32(min(sent_from)), toUInt32(max(sent_to)) FROM change WHERE hour >= %" PRIu32
                         " AND hour <= %" PRIu32,
                         from, to);
    }
    if (status == PROFD_OK && *any) {
        const uint32_t sent_from = rows_u32(&r), sent_to = rows_u32(&r);
        buffer_add_format(b, " AND hour >= %" PRIu32 " AND hour <= %" PRIu32, from, to);
        put_sent(b, sent_from, sent_to);
        status = engine_rows_check(&r, "hours", e);
        rows_close(&r);
    }
    return status;
}

/* What was counted when it was received in this hour is there, with the same sums. */
static enum profd_status verify_arrivals(struct verifying *v, int64_t hour, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer reach;
    struct ledger l;
    bool any = false;
    const int64_t from = hour * ENGINE_HOUR;
    char received[128];
    (void)snprintf(received, sizeof received, "received >= %" PRId64 " AND received < %" PRId64, from,
                   from + ENGINE_HOUR);
    buffer_init(&reach, 1 << 20);
    enum profd_status status = put_reach(v, received, &reach, &any, e);
    buffer_add(&reach, "", 1);
    if (status == PROFD_OK && reach.failed) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK && any) {
        status = engine_query(
            v->s, &r, e,
            "SELECT program, uid, generation, hour, sequence, number, there FROM (SELECT epoch, sequence, digest, "
            "number, outcome, program, hour, uid, generation, uploads, ticks, calls FROM arrival WHERE %s ORDER BY "
            "number DESC LIMIT 1 BY epoch, sequence) ANY LEFT JOIN (SELECT epoch, sequence, digest, uploads AS u, "
            "ticks "
            "AS t, calls AS c, toUInt8(1) AS there FROM segment_group WHERE head = 1 AND %s) USING (epoch, sequence, "
            "digest) WHERE outcome = 0 AND program != '' AND generation != %" PRIu32
            " AND (there = 0 OR u != uploads OR t != ticks OR c != calls) LIMIT %u",
            received, reach.data, LEDGER_NEVER, SAID_MOST);
    }
    buffer_done(&reach);
    if (status == PROFD_OK && rows_more(&r)) {
        status = ledger_load(v->s, v->a, &l, e);
    }
    while (status == PROFD_OK && rows_more(&r)) {
        status = take_arrival(v, &l, &r, e);
    }
    rows_close(&r);
    return status;
}

/* --- A round --- */

/* The next hour from the cursor on: *hour is ARRIVALS_FROM or more for arrivals. */
static enum profd_status find_next(struct verifying *v, int64_t cursor, int64_t *hour, bool *found,
                                   struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = PROFD_OK;
    *found = false;
    if (cursor < ARRIVALS_FROM) {
        status = engine_query(v->s, &r, e,
                              "SELECT toUInt64(count()), toInt64(min(hour)) FROM change WHERE hour >= %" PRId64
                              " AND " ENGINE_REAL,
                              cursor);
        *found = status == PROFD_OK && rows_u64(&r) > 0;
        *hour = rows_i64(&r);
        rows_close(&r);
        cursor = *found ? cursor : ARRIVALS_FROM;
    }
    if (status == PROFD_OK && !*found) {
        status = engine_query(v->s, &r, e,
                              "SELECT toUInt64(count()), intDiv(min(received), %" PRId64
                              ") FROM arrival WHERE received >= %" PRId64 " AND " ENGINE_REAL_ARRIVAL,
                              ENGINE_HOUR, (cursor - ARRIVALS_FROM) * ENGINE_HOUR);
        *found = status == PROFD_OK && rows_u64(&r) > 0;
        *hour = ARRIVALS_FROM + rows_i64(&r);
        rows_close(&r);
    }
    return status;
}

static enum profd_status verify_one(struct verifying *v, int64_t hour, struct profd_error *e)
{
    if (hour >= ARRIVALS_FROM) {
        return verify_arrivals(v, hour - ARRIVALS_FROM, e);
    }
    enum profd_status status = verify_sums(v, (uint32_t)hour, e);
    if (status == PROFD_OK) {
        status = verify_content(v, (uint32_t)hour, e);
    }
    return status == PROFD_OK ? verify_rows(v, (uint32_t)hour, e) : status;
}

enum profd_status engine_verify(struct store *base, struct store_cursor *cursor,
                                void (*mismatch)(void *context, const char *sentence), void *context,
                                uint64_t *uploads_checked, struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    struct verifying v = {.s = engine_self(base),
                          .a = arena_new(0),
                          .mismatch = mismatch,
                          .context = context,
                          .checked = uploads_checked};
    const int64_t began = clock_now();
    *uploads_checked = 0;
    enum profd_status status =
        v.a ? engine_load_series(v.s, v.a, &every, ENGINE_EVERY, NULL, &v.c, e) : profd_no_memory(e);
    while (status == PROFD_OK && !cursor->done && clock_now() - began < BUDGET_NS) {
        int64_t hour = 0;
        bool found;
        status = find_next(&v, cursor->hour, &hour, &found, e);
        if (status == PROFD_OK && found) {
            status = verify_one(&v, hour, e);
            cursor->hour = hour + 1;
        }
        cursor->done = status == PROFD_OK && !found;
    }
    arena_free(v.a);
    return status;
}
