/* Symbols of hosts: within a tenant the first host names functions, and an operator before all hosts. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    segment_digest(x->bytes, x->size, d.digest);
    OK(o->centre, store_put_segments(o->centre->w, &d, 1, &r, &o->centre->e));
    cr_assert_not(r.unknown);
    segment_done(&segment);
    return true;
}

/* A host of a tenant arrives and delivers. */
static void run_for(struct fixture *centre, uint8_t identity, uint32_t tenant)
{
    const uint8_t epoch[SEGMENT_EPOCH_SIZE] = {identity};
    char name[] = "host-0";
    struct store_arrival a = {.name = name, .number = 1, .now = NOW, .tenant = tenant, .version = "1.0"};
    struct one o = {centre, identity};
    struct fixture host;
    struct made m;
    uint64_t n;
    uint64_t sealed;
    struct store_admission admission;
    name[5] = (char)('0' + identity);
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

#define RED (STORE_TENANT - 1)
#define BLUE (STORE_TENANT - 2)

static void run_on(struct fixture *centre, uint8_t identity)
{
    run_for(centre, identity, RED);
}

static struct store_offered offer_at(struct fixture *f, uint8_t identity, const char *id, const uint8_t *hash,
                                     uint64_t size, int64_t now)
{
    struct store_offer o = {.build_id = full_id(id), .has = hash != NULL, .size = size, .now = now};
    struct store_offered out;
    memset(o.host, identity, sizeof o.host);
    if (hash) {
        memcpy(o.hash, hash, sizeof o.hash);
    }
    OK(f, store_offer(f->w, &o, 1, &out, &f->e));
    return out;
}

static struct store_offered offer(struct fixture *f, uint8_t identity, const uint8_t *hash)
{
    return offer_at(f, identity, "aa01", hash, 9, NOW);
}

/* First digits of what the host shall offer now. */
static const char *wanted(struct fixture *f, uint8_t identity, int64_t now)
{
    static char text[64];
    struct buildid ids[4];
    uint8_t host[STORE_HOST_SIZE];
    size_t n;
    memset(host, identity, sizeof host);
    OK(f, store_wanted(f->r, host, now, ids, 4, &n, &f->e));
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.4s ", ids[i].text);
    }
    return text;
}

/* A host sends "one", "two" or "three", with names or without. */
static enum profd_status send_object(struct fixture *f, uint8_t identity, const char *id, unsigned n, bool has_names)
{
    static const char *const contents[] = {"one", "two", "three"};
    uint8_t host[STORE_HOST_SIZE];
    struct made_object o;
    memset(host, identity, sizeof host);
    make_object(&o, id, contents[n - 1], 7, false, contents[n - 1]);
    o.o.host = host;
    o.o.hash = HASH(n);
    o.o.has_names = has_names;
    o.o.received = NOW;
    return store_put_object(f->w, &o.o, &f->e);
}

static enum profd_status send_one(struct fixture *f, uint8_t identity, unsigned n)
{
    return send_object(f, identity, "aa01", n, true);
}

static void put_from(struct fixture *f, const char *content, uint32_t uid, bool trusted)
{
    struct made_object o;
    make_object(&o, "aa01", content, uid, trusted, content);
    o.o.by_operator = !trusted;
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

/* "content", and "!" if operators name the functions, "?" if the tenants have nothing in common; then why it is
 * disputed. */
static const char *named_for(struct fixture *f, const uint32_t *uids, size_t uid_count)
{
    static char text[4096];
    const struct store_senders of = {.uids = uids, .uid_count = uid_count};
    struct store_naming naming;
    uint8_t *bytes = NULL;
    size_t size = 0;
    const enum profd_status status = store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e);
    cr_assert(status == PROFD_OK || status == PROFD_NOT_FOUND, "%s", f->e.sentence);
    cr_assert_eq(status == PROFD_OK, bytes != NULL);
    snprintf(text, sizeof text, "%.*s%s%s%s%s", (int)size, bytes ? (const char *)bytes : "",
             naming.by_operators ? "!" : "", naming.apart ? "?" : "", *naming.disputed ? ": " : "", naming.disputed);
    free(bytes);
    return text;
}

static const char *named(struct fixture *f)
{
    return named_for(f, (const uint32_t[]){RED}, 1);
}

static const char *named_in(struct fixture *f, uint32_t tenant)
{
    return named_for(f, &tenant, 1);
}

static const char *named_in_both(struct fixture *f)
{
    return named_for(f, (const uint32_t[]){BLUE, RED}, 2);
}

static uint64_t disputed(struct fixture *f)
{
    struct store_centre centre;
    OK(f, store_get_centre(f->r, &centre, &f->e));
    return centre.disputed;
}

#define ONE_AGAINST_TWO                                                                                                \
    "one: its names are those of host host-1, which sent them first; host host-2 has another content under this "      \
    "build-id"

STORE_TEST(host_is_asked_for_builds_of_its_counts)
{
    run_on(f, 1);
    run_on(f, 2);
    cr_assert_str_eq(wanted(f, 1, NOW), "aa01 bb02 ");
    cr_assert_str_eq(wanted(f, 7, NOW), "", "that host never came");
    cr_assert_eq(offer_at(f, 1, "cc", HASH(1), 9, NOW).verdict, STORE_OFFER_UNASKED, "it sent no counts of it");
    cr_assert_eq(offer(f, 7, HASH(1)).verdict, STORE_OFFER_UNASKED);
    cr_assert(offer(f, 1, HASH(1)).wanted);
    cr_assert(offer(f, 2, HASH(1)).wanted, "nobody has sent it yet");
    offer_at(f, 1, "bb02", NULL, 0, NOW);
    cr_assert_str_eq(wanted(f, 1, NOW), "");
    cr_assert_str_eq(wanted(f, 1, NOW + STORE_OFFER_AWAITED), "aa01 ",
                     "what the centre lacks is asked for again soon,");
    cr_assert_str_eq(wanted(f, 1, NOW + STORE_OFFER_ABSENT), "aa01 bb02 ", "and what the host lacks a minute later");
    OK(f, send_one(f, 1, 1));
    cr_assert_str_eq(wanted(f, 2, NOW + STORE_OFFER_AWAITED), "bb02 ", "it travels once");
    fixture_reopen(f);
    const struct store_offered again = offer(f, 1, HASH(1));
    cr_assert(again.verdict == STORE_OFFER_TAKEN && !again.wanted, "it is durable");
    cr_assert_str_eq(wanted(f, 1, NOW + STORE_OFFER_AGAIN - 1), "bb02 ");
    cr_assert_str_eq(wanted(f, 1, NOW + STORE_OFFER_AGAIN), "bb02 aa01 ", "what is there is asked for a day later");
}

STORE_TEST(first_host_names_functions_of_its_tenant)
{
    const struct store_scope of_red = {.uid = RED};
    for (uint8_t host = 1; host <= 5; host++) {
        run_on(f, host);
    }
    cr_assert_str_eq(named(f), "");
    uint64_t before = epoch_of(f, of_red, "aa01");
    OK(f, send_one(f, 1, 1));
    cr_assert_str_eq(named(f), "one");
    cr_assert_gt(epoch_of(f, of_red, "aa01"), before, "its reports are new");
    before = epoch_of(f, of_red, "aa01");
    cr_assert_not(offer(f, 3, HASH(1)).wanted);
    cr_assert_str_eq(named(f), "one");
    cr_assert_eq(epoch_of(f, of_red, "aa01"), before, "a host that agrees changes no report");
    for (uint8_t host = 2; host <= 5; host++) {
        const struct store_offered o = offer(f, host, HASH(2));
        cr_assert(o.verdict == STORE_OFFER_TAKEN && !o.wanted, "four hosts against one");
    }
    cr_assert_str_eq(named(f),
                     "one: its names are those of host host-1, which sent them first; host host-2 (and 3 more) "
                     "has another content under this build-id");
    cr_assert_gt(epoch_of(f, of_red, "aa01"), before, "its reports say so");
    cr_assert_eq(disputed(f), 1);
    fixture_reopen(f);
    cr_assert_eq(disputed(f), 1);
    for (uint8_t host = 3; host <= 5; host++) {
        offer(f, host, HASH(1));
    }
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO);
    offer(f, 2, NULL);
    cr_assert_str_eq(named(f), "one", "nothing is said when the dispute is over");
    cr_assert_eq(disputed(f), 0);
    expect_clean(f);
}

STORE_TEST(another_content_is_kept_out)
{
    run_on(f, 1);
    run_on(f, 2);
    OK(f, send_one(f, 1, 1));
    FAILS(f, PROFD_CONFLICT, send_one(f, 2, 2));
    cr_assert(strstr(f->e.sentence, "host-1") && strstr(f->e.sentence, "host-2"), "%s", f->e.sentence);
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO, "although it was never offered");
    fixture_reopen(f);
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO);
    uint32_t variants = 9;
    cr_assert_str_eq(get_content(f, "aa01", 1, (const uint32_t[]){RED}, &variants), "one");
    cr_assert_eq(variants, 1, "its bytes are not stored");
    OK(f, send_one(f, 2, 1));
    cr_assert_str_eq(named(f), "one");
    expect_clean(f);
}

STORE_TEST(what_was_offered_before_the_first_came_is_compared)
{
    run_on(f, 1);
    run_on(f, 2);
    run_on(f, 3);
    cr_assert(offer(f, 1, HASH(1)).wanted && offer(f, 2, HASH(2)).wanted && offer(f, 3, HASH(1)).wanted);
    cr_assert_eq(disputed(f), 0, "there is nothing to dispute about");
    cr_assert_str_eq(named(f), "");
    OK(f, send_one(f, 1, 1));
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO);
}

STORE_TEST(a_host_replaces_what_it_sent_first)
{
    run_on(f, 1);
    run_on(f, 2);
    OK(f, send_one(f, 1, 1));
    cr_assert_not(offer(f, 2, HASH(2)).wanted);
    cr_assert(offer(f, 1, HASH(2)).wanted, "it runs a newer profd");
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO);
    OK(f, send_one(f, 1, 2));
    cr_assert_str_eq(named(f), "two", "now the other one agrees");
    uint32_t variants = 9;
    cr_assert_str_eq(get_content(f, "aa01", 1, (const uint32_t[]){RED}, &variants), "two");
    cr_assert_eq(variants, 1);
    expect_clean(f);
}

STORE_TEST(versions_of_profd_are_named_if_they_differ)
{
    struct store_arrival a = {.name = "host-2", .number = 1, .now = NOW, .tenant = RED, .version = "1.1"};
    struct store_admission admission;
    run_on(f, 1);
    run_on(f, 2);
    memset(a.host, 2, sizeof a.host);
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
    OK(f, send_one(f, 1, 1));
    offer(f, 2, HASH(2));
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO "; they run profd 1.0 and 1.1, which may read one file differently");
}

STORE_TEST(a_content_without_names_gives_way_to_one_with_names)
{
    for (uint8_t host = 1; host <= 3; host++) {
        run_on(f, host);
    }
    OK(f, send_object(f, 1, "aa01", 1, false));
    cr_assert_str_eq(named(f), "one");
    cr_assert(offer(f, 2, HASH(2)).wanted);
    cr_assert_str_eq(named(f), "one", "there are no names to dispute about");
    FAILS(f, PROFD_CONFLICT, send_object(f, 3, "aa01", 3, false));
    OK(f, send_one(f, 2, 2));
    cr_assert_not(offer(f, 1, HASH(1)).wanted);
    offer(f, 3, NULL);
    cr_assert_str_eq(named(f), "two");
    offer(f, 3, HASH(3));
    cr_assert_str_eq(named(f),
                     "two: its names are those of host host-2, which sent them first; host host-3 has another "
                     "content under this build-id");
    expect_clean(f);
}

STORE_TEST(nothing_of_one_tenant_names_functions_of_another)
{
    const struct store_scope of_red = {.uid = RED}, of_blue = {.uid = BLUE};
    run_for(f, 1, RED);
    run_for(f, 2, BLUE);
    run_for(f, 3, BLUE);
    const uint64_t before = epoch_of(f, of_blue, "aa01");
    OK(f, send_one(f, 1, 1));
    cr_assert_str_eq(named_in(f, RED), "one");
    cr_assert_str_eq(named_in(f, BLUE), "");
    cr_assert_str_eq(named_in(f, STORE_TENANT), "");
    cr_assert_str_eq(named_in_both(f), "?");
    cr_assert_eq(epoch_of(f, of_blue, "aa01"), before, "its reports are as before");
    cr_assert(offer(f, 2, HASH(1)).wanted, "its bytes are asked for, although they are there");
    cr_assert_str_eq(named_in(f, BLUE), "");
    OK(f, send_one(f, 2, 2));
    cr_assert_str_eq(named_in(f, RED), "one", "hosts of two tenants have no dispute");
    cr_assert_str_eq(named_in(f, BLUE), "two");
    cr_assert_str_eq(named_in_both(f), "?");
    cr_assert_eq(disputed(f), 0);
    const uint32_t red = RED;
    const struct store_senders of = {.uids = &red, .uid_count = 1, .seen = &of_red};
    struct store_naming naming;
    uint8_t *bytes;
    size_t size;
    OK(f, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    free(bytes);
    cr_assert_eq(naming.variants, 1, "that of the other tenant is not seen");
    OK(f, send_one(f, 2, 1));
    cr_assert_str_eq(named_in_both(f), "one");
    offer(f, 3, HASH(2));
    cr_assert_str_eq(named_in(f, RED), "one", "a dispute of the other tenant is none of this");
    cr_assert_str_eq(named_in(f, BLUE),
                     "one: its names are those of host host-2, which sent them first; host host-3 has "
                     "another content under this build-id");
    expect_clean(f);
}

STORE_TEST(operators_precede_hosts)
{
    const struct store_scope of_red = {.uid = RED}, of_blue = {.uid = BLUE};
    run_for(f, 1, RED);
    run_for(f, 2, RED);
    run_for(f, 4, BLUE);
    OK(f, send_one(f, 1, 1));
    OK(f, send_one(f, 4, 1));
    offer(f, 2, HASH(2));
    cr_assert_str_eq(named(f), ONE_AGAINST_TWO);
    const uint64_t before = epoch_of(f, of_red, "aa01"), others = epoch_of(f, of_blue, "aa01");
    put_from(f, "released", RED, false);
    cr_assert_str_eq(named(f), "released!", "and end the dispute");
    cr_assert_eq(disputed(f), 0);
    cr_assert_gt(epoch_of(f, of_red, "aa01"), before);
    cr_assert_eq(epoch_of(f, of_blue, "aa01"), others, "another tenant's reports are as before");
    cr_assert_str_eq(named_in(f, BLUE), "one", "it is not that of this tenant");
    cr_assert_str_eq(named_in_both(f), "?", "what the tenants accept differs");
    cr_assert_not(offer(f, 1, HASH(3)).wanted, "nothing of hosts is needed any more");
    FAILS(f, PROFD_CONFLICT, send_one(f, 1, 3));
    cr_assert(strstr(f->e.sentence, "operator") && strstr(f->e.sentence, "host-1"), "%s", f->e.sentence);
    put_from(f, "one", RED, false);
    cr_assert_str_eq(named(f), "one!", "the latest");
    cr_assert_str_eq(named_in_both(f), "one", "an operator's for one, the host's for the other");
    put_from(f, "released", BLUE, false);
    put_from(f, "released", RED, false);
    cr_assert_str_eq(named_in_both(f), "released!", "both operators sent it");
    fixture_reopen(f);
    cr_assert_str_eq(named_in_both(f), "released!");
    put_from(f, "of root", 0, true);
    cr_assert_str_eq(named(f), "released!");
    expect_clean(f);
}

STORE_TEST(trusted_object_precedes_hosts)
{
    run_on(f, 1);
    run_on(f, 2);
    OK(f, send_one(f, 1, 1));
    offer(f, 2, HASH(2));
    put_from(f, "of root", 0, true);
    cr_assert_str_eq(named(f), "of root");
    cr_assert_eq(disputed(f), 0);
}

STORE_TEST(host_without_counts_of_the_build_is_refused)
{
    run_on(f, 1);
    FAILS(f, PROFD_FORBIDDEN, send_object(f, 1, "cc", 1, true));
    FAILS(f, PROFD_FORBIDDEN, send_one(f, 7, 1));
    cr_assert_str_eq(named(f), "");
    expect_clean(f);
}

STORE_TEST(host_offers_no_more_than_its_share)
{
    const uint64_t most = LIMIT_PARSED_OBJECT;
    run_on(f, 1);
    run_on(f, 2);
    cr_assert_eq(offer_at(f, 1, "aa01", HASH(1), most + 1, NOW).verdict, STORE_OFFER_TOO_LARGE);
    cr_assert_eq(offer_at(f, 1, "aa01", HASH(1), 0, NOW).verdict, STORE_OFFER_TOO_LARGE);
    cr_assert_eq(offer_at(f, 1, "aa01", HASH(1), most, NOW).verdict, STORE_OFFER_TAKEN);
    cr_assert_eq(offer_at(f, 1, "aa01", HASH(2), most, NOW).verdict, STORE_OFFER_TAKEN, "in place of the former");
    cr_assert_eq(offer_at(f, 1, "bb02", HASH(3), most, NOW).verdict, STORE_OFFER_TAKEN);
    cr_assert_eq(offer_at(f, 2, "bb02", HASH(3), most, NOW).verdict, STORE_OFFER_TAKEN, "another host has its own");
}

STORE_TEST(what_is_deleted_is_asked_for_again)
{
    uint64_t uploads;
    run_on(f, 1);
    run_on(f, 2);
    OK(f, send_one(f, 1, 1));
    offer(f, 2, HASH(2));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    cr_assert_str_eq(named(f), "");
    cr_assert_eq(disputed(f), 0);
    cr_assert_eq(offer(f, 1, HASH(1)).verdict, STORE_OFFER_UNASKED);
    FAILS(f, PROFD_FORBIDDEN, send_one(f, 1, 1));
    expect_clean(f);
}

STORE_TEST(host_offers_what_all_users_of_the_build_sent)
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
