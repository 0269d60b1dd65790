/* Several daemons that store in the same tables at the same time. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

#define NOW INT64_C(1700000000000000000)
#define HANDLES 2u
#define TEST(name)                                                                                                     \
    static void name##_body(struct fixture *f);                                                                        \
    STORE_TEST_OF(store_clickhouse, FIXTURE_CLICKHOUSE, name)                                                          \
    static void name##_body(struct fixture *f)

/* One daemon: its handle, and what it found. */
struct daemon {
    struct store *s;
    unsigned number;
    enum profd_status status;
    struct profd_error e;
    unsigned enrolled, used_up, added, refused;
};

/* Runs the same on all handles at the same time. */
static void run(struct fixture *f, struct daemon d[HANDLES], void *(*work)(void *))
{
    pthread_t threads[HANDLES];
    for (unsigned i = 0; i < HANDLES; i++) {
        d[i] = (struct daemon){.s = i == 0 ? f->w : fixture_open_beside(f), .number = i};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &d[i]), 0);
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(d[i].status, PROFD_OK, "%s", d[i].e.sentence);
        if (d[i].s != f->w) {
            store_close(d[i].s);
        }
    }
}

/* As a caller does: what is BUSY is tried again. */
#define UNTIL_DONE(d, call)                                                                                            \
    do {                                                                                                               \
        (d)->status = (call);                                                                                          \
    } while ((d)->status == PROFD_BUSY)

static void set_bytes(uint8_t *out, size_t n, unsigned a, unsigned b)
{
    memset(out, 0, n);
    out[0] = (uint8_t)a;
    out[1] = (uint8_t)b;
}

static struct store_enrolling wish(unsigned token, unsigned of, unsigned host)
{
    struct store_enrolling x = {.name = "web", .machine = "m", .version = "1", .now = NOW, .not_after = NOW + 5};
    set_bytes(x.token, sizeof x.token, token, of);
    set_bytes(x.host, sizeof x.host, host, of);
    set_bytes(x.key, sizeof x.key, host, of);
    return x;
}

#define TENANTS 6u /* of each handle; as many are of all */

static void *make_tenants(void *context)
{
    struct daemon *d = context;
    for (unsigned i = 0; i < 2 * TENANTS && d->status == PROFD_OK; i++) {
        char name[32];
        struct store_token t = {.tenant = name, .name = "", .uses = 1, .expires = NOW + 10, .created = NOW};
        set_bytes(t.hash, sizeof t.hash, i, d->number);
        if (i % 2) {
            snprintf(name, sizeof name, "common%u", i);
        } else {
            snprintf(name, sizeof name, "own%u-%u", i, d->number);
        }
        UNTIL_DONE(d, store_put_token(d->s, &t, &d->e));
    }
    return NULL;
}

TEST(tenants_that_daemons_make_at_the_same_time_have_one_id_each)
{
    struct daemon d[HANDLES];
    char names[HANDLES * 2 * TENANTS][STORE_NAME_SIZE];
    uint32_t uids[HANDLES * 2 * TENANTS];
    size_t n = 0;
    run(f, d, make_tenants);
    for (unsigned i = 0; i < 2 * TENANTS; i++) {
        for (unsigned of = 0; of < HANDLES; of++) {
            const struct store_enrolling x = wish(i, of, i);
            struct store_enrolment a;
            enum store_enrol_verdict verdict;
            bool spent;
            OK(f, store_enrol(f->w, &x, &a, &verdict, &spent, &f->e));
            cr_assert_eq(verdict, STORE_ENROLLED);
            snprintf(names[n], sizeof names[n], "%s", a.tenant);
            uids[n++] = a.uid;
        }
    }
    for (size_t i = 0; i < n; i++) {
        cr_assert(store_is_tenant(uids[i]) && uids[i] != STORE_TENANT);
        for (size_t k = 0; k < i; k++) {
            cr_assert_eq(uids[i] == uids[k], strcmp(names[i], names[k]) == 0, "%s %s", names[i], names[k]);
        }
    }
}

#define USES 5u

static void *use_token(void *context)
{
    struct daemon *d = context;
    for (unsigned i = 0; i < USES && d->status == PROFD_OK; i++) {
        const struct store_enrolling x = wish(1, 0, 10 * (d->number + 1) + i);
        struct store_enrolment a;
        enum store_enrol_verdict verdict = STORE_ENROL_OTHER;
        bool spent;
        UNTIL_DONE(d, store_enrol(d->s, &x, &a, &verdict, &spent, &d->e));
        d->enrolled += verdict == STORE_ENROLLED;
        d->used_up += verdict == STORE_ENROL_USED_UP;
    }
    return NULL;
}

TEST(daemons_use_a_token_no_more_often_than_it_may_be_used)
{
    struct daemon d[HANDLES];
    struct store_token t = {.tenant = "default", .name = "", .uses = USES, .expires = NOW + 10, .created = NOW};
    set_bytes(t.hash, sizeof t.hash, 1, 0);
    OK(f, store_put_token(f->w, &t, &f->e));
    run(f, d, use_token);
    cr_assert_eq(d[0].enrolled + d[1].enrolled, USES, "%u, %u", d[0].enrolled, d[1].enrolled);
    cr_assert_eq(d[0].used_up + d[1].used_up, USES);
}

static void *enrol_one_key(void *context)
{
    struct daemon *d = context;
    struct store_enrolling x = wish(1, 0, 7);
    struct store_enrolment a;
    enum store_enrol_verdict verdict = STORE_ENROL_OTHER;
    bool spent;
    set_bytes(x.host, sizeof x.host, 70 + d->number, 0);
    UNTIL_DONE(d, store_enrol(d->s, &x, &a, &verdict, &spent, &d->e));
    d->enrolled = verdict == STORE_ENROLLED ? a.host[0] : 0;
    return NULL;
}

TEST(a_key_that_asks_two_daemons_gets_one_identity_and_uses_its_token_once)
{
    struct daemon d[HANDLES];
    struct store_token t = {.tenant = "default", .name = "", .uses = 1, .expires = NOW + 10, .created = NOW};
    set_bytes(t.hash, sizeof t.hash, 1, 0);
    OK(f, store_put_token(f->w, &t, &f->e));
    run(f, d, enrol_one_key);
    cr_assert(d[0].enrolled == d[1].enrolled && d[0].enrolled >= 70, "%u, %u", d[0].enrolled, d[1].enrolled);
}

static void *add_readers(void *context)
{
    struct daemon *d = context;
    struct store_reader r = {.tenant_count = 1};
    for (unsigned i = 0; i < 4 && d->status == PROFD_OK; i++) {
        snprintf(r.name, sizeof r.name, "reader%u", i);
        snprintf(r.tenants[0].name, sizeof r.tenants[0].name, "red");
        UNTIL_DONE(d, store_add_reader(d->s, &r, &d->e));
        d->added += d->status == PROFD_OK;
        d->refused += d->status == PROFD_REFUSED;
        d->status = d->status == PROFD_REFUSED ? PROFD_OK : d->status;
    }
    return NULL;
}

static bool count_one(void *context, const struct store_reader *r)
{
    cr_assert(r->tenant_count == 1 && strcmp(r->tenants[0].name, "red") == 0);
    ++*(unsigned *)context;
    return true;
}

TEST(of_two_readers_of_one_name_one_is_refused)
{
    struct daemon d[HANDLES];
    unsigned n = 0;
    run(f, d, add_readers);
    cr_assert_eq(d[0].added + d[1].added, 4);
    cr_assert_eq(d[0].refused + d[1].refused, 4);
    OK(f, store_each_reader(f->r, count_one, &n, &f->e));
    cr_assert_eq(n, 4);
}

static bool count_revoked(void *context, const struct store_enrolment *h)
{
    *(int *)context += h->revoked != 0;
    return true;
}

TEST(what_one_daemon_stores_the_other_reads)
{
    struct store *other = fixture_open_beside(f);
    struct store_token t = {.tenant = "red", .name = "", .uses = 9, .expires = NOW + 10, .created = NOW};
    const struct store_enrolling x = wish(1, 0, 7);
    const struct store_watch_row row = {STORE_WATCH_COUNT, "k", 1, "1"}, none = {STORE_WATCH_COUNT, "k", 2, NULL};
    struct store_enrolment a;
    enum store_enrol_verdict verdict;
    struct made_object o;
    bool spent, known;
    int revoked = 0;
    set_bytes(t.hash, sizeof t.hash, 1, 0);
    OK(f, store_put_token(other, &t, &f->e));
    OK(f, store_enrol(f->w, &x, &a, &verdict, &spent, &f->e));
    cr_assert(verdict == STORE_ENROLLED && strcmp(a.tenant, "red") == 0);
    OK(f, store_revoke(other, "web", NOW, count_revoked, &revoked, &f->e));
    OK(f, store_renew(f->w, &x, &a, &verdict, &f->e));
    cr_assert(revoked == 1 && verdict == STORE_ENROL_REVOKED);
    make_object(&o, "aa", "v1", 1, false, "names");
    OK(f, store_put_object(other, &o.o, &f->e));
    OK(f, store_has_object(f->w, 1, full_id("aa"), &known, &f->e));
    cr_assert(known);
    OK(f, store_put_watch_rows(other, &row, 1, &f->e));
    OK(f, store_put_watch_rows(f->w, &none, 1, &f->e));
    OK(f, store_put_watch_rows(other, &none, 1, &f->e));
    OK(f, store_put_watch_rows(f->w, &row, 1, &f->e));
    store_close(other);
    fixture_reopen(f);
    OK(f, store_has_object(f->r, 1, full_id("aa"), &known, &f->e));
    cr_assert(known);
}
