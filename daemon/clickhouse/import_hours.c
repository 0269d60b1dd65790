/* Import of what is stored: segments that follow from the series, hours and hosts of the database. */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/random.h>

#include "clickhouse/arriving.h"
#include "clickhouse/import_cut.h"
#include "clickhouse/import.h"
#include "clickhouse/importing.h"
#include "clickhouse/ledger.h"
#include "clickhouse/removal.h"
#include "clickhouse/segment.h"
#include "core/rollup_segment.h"
#include "core/sum.h"
#include "proto/message.h"

#define DAYS_AT_ONCE 80 /* of a block, which may have 100 partitions */
#define BLOCK_BYTES (24u << 20)
#define ROWS_BYTES (1024u << 20)
#define SUM_ROWS (LIMIT_SEGMENT_ROWS / 2) /* of a segment: histograms count, too */

struct hours {
    struct importing *x;
    struct arena *arena; /* of an hour */
    struct buffer groups, series, arrivals, changes;
    int64_t days[DAYS_AT_ONCE];
    size_t day_count;
    uint64_t writer;        /* of this import alone, so that it changes each hour once */
    struct hashmap known;   /* hashes of series that were stored */
    struct hashmap touched; /* struct import_program: builds and users */
    struct ledger removed;  /* days of programs, */
    uint64_t removed_count; /* and as many, or fewer, if some were removed while that was read */
};

/* What a segment of an hour says beside its counts. */
struct totals {
    uint64_t uploads, processes, ticks, calls;
    int64_t first, last;
    uint32_t inexact;
    uint64_t *nanoseconds, *touching; /* by build */
};

/* One series and hour. */
struct importing_hour {
    struct hours *h;
    const struct store_export_hour *x;
    uint32_t uid, hour, generation;
    const char *program;
    uint8_t series[ENGINE_SERIES_SIZE];
    struct totals *totals;          /* of each host */
    uint64_t groups[RANDOM_GROUPS]; /* processes that are not given to a host yet */
};

/* How many days of programs were removed from the tables; it never falls. */
static enum profd_status count_removed(struct hours *h, uint64_t *out, struct profd_error *e)
{
    return engine_query_number(h->x->to, out, e,
                               "SELECT toUInt64(uniqExact(program, uid, generation, day)) FROM removed WHERE "
                               "day != %" PRIu32 " AND generation != %" PRIu32,
                               LEDGER_DELETED, LEDGER_NEVER);
}

/* May the hours of these days be stored now? Not those of a day that is being removed, nor of one that was removed
 * after h->removed was read: they would count again. What is removed from now on waits for this handle. */
static enum profd_status check_days(struct hours *h, struct profd_error *e)
{
    uint32_t first_day;
    uint64_t removed = 0;
    enum profd_status status = engine_begin_storing(h->x->to, &first_day, e);
    if (status == PROFD_OK) {
        status = count_removed(h, &removed, e);
    }
    if (status == PROFD_OK && removed != h->removed_count) {
        status = profd_error_set(e, PROFD_BUSY,
                                 "a day was removed from the tables during this import; import again to complete it");
    }
    for (size_t i = 0; i < h->day_count && status == PROFD_OK; i++) {
        if (h->days[i] < first_day) {
            status = profd_error_set(e, PROFD_BUSY,
                                     "a day of which the database has something is being removed from the tables; "
                                     "import again when the daemon has removed it");
        }
    }
    return status;
}

static enum profd_status flush(struct hours *h, struct profd_error *e)
{
    const struct {
        const char *columns;
        struct buffer *rows;
    } parts[] = {
        {"segment_group (" SEGMENT_ROW_ALL ")", &h->groups},
        {"series (series, number, writer, uid, program, builds, names, label_names, label_values)", &h->series},
        {"arrival (epoch, sequence, received, number, digest, outcome, host, program, series, hour, uid, generation, "
         "uploads, ticks, calls)",
         &h->arrivals},
        {"change (program, series, hour, generation, writer, count, sent_from, sent_to)", &h->changes},
    };
    enum profd_status status = check_days(h, e);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == PROFD_OK; i++) {
        status = engine_insert(h->x->to, parts[i].columns, parts[i].rows, e);
        parts[i].rows->size = 0;
    }
    h->day_count = 0;
    return status;
}

/* Rows of this day are about to be added. */
static enum profd_status begin_day(struct hours *h, int64_t day, struct profd_error *e)
{
    size_t i = 0;
    while (i < h->day_count && h->days[i] != day) {
        i++;
    }
    if (i < h->day_count && h->groups.size < BLOCK_BYTES) {
        return PROFD_OK;
    }
    if (h->day_count == DAYS_AT_ONCE || h->groups.size >= BLOCK_BYTES) {
        const enum profd_status status = flush(h, e);
        h->days[h->day_count++] = day;
        return status;
    }
    h->days[h->day_count++] = day;
    return PROFD_OK;
}

static void put_texts(struct buffer *b, const struct store_export_hour *x, bool names)
{
    rows_put_count(b, x->build_count);
    for (size_t i = 0; i < x->build_count; i++) {
        rows_put_text(b, names ? x->builds[i].name : x->builds[i].id.text);
    }
}

static void put_labels(struct buffer *b, const struct store_export_hour *x, bool values)
{
    rows_put_count(b, x->label_count);
    for (size_t i = 0; i < x->label_count; i++) {
        rows_put_text(b, values ? x->labels[i].value : x->labels[i].name);
    }
}

/* Stores the series, once, and notes the builds of which answers change. */
static enum profd_status put_series(struct importing_hour *m, struct profd_error *e)
{
    struct hours *h = m->h;
    struct buffer *b = &h->series;
    if (hashmap_find(&h->known, m->series, sizeof m->series)) {
        return PROFD_OK;
    }
    if (!hashmap_put(&h->known, m->series, sizeof m->series, "", 1)) {
        return profd_no_memory(e);
    }
    rows_put_fixed(b, m->series, sizeof m->series);
    rows_put_u64(b, h->x->number);
    rows_put_u64(b, 0); /* the import's writer */
    rows_put_u32(b, m->uid);
    rows_put_text(b, m->program);
    put_texts(b, m->x, false);
    put_texts(b, m->x, true);
    put_labels(b, m->x, false);
    put_labels(b, m->x, true);
    for (size_t i = 0; i < m->x->build_count; i++) {
        struct import_program p;
        memset(&p, 0, sizeof p);
        p.uid = m->uid;
        memcpy(p.build_id, m->x->builds[i].id.text, strlen(m->x->builds[i].id.text));
        if (!hashmap_find(&h->touched, &p, sizeof p) && !hashmap_put(&h->touched, &p, sizeof p, "", 1)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

/* The key of a segment: an epoch that began in 1970, so that nothing in the hour has arrived before. */
static void make_key(const struct importing_hour *m, const uint8_t *identity, uint32_t part, struct segment_row *head)
{
    struct sha256_ctx sha;
    uint8_t hash[12];
    const uint32_t numbers[] = {m->hour, part};
    sha256_init(&sha);
    sha256_update(&sha, STORE_INCARNATION_SIZE, m->h->x->incarnation);
    sha256_update(&sha, sizeof m->series, m->series);
    sha256_update(&sha, STORE_HOST_SIZE, identity);
    sha256_update(&sha, sizeof numbers, (const uint8_t *)numbers);
    sha256_digest(&sha, sizeof hash, hash);
    memset(head->epoch, 0, sizeof head->epoch);
    memcpy(head->epoch + 4, m->h->x->incarnation, 4);
    memcpy(head->epoch + 8, hash, 4);
    memcpy(&head->sequence, hash + 4, sizeof head->sequence);
    head->sequence &= INT64_MAX;
}

static void put_arrival(const struct importing_hour *m, const struct segment_row *head)
{
    struct buffer *b = &m->h->arrivals;
    rows_put_fixed(b, head->epoch, sizeof head->epoch);
    rows_put_u64(b, head->sequence);
    rows_put_i64(b, (m->x->hour + 1) * ENGINE_HOUR - 1);
    rows_put_u64(b, head->number);
    rows_put_fixed(b, head->digest, sizeof head->digest);
    rows_put_u8(b, (uint8_t)STORE_SEGMENT_COUNTED);
    rows_put_u32(b, head->host);
    rows_put_text(b, m->program);
    rows_put_fixed(b, m->series, sizeof m->series);
    rows_put_u32(b, m->hour);
    rows_put_u32(b, m->uid);
    rows_put_u32(b, m->generation);
    rows_put_u64(b, head->uploads);
    rows_put_u64(b, head->ticks);
    rows_put_u64(b, head->calls);
}

/* Adds a segment. Its digest is that of its rows without number and digest. */
static enum profd_status put_segment(const struct importing_hour *m, struct segment_row *head, const struct segment *s,
                                     struct profd_error *e)
{
    struct buffer plain;
    struct sha256_ctx sha;
    uint32_t count;
    memset(head->digest, 0, sizeof head->digest);
    head->number = 0;
    buffer_init(&plain, ROWS_BYTES);
    enum profd_status status = segment_row_put(head, s, m->h->arena, &plain, &count, e);
    if (status == PROFD_OK && plain.failed) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        sha256_init(&sha);
        sha256_update(&sha, plain.size, (const uint8_t *)plain.data);
        sha256_digest(&sha, sizeof head->digest, head->digest);
        head->number = engine_number(m->h->x->to);
        status = segment_row_put(head, s, m->h->arena, &m->h->groups, &count, e);
        put_arrival(m, head);
    }
    buffer_done(&plain);
    return status;
}

/* Gives processes of the groups to a host. */
static void take_processes(struct importing_hour *m, uint64_t n, uint64_t out[RANDOM_GROUPS])
{
    for (unsigned g = 0; g < RANDOM_GROUPS; g++) {
        out[g] = n < m->groups[g] ? n : m->groups[g];
        m->groups[g] -= out[g];
        n -= out[g];
    }
}

static void take_from(uint64_t *left, uint64_t n)
{
    *left -= n < *left ? n : *left;
}

/* What is known of each host; what is of none that is known apart goes to the first that is not. */
static enum profd_status set_totals(struct importing_hour *m, struct profd_error *e)
{
    const struct store_export_hour *x = m->x;
    const size_t builds = x->build_count;
    struct totals left = {x->uploads,
                          random_groups_known(&x->groups),
                          x->ticks,
                          x->calls,
                          x->first,
                          x->last,
                          x->inexact,
                          ARENA_ARRAY(m->h->arena, builds + 1, uint64_t),
                          ARENA_ARRAY(m->h->arena, builds + 1, uint64_t)};
    size_t rest = 0;
    m->totals = ARENA_ARRAY(m->h->arena, x->host_count, struct totals);
    if (!m->totals || !left.nanoseconds || !left.touching) {
        return profd_no_memory(e);
    }
    for (size_t b = 0; b < builds; b++) {
        left.nanoseconds[b] = x->builds[b].nanoseconds;
    }
    (void)incoming_add_touching(&x->counts, left.touching, builds);
    for (size_t i = x->host_count; i-- > 0;) {
        const struct store_export_host *one = &x->hosts[i];
        struct totals *t = &m->totals[i];
        *t = (struct totals){.uploads = one->uploads,
                             .processes = one->processes,
                             .ticks = one->ticks,
                             .calls = one->calls,
                             .first = one->has_totals ? one->first : x->first,
                             .last = one->has_totals ? one->last : x->last,
                             .inexact = one->has_totals ? one->inexact : x->inexact,
                             .nanoseconds = ARENA_ARRAY(m->h->arena, builds + 1, uint64_t),
                             .touching = ARENA_ARRAY(m->h->arena, builds + 1, uint64_t)};
        if (!t->nanoseconds || !t->touching) {
            return profd_no_memory(e);
        }
        rest = one->has_totals ? rest : i;
        take_from(&left.uploads, t->uploads);
        take_from(&left.processes, t->processes);
        take_from(&left.ticks, t->ticks);
        take_from(&left.calls, t->calls);
        for (size_t b = 0; b < builds && one->has_totals; b++) {
            t->nanoseconds[b] = one->shares[b].nanoseconds;
            t->touching[b] = one->shares[b].calls;
            take_from(&left.nanoseconds[b], t->nanoseconds[b]);
            take_from(&left.touching[b], t->touching[b]);
        }
    }
    struct totals *t = &m->totals[rest];
    bool saturated = false;
    sum_add(&t->uploads, left.uploads, &saturated);
    sum_add(&t->processes, left.processes, &saturated);
    sum_add(&t->ticks, left.ticks, &saturated);
    sum_add(&t->calls, left.calls, &saturated);
    for (size_t b = 0; b < builds; b++) {
        sum_add(&t->nanoseconds[b], left.nanoseconds[b], &saturated);
        sum_add(&t->touching[b], left.touching[b], &saturated);
    }
    return PROFD_OK;
}

/* The head of a segment of a host. into: calls into each build. */
static enum profd_status set_head(struct importing_hour *m, size_t host, const uint64_t *into, struct segment_row *head,
                                  struct profd_error *e)
{
    const struct store_export_host *one = &m->x->hosts[host];
    const struct totals *t = &m->totals[host];
    const uint32_t *slot = hashmap_find(&m->h->x->slots, one->identity, sizeof one->identity);
    const int64_t from = m->x->hour * ENGINE_HOUR;
    if (!slot) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has sums of a host that never arrived");
    }
    *head = (struct segment_row){.program = m->program,
                                 .sent = m->hour,
                                 .hour = m->hour,
                                 .uid = m->uid,
                                 .generation = m->generation,
                                 .host = *slot,
                                 .first = t->first,
                                 .last = t->last,
                                 .ended = t->last < from ? t->last : from, /* the earliest that it may be */
                                 .inexact = t->inexact,
                                 .uploads = t->uploads,
                                 .ticks = t->ticks,
                                 .calls = t->calls,
                                 .build_count = m->x->build_count,
                                 .nanoseconds = t->nanoseconds,
                                 .into = into,
                                 .touching = t->touching};
    memcpy(head->series, m->series, sizeof head->series);
    take_processes(m, t->processes, head->processes);
    return PROFD_OK;
}

/* What a segment beside the first one of a host says: nothing but its counts. */
static void leave_totals(struct segment_row *head, const uint64_t *zeros)
{
    head->uploads = head->ticks = head->calls = head->stack_ticks = 0;
    memset(head->processes, 0, sizeof head->processes);
    head->nanoseconds = head->into = head->touching = zeros;
}

/* The segments of the first host: they have the counts. */
static enum profd_status put_counts(struct importing_hour *m, const uint64_t *zeros, struct profd_error *e)
{
    const struct store_export_hour *x = m->x;
    struct segment_row head;
    struct import_cut cut = {.done = false};
    uint64_t *into = ARENA_ARRAY(m->h->arena, x->build_count + 1, uint64_t);
    enum profd_status status = into ? PROFD_OK : profd_no_memory(e);
    for (size_t b = 0; b < x->build_count && into; b++) {
        into[b] = x->builds[b].calls;
    }
    if (status == PROFD_OK) {
        status = set_head(m, 0, into, &head, e);
    }
    head.stack_ticks = sum_all(x->counts.node_ticks, x->counts.node_count);
    for (uint32_t part = 0; status == PROFD_OK && !cut.done; part++) {
        struct segment s = {.kind = SEGMENT_COUNTS};
        struct rollup r;
        struct rollup_spread spread;
        if (!import_cut_next(&cut, &x->counts, &x->spread, SUM_ROWS, m->h->arena, &r, &spread)) {
            return profd_no_memory(e);
        }
        status = rollup_make_segment(&r, &spread, m->h->arena, &s, e);
        make_key(m, x->hosts[0].identity, part, &head);
        if (status == PROFD_OK) {
            status = put_segment(m, &head, &s, e);
        }
        leave_totals(&head, zeros);
    }
    return status;
}

static void put_change(const struct importing_hour *m)
{
    struct buffer *b = &m->h->changes;
    rows_put_text(b, m->program);
    rows_put_fixed(b, m->series, sizeof m->series);
    rows_put_u32(b, m->hour);
    rows_put_u32(b, m->generation);
    rows_put_u64(b, m->h->writer);
    rows_put_u64(b, 1);
    rows_put_u32(b, m->hour);
    rows_put_u32(b, m->hour);
}

static enum profd_status put_hour(struct importing_hour *m, struct profd_error *e)
{
    static const struct segment empty = {.kind = SEGMENT_COUNTS};
    const struct store_export_hour *x = m->x;
    const uint64_t *zeros = ARENA_ARRAY(m->h->arena, x->build_count + 1, uint64_t);
    enum profd_status status = zeros ? begin_day(m->h, x->hour / 24, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = put_series(m, e);
    }
    if (status == PROFD_OK) {
        status = set_totals(m, e);
    }
    if (status == PROFD_OK) {
        status = put_counts(m, zeros, e);
    }
    for (size_t i = 1; i < x->host_count && status == PROFD_OK; i++) {
        struct segment_row head;
        status = set_head(m, i, zeros, &head, e);
        make_key(m, x->hosts[i].identity, 0, &head);
        if (status == PROFD_OK) {
            status = put_segment(m, &head, &empty, e);
        }
    }
    put_change(m);
    return status;
}

static enum profd_status add_hour(void *context, const struct store_export_hour *x, struct profd_error *e)
{
    struct hours *h = context;
    struct importing_hour m = {.h = h, .x = x, .hour = (uint32_t)x->hour, .program = x->builds[x->program].id.text};
    struct import_program p;
    arena_reset(h->arena);
    if (x->host_count == 0 || x->hour < 0 || x->hour > UINT32_MAX / 3600) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has a sum of hour %lld with %zu hosts",
                               (long long)x->hour, x->host_count);
    }
    enum profd_status status = import_map_user(h->x, x->uid, &m.uid, e);
    memset(&p, 0, sizeof p);
    p.uid = m.uid;
    memcpy(p.build_id, m.program, strlen(m.program));
    const struct import_deletion *gone = hashmap_find(&h->x->deletions, &p, sizeof p);
    if (status != PROFD_OK || (gone && x->last <= gone->before)) {
        h->x->out->deleted += status == PROFD_OK;
        return status;
    }
    m.generation = gone ? gone->generation : 0;
    if (ledger_find_day(&h->removed, m.program, m.uid, m.generation, m.hour / 24)) {
        h->x->out->removed++;
        return PROFD_OK;
    }
    memcpy(m.groups, x->groups.of, sizeof m.groups);
    engine_hash_series(&(struct store_upload){.uid = m.uid,
                                              .program = x->program,
                                              .build_count = x->build_count,
                                              .builds = x->builds,
                                              .label_count = x->label_count,
                                              .labels = x->labels},
                       m.series);
    struct store_amount *counted = &h->x->out->counted;
    bool saturated = false;
    h->x->out->hours++;
    sum_add(&counted->uploads, x->uploads, &saturated);
    sum_add(&counted->ticks, x->ticks, &saturated);
    sum_add(&counted->calls, x->calls, &saturated);
    return put_hour(&m, e);
}

/* Makes answers about all builds new. */
static enum profd_status touch(struct hours *h, struct profd_error *e)
{
    size_t position = 0, n = 0;
    const void *key;
    struct import_program *programs = ARENA_ARRAY(h->arena, h->touched.count + 1, struct import_program);
    struct engine_touch *list = ARENA_ARRAY(h->arena, h->touched.count + 1, struct engine_touch);
    if (!programs || !list) {
        return profd_no_memory(e);
    }
    while (hashmap_next(&h->touched, &position, &key)) {
        memcpy(&programs[n], key, sizeof programs[n]);
        list[n] = (struct engine_touch){.build = programs[n].build_id, .uid = programs[n].uid};
        n++;
    }
    return engine_touch(h->x->to, list, n, e);
}

enum profd_status import_hours(struct importing *x, struct profd_error *e)
{
    struct hours h = {.x = x, .arena = arena_new(0)};
    struct buffer *const buffers[] = {&h.groups, &h.series, &h.arrivals, &h.changes};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        buffer_init(buffers[i], ROWS_BYTES);
    }
    hashmap_init(&h.known, 0);
    hashmap_init(&h.touched, 0);
    enum profd_status status = h.arena ? PROFD_OK : profd_no_memory(e);
    if (status == PROFD_OK && getrandom(&h.writer, sizeof h.writer, 0) != (ssize_t)sizeof h.writer) {
        status = profd_error_set(e, PROFD_INTERNAL, "no random numbers");
    }
    if (status == PROFD_OK) {
        status = count_removed(&h, &h.removed_count, e);
    }
    if (status == PROFD_OK) {
        status = ledger_load(x->to, x->arena, &h.removed, e);
    }
    if (status == PROFD_OK) {
        status = store_sqlite_export_hours(x->from, add_hour, &h, e);
    }
    if (status == PROFD_OK) {
        status = flush(&h, e);
    }
    if (status == PROFD_OK) {
        status = touch(&h, e);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        buffer_done(buffers[i]);
    }
    hashmap_clear(&h.known);
    hashmap_clear(&h.touched);
    arena_free(h.arena);
    return status;
}
