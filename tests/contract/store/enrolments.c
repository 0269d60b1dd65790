/* Tokens and the hosts that were enrolled with them. */
#include <string.h>

#include "tests/contract/store/fixture.h"

#define NOW INT64_C(1700000000000000000)

static void put_token_of(struct fixture *f, uint8_t hash, const char *tenant, uint64_t uses, int64_t expires)
{
    struct store_enrol_token t = {.tenant = tenant, .name = "", .uses = uses, .expires = expires, .created = NOW};
    memset(t.hash, hash, sizeof t.hash);
    OK(f, store_put_enrol_token(f->w, &t, &f->e));
}

static struct store_enrolling wish(uint8_t token, uint8_t host)
{
    struct store_enrolling x = {.name = "web", .machine = "m", .version = "1", .now = NOW, .not_after = NOW + 5};
    memset(x.token, token, sizeof x.token);
    memset(x.host, host, sizeof x.host);
    memset(x.key, host, sizeof x.key);
    return x;
}

static enum store_enrol_verdict enrol(struct fixture *f, const struct store_enrolling *x, struct store_enrolment *out,
                                      bool *spent)
{
    enum store_enrol_verdict verdict;
    OK(f, store_enrol(f->w, x, out, &verdict, spent, &f->e));
    return verdict;
}

static bool count_host(void *context, const struct store_fleet_host *h)
{
    (void)h;
    ++*(int *)context;
    return true;
}

static bool count_revoked(void *context, const struct store_enrolment *h)
{
    *(int *)context += h->revoked != 0;
    return true;
}

/* The enrolment of a host, which is asked for beside those of others. */
static void find(struct fixture *f, const uint8_t host[STORE_HOST_SIZE], struct store_enrolment *out, bool *found)
{
    uint8_t hosts[3][STORE_HOST_SIZE];
    struct store_enrolment all[3];
    bool there[3] = {false, true, false};
    memcpy(hosts[0], host, sizeof hosts[0]);
    memset(hosts[1], 200, sizeof hosts[1]);
    memcpy(hosts[2], host, sizeof hosts[2]);
    OK(f, store_find_enrolments(f->r, hosts[0], 3, all, there, &f->e));
    cr_assert(!there[1] && there[0] == there[2], "nobody has 200; who is asked for twice is given twice");
    *found = there[2];
    if (*found) {
        cr_assert(all[0].revoked == all[2].revoked && memcmp(all[0].host, host, sizeof all[0].host) == 0);
        *out = all[2];
    }
}

static int hosts_of(struct fixture *f)
{
    int n = 0;
    OK(f, store_each_host(f->r, count_host, &n, &f->e));
    return n;
}

STORE_TEST(a_token_is_used_up_by_new_keys_alone)
{
    struct store_enrolling x = wish(1, 7), other = wish(1, 8), third = wish(1, 9);
    struct store_enrolment a, b;
    bool spent;
    put_token_of(f, 1, "shop", 2, NOW + 10);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert(!spent && a.uid == STORE_TENANT - 1 && !strcmp(a.tenant, "shop"));
    memset(x.host, 99, sizeof x.host);
    cr_assert_eq(enrol(f, &x, &b, &spent), STORE_ENROLLED);
    cr_assert(!spent && !memcmp(a.host, b.host, sizeof a.host), "the same key keeps its identity");
    cr_assert_eq(enrol(f, &other, &b, &spent), STORE_ENROLLED);
    cr_assert(spent);
    cr_assert_eq(enrol(f, &third, &b, &spent), STORE_ENROL_USED_UP);
    cr_assert_eq(enrol(f, &x, &b, &spent), STORE_ENROLLED);
    cr_assert_eq(hosts_of(f), 2);
}

STORE_TEST(what_a_token_does_not_allow_changes_nothing)
{
    struct store_enrolling late = wish(1, 7), unknown = wish(3, 7), spent_before = wish(2, 7), moved = wish(2, 8);
    struct store_enrolment a;
    bool spent;
    put_token_of(f, 1, "default", 1, NOW);
    put_token_of(f, 2, "bank", 9, NOW + 10);
    put_token_of(f, 4, "shop", 9, NOW + 10);
    spent_before.spent = true;
    cr_assert_eq(enrol(f, &late, &a, &spent), STORE_ENROL_EXPIRED);
    cr_assert_eq(enrol(f, &unknown, &a, &spent), STORE_ENROL_UNKNOWN);
    cr_assert_eq(enrol(f, &spent_before, &a, &spent), STORE_ENROL_USED_UP);
    cr_assert_eq(hosts_of(f), 0);
    cr_assert_eq(enrol(f, &moved, &a, &spent), STORE_ENROLLED);
    memset(moved.token, 4, sizeof moved.token);
    cr_assert_eq(enrol(f, &moved, &a, &spent), STORE_ENROL_OTHER, "of another tenant");
    cr_assert_eq(hosts_of(f), 1);
}

STORE_TEST(a_revoked_key_is_neither_renewed_nor_enrolled)
{
    struct store_enrolling x = wish(1, 7), unknown = wish(1, 8);
    struct store_enrolment a;
    enum store_enrol_verdict verdict;
    bool spent, found;
    int n = 0;
    put_token_of(f, 1, "default", 5, NOW + 10);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert_eq(a.uid, STORE_TENANT);
    x.not_after = NOW + 77;
    OK(f, store_renew(f->w, &x, &a, &verdict, &f->e));
    cr_assert_eq(verdict, STORE_ENROLLED);
    find(f, x.host, &a, &found);
    cr_assert(found && a.not_after == NOW + 77 && a.revoked == 0);
    OK(f, store_renew(f->w, &unknown, &a, &verdict, &f->e));
    cr_assert_eq(verdict, STORE_ENROL_UNKNOWN);
    OK(f, store_revoke(f->w, "nobody", NOW, count_revoked, &n, &f->e));
    cr_assert_eq(n, 0);
    OK(f, store_revoke(f->w, "07070707-0707-0707-0707-070707070707", NOW, count_revoked, &n, &f->e));
    cr_assert_eq(n, 1);
    OK(f, store_renew(f->w, &x, &a, &verdict, &f->e));
    cr_assert_eq(verdict, STORE_ENROL_REVOKED);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROL_REVOKED);
}

STORE_TEST(a_name_of_several_hosts_revokes_none_of_them)
{
    struct store_enrolling x = wish(1, 7), twin = wish(1, 8), liar = wish(1, 9);
    struct store_enrolment a;
    enum store_enrol_verdict verdict;
    bool spent, found;
    int n = 0;
    put_token_of(f, 1, "default", 5, NOW + 10);
    liar.name = "07070707-0707-0707-0707-070707070707";
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert_eq(enrol(f, &twin, &a, &spent), STORE_ENROLLED);
    cr_assert_eq(enrol(f, &liar, &a, &spent), STORE_ENROLLED);
    cr_assert_eq(store_revoke(f->w, "web", NOW, count_revoked, &n, &f->e), PROFD_AMBIGUOUS);
    cr_assert(n == 0 && strstr(f->e.sentence, "2 enrolled hosts"), "%s", f->e.sentence);
    OK(f, store_renew(f->w, &twin, &a, &verdict, &f->e));
    cr_assert_eq(verdict, STORE_ENROLLED);
    OK(f, store_revoke(f->w, liar.name, NOW, count_revoked, &n, &f->e));
    cr_assert_eq(n, 1);
    find(f, x.host, &a, &found);
    cr_assert(found && a.revoked == NOW, "an identity precedes a name that looks like it");
    OK(f, store_revoke(f->w, "web", NOW + 1, count_revoked, &n, &f->e));
    cr_assert_eq(n, 2);
    find(f, twin.host, &a, &found);
    cr_assert(a.revoked == NOW + 1, "the only one of this name that was left");
    OK(f, store_revoke(f->w, "web", NOW + 2, count_revoked, &n, &f->e));
    cr_assert_eq(n, 4, "all were revoked before: said again");
    find(f, x.host, &a, &found);
    cr_assert_eq(a.revoked, NOW, "at the time when it was revoked first");
    find(f, twin.host, &a, &found);
    cr_assert_eq(a.revoked, NOW + 1);
    find(f, liar.host, &a, &found);
    cr_assert_eq(a.revoked, 0);
}

STORE_TEST(keys_that_were_revoked_elsewhere_are_revoked_at_their_time)
{
    struct store_enrolling x = wish(1, 7);
    struct store_enrolment a;
    uint8_t keys[2][STORE_HASH_SIZE];
    const int64_t times[2] = {NOW - 5, NOW - 3};
    bool spent, found;
    put_token_of(f, 1, "default", 5, NOW + 10);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    memset(keys[0], 99, sizeof keys[0]);
    memset(keys[1], 7, sizeof keys[1]);
    OK(f, store_revoke_keys(f->w, keys[0], times, 2, &f->e));
    find(f, x.host, &a, &found);
    cr_assert(found && a.revoked == NOW - 3);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROL_REVOKED);
    cr_assert_eq(hosts_of(f), 1);
}

STORE_TEST(a_used_up_token_is_told_again_until_it_is_known)
{
    struct store_enrolling x = wish(1, 7);
    struct store_enrolment a;
    bool spent;
    put_token_of(f, 1, "default", 1, NOW + 10);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert(spent);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert(spent, "what follows from it may have failed");
    x.spent = true;
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert(!spent);
}

STORE_TEST(tokens_of_one_tenant_use_up_no_numbers_of_tenants)
{
    struct store_enrolling x = wish(1, 7);
    struct store_enrolment a;
    bool spent;
    for (uint8_t i = 2; i < 40; i++) {
        put_token_of(f, i, "shop", 1, NOW + 10);
    }
    put_token_of(f, 1, "bank", 1, NOW + 10);
    cr_assert_eq(enrol(f, &x, &a, &spent), STORE_ENROLLED);
    cr_assert_eq(a.uid, STORE_TENANT - 2, "%u", STORE_TENANT - a.uid);
}
