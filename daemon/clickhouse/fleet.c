#include "clickhouse/fleet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HOSTS_AT_ONCE 2000u /* of a statement, which has at most 256 KiB */
#define SETTLE_ROUNDS 16
#define SLOTS_APART (1u << 20)       /* slots of which one is drawn, after two daemons took the same one */
#define MARKED_HOURS_MOST (366 * 24) /* a clock that was wrong must not fill the table */

#define COLUMNS                                                                                                        \
    "identity, slot, uid, name, machine, other, version, clock, restored, first, last, delivered, copied, began, "     \
    "not_after, database_number, epoch, number"

static bool read_host(struct clickhouse_store *s, struct row_reader *r, struct arena *a, struct engine_host *h)
{
    rows_fixed(r, h->identity, sizeof h->identity);
    h->slot = rows_u32(r);
    h->uid = rows_u32(r);
    h->name = rows_copy(r, a);
    h->machine = rows_copy(r, a);
    h->other = rows_copy(r, a);
    h->version = rows_copy(r, a);
    int64_t *const times[] = {&h->clock,     &h->restored, &h->first, &h->last,
                              &h->delivered, &h->copied,   &h->began, &h->not_after};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        *times[i] = rows_i64(r);
    }
    h->number = rows_u64(r);
    rows_fixed(r, h->epoch, sizeof h->epoch);
    engine_saw(s, rows_u64(r));
    return h->name && h->machine && h->other && h->version;
}

static enum profd_status read_hosts(struct clickhouse_store *s, struct row_reader *r, struct arena *a,
                                    struct engine_host **list, uint32_t *n, uint32_t *capacity, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        struct engine_host *more = arena_extend(a, *list, *n, capacity, sizeof **list);
        if (!more) {
            return profd_no_memory(e);
        }
        *list = more;
        const bool fine = read_host(s, r, a, &more[*n]);
        status = engine_rows_check(r, "hosts", e);
        if (status == PROFD_OK && !fine) {
            status = profd_no_memory(e);
        }
        ++*n;
    }
    return status;
}

/* "identity IN (…)" */
static void put_identities(struct buffer *b, const uint8_t *const *identities, size_t n)
{
    buffer_add_text(b, "identity IN (");
    for (size_t i = 0; i < n; i++) {
        buffer_add_text(b, i > 0 ? "," : "");
        engine_put_unhex(b, identities[i], STORE_HOST_SIZE);
    }
    buffer_add_text(b, ")");
}

enum profd_status engine_load_hosts(struct clickhouse_store *s, struct arena *a, const uint8_t *const *identities,
                                    size_t n, struct engine_host **out, size_t *count, struct profd_error *e)
{
    struct engine_host *list = NULL;
    uint32_t have = 0, capacity = 0;
    enum profd_status status = PROFD_OK;
    size_t done = 0;
    do {
        struct row_reader r = {.bytes = NULL};
        const size_t some = n - done < HOSTS_AT_ONCE ? n - done : HOSTS_AT_ONCE;
        if (identities && some == 0) {
            break;
        }
        engine_begin(s);
        buffer_add_text(&s->statement, "SELECT " COLUMNS " FROM host FINAL");
        if (identities) {
            buffer_add_text(&s->statement, " WHERE ");
            put_identities(&s->statement, identities + done, some);
        }
        status = engine_query_printed(s, &r, e);
        if (status == PROFD_OK) {
            status = read_hosts(s, &r, a, &list, &have, &capacity, e);
        }
        rows_close(&r);
        done += some;
    } while (status == PROFD_OK && identities && done < n);
    *out = list;
    *count = have;
    return status;
}

void engine_put_host(struct clickhouse_store *s, const struct engine_host *h, struct buffer *rows)
{
    rows_put_fixed(rows, h->identity, sizeof h->identity);
    rows_put_u32(rows, h->slot);
    rows_put_u32(rows, h->uid);
    rows_put_text(rows, h->name);
    rows_put_text(rows, h->machine);
    rows_put_text(rows, h->other);
    rows_put_text(rows, h->version);
    const int64_t times[] = {h->clock, h->restored, h->first, h->last, h->delivered, h->copied, h->began, h->not_after};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        rows_put_i64(rows, times[i]);
    }
    rows_put_u64(rows, h->number);
    rows_put_fixed(rows, h->epoch, sizeof h->epoch);
    rows_put_u64(rows, engine_number(s));
}

void engine_put_mark(struct clickhouse_store *s, const uint8_t host[STORE_HOST_SIZE], int64_t hour, uint32_t reasons,
                     struct buffer *rows)
{
    rows_put_u32(rows, (uint32_t)hour);
    rows_put_fixed(rows, host, STORE_HOST_SIZE);
    rows_put_u32(rows, reasons);
    rows_put_u64(rows, engine_number(s));
}

enum profd_status engine_touch_tenant(struct clickhouse_store *s, uint32_t uid, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct engine_touch *list = NULL;
    uint32_t n = 0, capacity = 0;
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? engine_query(s, &r, e, "SELECT DISTINCT arrayJoin(builds) AS build FROM series WHERE uid = %u", uid)
          : profd_no_memory(e);
    while (status == PROFD_OK && rows_more(&r)) {
        struct engine_touch *more = arena_extend(a, list, n, &capacity, sizeof *list);
        const char *build = rows_copy(&r, a);
        status = engine_rows_check(&r, "builds", e);
        if (status == PROFD_OK && (!more || !build)) {
            status = profd_no_memory(e);
        }
        if (status == PROFD_OK) {
            list = more;
            list[n++] = (struct engine_touch){.build = build, .uid = uid};
        }
    }
    rows_close(&r);
    if (status == PROFD_OK) {
        const struct engine_touch lists = {.build = "", .uid = uid};
        status = n > 0 ? engine_touch(s, list, n, e) : engine_touch(s, &lists, 1, e);
    }
    arena_free(a);
    return status;
}

/* --- Hosts that arrive --- */

struct admitting {
    struct clickhouse_store *s;
    struct arena *a;
    struct engine_host *hosts; /* capacity for all that arrive */
    size_t count;
    uint32_t *uids; /* of hosts that are marked */
    size_t uid_count;
    struct buffer marks;
};

/* What the host had not sent when it was restored is missing in the hours since it was there last. */
static void mark_restored(struct admitting *x, const struct engine_host *h, int64_t last, int64_t now)
{
    const int64_t to = now / ENGINE_HOUR;
    int64_t hour = last / ENGINE_HOUR;
    hour = hour > to || hour < to - MARKED_HOURS_MOST ? to : hour;
    for (; hour <= to; hour++) {
        engine_put_mark(x->s, h->identity, hour, (uint32_t)INEXACT_RESTORED, &x->marks);
    }
    x->uids[x->uid_count++] = h->uid;
}

static struct engine_host *find_host(struct admitting *x, const uint8_t *identity)
{
    for (size_t i = 0; i < x->count; i++) {
        if (memcmp(x->hosts[i].identity, identity, STORE_HOST_SIZE) == 0) {
            return &x->hosts[i];
        }
    }
    return NULL;
}

static const char *copy_text(struct arena *a, const char *text)
{
    return arena_copy(a, text ? text : "", text ? strlen(text) : 0);
}

/* A host that holds something apart asks whether its database went back. It is not told by its number now, but by that
 * of its start; and its number is raised by what it delivers after it has the answer. So the question may be asked
 * again after an answer that was lost. */
static enum profd_status admit_host(struct admitting *x, const struct store_arrival *a, struct store_admission *out,
                                    struct profd_error *e)
{
    struct engine_host *h = find_host(x, a->host);
    const char *name = copy_text(x->a, a->name), *machine = copy_text(x->a, a->machine),
               *version = copy_text(x->a, a->version);
    if (!name || !machine || !version) {
        return profd_no_memory(e);
    }
    if (!h) {
        h = &x->hosts[x->count++];
        *h = (struct engine_host){.first = a->now, .machine = "", .other = ""};
        memcpy(h->identity, a->host, sizeof h->identity);
    }
    const int64_t last = h->last;
    *out = (struct store_admission){.restored = (a->held ? a->held - 1 : a->number) < h->number, .number = h->number};
    if (machine[0] && h->machine[0] && strcmp(machine, h->machine) != 0) {
        h->copied = a->now;
        h->other = h->machine;
    }
    h->machine = machine[0] ? machine : h->machine;
    h->name = name;
    h->version = version;
    h->last = a->now;
    h->clock = a->clock;
    h->number = a->held ? h->number : a->number;
    h->uid = a->tenant ? a->tenant : STORE_TENANT;
    h->not_after = a->not_after;
    if (out->restored) {
        h->restored = a->now;
        mark_restored(x, h, last, a->now);
    }
    return PROFD_OK;
}

/* Hosts that are new get the next slots. */
static enum profd_status give_slots(struct admitting *x, size_t from, struct profd_error *e)
{
    uint64_t most = 0;
    enum profd_status status =
        from < x->count ? engine_query_number(x->s, &most, e, "SELECT toUInt64(max(slot)) FROM host") : PROFD_OK;
    for (size_t i = from; status == PROFD_OK && i < x->count; i++) {
        x->hosts[i].slot = (uint32_t)++most;
    }
    return status;
}

static enum profd_status insert_hosts(struct admitting *x, const bool *which, size_t from, struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, 64u << 20);
    for (size_t i = from; i < x->count; i++) {
        if (!which || which[i]) {
            engine_put_host(x->s, &x->hosts[i], &rows);
        }
    }
    const enum profd_status status = engine_insert(x->s, ENGINE_HOST_COLUMNS, &rows, e);
    buffer_done(&rows);
    return status;
}

/* Reads which hosts have these hosts' slots now. moved[i]: host i has another slot since. */
static enum profd_status compare_slots(struct admitting *x, size_t from, bool *moved, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer *b = &x->s->statement;
    engine_begin(x->s);
    buffer_add_text(b, "SELECT identity, slot, number FROM host FINAL WHERE slot IN (");
    for (size_t i = from; i < x->count; i++) {
        buffer_add_format(b, "%s%u", i > from ? "," : "", x->hosts[i].slot);
    }
    buffer_add_text(b, ") OR identity IN (");
    for (size_t i = from; i < x->count; i++) {
        buffer_add_text(b, i > from ? "," : "");
        engine_put_unhex(b, x->hosts[i].identity, STORE_HOST_SIZE);
    }
    buffer_add_text(b, ")");
    enum profd_status status = engine_query_printed(x->s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        uint8_t identity[STORE_HOST_SIZE];
        rows_fixed(&r, identity, sizeof identity);
        const uint32_t slot = rows_u32(&r);
        engine_saw(x->s, rows_u64(&r));
        status = engine_rows_check(&r, "slots of hosts", e);
        for (size_t i = from; status == PROFD_OK && i < x->count; i++) {
            struct engine_host *h = &x->hosts[i];
            const bool mine = memcmp(identity, h->identity, sizeof identity) == 0;
            uint32_t random;
            if (mine) { /* another daemon may have admitted it since */
                h->slot = slot;
            } else if (slot == h->slot && getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random) {
                h->slot += 1 + random % SLOTS_APART;
                moved[i] = true;
            }
        }
    }
    rows_close(&r);
    return status;
}

/* Two daemons may have given one slot at the same time: each one that sees that takes another. */
static enum profd_status settle_slots(struct admitting *x, size_t from, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    bool *moved = ARENA_ARRAY(x->a, x->count, bool), any = from < x->count;
    for (unsigned round = 0; status == PROFD_OK && any; round++) {
        if (!moved || round == SETTLE_ROUNDS) {
            return moved ? profd_error_set(e, PROFD_BUSY, "store: other daemons admit many hosts at the same time")
                         : profd_no_memory(e);
        }
        memset(moved, 0, x->count * sizeof *moved);
        any = false;
        status = compare_slots(x, from, moved, e);
        for (size_t i = from; i < x->count; i++) {
            any |= moved[i];
        }
        if (status == PROFD_OK && any) {
            status = insert_hosts(x, moved, from, e);
        }
    }
    return status;
}

static enum profd_status admit_all(struct admitting *x, const struct store_arrival *list, size_t n,
                                   struct store_admission *out, struct profd_error *e)
{
    const uint8_t **identities = ARENA_ARRAY(x->a, n, const uint8_t *);
    struct engine_host *known;
    x->uids = ARENA_ARRAY(x->a, n, uint32_t);
    x->hosts = ARENA_ARRAY(x->a, 2 * n, struct engine_host);
    if (!identities || !x->uids || !x->hosts) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        identities[i] = list[i].host;
    }
    enum profd_status status = engine_load_hosts(x->s, x->a, identities, n, &known, &x->count, e);
    if (status == PROFD_OK && x->count > 0) {
        memcpy(x->hosts, known, x->count * sizeof *known);
    }
    const size_t from = x->count;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = admit_host(x, &list[i], &out[i], e);
    }
    if (status == PROFD_OK) {
        status = give_slots(x, from, e);
    }
    if (status == PROFD_OK) { /* before the row that makes it known: a restore is noticed once */
        status = engine_insert(x->s, ENGINE_MARK_COLUMNS, &x->marks, e);
    }
    for (size_t i = 0; i < x->uid_count && status == PROFD_OK; i++) {
        status = i > 0 && x->uids[i] == x->uids[i - 1] ? PROFD_OK : engine_touch_tenant(x->s, x->uids[i], e);
    }
    if (status == PROFD_OK) {
        status = insert_hosts(x, NULL, 0, e);
    }
    return status == PROFD_OK ? settle_slots(x, from, e) : status;
}

enum profd_status engine_admit_hosts(struct store *base, const struct store_arrival *list, size_t n,
                                     struct store_admission *out, struct profd_error *e)
{
    struct admitting x = {.s = engine_self(base), .a = arena_new(0)};
    buffer_init(&x.marks, 64u << 20);
    const enum profd_status status = !x.a ? profd_no_memory(e) : n == 0 ? PROFD_OK : admit_all(&x, list, n, out, e);
    buffer_done(&x.marks);
    arena_free(x.a);
    return status;
}
