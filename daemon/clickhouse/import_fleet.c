/* Import of hosts, of the keys that they have sent, and of what is missing and was deleted of theirs. */
#include <sys/random.h>

#include "clickhouse/fleet.h"
#include "clickhouse/import.h"
#include "clickhouse/importing.h"

#define SLOT_ROUNDS 8u
#define SLOTS_APART (1u << 20)
#define KEY_SIZE (SEGMENT_EPOCH_SIZE + sizeof(uint64_t))
#define DAYS_AT_ONCE 80 /* of a block, which may have 100 partitions */

struct hosts {
    struct importing *x;
    struct engine_host *list;
    uint32_t count, capacity;
};

static const char *copy_cell(struct arena *a, const struct store_cell *cell)
{
    return arena_copy(a, cell->bytes ? (const char *)cell->bytes : "", cell->bytes ? cell->size : 0);
}

static enum profd_status add_host(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct hosts *h = context;
    struct importing *x = h->x;
    uint32_t tenant = 0;
    x->out->hosts++;
    if (row[0].size != STORE_HOST_SIZE) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has a host with an identity of %zu bytes", row[0].size);
    }
    if (hashmap_find(&x->slots, row[0].bytes, STORE_HOST_SIZE)) {
        return PROFD_OK;
    }
    enum profd_status status = import_map_tenant(x, row[2].number, &tenant, e);
    struct engine_host *list = arena_extend(x->arena, h->list, h->count, &h->capacity, sizeof *list);
    if (status != PROFD_OK || !list) {
        return status == PROFD_OK ? profd_no_memory(e) : status;
    }
    h->list = list;
    list[h->count] = (struct engine_host){.uid = store_tenant_uid(tenant),
                                          .name = copy_cell(x->arena, &row[1]),
                                          .machine = copy_cell(x->arena, &row[12]),
                                          .other = copy_cell(x->arena, &row[13]),
                                          .version = copy_cell(x->arena, &row[14]),
                                          .clock = row[3].number,
                                          .number = (uint64_t)row[4].number,
                                          .restored = row[5].number,
                                          .first = row[6].number,
                                          .last = row[7].number,
                                          .delivered = row[8].number,
                                          .copied = row[9].number,
                                          .began = row[11].number,
                                          .not_after = row[15].number};
    struct engine_host *made = &list[h->count++];
    memcpy(made->identity, row[0].bytes, STORE_HOST_SIZE);
    if (row[10].size == sizeof made->epoch) {
        memcpy(made->epoch, row[10].bytes, sizeof made->epoch);
    }
    return made->name && made->machine && made->other && made->version ? PROFD_OK : profd_no_memory(e);
}

/* Gives the new hosts slots and stores them; *taken: a daemon has given some of the slots at the same time. */
static enum profd_status store_hosts(struct hosts *h, uint32_t apart, bool *taken, struct profd_error *e)
{
    struct importing *x = h->x;
    uint64_t most = 0, twice = 0;
    enum profd_status status = engine_query_number(x->to, &most, e, "SELECT toUInt64(max(slot)) FROM host");
    for (uint32_t i = 0; i < h->count && status == PROFD_OK; i++) {
        h->list[i].slot = (uint32_t)most + apart + i + 1;
        engine_put_host(x->to, &h->list[i], &x->rows);
        status = import_flush(x, ENGINE_HOST_COLUMNS, false, e);
    }
    if (status == PROFD_OK) {
        status = import_flush(x, ENGINE_HOST_COLUMNS, true, e);
    }
    if (status == PROFD_OK) {
        status = engine_query_number(x->to, &twice, e,
                                     "SELECT toUInt64(count()) FROM (SELECT slot FROM host FINAL WHERE slot > %llu "
                                     "GROUP BY slot HAVING count() > 1)",
                                     (unsigned long long)most);
    }
    *taken = twice > 0;
    return status;
}

/* Hosts that the tables have stay as they are. */
static enum profd_status import_hosts(struct importing *x, struct profd_error *e)
{
    struct hosts h = {.x = x};
    struct engine_host *known;
    size_t count = 0;
    bool taken = false;
    enum profd_status status = engine_load_hosts(x->to, x->arena, NULL, 0, &known, &count, e);
    for (size_t i = 0; i < count && status == PROFD_OK; i++) {
        if (!hashmap_put(&x->slots, known[i].identity, STORE_HOST_SIZE, &known[i].slot, sizeof known[i].slot)) {
            status = profd_no_memory(e);
        }
    }
    if (status == PROFD_OK) {
        status = store_sqlite_export(x->from, STORE_EXPORT_HOSTS, add_host, &h, e);
    }
    uint32_t apart = 0;
    for (unsigned round = 0; status == PROFD_OK && h.count > 0 && (round == 0 || taken); round++) {
        if (round == SLOT_ROUNDS || (round > 0 && getrandom(&apart, sizeof apart, 0) != (ssize_t)sizeof apart)) {
            return profd_error_set(e, PROFD_BUSY, "daemons admit many hosts at the same time; import again");
        }
        status = store_hosts(&h, apart % SLOTS_APART, &taken, e);
    }
    for (uint32_t i = 0; i < h.count && status == PROFD_OK; i++) {
        if (!hashmap_put(&x->slots, h.list[i].identity, STORE_HOST_SIZE, &h.list[i].slot, sizeof h.list[i].slot)) {
            status = profd_no_memory(e);
        }
    }
    return status;
}

/* --- Keys --- */

static enum profd_status note_epoch(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    const uint64_t mark = (uint64_t)row[2].number;
    if (row[0].size != SEGMENT_EPOCH_SIZE) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has an epoch of %zu bytes", row[0].size);
    }
    return hashmap_put(&x->epochs, row[0].bytes, SEGMENT_EPOCH_SIZE, &mark, sizeof mark) ? PROFD_OK
                                                                                         : profd_no_memory(e);
}

static void make_key(uint8_t key[KEY_SIZE], const uint8_t *epoch, uint64_t sequence)
{
    memcpy(key, epoch, SEGMENT_EPOCH_SIZE);
    memcpy(key + SEGMENT_EPOCH_SIZE, &sequence, sizeof sequence);
}

static enum profd_status note_key(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    uint8_t key[KEY_SIZE];
    if (row[0].size != SEGMENT_EPOCH_SIZE) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has an epoch of %zu bytes", row[0].size);
    }
    make_key(key, row[0].bytes, (uint64_t)row[1].number);
    return hashmap_put(&x->keys, key, sizeof key, "", 1) ? PROFD_OK : profd_no_memory(e);
}

/* Has one of the keys that the query lists arrived in the database, too? */
static enum profd_status compare_keys(struct importing *x, struct profd_error *e)
{
    struct row_reader rows;
    bool both = false;
    enum profd_status status = engine_query_printed(x->to, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (rows_more(&rows) && !both) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE], key[KEY_SIZE];
        rows_fixed(&rows, epoch, sizeof epoch);
        const uint64_t sequence = rows_u64(&rows), *mark = hashmap_find(&x->epochs, epoch, sizeof epoch);
        make_key(key, epoch, sequence);
        both = !rows.cut && ((mark && sequence <= *mark) || hashmap_find(&x->keys, key, sizeof key));
    }
    status = engine_rows_check(&rows, "keys", e);
    rows_close(&rows);
    return status == PROFD_OK && both
               ? profd_error_set(e, PROFD_REFUSED,
                                 "hosts have sent segments to these tables that are in the database, too: they would "
                                 "count twice. Import into new tables, before hosts send to them")
               : status;
}

/* What was counted in the tables must not be in the database. */
static enum profd_status check_keys(struct importing *x, struct profd_error *e)
{
    size_t position = 0, n = 0;
    const void *epoch;
    enum profd_status status = PROFD_OK;
    for (bool more = x->epochs.count > 0; more && status == PROFD_OK;) {
        struct buffer *b = &x->to->statement;
        more = hashmap_next(&x->epochs, &position, &epoch) != NULL;
        if (more && n == 0) {
            engine_begin(x->to);
            buffer_add_text(b, "SELECT epoch, sequence FROM arrival WHERE program != '' AND epoch IN (");
        }
        if (more) {
            buffer_add_text(b, n++ > 0 ? "," : "");
            engine_put_unhex(b, epoch, SEGMENT_EPOCH_SIZE);
        }
        if (n == IMPORT_EPOCHS_AT_ONCE || (!more && n > 0)) {
            buffer_add_char(b, ')');
            status = compare_keys(x, e);
            n = 0;
        }
    }
    return status;
}

static enum profd_status add_owner(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    (void)e;
    import_put_fixed(&x->rows, &row[0], SEGMENT_EPOCH_SIZE);
    rows_put_u64(&x->rows, x->number);
    import_put_fixed(&x->rows, &row[1], STORE_HOST_SIZE);
    x->out->epochs++;
    return PROFD_OK;
}

static enum profd_status add_known(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    (void)e;
    if (row[2].number > 0) {
        import_put_fixed(&x->rows, &row[0], SEGMENT_EPOCH_SIZE);
        rows_put_u64(&x->rows, 0);
        rows_put_u64(&x->rows, (uint64_t)row[2].number);
        rows_put_u64(&x->rows, x->number);
    }
    return PROFD_OK;
}

/* Arrivals of a few days. */
struct arrivals {
    struct importing *x;
    int64_t day;
    unsigned days;
};
#define ARRIVAL_COLUMNS "arrival (epoch, sequence, received, number, digest, outcome, host)"

/* What they counted is in the hours. */
static enum profd_status add_arrival(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct arrivals *a = context;
    struct importing *x = a->x;
    const int64_t received = row[5].number * 1000000000, day = received / ENGINE_DAY;
    const uint32_t *slot = row[6].size == STORE_HOST_SIZE ? hashmap_find(&x->slots, row[6].bytes, row[6].size) : NULL;
    enum profd_status status = PROFD_OK;
    a->days += day != a->day;
    a->day = day;
    if (a->days > DAYS_AT_ONCE) {
        status = import_flush(x, ARRIVAL_COLUMNS, true, e);
        a->days = 1;
    }
    import_put_fixed(&x->rows, &row[0], SEGMENT_EPOCH_SIZE);
    rows_put_u64(&x->rows, (uint64_t)row[1].number);
    rows_put_i64(&x->rows, received);
    rows_put_u64(&x->rows, (uint64_t)row[3].number);
    import_put_fixed(&x->rows, &row[2], SEGMENT_DIGEST_SIZE);
    rows_put_u8(&x->rows, (uint8_t)row[4].number);
    rows_put_u32(&x->rows, slot ? *slot : 0);
    x->out->arrivals++;
    return status == PROFD_OK ? import_flush(x, ARRIVAL_COLUMNS, false, e) : status;
}

static enum profd_status add_quarantined(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    (void)e;
    import_put_fixed(&x->rows, &row[0], SEGMENT_EPOCH_SIZE);
    rows_put_u64(&x->rows, (uint64_t)row[1].number);
    rows_put_u64(&x->rows, x->number);
    rows_put_i64(&x->rows, row[2].number);
    import_put_text(&x->rows, &row[3]);
    rows_put_u64(&x->rows, (uint64_t)row[4].number);
    import_put_text(&x->rows, &row[5]);
    x->out->quarantined++;
    return PROFD_OK;
}

static enum profd_status import_keys(struct importing *x, struct profd_error *e)
{
    struct arrivals a = {.x = x, .day = -1};
    enum profd_status status = store_sqlite_export(x->from, STORE_EXPORT_EPOCHS, note_epoch, x, e);
    if (status == PROFD_OK) {
        status = store_sqlite_export(x->from, STORE_EXPORT_ARRIVALS, note_key, x, e);
    }
    if (status == PROFD_OK) {
        status = check_keys(x, e);
    }
    if (status == PROFD_OK) {
        status = import_table(x, STORE_EXPORT_EPOCHS, add_owner, "epoch_host (epoch, number, host)", e);
    }
    if (status == PROFD_OK) {
        status = import_table(x, STORE_EXPORT_EPOCHS, add_known, "known (epoch, first, last, number)", e);
    }
    if (status == PROFD_OK) {
        status = store_sqlite_export(x->from, STORE_EXPORT_ARRIVALS, add_arrival, &a, e);
    }
    if (status == PROFD_OK) {
        status = import_flush(x, ARRIVAL_COLUMNS, true, e);
    }
    return status == PROFD_OK ? import_table(x, STORE_EXPORT_QUARANTINE, add_quarantined,
                                             "quarantine (epoch, sequence, number, received, reason, size, bytes)", e)
                              : status;
}

/* --- Marks and deletions --- */

static enum profd_status add_mark(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    (void)e;
    for (unsigned bit = 0; bit < 32; bit++) {
        if ((uint64_t)row[2].number >> bit & 1) {
            rows_put_u32(&x->rows, (uint32_t)row[0].number);
            import_put_fixed(&x->rows, &row[1], STORE_HOST_SIZE);
            rows_put_u32(&x->rows, UINT32_C(1) << bit);
            rows_put_u64(&x->rows, x->number);
            x->out->marks++;
        }
    }
    return PROFD_OK;
}

static enum profd_status load_deletions(struct importing *x, struct profd_error *e)
{
    struct row_reader rows;
    enum profd_status status =
        engine_query(x->to, &rows, e, "SELECT program, uid, generation, before FROM deletion FINAL");
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        struct import_program p;
        struct import_deletion d;
        size_t n;
        memset(&p, 0, sizeof p);
        const char *text = rows_string(&rows, &n);
        memcpy(p.build_id, text, n < sizeof p.build_id ? n : sizeof p.build_id - 1);
        p.uid = rows_u32(&rows);
        d.generation = rows_u32(&rows);
        d.before = rows_i64(&rows);
        status = engine_rows_check(&rows, "deleted programs", e);
        if (status == PROFD_OK && !hashmap_put(&x->deletions, &p, sizeof p, &d, sizeof d)) {
            status = profd_no_memory(e);
        }
    }
    rows_close(&rows);
    return status;
}

/* The program is deleted of every tenant, unless that was imported before. */
static enum profd_status add_deletion(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    size_t position = 0;
    for (const uint32_t *id; (id = hashmap_next(&x->tenants, &position, NULL));) {
        struct import_program p;
        const struct import_deletion none = {.before = INT64_MIN};
        memset(&p, 0, sizeof p);
        p.uid = store_tenant_uid(*id);
        memcpy(p.build_id, row[0].bytes, row[0].size < sizeof p.build_id ? row[0].size : sizeof p.build_id - 1);
        struct import_deletion *d = hashmap_find(&x->deletions, &p, sizeof p);
        d = d ? d : hashmap_put(&x->deletions, &p, sizeof p, &none, sizeof none);
        if (!d) {
            return profd_no_memory(e);
        }
        if (d->before < row[1].number) {
            *d = (struct import_deletion){d->generation + 1, row[1].number};
            rows_put_text(&x->rows, p.build_id);
            rows_put_u32(&x->rows, p.uid);
            rows_put_u32(&x->rows, d->generation);
            rows_put_i64(&x->rows, d->before);
        }
    }
    x->out->deletions++;
    return PROFD_OK;
}

enum profd_status import_fleet(struct importing *x, struct profd_error *e)
{
    enum profd_status status = import_hosts(x, e);
    if (status == PROFD_OK) {
        status = import_keys(x, e);
    }
    if (status == PROFD_OK) {
        status = import_table(x, STORE_EXPORT_MARKS, add_mark, "mark (hour, host, reason, number)", e);
    }
    if (status == PROFD_OK) {
        status = load_deletions(x, e);
    }
    return status == PROFD_OK
               ? import_table(x, STORE_EXPORT_DELETIONS, add_deletion, "deletion (program, uid, generation, before)", e)
               : status;
}
