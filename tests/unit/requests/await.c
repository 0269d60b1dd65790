/* Parsed objects of hosts are assembled from pieces: from one host at a time, and in order. */
#include <criterion/criterion.h>
#include <string.h>

#include "proto/limits.h"
#include "requests/centre_await.h"

#define ID "abababab"

static struct store_offer offer_of(uint8_t host, const char *content, uint64_t size)
{
    struct store_offer a = {.build_id = ID, .has = true, .size = size};

    memset(a.host, host, sizeof a.host);
    memcpy(a.hash, content, strlen(content));
    return a;
}

static enum profd_status add(struct centre_objects *all, const struct store_offer *a, uint64_t offset,
                             const char *piece, struct centre_object **whole)
{
    struct profd_error e;
    const struct message_object_bytes m = {.host = {a->host, sizeof a->host},
                                           .build_id = a->build_id,
                                           .hash = {a->hash, sizeof a->hash},
                                           .offset = offset,
                                           .piece = {(const uint8_t *)piece, strlen(piece)}};

    return centre_add_piece(all, &m, 1, whole, &e);
}

Test(centre_await, pieces_become_an_object)
{
    const struct store_offer good = offer_of(1, "hello", 5);
    struct centre_objects all;
    struct centre_object *whole;

    centre_objects_init(&all);
    cr_assert_eq(add(&all, &good, 0, "hel", &whole), PROFD_REFUSED, "it is not awaited");
    cr_assert(centre_await(&all, &good, 0));
    cr_assert_eq(add(&all, &good, 0, "hel", &whole), PROFD_OK);
    cr_assert_null(whole);
    cr_assert_eq(add(&all, &good, 3, "lo", &whole), PROFD_OK);
    cr_assert(whole && whole->got == 5 && !memcmp(whole->bytes, "hello", 5));
    centre_object_free(whole);
    cr_assert_eq(all.bytes, 0);
    cr_assert(centre_await(&all, &good, 0));
    cr_assert_eq(add(&all, &good, 1, "ello", &whole), PROFD_MALFORMED);
    cr_assert_eq(add(&all, &good, 0, "hello", &whole), PROFD_REFUSED, "it is not awaited any more");
    cr_assert(centre_await(&all, &good, 0));
    cr_assert_eq(add(&all, &good, 0, "hello!", &whole), PROFD_MALFORMED, "more than was said");
    centre_objects_clear(&all);
}

Test(centre_await, one_host_at_a_time_and_so_many_bytes)
{
    const struct store_offer one = offer_of(1, "x", LIMIT_ATTEST_OBJECT), two = offer_of(2, "x", LIMIT_ATTEST_OBJECT),
                             other = offer_of(3, "y", LIMIT_ATTEST_OBJECT), tiny = offer_of(4, "z", 1);
    struct centre_objects all;

    centre_objects_init(&all);
    cr_assert(centre_await(&all, &one, 0));
    cr_assert_not(centre_await(&all, &two, LIMIT_ATTEST_SECONDS * 1000), "another host sends it");
    cr_assert(centre_await(&all, &one, 0), "the same host begins again");
    cr_assert(centre_await(&all, &other, 0));
    cr_assert_not(centre_await(&all, &tiny, 0), "too many bytes are awaited");
    cr_assert(centre_await(&all, &two, LIMIT_ATTEST_SECONDS * 1000 + 1), "the first one was too slow");
    centre_objects_clear(&all);
    cr_assert_eq(all.bytes, 0);
}

Test(centre_await, what_comes_slowly_gives_its_place_to_others)
{
    struct store_offer hoards[2], fast = offer_of(7, "fast", LIMIT_ATTEST_OBJECT), honest = offer_of(9, "hello", 5);
    struct centre_objects all;
    struct centre_object *whole;

    centre_objects_init(&all);
    for (unsigned i = 0; i < 2; i++) {
        hoards[i] = offer_of(1, i ? "one" : "two", LIMIT_ATTEST_OBJECT);
        hoards[i].build_id = i ? "aa" : "bb";
        cr_assert(centre_await(&all, &hoards[i], 0), "a host announces as much as all may");
    }
    honest.build_id = "dd";
    cr_assert(!centre_await(&all, &honest, 900));
    cr_assert_eq(add(&all, &hoards[0], 0, "x", &whole), PROFD_OK, "one byte came");
    cr_assert(centre_await(&all, &honest, 1100), "another host gets a place after a second");
    cr_assert(all.bytes <= LIMIT_ATTEST_HELD);
    centre_objects_clear(&all);

    cr_assert(centre_await(&all, &fast, 0));
    TAILQ_FIRST(&all.list)->got = 3 * 256 * 1000;
    cr_assert(centre_await(&all, &hoards[0], 3500));
    cr_assert(!centre_await(&all, &honest, 3600), "what comes as fast as it must keeps its place");
    centre_objects_clear(&all);
}
