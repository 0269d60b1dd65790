/* What is known of the keys, hosts and programs of a batch of segments. */
#include <stdlib.h>
#include <string.h>

#include "clickhouse/arriving.h"
#include "clickhouse/removal.h"
#include "clickhouse/segment.h"

#define KEYS_AT_ONCE 1500u /* of a statement, which has at most 256 KiB */
#define DELETION_KEY (sizeof(uint32_t) + BUILDID_TEXT_SIZE)

typedef bool delivery_test(const struct arriving *x, const struct store_delivery *d);

/* Distinct values of the deliveries, in the order of the first. */
struct distinct {
    const void **list;
    size_t n;
};

static bool distinct_init(struct distinct *d, struct arena *a, size_t most)
{
    *d = (struct distinct){.list = ARENA_ARRAY(a, most + 1, const void *)};
    return d->list;
}

/* Adds a value unless it is in the table; false: out of memory. */
static bool distinct_add(struct distinct *d, struct hashmap *seen, const void *value, size_t size)
{
    if (hashmap_find(seen, value, size)) {
        return true;
    }
    d->list[d->n++] = value;
    return hashmap_put(seen, value, size, "", 1);
}

static void put_list(struct buffer *b, const struct distinct *d, size_t from, size_t to, size_t size)
{
    for (size_t i = from; i < to; i++) {
        buffer_add_text(b, i > from ? "," : "");
        engine_put_unhex(b, d->list[i], size);
    }
}

/* --- Hosts --- */

static enum profd_status load_hosts(struct arriving *x, struct profd_error *e)
{
    const uint8_t **identities = ARENA_ARRAY(x->arena, x->n, const uint8_t *);
    struct hashmap seen;
    struct engine_host *hosts = NULL;
    size_t n = 0, count = 0;
    bool fine = identities != NULL;
    hashmap_init(&seen, 0);
    for (size_t i = 0; i < x->n && fine; i++) {
        if (!hashmap_find(&seen, x->list[i].host, STORE_HOST_SIZE)) {
            identities[n++] = x->list[i].host;
            fine = hashmap_put(&seen, x->list[i].host, STORE_HOST_SIZE, "", 1);
        }
    }
    hashmap_clear(&seen);
    enum profd_status status =
        fine ? engine_load_hosts(x->s, x->arena, identities, n, &hosts, &count, e) : profd_no_memory(e);
    for (size_t i = 0; i < count && status == PROFD_OK; i++) {
        const struct engine_host *h = &hosts[i];
        status =
            hashmap_put(&x->hosts, h->identity, sizeof h->identity, &h, sizeof(void *)) ? PROFD_OK : profd_no_memory(e);
    }
    return status;
}

/* --- Epochs --- */

static enum profd_status read_epochs(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE];
        struct epoch_owner owner;
        rows_fixed(r, epoch, sizeof epoch);
        owner.number = rows_u64(r);
        rows_fixed(r, owner.host, sizeof owner.host);
        status = engine_rows_check(r, "epochs", e);
        if (status == PROFD_OK && !hashmap_put(&x->epochs, epoch, sizeof epoch, &owner, sizeof owner)) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

static enum profd_status read_ranges(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE];
        struct known_range *range = ARENA_NEW(x->arena, struct known_range), **first;
        rows_fixed(r, epoch, sizeof epoch);
        const uint64_t from = rows_u64(r), to = rows_u64(r), number = rows_u64(r);
        status = engine_rows_check(r, "known segments", e);
        if (status == PROFD_OK && range) {
            first = hashmap_find(&x->ranges, epoch, sizeof epoch);
            *range = (struct known_range){first ? *first : NULL, from, to, number};
            if (first) {
                *first = range;
            }
            range = first || hashmap_put(&x->ranges, epoch, sizeof epoch, &range, sizeof(void *)) ? range : NULL;
        }
        status = status == PROFD_OK && !range ? profd_no_memory(e) : status;
    }
    return status;
}

/* Runs a query of which the statement ends with the epochs of the batch. */
static enum profd_status
query_epochs(struct arriving *x, const struct distinct *d, const char *before, const char *behind,
             enum profd_status (*read)(struct arriving *x, struct row_reader *r, struct profd_error *e),
             struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t from = 0; from < d->n && status == PROFD_OK; from += KEYS_AT_ONCE) {
        struct row_reader r = {.bytes = NULL};
        engine_begin(x->s);
        buffer_add_text(&x->s->statement, before);
        put_list(&x->s->statement, d, from, d->n - from < KEYS_AT_ONCE ? d->n : from + KEYS_AT_ONCE,
                 SEGMENT_EPOCH_SIZE);
        buffer_add_text(&x->s->statement, behind);
        status = engine_query_printed(x->s, &r, e);
        if (status == PROFD_OK) {
            status = read(x, &r, e);
        }
        rows_close(&r);
    }
    return status;
}

static enum profd_status load_epochs(struct arriving *x, struct profd_error *e)
{
    struct distinct d;
    struct hashmap seen;
    bool fine = distinct_init(&d, x->arena, x->n);
    hashmap_init(&seen, 0);
    for (size_t i = 0; i < x->n && fine; i++) {
        fine = distinct_add(&d, &seen, x->list[i].epoch, SEGMENT_EPOCH_SIZE);
    }
    hashmap_clear(&seen);
    enum profd_status status =
        fine ? query_epochs(x, &d,
                            "SELECT epoch, toUInt64(min(number)), argMin(host, number) FROM epoch_host "
                            "WHERE epoch IN (",
                            ") GROUP BY epoch", read_epochs, e)
             : profd_no_memory(e);
    return status == PROFD_OK
               ? query_epochs(x, &d, "SELECT epoch, first, last, toUInt64(max(number)) FROM known WHERE epoch IN (",
                              ") GROUP BY epoch, first, last", read_ranges, e)
               : status;
}

/* --- Keys --- */

static enum profd_status read_arrivals(struct hashmap *to, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE], key[ARRIVAL_KEY_SIZE];
        struct arrival v = {.known = true};
        size_t n;
        rows_fixed(r, epoch, sizeof epoch);
        const uint64_t sequence = rows_u64(r);
        v.number = rows_u64(r);
        rows_fixed(r, v.digest, sizeof v.digest);
        v.outcome = (enum store_segment_outcome)rows_u8(r);
        v.hour = rows_u32(r);
        v.uid = rows_u32(r);
        v.generation = rows_u32(r);
        rows_fixed(r, v.series, sizeof v.series);
        const char *program = rows_string(r, &n);
        memcpy(v.program, program, n < sizeof v.program ? n : 0);
        status = engine_rows_check(r, "known segments", e);
        arrival_key(epoch, sequence, key);
        if (status == PROFD_OK && !hashmap_find(to, key, sizeof key) &&
            !hashmap_put(to, key, sizeof key, &v, sizeof v)) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

/* Loads what has arrived of the segments for which wanted is true. */
static enum profd_status load_arrivals(struct arriving *x, struct hashmap *to, delivery_test *wanted,
                                       struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < x->n && status == PROFD_OK;) {
        struct row_reader r = {.bytes = NULL};
        struct buffer *b = &x->s->statement;
        size_t n = 0;
        engine_begin(x->s);
        buffer_add_text(b, "SELECT epoch, sequence, number, digest, outcome, hour, uid, generation, series, program "
                           "FROM arrival WHERE (epoch, sequence) IN (");
        for (; i < x->n && n < KEYS_AT_ONCE; i++) {
            if (wanted(x, &x->list[i])) {
                buffer_add_text(b, n++ > 0 ? ",(" : "(");
                engine_put_unhex(b, x->list[i].epoch, SEGMENT_EPOCH_SIZE);
                buffer_add_format(b, ",%llu)", (unsigned long long)x->list[i].sequence);
            }
        }
        buffer_add_text(b, ") ORDER BY number DESC");
        status = n > 0 ? engine_query_printed(x->s, &r, e) : PROFD_OK;
        if (status == PROFD_OK && n > 0) {
            status = read_arrivals(to, &r, e);
        }
        rows_close(&r);
    }
    return status;
}

static bool is_any(const struct arriving *x, const struct store_delivery *d)
{
    (void)x;
    (void)d;
    return true;
}

static enum profd_status load_keys(struct arriving *x, struct profd_error *e)
{
    return load_arrivals(x, &x->keys, is_any, e);
}

/* --- Days that were removed --- */

static void removed_key(const char *program, uint32_t uid, uint32_t generation, uint32_t day, struct removed_key *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->program, program, strnlen(program, sizeof out->program - 1));
    out->uid = uid;
    out->generation = generation;
    out->day = day;
}

bool arriving_was_removed(const struct arriving *x, const struct arrival *v)
{
    struct removed_key key;
    removed_key(v->program, v->uid, v->generation, v->hour / 24, &key);
    const uint64_t *number = hashmap_find(&x->removed, &key, sizeof key);
    return v->hour / 24 < x->first_day || (number && v->number <= *number);
}

static enum profd_status read_removed(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        struct removed_key key;
        const char *program = rows_copy(r, x->arena);
        const uint32_t uid = rows_u32(r), generation = rows_u32(r), day = rows_u32(r);
        const uint64_t number = rows_u64(r);
        status = engine_rows_check(r, "days that were removed", e);
        if (status == PROFD_OK && program) {
            removed_key(program, uid, generation, day, &key);
        }
        if (status == PROFD_OK && (!program || !hashmap_put(&x->removed, &key, sizeof key, &number, sizeof number))) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

/* What was removed of the days of the keys that are known. */
static enum profd_status load_removed(struct arriving *x, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer *b = &x->s->statement;
    uint32_t from = UINT32_MAX, to = 0;
    size_t position = 0;
    const void *key;
    for (const struct arrival *v; (v = hashmap_next(&x->keys, &position, &key));) {
        from = v->program[0] && v->hour / 24 < from ? v->hour / 24 : from;
        to = v->program[0] && v->hour / 24 > to ? v->hour / 24 : to;
    }
    if (from > to) {
        return PROFD_OK;
    }
    engine_begin(x->s);
    buffer_add_format(b,
                      "SELECT program, uid, generation, day, toUInt64(max(number)) FROM removed WHERE day >= %u AND "
                      "day <= %u AND generation != %u GROUP BY program, uid, generation, day",
                      from, to, LEDGER_NEVER);
    enum profd_status status = engine_query_printed(x->s, &r, e);
    if (status == PROFD_OK) {
        status = read_removed(x, &r, e);
    }
    rows_close(&r);
    return status;
}

static enum profd_status load_first_day(struct arriving *x, struct profd_error *e)
{
    return engine_begin_storing(x->s, &x->first_day, e);
}

/* --- Programs --- */

static void deletion_key(uint32_t uid, const char *program, uint8_t out[DELETION_KEY])
{
    memset(out, 0, DELETION_KEY);
    memcpy(out, &uid, sizeof uid);
    memcpy(out + sizeof uid, program, strnlen(program, BUILDID_TEXT_SIZE - 1));
}

const struct deletion *arriving_deletion(const struct arriving *x, uint32_t uid, const char *program)
{
    uint8_t key[DELETION_KEY];
    deletion_key(uid, program, key);
    return hashmap_find(&x->deletions, key, sizeof key);
}

/* What was deleted since this handle saw it last may have taken attestations with it, which are asked for again. */
static bool note_deletion(struct clickhouse_store *s, const uint8_t key[DELETION_KEY], uint32_t generation)
{
    uint32_t *seen = hashmap_find(&s->deletions, key, DELETION_KEY);
    if (seen && *seen == generation) {
        return true;
    }
    engine_forget_awaited(s);
    if (seen) {
        *seen = generation;
        return true;
    }
    return hashmap_put(&s->deletions, key, DELETION_KEY, &generation, sizeof generation);
}

static enum profd_status read_deletions(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        uint8_t key[DELETION_KEY];
        struct deletion d;
        const char *program = rows_copy(r, x->arena);
        const uint32_t uid = rows_u32(r);
        d.generation = rows_u32(r);
        d.before = rows_i64(r);
        status = engine_rows_check(r, "deleted programs", e);
        if (status == PROFD_OK && program) {
            deletion_key(uid, program, key);
        }
        if (status == PROFD_OK && (!program || !note_deletion(x->s, key, d.generation) ||
                                   !hashmap_put(&x->deletions, key, sizeof key, &d, sizeof d))) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

/* A build-id as the tables have it; NULL: it is none. */
static const char *program_of(const struct store_delivery *d)
{
    return d->segment && d->segment->kind == SEGMENT_COUNTS ? d->segment->builds[d->segment->program].build_id : NULL;
}

static enum profd_status load_deletions(struct arriving *x, struct profd_error *e)
{
    char all[ENGINE_UNION_SIZE];
    struct row_reader r = {.bytes = NULL};
    struct distinct d;
    struct hashmap seen;
    struct buffer *b = &x->s->statement;
    bool fine = distinct_init(&d, x->arena, x->n);
    hashmap_init(&seen, 0);
    for (size_t i = 0; i < x->n && fine; i++) {
        const char *program = program_of(&x->list[i]);
        fine = !program || distinct_add(&d, &seen, program, strlen(program) + 1);
    }
    hashmap_clear(&seen);
    if (!fine || d.n == 0) {
        return fine ? PROFD_OK : profd_no_memory(e);
    }
    engine_begin(x->s);
    buffer_add_format(b, "SELECT program, uid, max(generation), max(before) FROM %s",
                      engine_name_union(x->s, "deletion", all));
    for (size_t i = 0; i < d.n && d.n <= KEYS_AT_ONCE; i++) {
        buffer_add_text(b, i > 0 ? "," : " WHERE program IN (");
        engine_put_quoted(b, d.list[i]);
    }
    buffer_add_text(b, d.n <= KEYS_AT_ONCE ? ") GROUP BY program, uid" : " GROUP BY program, uid");
    enum profd_status status = engine_query_printed(x->s, &r, e);
    if (status == PROFD_OK) {
        status = read_deletions(x, &r, e);
    }
    rows_close(&r);
    return status;
}

/* --- Rows of an attempt that was not acknowledged --- */

/* The rows come in descending order of their numbers: the first of a key says which segment is there. */
static enum profd_status take_stored(struct arriving *x, const struct segment_row *row, struct profd_error *e)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(row->epoch, row->sequence, key);
    struct stored *s = hashmap_find(&x->stored, key, sizeof key);
    const struct arrival *own = hashmap_find(&x->keys, key, sizeof key);
    if (own && own->number == row->number) { /* of a key of which the rows of others are wanted */
        return PROFD_OK;
    }
    if (!s) {
        const struct stored first = {.head = *row};
        s = hashmap_put(&x->stored, key, sizeof key, &first, sizeof first);
    }
    if (!s) {
        return profd_no_memory(e);
    }
    if (memcmp(s->head.digest, row->digest, sizeof row->digest) == 0) {
        s->groups |= 1u << row->group;
        if (row->head && !s->head.head) {
            s->head = *row;
        }
    }
    return PROFD_OK;
}

static enum profd_status read_stored(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        struct segment_row row;
        const bool fine = segment_row_read_key(r, x->arena, &row) && segment_row_read_sums(r, x->arena, &row);
        status = engine_rows_check(r, "segments", e);
        if (status == PROFD_OK) {
            status = fine ? take_stored(x, &row, e) : profd_no_memory(e);
        }
    }
    return status;
}

/* Appends a condition that holds for the rows of segments with counts from *i on, as many as a statement may name, for
 * which wanted is true. Returns their number. */
static size_t put_keys(const struct arriving *x, size_t *i, delivery_test *wanted, struct buffer *b)
{
    size_t n = 0;
    buffer_add_text(b, "(program, sent, epoch, sequence) IN (");
    for (; *i < x->n && n < KEYS_AT_ONCE / 2; (*i)++) {
        const struct store_delivery *d = &x->list[*i];
        if (program_of(d) && wanted(x, d)) {
            buffer_add_format(b, "%s('%s',toDateTime(%u),", n++ > 0 ? "," : "", program_of(d),
                              segment_row_sent(d->segment) * 3600);
            engine_put_unhex(b, d->epoch, SEGMENT_EPOCH_SIZE);
            buffer_add_format(b, ",%llu)", (unsigned long long)d->sequence);
        }
    }
    buffer_add_char(b, ')');
    return n;
}

static bool is_unknown(const struct arriving *x, const struct store_delivery *d)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    return !hashmap_find(&x->keys, key, sizeof key);
}

static enum profd_status load_rows(struct arriving *x, delivery_test *wanted, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < x->n && status == PROFD_OK;) {
        struct row_reader r = {.bytes = NULL};
        struct buffer *b = &x->s->statement;
        engine_begin(x->s);
        buffer_add_text(b, "SELECT " SEGMENT_ROW_KEY ", " SEGMENT_ROW_SUMS " FROM segment_group WHERE ");
        const size_t n = put_keys(x, &i, wanted, b);
        buffer_add_text(b, " ORDER BY number DESC");
        if (n > 0) {
            status = engine_query_printed(x->s, &r, e);
            status = status == PROFD_OK ? read_stored(x, &r, e) : status;
        }
        rows_close(&r);
    }
    return status;
}

static enum profd_status load_stored(struct arriving *x, struct profd_error *e)
{
    return load_rows(x, is_unknown, e);
}

enum profd_status arriving_load(struct arriving *x, struct profd_error *e)
{
    static enum profd_status (*const steps[])(struct arriving * x, struct profd_error * e) = {
        load_first_day, load_hosts, load_epochs, load_keys, load_removed, load_deletions, load_stored};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == PROFD_OK; i++) {
        status = steps[i](x, e);
    }
    return status;
}

/* --- Rows of another daemon that was given the same segment at the same time --- */

/* What this daemon has just stored for a key; NULL: nothing, or something that was there before. */
static const struct arrival *find_fresh(const struct arriving *x, const uint8_t key[ARRIVAL_KEY_SIZE])
{
    const struct arrival *v = hashmap_find(&x->keys, key, ARRIVAL_KEY_SIZE);
    return v && v->fresh && v->generation != LEDGER_NEVER ? v : NULL;
}

static bool is_fresh(const struct arriving *x, const struct store_delivery *d)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    return find_fresh(x, key);
}

static bool is_rivaled(const struct arriving *x, const struct store_delivery *d)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    return hashmap_find(&x->rivals, key, sizeof key);
}

static enum profd_status read_rivals(struct arriving *x, struct row_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE], key[ARRIVAL_KEY_SIZE], series[ENGINE_SERIES_SIZE];
        uint8_t digest[SEGMENT_DIGEST_SIZE];
        rows_fixed(r, epoch, sizeof epoch);
        arrival_key(epoch, rows_u64(r), key);
        rows_fixed(r, digest, sizeof digest);
        rows_fixed(r, series, sizeof series);
        const uint32_t hour = rows_u32(r), generation = rows_u32(r);
        status = engine_rows_check(r, "segments", e);
        const struct arrival *v = find_fresh(x, key);
        const bool other =
            v && memcmp(digest, v->digest, sizeof digest) == 0 &&
            (hour != v->hour || generation != v->generation || memcmp(series, v->series, sizeof series) != 0);
        if (status == PROFD_OK && other && !hashmap_put(&x->rivals, key, sizeof key, "", 1)) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

enum profd_status arriving_load_rivals(struct arriving *x, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < x->n && status == PROFD_OK;) {
        struct row_reader r = {.bytes = NULL};
        struct buffer *b = &x->s->statement;
        engine_begin(x->s);
        buffer_add_text(b, "SELECT epoch, sequence, digest, series, hour, generation FROM segment_group WHERE head = 1 "
                           "AND ");
        if (put_keys(x, &i, is_fresh, b) > 0) {
            status = engine_query_printed(x->s, &r, e);
            status = status == PROFD_OK ? read_rivals(x, &r, e) : status;
        }
        rows_close(&r);
    }
    return status;
}

enum profd_status arriving_load_settled(struct arriving *x, struct profd_error *e)
{
    hashmap_clear(&x->stored);
    const enum profd_status status = load_arrivals(x, &x->settled, is_rivaled, e);
    return status == PROFD_OK ? load_rows(x, is_rivaled, e) : status;
}
