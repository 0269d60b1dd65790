/* What hosts attest (attestations.h).
 *
 * A row with due 0 was entered without a word to readers: what answers say may have changed since, as after the death
 * of a daemon between the two. So a row that changes answers is stored twice: with due 0, then as it is. */
#include <stdio.h>
#include <string.h>

#include "clickhouse/engine_internal.h"
#include "clickhouse/naming.h"

#define COLUMNS "attestation (build, host, number, uid, has, hash, size, due, gone)"
#define BATCH_BYTES (64u << 20)

/* A row of a host. */
struct row {
    struct row *next; /* of the same host */
    const char *build_id;
    uint32_t uid;
    uint64_t number;
    bool has, gone;
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t size;
    int64_t due;
    bool entered, telling; /* now; readers must be told */
};

struct host {
    struct row *rows;
    uint32_t uid; /* of its tenant; 0: it has not arrived */
};

/* A batch. */
struct attesting {
    struct clickhouse_store *s;
    const struct store_attestation *list;
    size_t n;
    struct arena *arena;
    struct host *hosts; /* for each item, of the same host the first alone */
    size_t *host_of;    /* of each item */
    struct naming_build *builds;
    size_t *build_of, build_count; /* of each item */
};

static void put_hosts(struct buffer *b, const struct attesting *x)
{
    for (size_t i = 0; i < x->n; i++) {
        if (x->host_of[i] == i) {
            buffer_add_text(b, i > 0 ? "," : "");
            engine_put_unhex(b, x->list[i].host, STORE_HOST_SIZE);
        }
    }
}

/* The host of an identity that was asked for. */
static struct host *find_host(const struct attesting *x, const uint8_t identity[STORE_HOST_SIZE])
{
    size_t i = 0;
    while (i < x->n && memcmp(x->list[i].host, identity, STORE_HOST_SIZE) != 0) {
        i++;
    }
    return i < x->n ? &x->hosts[i] : NULL;
}

static enum profd_status load_hosts(struct attesting *x, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(x->s);
    buffer_add_text(&x->s->statement, "SELECT identity, uid FROM host FINAL WHERE identity IN (");
    put_hosts(&x->s->statement, x);
    buffer_add_char(&x->s->statement, ')');
    enum profd_status status = engine_query_printed(x->s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (rows_more(&rows)) {
        uint8_t identity[STORE_HOST_SIZE];
        rows_fixed(&rows, identity, sizeof identity);
        const uint32_t uid = rows_u32(&rows);
        struct host *h = find_host(x, identity);
        if (h) {
            h->uid = uid;
        }
    }
    status = engine_rows_check(&rows, "hosts", e);
    rows_close(&rows);
    return status;
}

/* The rows of the hosts: of each its latest version, without those that are gone. */
static enum profd_status load_rows(struct attesting *x, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(x->s);
    buffer_add_text(&x->s->statement, "SELECT host, build, number, uid, has, hash, size, due, gone FROM attestation "
                                      "WHERE host IN (");
    put_hosts(&x->s->statement, x);
    buffer_add_text(&x->s->statement, ") ORDER BY host, build, number DESC");
    enum profd_status status = engine_query_printed(x->s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        uint8_t identity[STORE_HOST_SIZE];
        struct row *r = ARENA_NEW(x->arena, struct row);
        rows_fixed(&rows, identity, sizeof identity);
        const char *build_id = rows_copy(&rows, x->arena);
        struct host *h = find_host(x, identity);
        if (!r || !build_id || !h) {
            status = rows.cut || !h ? profd_error_set(e, PROFD_BUSY, "store: ClickHouse replied with other hosts")
                                    : profd_no_memory(e);
            break;
        }
        *r = (struct row){.next = h->rows, .build_id = build_id};
        r->number = rows_u64(&rows);
        r->uid = rows_u32(&rows);
        r->has = rows_u8(&rows) != 0;
        rows_fixed(&rows, r->hash, sizeof r->hash);
        r->size = rows_u64(&rows);
        r->due = rows_i64(&rows);
        r->gone = rows_u8(&rows) != 0;
        engine_saw(x->s, r->number);
        if (!h->rows || strcmp(h->rows->build_id, build_id) != 0) {
            h->rows = r;
        }
    }
    if (status == PROFD_OK) {
        status = engine_rows_check(&rows, "attestations", e);
    }
    rows_close(&rows);
    return status;
}

/* Reads what is known of the hosts and builds of the items. */
static enum profd_status load(struct attesting *x, struct profd_error *e)
{
    x->hosts = ARENA_ARRAY(x->arena, x->n, struct host);
    x->host_of = ARENA_ARRAY(x->arena, x->n, size_t);
    x->builds = ARENA_ARRAY(x->arena, x->n, struct naming_build);
    x->build_of = ARENA_ARRAY(x->arena, x->n, size_t);
    if (!x->hosts || !x->host_of || !x->builds || !x->build_of) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < x->n; i++) {
        size_t b = 0;
        x->host_of[i] = (size_t)(find_host(x, x->list[i].host) - x->hosts);
        while (b < x->build_count && strcmp(x->builds[b].build_id, x->list[i].build_id) != 0) {
            b++;
        }
        x->build_of[i] = b;
        if (b == x->build_count && x->list[i].build_id[0] != '\0') {
            x->builds[x->build_count++].build_id = x->list[i].build_id;
        }
    }
    enum profd_status status = load_hosts(x, e);
    if (status == PROFD_OK) {
        status = load_rows(x, e);
    }
    return status == PROFD_OK ? engine_load_naming(x->s, NULL, x->builds, x->build_count, x->arena, e) : status;
}

/* The limits of one host. */
static void judge_limits(const struct host *h, const struct row *mine, uint64_t size, struct store_attested *out)
{
    uint64_t n = 0, bytes = 0;
    for (const struct row *r = h->rows; r; r = r->next) {
        n += r != mine && r->has && !r->gone;
        bytes += r != mine && r->has && !r->gone ? r->size : 0;
    }
    if (n >= STORE_ATTEST_MOST) {
        out->verdict = STORE_ATTEST_TOO_MANY;
    } else if (size > STORE_ATTEST_BYTES - (bytes < STORE_ATTEST_BYTES ? bytes : STORE_ATTEST_BYTES)) {
        out->verdict = STORE_ATTEST_TOO_LARGE;
    }
}

/* Counts one host more that attests the hash. */
static bool join_group(struct attesting *x, struct naming_build *b, const uint8_t hash[STORE_HASH_SIZE])
{
    struct naming_group *g = naming_find_group(b, hash);
    if (!g) {
        g = ARENA_NEW(x->arena, struct naming_group);
        if (!g) {
            return false;
        }
        *g = (struct naming_group){.next = b->groups, .has = true};
        memcpy(g->hash, hash, STORE_HASH_SIZE);
        b->groups = g;
    }
    g->hosts++;
    return true;
}

/* Is it of hosts, none of which attests it any more? An operator's stays. */
static bool is_unattested(const void *context, const struct naming_object *o, const struct naming_sender *sender)
{
    return o->hashed && !naming_find_group(context, o->content) && store_is_tenant(sender->uid) && !sender->by_operator;
}

/* Removes objects that no host attests any more. If a host of another daemon attests one at this moment, it is asked
 * again a day later, and sends it then. */
static enum profd_status remove_unattested(struct attesting *x, const struct naming_build *known, struct profd_error *e)
{
    struct naming_build now = {.build_id = known->build_id};
    bool any = false;
    for (const struct naming_object *o = known->objects; o; o = o->next) {
        for (const struct naming_sender *by = o->senders; by; by = by->next) {
            any |= is_unattested(known, o, by);
        }
    }
    const enum profd_status status = any ? engine_load_naming(x->s, NULL, &now, 1, x->arena, e) : PROFD_OK;
    return status == PROFD_OK && any ? engine_remove_objects(x->s, &now, is_unattested, &now, e) : status;
}

static bool is_stored(const struct naming_build *b, const uint8_t hash[STORE_HASH_SIZE])
{
    const struct naming_object *o = b->objects;
    while (o && !(o->hashed && memcmp(o->content, hash, STORE_HASH_SIZE) == 0)) {
        o = o->next;
    }
    return o != NULL;
}

/* Enters an item into its row and into the groups of its build. False: out of memory. */
static bool enter(struct attesting *x, size_t i, struct row *r, struct store_attested *out)
{
    const struct store_attestation *a = &x->list[i];
    const struct host *h = &x->hosts[x->host_of[i]];
    struct naming_build *b = &x->builds[x->build_of[i]];
    const struct naming_group *before = naming_find_quorum(b);
    out->verdict = STORE_ATTEST_TAKEN;
    if (a->has) {
        judge_limits(h, r, a->size, out);
    }
    const bool has = a->has && out->verdict == STORE_ATTEST_TAKEN;
    const bool other = has != r->has || (has && memcmp(r->hash, a->hash, sizeof r->hash) != 0);
    struct naming_group *left = r->has && other ? naming_find_group(b, r->hash) : NULL;
    if (has && other && !join_group(x, b, a->hash)) {
        return false;
    }
    if (left) {
        left->hosts--;
    }
    const struct naming_group *after = naming_find_quorum(b);
    r->telling |= (other || r->due == 0) && (!after || after != before);
    r->has = has;
    r->size = has ? a->size : 0;
    memset(r->hash, 0, sizeof r->hash);
    if (has) {
        memcpy(r->hash, a->hash, sizeof r->hash);
    }
    out->stored = has && is_stored(b, a->hash);
    r->due = a->now + (a->refused || out->verdict != STORE_ATTEST_TAKEN || out->stored ? STORE_ATTEST_AGAIN
                       : has                                                           ? STORE_ATTEST_AWAITED
                                                                                       : STORE_ATTEST_ABSENT);
    r->uid = h->uid != 0 ? h->uid : r->uid;
    r->entered = true;
    return true;
}

/* Stores what was entered. telling: only rows of which readers must be told, as before that; else as they are. */
static enum profd_status put_rows(struct attesting *x, bool telling, struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, BATCH_BYTES);
    for (size_t i = 0; i < x->n; i++) {
        for (struct row *r = x->host_of[i] == i ? x->hosts[i].rows : NULL; r; r = r->next) {
            if (!r->entered || (telling && !r->telling)) {
                continue;
            }
            rows_put_text(&rows, r->build_id);
            rows_put_fixed(&rows, x->list[i].host, STORE_HOST_SIZE);
            rows_put_u64(&rows, engine_number(x->s));
            rows_put_u32(&rows, r->uid);
            rows_put_u8(&rows, r->has);
            rows_put_fixed(&rows, r->hash, sizeof r->hash);
            rows_put_u64(&rows, r->size);
            rows_put_i64(&rows, telling ? 0 : r->due);
            rows_put_u8(&rows, 0);
        }
    }
    const enum profd_status status = engine_insert(x->s, COLUMNS, &rows, e);
    buffer_done(&rows);
    return status;
}

/* Stores the rows, and makes the reports new that they change. */
static enum profd_status store_rows(struct attesting *x, const struct store_attested *out, struct profd_error *e)
{
    enum profd_status status = put_rows(x, true, e);
    for (size_t b = 0; b < x->build_count && status == PROFD_OK; b++) {
        bool telling = false;
        for (size_t i = 0; i < x->n && !telling; i++) {
            for (const struct row *r = x->hosts[x->host_of[i]].rows; r && x->build_of[i] == b && !telling;
                 r = r->next) {
                telling = out[i].verdict != STORE_ATTEST_UNASKED && r->telling &&
                          strcmp(r->build_id, x->builds[b].build_id) == 0;
            }
        }
        if (telling) {
            status = engine_touch_object(x->s, x->builds[b].build_id, STORE_TENANT_LAST, STORE_TENANT, e);
        }
    }
    if (status == PROFD_OK) {
        status = put_rows(x, false, e);
    }
    for (size_t b = 0; b < x->build_count && status == PROFD_OK; b++) {
        status = remove_unattested(x, &x->builds[b], e);
    }
    return status;
}

static bool comes_before(const struct row *a, const struct row *b)
{
    return a->due != b->due ? a->due < b->due : strcmp(a->build_id, b->build_id) < 0;
}

static enum profd_status attest_one(struct attesting *x, size_t i, struct store_attested *out, struct profd_error *e)
{
    const struct store_attestation *a = &x->list[i];
    struct row *mine = NULL;
    const struct row *next = NULL;
    *out = (struct store_attested){.verdict = STORE_ATTEST_UNASKED};
    for (struct row *r = x->hosts[x->host_of[i]].rows; r; r = r->next) {
        mine = !r->gone && strcmp(r->build_id, a->build_id) == 0 ? r : mine;
    }
    if (mine && !enter(x, i, mine, out)) {
        return profd_no_memory(e);
    }
    for (const struct row *r = x->hosts[x->host_of[i]].rows; r; r = r->next) {
        next = !r->gone && r->due <= a->now && (!next || comes_before(r, next)) ? r : next;
    }
    if (next) {
        (void)snprintf(out->next.text, sizeof out->next.text, "%s", next->build_id);
    }
    return PROFD_OK;
}

enum profd_status engine_attest(struct store *base, const struct store_attestation *list, size_t n,
                                struct store_attested *out, struct profd_error *e)
{
    struct attesting x = {.s = engine_self(base), .list = list, .n = n};
    if (n == 0) {
        return PROFD_OK;
    }
    x.arena = arena_new(0);
    enum profd_status status = x.arena ? load(&x, e) : profd_no_memory(e);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = attest_one(&x, i, &out[i], e);
    }
    if (status == PROFD_OK) {
        status = store_rows(&x, out, e);
    }
    arena_free(x.arena);
    return status;
}
