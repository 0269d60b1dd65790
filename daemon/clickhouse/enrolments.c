/* Tokens, and the hosts that were enrolled with them.
 *
 * A token is used by every key that was enrolled with it: uses are counted, under a lock, since two daemons may enrol
 * at the same time. The row of a revoked key has the greatest number there is, so that a renewal that another daemon
 * makes at the same time does not undo it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "clickhouse/engine_internal.h"
#include "proto/hex.h"

#define REVOKED_NUMBER UINT64_MAX
#define HOSTS_AT_ONCE 2000u /* of a statement */
#define COLUMNS "key, identity, number, tenant, token, name, machine, version, not_after, enrolled, revoked"

struct enrolment {
    struct store_enrolment row;
    uint64_t number;
    uint32_t tenant;
    uint8_t token[STORE_HASH_SIZE];
};

enum profd_status engine_put_token(struct store *base, const struct store_token *t, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct buffer row;
    uint32_t tenant = 0;
    enum profd_status status = engine_find_tenant(s, t->tenant, &tenant, e);
    if (status != PROFD_OK) {
        return status;
    }
    buffer_init(&row, 1 << 20);
    rows_put_fixed(&row, t->hash, sizeof t->hash);
    rows_put_u64(&row, engine_number(s));
    rows_put_u32(&row, tenant);
    rows_put_text(&row, t->name);
    rows_put_u64(&row, t->uses);
    rows_put_i64(&row, t->expires);
    rows_put_i64(&row, t->created);
    status = engine_insert(s, "token (hash, number, tenant, name, uses, expires, created)", &row, e);
    buffer_done(&row);
    return status;
}

static void copy_text(struct row_reader *r, char *out, size_t size)
{
    size_t n;
    const char *text = rows_string(r, &n);
    n = n < size ? n : size - 1;
    memcpy(out, text, n);
    out[n] = '\0';
}

/* The next row of COLUMNS; the name of its tenant is left out. */
static void read_row(struct row_reader *r, struct enrolment *x)
{
    memset(x, 0, sizeof *x);
    rows_fixed(r, x->row.key, sizeof x->row.key);
    rows_fixed(r, x->row.host, sizeof x->row.host);
    x->number = rows_u64(r);
    x->tenant = rows_u32(r);
    rows_fixed(r, x->token, sizeof x->token);
    copy_text(r, x->row.name, sizeof x->row.name);
    copy_text(r, x->row.machine, sizeof x->row.machine);
    copy_text(r, x->row.version, sizeof x->row.version);
    x->row.not_after = rows_i64(r);
    x->row.enrolled = rows_i64(r);
    x->row.revoked = rows_i64(r);
    x->row.uid = store_tenant_uid(x->tenant);
}

static enum profd_status name_tenant(struct clickhouse_store *s, struct enrolment *x, struct profd_error *e)
{
    const char *name = "";
    const enum profd_status status = engine_tenant_name(s, x->tenant, &name, e);
    (void)snprintf(x->row.tenant, sizeof x->row.tenant, "%s", name);
    return status;
}

/* The row of a key: its latest version. */
static enum profd_status find_key(struct clickhouse_store *s, const uint8_t key[STORE_HASH_SIZE], struct enrolment *out,
                                  bool *found, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT " COLUMNS " FROM enrolment WHERE key = ");
    engine_put_unhex(&s->statement, key, STORE_HASH_SIZE);
    buffer_add_text(&s->statement, " ORDER BY number DESC LIMIT 1");
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    *found = rows_more(&rows);
    if (*found) {
        read_row(&rows, out);
    }
    status = engine_rows_check(&rows, "an enrolment", e);
    rows_close(&rows);
    return status == PROFD_OK && *found ? name_tenant(s, out, e) : status;
}

/* Gives a row, which is the latest version of all of its identity, to the hosts that have this. */
static enum profd_status give_hosts(struct clickhouse_store *s, struct row_reader *rows, const uint8_t *hosts, size_t n,
                                    struct store_enrolment *out, bool *found, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct hashmap of; /* identity → struct enrolment */
    hashmap_init(&of, 0);
    while (status == PROFD_OK && rows_more(rows)) {
        struct enrolment x;
        read_row(rows, &x);
        status = engine_rows_check(rows, "enrolments", e);
        if (status == PROFD_OK) {
            status = name_tenant(s, &x, e);
        }
        if (status == PROFD_OK && !hashmap_put(&of, x.row.host, sizeof x.row.host, &x, sizeof x)) {
            status = profd_no_memory(e);
        }
    }
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        const struct enrolment *x = hashmap_find(&of, hosts + i * STORE_HOST_SIZE, STORE_HOST_SIZE);
        found[i] = x != NULL;
        if (x) {
            out[i] = x->row;
        }
    }
    hashmap_clear(&of);
    return status;
}

enum profd_status engine_find_enrolments(struct store *base, const uint8_t *hosts, size_t n,
                                         struct store_enrolment *out, bool *found, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    enum profd_status status = PROFD_OK;
    for (size_t from = 0; from < n && status == PROFD_OK; from += HOSTS_AT_ONCE) {
        const size_t some = n - from < HOSTS_AT_ONCE ? n - from : HOSTS_AT_ONCE;
        struct row_reader rows = {.bytes = NULL};
        engine_begin(s);
        buffer_add_text(&s->statement, "SELECT " COLUMNS " FROM enrolment WHERE identity IN (");
        for (size_t i = 0; i < some; i++) {
            buffer_add_text(&s->statement, i > 0 ? "," : "");
            engine_put_unhex(&s->statement, hosts + (from + i) * STORE_HOST_SIZE, STORE_HOST_SIZE);
        }
        buffer_add_text(&s->statement, ") ORDER BY number DESC LIMIT 1 BY identity");
        status = engine_query_printed(s, &rows, e);
        if (status == PROFD_OK) {
            status = give_hosts(s, &rows, hosts + from * STORE_HOST_SIZE, some, out + from, found + from, e);
        }
        rows_close(&rows);
    }
    return status;
}

enum profd_status engine_each_revoked(struct store *base,
                                      bool (*each)(void *context, const uint8_t key[STORE_HASH_SIZE], int64_t revoked),
                                      void *context, struct profd_error *e)
{
    struct row_reader rows = {.bytes = NULL};
    bool more = true;
    enum profd_status status = engine_query(engine_self(base), &rows, e,
                                            "SELECT key, min(revoked) FROM enrolment WHERE revoked != 0 GROUP BY key");
    while (status == PROFD_OK && more && rows_more(&rows)) {
        uint8_t key[STORE_HASH_SIZE];
        rows_fixed(&rows, key, sizeof key);
        const int64_t revoked = rows_i64(&rows);
        status = engine_rows_check(&rows, "revoked keys", e);
        more = status == PROFD_OK && each(context, key, revoked);
    }
    rows_close(&rows);
    return status;
}

static void put_row(struct buffer *b, const struct enrolment *x)
{
    rows_put_fixed(b, x->row.key, sizeof x->row.key);
    rows_put_fixed(b, x->row.host, sizeof x->row.host);
    rows_put_u64(b, x->number);
    rows_put_u32(b, x->tenant);
    rows_put_fixed(b, x->token, sizeof x->token);
    rows_put_text(b, x->row.name);
    rows_put_text(b, x->row.machine);
    rows_put_text(b, x->row.version);
    rows_put_i64(b, x->row.not_after);
    rows_put_i64(b, x->row.enrolled);
    rows_put_i64(b, x->row.revoked);
}

/* Stores a version of a row. lock: NULL: none is wanted. */
static enum profd_status store_row(struct clickhouse_store *s, const struct engine_lock *lock, struct enrolment *x,
                                   struct profd_error *e)
{
    struct buffer row;
    buffer_init(&row, 1 << 20);
    put_row(&row, x);
    const enum profd_status status = lock ? engine_insert_locked(s, lock, "enrolment (" COLUMNS ")", &row, e)
                                          : engine_insert(s, "enrolment (" COLUMNS ")", &row, e);
    buffer_done(&row);
    return status;
}

struct token {
    bool found;
    uint32_t tenant;
    uint64_t uses; /* that are left */
    int64_t expires;
};

static enum profd_status find_token(struct clickhouse_store *s, const uint8_t hash[STORE_HASH_SIZE], struct token *t,
                                    struct profd_error *e)
{
    struct row_reader rows;
    uint64_t used = 0;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT tenant, uses, expires FROM token WHERE hash = ");
    engine_put_unhex(&s->statement, hash, STORE_HASH_SIZE);
    buffer_add_text(&s->statement, " ORDER BY number DESC LIMIT 1");
    enum profd_status status = engine_query_printed(s, &rows, e);
    *t = (struct token){.found = false};
    if (status != PROFD_OK) {
        return status;
    }
    t->found = rows_more(&rows);
    if (t->found) {
        t->tenant = rows_u32(&rows);
        t->uses = rows_u64(&rows);
        t->expires = rows_i64(&rows);
    }
    status = engine_rows_check(&rows, "a token", e);
    rows_close(&rows);
    if (status == PROFD_OK && t->found) {
        char digits[2 * STORE_HASH_SIZE + 1];
        hex_put(digits, hash, STORE_HASH_SIZE);
        status = engine_query_number(
            s, &used, e, "SELECT toUInt64(uniqExact(key)) FROM enrolment WHERE token = unhex('%s')", digits);
    }
    t->uses -= used < t->uses ? used : t->uses;
    return status;
}

static void describe(struct enrolment *x, const struct store_enrolling *by)
{
    (void)snprintf(x->row.machine, sizeof x->row.machine, "%s", by->machine);
    (void)snprintf(x->row.version, sizeof x->row.version, "%s", by->version);
    x->row.not_after = by->not_after;
}

static enum profd_status enrol(struct clickhouse_store *s, const struct engine_lock *lock,
                               const struct store_enrolling *x, struct enrolment *out,
                               enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    struct token t;
    bool known = false;
    *verdict = STORE_ENROL_UNKNOWN;
    enum profd_status status = find_token(s, x->token, &t, e);
    if (status == PROFD_OK && t.found) {
        status = find_key(s, x->key, out, &known, e);
    }
    if (status != PROFD_OK || !t.found) {
        return status;
    }
    if (known) {
        *verdict = out->row.revoked != 0                                ? STORE_ENROL_REVOKED
                   : memcmp(out->token, x->token, sizeof x->token) == 0 ? STORE_ENROLLED
                                                                        : STORE_ENROL_OTHER;
        *spent = *verdict == STORE_ENROLLED && t.uses == 0 && !x->spent; /* the answer before may have failed */
        return PROFD_OK;
    }
    *verdict = t.uses == 0 || x->spent ? STORE_ENROL_USED_UP
               : t.expires <= x->now   ? STORE_ENROL_EXPIRED
                                       : STORE_ENROLLED;
    if (*verdict != STORE_ENROLLED) {
        return PROFD_OK;
    }
    *spent = t.uses == 1;
    *out = (struct enrolment){.number = engine_number(s), .tenant = t.tenant};
    memcpy(out->token, x->token, sizeof out->token);
    memcpy(out->row.host, x->host, sizeof out->row.host);
    memcpy(out->row.key, x->key, sizeof out->row.key);
    (void)snprintf(out->row.name, sizeof out->row.name, "%s", x->name);
    out->row.uid = store_tenant_uid(t.tenant);
    out->row.enrolled = x->now;
    describe(out, x);
    status = name_tenant(s, out, e);
    return status == PROFD_OK ? store_row(s, lock, out, e) : status;
}

enum profd_status engine_enrol(struct store *base, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_lock lock;
    struct enrolment made;
    *spent = false;
    enum profd_status status = engine_lock_take(s, "enrolment", &lock, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = engine_lock_give(s, &lock, enrol(s, &lock, x, &made, verdict, spent, e));
    if (status == PROFD_OK && *verdict == STORE_ENROLLED) {
        *out = made.row;
    }
    return status;
}

enum profd_status engine_renew(struct store *base, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct enrolment known;
    bool found = false;
    enum profd_status status = find_key(s, x->key, &known, &found, e);
    if (status != PROFD_OK) {
        return status;
    }
    *verdict = !found ? STORE_ENROL_UNKNOWN : known.row.revoked != 0 ? STORE_ENROL_REVOKED : STORE_ENROLLED;
    if (*verdict != STORE_ENROLLED) {
        return PROFD_OK;
    }
    describe(&known, x);
    engine_saw(s, known.number);
    known.number = engine_number(s);
    status = store_row(s, NULL, &known, e);
    if (status == PROFD_OK) {
        *out = known.row;
    }
    return status;
}

/* The digits of an identity without hyphens, in small letters; "": it cannot be one. */
static void fold_identity(const char *text, char out[2 * STORE_HOST_SIZE + 1])
{
    size_t n = 0;
    for (; *text != '\0' && n <= 2 * STORE_HOST_SIZE; text++) {
        if (*text != '-' && n < 2 * STORE_HOST_SIZE) {
            out[n] = (char)(*text >= 'A' && *text <= 'F' ? *text - 'A' + 'a' : *text);
        }
        n += *text != '-';
    }
    out[n <= 2 * STORE_HOST_SIZE ? n : 0] = '\0';
    if (strspn(out, "0123456789abcdef") != 2 * STORE_HOST_SIZE) {
        out[0] = '\0';
    }
}

/* What a name stands for. */
struct named {
    struct enrolment *list; /* in the arena */
    uint32_t count, capacity;
    size_t open; /* that are not revoked */
};

static enum profd_status add_named(struct clickhouse_store *s, struct row_reader *rows, struct arena *a,
                                   struct named *n, struct profd_error *e)
{
    struct enrolment *list = arena_extend(a, n->list, n->count, &n->capacity, sizeof *list);
    if (!list) {
        return profd_no_memory(e);
    }
    n->list = list;
    read_row(rows, &list[n->count]);
    n->open += list[n->count].row.revoked == 0;
    return name_tenant(s, &list[n->count++], e);
}

/* The hosts with this identity or, if there is none, of this name; by identity. */
static enum profd_status find_named(struct clickhouse_store *s, const char *which, struct arena *a, struct named *n,
                                    struct profd_error *e)
{
    char digits[2 * STORE_HOST_SIZE + 1];
    struct row_reader rows;
    enum profd_status status = PROFD_OK;
    fold_identity(which, digits);
    *n = (struct named){.list = NULL};
    for (int by_name = digits[0] == '\0'; by_name < 2 && n->count == 0 && status == PROFD_OK; by_name++) {
        engine_begin(s);
        buffer_add_format(&s->statement, "SELECT " COLUMNS " FROM enrolment FINAL WHERE %s",
                          by_name ? "name = " : "identity = unhex(");
        engine_put_quoted(&s->statement, by_name ? which : digits);
        buffer_add_format(&s->statement, "%s ORDER BY identity", by_name ? "" : ")");
        status = engine_query_printed(s, &rows, e);
        if (status != PROFD_OK) {
            return status;
        }
        while (status == PROFD_OK && rows_more(&rows)) {
            status = add_named(s, &rows, a, n, e);
        }
        if (status == PROFD_OK) {
            status = engine_rows_check(&rows, "enrolments", e);
        }
        rows_close(&rows);
    }
    return status;
}

static enum profd_status refuse_several(const struct named *n, const char *which, struct profd_error *e)
{
    char list[256] = "", digits[2 * STORE_HOST_SIZE + 1];
    for (size_t i = 0; i < n->count; i++) {
        const size_t at = strlen(list);
        if (n->list[i].row.revoked == 0 && at + sizeof digits + 80 < sizeof list) {
            hex_put(digits, n->list[i].row.host, STORE_HOST_SIZE);
            (void)snprintf(list + at, sizeof list - at, "%s%s (tenant %.40s)", at ? ", " : "", digits,
                           n->list[i].row.tenant);
        } else if (n->list[i].row.revoked == 0 && at > 3 && strcmp(list + at - 3, "...") != 0) {
            (void)snprintf(list + at, sizeof list - at, ", ...");
        }
    }
    return profd_error_set(e, PROFD_AMBIGUOUS, "%zu enrolled hosts have the name \"%.100s\"; state the identity: %s",
                           n->open, which, list);
}

static enum profd_status revoke_row(struct clickhouse_store *s, struct enrolment *x, int64_t when,
                                    struct profd_error *e)
{
    x->row.revoked = when;
    x->number = REVOKED_NUMBER;
    return store_row(s, NULL, x, e);
}

static enum profd_status revoke(struct clickhouse_store *s, struct named *n, const char *which, int64_t now,
                                bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                struct profd_error *e)
{
    if (n->open > 1) {
        return refuse_several(n, which, e);
    }
    for (size_t i = 0; i < n->count; i++) {
        struct enrolment *x = &n->list[i];
        if (n->open == 1 && x->row.revoked != 0) {
            continue;
        }
        x->row.revoked = n->open == 1 ? now : x->row.revoked;
        if (!each(context, &x->row)) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the hosts named %.100s", which);
        }
        if (n->open == 1) {
            return revoke_row(s, x, now, e);
        }
    }
    return PROFD_OK;
}

enum profd_status engine_revoke(struct store *base, const char *which, int64_t now,
                                bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct arena *a = arena_new(0);
    struct named n;
    enum profd_status status = a ? find_named(s, which, a, &n, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = revoke(s, &n, which, now, each, context, e);
    }
    arena_free(a);
    return status;
}

enum profd_status engine_revoke_keys(struct store *base, const uint8_t *keys, const int64_t *times, size_t n,
                                     struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        struct enrolment x;
        bool found = false;
        status = find_key(s, keys + i * STORE_HASH_SIZE, &x, &found, e);
        if (status == PROFD_OK && found && x.row.revoked == 0) {
            status = revoke_row(s, &x, times[i], e);
        }
    }
    return status;
}
