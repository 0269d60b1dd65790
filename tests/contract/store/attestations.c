/* What hosts attest: a quorum names functions for all hosts, fewer hosts name their own. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "tests/contract/store/harvest_fixture.h"

#define NOW (NOON + DAY)
#define HASH(n) hash_of(n)

/* Of "one", "two" or "three". */
static const uint8_t *hash_of(unsigned n)
{
    static const char *const contents[] = {"one", "two", "three"};
    static uint8_t hashes[3][STORE_HASH_SIZE];
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, strlen(contents[n - 1]), (const uint8_t *)contents[n - 1]);
    sha256_digest(&sha, STORE_HASH_SIZE, hashes[n - 1]);
    return hashes[n - 1];
}

/* The segment of a host that has run the usual program once. */
struct one {
    struct fixture *centre;
    uint8_t identity;
};

static bool deliver_one(void *context, const struct store_segment *x)
{
    const struct one *o = context;
    struct segment segment;
    struct store_receipt r;
    OK(o->centre, segment_decode(x->bytes, x->size, &segment, &o->centre->e));
    struct store_delivery d = {
        .sequence = x->sequence, .segment = &segment, .bytes = x->bytes, .size = x->size, .received = NOW};
    memset(d.host, o->identity, sizeof d.host);
    memcpy(d.epoch, x->epoch, sizeof d.epoch);
    memcpy(d.digest, x->bytes + SEGMENT_DIGEST_AT, sizeof d.digest);
    OK(o->centre, store_put_segments(o->centre->w, &d, 1, &r, &o->centre->e));
    cr_assert_not(r.unknown);
    segment_done(&segment);
    return true;
}

/* A host of a tenant arrives and delivers. */
static void run_for(struct fixture *centre, uint8_t identity, uint32_t tenant)
{
    const uint8_t epoch[SEGMENT_EPOCH_SIZE] = {identity};
    struct store_arrival a = {.name = "x", .number = 1, .now = NOW, .tenant = tenant};
    struct one o = {centre, identity};
    struct fixture host;
    struct made m;
    uint64_t n;
    uint64_t sealed;
    struct store_admission admission;
    memset(a.host, identity, sizeof a.host);
    OK(centre, store_admit_hosts(centre->w, &a, 1, &admission, &centre->e));
    fixture_open(&host);
    OK(&host, store_relay_begin(host.w, epoch, 0, &host.e));
    OK(&host, store_relay_meet(host.w, NULL, (const uint8_t[STORE_INCARNATION_SIZE]){0}, 0, &n, &host.e));
    make_counted(&m, 1, 1, 1, MIDNIGHT + HOUR, 5);
    cr_assert_eq(put_counted(&host, &m), STORE_STORED);
    OK(&host, store_seal_segments(host.w, UINT64_MAX, NOON, &sealed, &host.e));
    OK(&host, store_each_segment(host.w, 0, deliver_one, &o, &host.e));
    fixture_close(&host);
}

static void run_on(struct fixture *centre, uint8_t identity)
{
    run_for(centre, identity, STORE_TENANT);
}

static struct store_attested attest_at(struct fixture *f, uint8_t identity, const char *id, const uint8_t *hash,
                                       uint64_t size, int64_t now)
{
    struct store_attestation a = {.build_id = *id ? full_id(id) : "", .has = hash != NULL, .size = size, .now = now};
    struct store_attested out;
    memset(a.host, identity, sizeof a.host);
    if (hash) {
        memcpy(a.hash, hash, sizeof a.hash);
    }
    OK(f, store_attest(f->w, &a, 1, &out, &f->e));
    return out;
}

static struct store_attested attest(struct fixture *f, uint8_t identity, const uint8_t *hash)
{
    return attest_at(f, identity, "aa01", hash, 9, NOW);
}

static void put_from_host(struct fixture *f, const char *content, const uint8_t *hash)
{
    struct made_object o;
    make_object(&o, "aa01", content, STORE_TENANT, false, content);
    o.o.hash = hash;
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

/* "content by/hosts/attesting" for counts of these tenants and hosts, one a digit. */
static const char *named_for(struct fixture *f, const uint32_t *uids, size_t uid_count, const char *digits)
{
    static char text[128], names[8][2 * STORE_HOST_SIZE + 1];
    const char *hosts[8];
    struct store_senders of = {.uids = uids, .uid_count = uid_count, .hosts = hosts};
    struct store_naming naming = {.by = STORE_NAMED_BY_USERS};
    uint8_t *bytes = NULL;
    size_t size = 0;
    for (; digits[of.host_count]; of.host_count++) {
        for (size_t i = 0; i < STORE_HOST_SIZE; i++) {
            snprintf(names[of.host_count] + 2 * i, 3, "0%c", digits[of.host_count]);
        }
        hosts[of.host_count] = names[of.host_count];
    }
    const enum profd_status status = store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e);
    cr_assert(status == PROFD_OK || status == PROFD_NOT_FOUND, "%s", f->e.sentence);
    snprintf(text, sizeof text, "%.*s %s %d/%d", (int)size, bytes ? (const char *)bytes : "",
             !bytes                                  ? "-"
             : naming.by == STORE_NAMED_BY_QUORUM    ? "quorum"
             : naming.by == STORE_NAMED_BY_HOSTS     ? "hosts"
             : naming.by == STORE_NAMED_BY_OPERATORS ? "operators"
                                                     : "users",
             bytes ? (int)naming.hosts : 0, (int)naming.attesting);
    free(bytes);
    return text;
}

static const char *named(struct fixture *f, const char *digits)
{
    return named_for(f, (const uint32_t[]){STORE_TENANT}, 1, digits);
}

STORE_TEST(host_is_asked_for_builds_of_its_segments)
{
    struct store_attested r;
    run_on(f, 1);
    run_on(f, 2);
    r = attest_at(f, 1, "", NULL, 0, NOW);
    cr_assert_eq(r.verdict, STORE_ATTEST_UNASKED);
    cr_assert_str_eq(r.next.text, full_id("aa01"));
    r = attest_at(f, 1, "cc", HASH(1), 9, NOW);
    cr_assert_eq(r.verdict, STORE_ATTEST_UNASKED, "no segment named it");
    r = attest_at(f, 7, "aa01", HASH(1), 9, NOW);
    cr_assert_eq(r.verdict, STORE_ATTEST_UNASKED, "that host never arrived");
    r = attest(f, 1, HASH(1));
    cr_assert_eq(r.verdict, STORE_ATTEST_TAKEN);
    cr_assert_not(r.stored);
    put_from_host(f, "one", HASH(1));
    cr_assert(attest(f, 2, HASH(1)).stored, "its bytes travel once");
    r = attest_at(f, 1, "bb02", NULL, 0, NOW + STORE_ATTEST_AWAITED);
    cr_assert_str_eq(r.next.text, full_id("aa01"), "what the centre lacks is asked for again soon");
    fixture_reopen(f);
    cr_assert(attest(f, 1, HASH(1)).stored, "it is durable");
    r = attest_at(f, 1, "", NULL, 0, NOW + STORE_ATTEST_AWAITED);
    cr_assert_str_neq(r.next.text, full_id("aa01"), "what is there is not asked for again,");
    r = attest_at(f, 1, "bb02", NULL, 0, NOW + STORE_ATTEST_AGAIN);
    cr_assert_str_eq(r.next.text, full_id("aa01"), "but a day later");
}

STORE_TEST(quorum_names_functions_for_all_hosts)
{
    for (uint8_t host = 1; host <= 5; host++) {
        run_on(f, host);
    }
    cr_assert_str_eq(named(f, "1"), " - 0/0");
    attest(f, 1, HASH(1));
    cr_assert_str_eq(named(f, "1"), " - 0/1");
    put_from_host(f, "one", HASH(1));
    cr_assert_str_eq(named(f, "1"), "one hosts 1/1");
    cr_assert_str_eq(named(f, "12"), " - 0/1", "the other attests nothing");
    attest(f, 2, HASH(1));
    cr_assert_str_eq(named(f, "12"), "one hosts 2/2");
    cr_assert_str_eq(named(f, "123"), " - 0/2");
    attest(f, 3, HASH(1));
    cr_assert_str_eq(named(f, "12345"), "one quorum 3/3");
    cr_assert_str_eq(named(f, ""), "one quorum 3/3");
    attest(f, 4, HASH(2));
    put_from_host(f, "two", HASH(2));
    cr_assert_str_eq(named(f, "4"), "one quorum 3/4", "a majority names functions of the others, too");
    attest(f, 3, HASH(2));
    cr_assert_str_eq(named(f, "1234"), " - 0/4", "two against two");
    cr_assert_str_eq(named(f, "12"), "one hosts 2/4");
    cr_assert_str_eq(named(f, "34"), "two hosts 2/4");
    attest(f, 5, HASH(2));
    cr_assert_str_eq(named(f, "12"), "two quorum 3/5");
    fixture_reopen(f);
    cr_assert_str_eq(named(f, "12"), "two quorum 3/5");
}

STORE_TEST(a_sum_of_very_many_hosts_is_judged_as_one_of_few)
{
    enum { HOSTS = 10000 };
    static char names[HOSTS][2 * STORE_HOST_SIZE + 1];
    static const char *hosts[HOSTS];
    struct store_senders of = {.uids = (const uint32_t[]){STORE_TENANT}, .uid_count = 1, .hosts = hosts};
    struct store_naming naming;
    uint8_t *bytes = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        snprintf(names[i], sizeof names[i], "%032x", 0x1000 + i);
        hosts[i] = names[i];
    }
    memset(names[0], '0', sizeof names[0] - 1);
    for (unsigned i = 1; i < sizeof names[0]; i += 2) {
        names[0][i] = '1';
    }
    run_on(f, 1);
    attest(f, 1, HASH(1));
    put_from_host(f, "one", HASH(1));
    of.host_count = HOSTS;
    FAILS(f, PROFD_NOT_FOUND, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    cr_assert_eq(naming.attesting, 1);
    of.host_count = 1;
    OK(f, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    cr_assert_eq(naming.hosts, 1);
    free(bytes);
}

STORE_TEST(three_hosts_of_six_are_no_majority)
{
    for (uint8_t host = 1; host <= 7; host++) {
        run_on(f, host);
        attest(f, host, host <= 6 ? HASH((uint8_t)(1 + host % 2)) : NULL);
    }
    put_from_host(f, "one", HASH(1));
    put_from_host(f, "two", HASH(2));
    cr_assert_str_eq(named(f, "1234567"), " - 0/6");
    cr_assert_str_eq(named(f, "246"), "one hosts 3/6");
    attest(f, 7, HASH(1));
    cr_assert_str_eq(named(f, "1234567"), "one quorum 4/7");
}

STORE_TEST(trusted_object_is_above_all_hosts)
{
    struct made_object o;
    for (uint8_t host = 1; host <= 3; host++) {
        run_on(f, host);
        attest(f, host, HASH(1));
    }
    put_from_host(f, "one", HASH(1));
    make_object(&o, "aa01", "v", 0, true, "operator");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    cr_assert_str_eq(named(f, "123"), "operator users 0/3");
}

STORE_TEST(object_that_no_host_attests_any_more_goes)
{
    uint32_t variants = 9;
    const uint32_t tenant = STORE_TENANT;
    run_on(f, 1);
    run_on(f, 2);
    attest(f, 1, HASH(1));
    attest(f, 2, HASH(1));
    put_from_host(f, "one", HASH(1));
    attest(f, 1, HASH(2));
    put_from_host(f, "two", HASH(2));
    cr_assert_str_eq(named(f, "2"), "one hosts 1/2");
    attest(f, 2, NULL);
    cr_assert_str_eq(named(f, "2"), " - 0/1");
    cr_assert_str_eq(get_content(f, "aa01", 1, &tenant, &variants), "", "not all hosts of the build attest it");
    attest(f, 2, HASH(2));
    cr_assert_str_eq(get_content(f, "aa01", 1, &tenant, &variants), "two");
    cr_assert_eq(variants, 1);
    expect_clean(f);
}

STORE_TEST(host_attests_no_more_than_its_share)
{
    run_on(f, 1);
    run_on(f, 2);
    cr_assert_eq(attest_at(f, 1, "aa01", HASH(1), STORE_ATTEST_BYTES + 1, NOW).verdict, STORE_ATTEST_TOO_LARGE);
    cr_assert_eq(attest_at(f, 1, "aa01", HASH(1), STORE_ATTEST_BYTES - 5, NOW).verdict, STORE_ATTEST_TAKEN);
    cr_assert_eq(attest_at(f, 1, "aa01", HASH(2), STORE_ATTEST_BYTES - 5, NOW).verdict, STORE_ATTEST_TAKEN,
                 "in place of the former");
    cr_assert_eq(attest_at(f, 1, "bb02", HASH(3), 6, NOW).verdict, STORE_ATTEST_TOO_LARGE);
    cr_assert_eq(attest_at(f, 2, "bb02", HASH(3), 6, NOW).verdict, STORE_ATTEST_TAKEN, "another host has its own");
}

STORE_TEST(what_is_deleted_is_asked_for_again)
{
    uint64_t uploads;
    run_on(f, 1);
    attest(f, 1, HASH(1));
    put_from_host(f, "one", HASH(1));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    cr_assert_str_eq(named(f, "1"), " - 0/0");
    cr_assert_eq(attest(f, 1, HASH(1)).verdict, STORE_ATTEST_UNASKED);
    expect_clean(f);
}

STORE_TEST(host_attests_what_all_users_of_the_build_sent)
{
    struct made m;
    struct made_object o;
    uint8_t *bytes;
    size_t size;
    make_upload(&m, 1, 1, 1);
    put(f, &m);
    make_object(&o, "aa01", "v", 1, false, "mine");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    OK(f, store_get_shared_object(f->r, full_id("aa01"), &bytes, &size, &f->e));
    cr_assert(size == 4 && memcmp(bytes, "mine", 4) == 0);
    free(bytes);
    make_upload(&m, 2, 2, 1);
    put(f, &m);
    FAILS(f, PROFD_NOT_FOUND, store_get_shared_object(f->r, full_id("aa01"), &bytes, &size, &f->e));
}

/* An object with one function, with or without lines and knowledge of its code: AT_FLAGS tells them apart. */
#define AT_FLAGS 112 /* behind the magic, the version, id, variant, machine and bits */
enum { BARE = 4, WITH_LINES = 68 };
struct named_object {
    uint8_t *bytes, hash[STORE_HASH_SIZE];
    size_t size;
};

static void name_object(struct named_object *n, const char names[6], bool lines)
{
    struct object_symbol symbol = {.address = 16, .size = 4, .name = 1, .demangled = 1, .type = OBJECT_TYPE_FUNCTION};
    struct object_line line = {.low = 16, .high = 20, .file = 3, .line = 7};
    struct object o = {.bits = 64,
                       .machine = 62,
                       .has_names = true,
                       .note = "",
                       .names = names,
                       .name_bytes = 6,
                       .symbols = &symbol,
                       .symbol_count = 1,
                       .knows_returns = lines,
                       .lines = &line,
                       .line_count = lines};
    struct sha256_ctx sha;
    snprintf(o.id.text, sizeof o.id.text, "%s", full_id("aa01"));
    memset(o.variant, 'a', sizeof o.variant - 1);
    cr_assert_eq(object_encode(&o, &n->bytes, &n->size, NULL), PROFD_OK);
    cr_assert_eq(n->bytes[AT_FLAGS], lines ? WITH_LINES : BARE);
    sha256_init(&sha);
    sha256_update(&sha, n->size, n->bytes);
    sha256_digest(&sha, sizeof n->hash, n->hash);
}

static void put_named(struct fixture *f, const struct named_object *n, const char *hosts)
{
    struct made_object o;
    for (; *hosts; hosts++) {
        attest(f, (uint8_t)(*hosts - '0'), n->hash);
    }
    make_object(&o, "aa01", "x", STORE_TENANT, false, "x");
    o.o.hash = n->hash;
    o.o.encoded = n->bytes;
    o.o.encoded_size = n->size;
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

/* Flags of the object that names functions for these hosts, 0 if none; and by how many hosts. */
static void expect_named(struct fixture *f, const char *digits, int flags, const char *said)
{
    char wanted[16];
    const char *text = named(f, digits);
    snprintf(wanted, sizeof wanted, " %s", said);
    const bool tail = strlen(text) >= strlen(wanted) && strcmp(text + strlen(text) - strlen(wanted), wanted) == 0;
    cr_assert(tail && (flags == 0 || text[AT_FLAGS] == flags), "%s: %s instead of %d, %s", digits, text, flags, said);
}

/* While hosts are upgraded, they attest different objects with the same names. */
STORE_TEST(names_outlive_an_upgrade)
{
    struct named_object old, new, other;
    name_object(&old, "\0f\0a\0", false);
    name_object(&new, "\0f\0a\0", true);
    name_object(&other, "\0g\0a\0", true);
    for (uint8_t i = 1; i <= 6; i++) {
        run_on(f, i);
    }
    put_named(f, &old, "1");
    put_named(f, &new, "2");
    expect_named(f, "12", BARE, "hosts 2/2"); /* each has too few hosts for its lines */
    expect_named(f, "123", 0, "- 0/2");
    put_named(f, &other, "3");
    expect_named(f, "12", BARE, "hosts 2/3");
    expect_named(f, "13", 0, "- 0/3");
    put_named(f, &old, "134");
    put_named(f, &new, "256");
    expect_named(f, "123456", WITH_LINES, "quorum 6/6");
    expect_named(f, "14", WITH_LINES, "quorum 6/6");
    put_named(f, &other, "456");
    expect_named(f, "123456", 0, "- 0/6");
    expect_named(f, "123", BARE, "hosts 3/6");
    put_named(f, &old, "1234");
    expect_named(f, "123456", BARE, "quorum 4/6");
    free(old.bytes);
    free(new.bytes);
    free(other.bytes);
}

#define RED (STORE_TENANT - 1)
#define BLUE (STORE_TENANT - 2)

static void put_from_operator(struct fixture *f, const char *content, uint32_t tenant)
{
    struct made_object o;
    make_object(&o, "aa01", content, tenant, false, content);
    o.o.by_operator = true;
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

STORE_TEST(hosts_of_every_tenant_name_functions)
{
    const uint32_t red[] = {RED}, blue[] = {BLUE}, both[] = {BLUE, RED};
    const struct store_scope of_red = {.uid = RED}, of_blue = {.uid = BLUE};
    run_for(f, 1, RED);
    run_for(f, 2, BLUE);
    const uint64_t before = epoch_of(f, of_red, "aa01");
    attest(f, 1, HASH(1));
    put_from_host(f, "one", HASH(1));
    cr_assert_str_eq(named_for(f, red, 1, "1"), "one hosts 1/1");
    cr_assert_gt(epoch_of(f, of_red, "aa01"), before, "its reports are new");
    cr_assert_str_eq(named_for(f, blue, 1, "2"), " - 0/1");
    cr_assert_str_eq(named_for(f, both, 2, "12"), " - 0/1");
    attest(f, 2, HASH(1));
    cr_assert_str_eq(named_for(f, both, 2, "12"), "one hosts 2/2");
    uint32_t variants = 9;
    const char *first = "01010101010101010101010101010101";
    struct store_senders of = {.uids = red, .uid_count = 1, .hosts = &first, .host_count = 1, .seen = &of_red};
    struct store_naming naming;
    uint8_t *bytes;
    size_t size;
    attest(f, 2, HASH(2));
    put_from_host(f, "two", HASH(2));
    OK(f, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    free(bytes);
    variants = naming.variants;
    cr_assert_eq(variants, 1, "that of the other tenant is not seen: %u", variants);
    of = (struct store_senders){.uids = blue, .uid_count = 1, .seen = &of_blue};
    FAILS(f, PROFD_NOT_FOUND, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    expect_clean(f);
}

STORE_TEST(variant_of_an_operator_names_functions_of_its_tenant)
{
    const uint32_t red[] = {RED}, both[] = {BLUE, RED};
    const struct store_scope of_red = {.uid = RED}, of_blue = {.uid = BLUE};
    for (uint8_t host = 1; host <= 3; host++) {
        run_for(f, host, RED);
        attest(f, host, HASH(1));
    }
    run_for(f, 4, BLUE);
    put_from_host(f, "one", HASH(1));
    cr_assert_str_eq(named_for(f, red, 1, "123"), "one quorum 3/3");
    const uint64_t before = epoch_of(f, of_red, "aa01"), others = epoch_of(f, of_blue, "aa01");
    put_from_operator(f, "released", RED);
    cr_assert_str_eq(named_for(f, red, 1, "123"), "released operators 0/3", "above a quorum");
    cr_assert_gt(epoch_of(f, of_red, "aa01"), before);
    cr_assert_eq(epoch_of(f, of_blue, "aa01"), others, "another tenant's reports are as before");
    cr_assert_str_eq(named_for(f, (const uint32_t[]){BLUE}, 1, "4"), "one quorum 3/3", "it is not that of this tenant");
    cr_assert_str_eq(named_for(f, both, 2, "1234"), " - 0/3", "what the tenants accept differs");
    struct store_naming naming = {.operators = 9};
    uint8_t *bytes;
    size_t size;
    const struct store_senders of = {.uids = both, .uid_count = 2};
    FAILS(f, PROFD_NOT_FOUND, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    cr_assert_eq(naming.operators, 1);
    put_from_operator(f, "one", RED);
    cr_assert_str_eq(named_for(f, red, 1, "123"), "one operators 0/3", "the latest");
    cr_assert_str_eq(named_for(f, both, 2, "1234"), "one quorum 3/3",
                     "an operator's for one, the hosts' for the other");
    put_from_operator(f, "released", BLUE);
    put_from_operator(f, "released", RED);
    cr_assert_str_eq(named_for(f, both, 2, "1234"), "released operators 0/3", "both operators sent it");
    fixture_reopen(f);
    cr_assert_str_eq(named_for(f, both, 2, "1234"), "released operators 0/3");
    for (uint8_t host = 1; host <= 3; host++) {
        attest(f, host, NULL);
    }
    cr_assert_str_eq(named_for(f, red, 1, "123"), "released operators 0/0", "an operator's stays");
    cr_assert_str_eq(named_for(f, (const uint32_t[]){RED, STORE_TENANT}, 2, "123"), " - 0/0");
    expect_clean(f);
}
