/* Tokens, and the hosts that were enrolled with them. */
#include <stdio.h>
#include <string.h>

#include "proto/hex.h"
#include "store/sqlite_rollup.h"

#define HASH(of) BLOB(of, STORE_HASH_SIZE)

/* One transaction around a verb's work. */
static enum profd_status begin(struct store *s, struct profd_error *e)
{
    TRY(sqlite_space_begin(s, e));
    return sqlite_upkeep_begin(s, e);
}

static enum profd_status end(struct store *s, enum profd_status status, struct profd_error *e)
{
    if (status == PROFD_OK) {
        status = sqlite_space_judge(s, e);
    }
    return sqlite_upkeep_end(s, status, e);
}

static enum profd_status put_token(struct store *s, const struct store_enrol_token *t, struct profd_error *e)
{
    int64_t tenant = 0;
    TRY(sqlite_find_tenant(s, t->tenant, &tenant, e));
    return sqlite_run(s, SQL_ENROL_TOKEN_ADD,
                      VALUES(HASH(t->hash), INTEGER(tenant), INTEGER(t->uses), INTEGER(t->expires), INTEGER(t->created),
                             TEXT(t->name)),
                      e);
}

enum profd_status store_put_enrol_token(struct store *s, const struct store_enrol_token *token, struct profd_error *e)
{
    TRY(begin(s, e));
    return end(s, put_token(s, token, e), e);
}

static void copy_blob(sqlite3_stmt *q, int column, uint8_t *out, size_t size)
{
    size_t n = 0;
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    if (n == size) {
        memcpy(out, bytes, n);
    }
}

/* The row of an enrolment: its columns in the order of the statements. *token: id. */
static void read_enrolment(sqlite3_stmt *q, struct store_enrolment *out, int64_t *token)
{
    memset(out, 0, sizeof *out);
    copy_blob(q, 0, out->host, sizeof out->host);
    copy_blob(q, 1, out->key, sizeof out->key);
    snprintf(out->tenant, sizeof out->tenant, "%s", sqlite_text(q, 2));
    out->uid = store_tenant_uid(sqlite3_column_int64(q, 3));
    snprintf(out->name, sizeof out->name, "%s", sqlite_text(q, 4));
    snprintf(out->machine, sizeof out->machine, "%s", sqlite_text(q, 5));
    snprintf(out->version, sizeof out->version, "%s", sqlite_text(q, 6));
    out->not_after = sqlite3_column_int64(q, 7);
    out->enrolled = sqlite3_column_int64(q, 8);
    out->revoked = sqlite3_column_int64(q, 9);
    *token = sqlite3_column_int64(q, 10);
}

static enum profd_status find_one(struct store *s, enum sqlite_sql which, const uint8_t *by, size_t n,
                                  struct store_enrolment *out, int64_t *token, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    *found = false;
    TRY(sqlite_first(s, which, VALUES(BLOB(by, n)), &q, found, e));
    if (*found) {
        read_enrolment(q, out, token);
        sqlite_finish(q);
    }
    return PROFD_OK;
}

enum profd_status store_find_enrolments(struct store *s, const uint8_t *hosts, size_t n, struct store_enrolment *out,
                                        bool *found, struct profd_error *e)
{
    int64_t token;
    for (size_t i = 0; i < n; i++) {
        TRY(find_one(s, SQL_ENROLMENT_BY_HOST, hosts + i * STORE_HOST_SIZE, STORE_HOST_SIZE, &out[i], &token, &found[i],
                     e));
    }
    return PROFD_OK;
}

/* What the token allows. *id, *tenant, *uses: of its row. */
static enum profd_status judge_token(struct store *s, const struct store_enrolling *x, int64_t *id, int64_t *tenant,
                                     int64_t *uses, enum store_enrol_verdict *verdict, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_ENROL_TOKEN_FIND, VALUES(HASH(x->token)), &q, &row, e));
    *verdict = STORE_ENROL_UNKNOWN;
    if (row) {
        const int64_t expires = sqlite3_column_int64(q, 3);
        *id = sqlite3_column_int64(q, 0);
        *tenant = sqlite3_column_int64(q, 1);
        *uses = sqlite3_column_int64(q, 2);
        *verdict = *uses < 1 || x->spent ? STORE_ENROL_USED_UP
                   : expires <= x->now   ? STORE_ENROL_EXPIRED
                                         : STORE_ENROLLED;
        sqlite_finish(q);
    }
    return PROFD_OK;
}

static enum profd_status enrol(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    int64_t token = 0, tenant = 0, before = 0, uses = 0;
    bool known = false;
    TRY(judge_token(s, x, &token, &tenant, &uses, verdict, e));
    if (*verdict != STORE_ENROL_UNKNOWN) {
        TRY(find_one(s, SQL_ENROLMENT_BY_KEY, x->key, STORE_HASH_SIZE, out, &before, &known, e));
    }
    if (*verdict != STORE_ENROLLED && !known) {
        return PROFD_OK;
    }
    if (known) {
        *verdict = out->revoked != 0 ? STORE_ENROL_REVOKED : before == token ? STORE_ENROLLED : STORE_ENROL_OTHER;
        *spent = *verdict == STORE_ENROLLED && uses < 1 && !x->spent; /* the answer before may have failed */
        return PROFD_OK;
    }
    *spent = uses == 1;
    TRY(sqlite_run(s, SQL_ENROLMENT_ADD,
                   VALUES(BLOB(x->host, sizeof x->host), INTEGER(tenant), INTEGER(token), TEXT(x->name),
                          TEXT(x->machine), HASH(x->key), TEXT(x->version), INTEGER(x->not_after), INTEGER(x->now)),
                   e));
    TRY(sqlite_run(s, SQL_ENROL_TOKEN_USE, VALUES(INTEGER(token)), e));
    return find_one(s, SQL_ENROLMENT_BY_KEY, x->key, STORE_HASH_SIZE, out, &before, &known, e);
}

enum profd_status store_enrol(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                              enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    TRY(begin(s, e));
    *spent = false;
    return end(s, enrol(s, x, out, verdict, spent, e), e);
}

static enum profd_status renew(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, struct profd_error *e)
{
    int64_t token;
    bool found;
    TRY(find_one(s, SQL_ENROLMENT_BY_KEY, x->key, STORE_HASH_SIZE, out, &token, &found, e));
    *verdict = !found ? STORE_ENROL_UNKNOWN : out->revoked != 0 ? STORE_ENROL_REVOKED : STORE_ENROLLED;
    return *verdict != STORE_ENROLLED
               ? PROFD_OK
               : sqlite_run(s, SQL_ENROLMENT_RENEW,
                            VALUES(HASH(x->key), TEXT(x->machine), TEXT(x->version), INTEGER(x->not_after)), e);
}

enum profd_status store_renew(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                              enum store_enrol_verdict *verdict, struct profd_error *e)
{
    TRY(begin(s, e));
    return end(s, renew(s, x, out, verdict, e), e);
}

/* What a name stands for. */
struct named {
    size_t open, before;        /* not revoked; revoked before */
    struct store_enrolment one; /* the first that is not revoked */
    char list[256];             /* identities of those that are not, cut */
};

static void add_named(struct named *n, const struct store_enrolment *x)
{
    const size_t at = strlen(n->list);
    char digits[2 * STORE_HOST_SIZE + 1];
    if (x->revoked != 0) {
        n->before++;
        return;
    }
    if (n->open++ == 0) {
        n->one = *x;
    }
    hex_put(digits, x->host, STORE_HOST_SIZE);
    if (at + sizeof digits + 80 < sizeof n->list) {
        snprintf(n->list + at, sizeof n->list - at, "%s%s (tenant %.40s)", at ? ", " : "", digits, x->tenant);
    } else if (at > 3 && strcmp(n->list + at - 3, "...") != 0) {
        snprintf(n->list + at, sizeof n->list - at, ", ...");
    }
}

/* each, if there is one, gets those that were revoked before. */
static enum profd_status walk_named(struct store *s, const char *which, struct named *n,
                                    bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool goes_on = true;
    TRY(sqlite_start(s, SQL_ENROLMENT_NAMED, VALUES(TEXT(which)), &q, e));
    *n = (struct named){.open = 0};
    enum profd_status status = PROFD_OK;
    while (goes_on && sqlite_row(s, q, &status, e)) {
        struct store_enrolment host;
        int64_t token;
        read_enrolment(q, &host, &token);
        add_named(n, &host);
        goes_on = !each || each(context, &host);
    }
    if (status == PROFD_OK && !goes_on) {
        sqlite_finish(q);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the hosts named %.100s", which);
    }
    return status;
}

static enum profd_status revoke(struct store *s, const char *which, int64_t now,
                                bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                struct profd_error *e)
{
    struct named n;
    TRY(walk_named(s, which, &n, NULL, NULL, e));
    if (n.open > 1) {
        return profd_error_set(e, PROFD_AMBIGUOUS,
                               "%zu enrolled hosts have the name \"%.100s\"; state the identity: %s", n.open, which,
                               n.list);
    }
    if (n.open == 0) {
        return walk_named(s, which, &n, each, context, e);
    }
    n.one.revoked = now;
    TRY(sqlite_run(s, SQL_ENROLMENT_REVOKE, VALUES(HASH(n.one.key), INTEGER(now)), e));
    if (!each(context, &n.one)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the hosts named %.100s", which);
    }
    return PROFD_OK;
}

enum profd_status store_revoke(struct store *s, const char *which, int64_t now,
                               bool (*each)(void *context, const struct store_enrolment *host), void *context,
                               struct profd_error *e)
{
    TRY(begin(s, e));
    return end(s, revoke(s, which, now, each, context, e), e);
}

enum profd_status store_revoke_keys(struct store *s, const uint8_t *keys, const int64_t *times, size_t n,
                                    struct profd_error *e)
{
    TRY(begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = sqlite_run(s, SQL_ENROLMENT_REVOKE, VALUES(HASH(keys + i * STORE_HASH_SIZE), INTEGER(times[i])), e);
    }
    return end(s, status, e);
}

enum profd_status store_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                  void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool goes_on = true;
    TRY(sqlite_start(s, SQL_FLEET_HOST_EACH, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (goes_on && sqlite_row(s, q, &status, e)) {
        struct store_fleet_host host;
        memset(&host, 0, sizeof host);
        copy_blob(q, 0, host.host, sizeof host.host);
        host.name = sqlite_text(q, 1);
        host.tenant = sqlite_text(q, 2);
        host.machine = sqlite_text(q, 3);
        host.version = sqlite_text(q, 4);
        host.has_enrolment = sqlite3_column_int(q, 5) != 0;
        host.not_after = sqlite3_column_int64(q, 6);
        host.revoked = sqlite3_column_int64(q, 7);
        host.first = sqlite3_column_int64(q, 8);
        host.last = sqlite3_column_int64(q, 9);
        host.delivered = sqlite3_column_int64(q, 10);
        host.restored = sqlite3_column_int64(q, 11);
        host.uid = store_tenant_uid(sqlite3_column_int64(q, 12));
        host.copied = sqlite3_column_int64(q, 13);
        goes_on = each(context, &host);
    }
    if (status == PROFD_OK && !goes_on) {
        sqlite_finish(q);
    }
    return status;
}
