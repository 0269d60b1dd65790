/* The cache of answers: no stale answer is ever served, memory is bounded, and ETags are matched in any coding. */
#include <libdeflate.h>

#include "proto/deflate.h"
#include "proto/limits.h"
#include "query/query_internal.h"
#include "tests/unit/query/fleet.h"

static void nothing(void *context)
{
    (void)context;
}
static const struct query_lock LOCK = {nothing, nothing, NULL};
static const struct store_scope ALL = {.all = true};

static struct query_answer ask(struct store *s, struct query_answers *kept, const char *target, const char *tag,
                               struct store_scope scope, uint64_t generation, enum coding coding)
{
    struct query_request r = {.target = target,
                              .if_none_match = tag,
                              .scope = scope,
                              .http = true,
                              .now = FLEET_NOW,
                              .answers = kept,
                              .generation = generation,
                              .coding = coding};
    struct query_answer a;
    query_run(s, &r, &a);
    return a;
}

static bool find(struct query_answers *kept, const char *target, const char *tag, struct store_scope scope,
                 uint64_t generation, enum coding coding, struct query_answer *a)
{
    struct query_request r = {.target = target,
                              .if_none_match = tag,
                              .scope = scope,
                              .http = true,
                              .now = FLEET_NOW,
                              .generation = generation,
                              .coding = coding};
    return query_answers_find(kept, &r, a);
}

static struct store *fleet_of_one(void)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    fleet_put_object(s, PROGRAM, 1000);
    fleet_put(s, &u);
    return s;
}

#define TARGET "/api/v1/builds/" PROGRAM "/report"

Test(query_answers, the_same_again_is_given_while_nothing_was_written)
{
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(LIMIT_ANSWER_CACHE, &LOCK);
    struct query_answer a = ask(s, kept, TARGET, "", ALL, 10, CODING_IDENTITY), b;
    cr_assert_eq(a.http_status, 200);
    cr_assert(find(kept, TARGET, "", ALL, 10, CODING_IDENTITY, &b));
    cr_assert_eq(b.body.size, a.body.size);
    cr_assert_arr_eq(b.body.data, a.body.data, a.body.size);
    cr_assert_str_eq(b.etag, a.etag);
    cr_assert_str_eq(b.cache_control, a.cache_control);
    cr_assert_str_eq(b.content_type, a.content_type);
    query_answer_done(&b);
    cr_assert(find(kept, TARGET, a.etag, ALL, 10, CODING_IDENTITY, &b));
    cr_assert_eq(b.http_status, 304);
    cr_assert_eq(b.body.size, 0);
    cr_assert(!find(kept, TARGET, "", ALL, 12, CODING_IDENTITY, &b), "something was written");
    cr_assert(!find(kept, TARGET, "", ALL, 11, CODING_IDENTITY, &b), "something is being written");
    cr_assert(!find(kept, TARGET, "", (struct store_scope){.uid = 1000}, 10, CODING_IDENTITY, &b),
              "somebody else asks");
    cr_assert(!find(kept, TARGET, "", ALL, 10, CODING_GZIP, &b));
    cr_assert(!find(kept, TARGET "?limit=1", "", ALL, 10, CODING_IDENTITY, &b));
    query_answer_done(&a);
    query_answers_free(kept);
    store_close(s);
}

/* Another generation, but the same tag: the body of before. A changed tag: a new one. */
Test(query_answers, a_new_look_that_finds_the_same_tag_computes_nothing)
{
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(LIMIT_ANSWER_CACHE, &LOCK);
    struct query_answer a = ask(s, kept, TARGET, "", ALL, 10, CODING_IDENTITY),
                        b = ask(s, kept, TARGET, "", ALL, 14, CODING_IDENTITY), c;
    cr_assert_eq(b.body.size, a.body.size);
    cr_assert_arr_eq(b.body.data, a.body.data, a.body.size);
    cr_assert_str_eq(b.etag, a.etag);
    struct query_answers_use use = query_answers_measure(kept);
    cr_assert_eq(use.made, 1);
    cr_assert_eq(use.after_look, 1);
    cr_assert(find(kept, TARGET, "", ALL, 14, CODING_IDENTITY, &c), "it is known to be true later, too");
    query_answer_done(&c);
    struct fleet_upload u = fleet_cycle(2);
    fleet_put(s, &u);
    c = ask(s, kept, TARGET, "", ALL, 16, CODING_IDENTITY);
    cr_assert_str_neq(c.etag, a.etag);
    cr_assert_not_null(memmem(c.body.data, c.body.size, "\"uploads\":2", 11));
    query_answer_done(&c);
    cr_assert(find(kept, TARGET, "", ALL, 16, CODING_IDENTITY, &c));
    cr_assert_not_null(memmem(c.body.data, c.body.size, "\"uploads\":2", 11));
    cr_assert_eq(query_answers_measure(kept).entries, 1);
    query_answer_done(&a);
    query_answer_done(&b);
    query_answer_done(&c);
    query_answers_free(kept);
    store_close(s);
}

Test(query_answers, a_304_is_known_before_there_is_a_body)
{
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(LIMIT_ANSWER_CACHE, &LOCK);
    struct query_answer a = ask(s, NULL, TARGET, "", ALL, 10, CODING_IDENTITY),
                        b = ask(s, kept, TARGET, a.etag, ALL, 10, CODING_IDENTITY), c;
    cr_assert_eq(b.http_status, 304);
    cr_assert(find(kept, TARGET, a.etag, ALL, 10, CODING_IDENTITY, &c));
    cr_assert_eq(c.http_status, 304);
    cr_assert(!find(kept, TARGET, "", ALL, 10, CODING_IDENTITY, &c), "there is none");
    c = ask(s, kept, TARGET, "", ALL, 10, CODING_IDENTITY);
    cr_assert_eq(c.body.size, a.body.size);
    query_answer_done(&c);
    cr_assert(find(kept, TARGET, "\"x\"", ALL, 10, CODING_IDENTITY, &c));
    cr_assert_eq(c.http_status, 200);
    query_answer_done(&a);
    query_answer_done(&c);
    query_answers_free(kept);
    store_close(s);
}

/* "now-1h" means another hour a moment later; an error may be over; both are asked anew. */
Test(query_answers, what_depends_on_the_moment_is_not_kept)
{
    static const char *const targets[] = {TARGET "?since=now-1h",   TARGET "?since=-30d",
                                          TARGET "?until=now",      TARGET "?until=%6eow",
                                          TARGET "?s%69nce=now-2h", "/api/v1/labels?build_id=" PROGRAM "&since=now-1h",
                                          TARGET "?limit=x",        "/api/v1/builds/ffff"};
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(LIMIT_ANSWER_CACHE, &LOCK);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct query_answer a = ask(s, kept, targets[i], "", ALL, 10, CODING_IDENTITY), b;
        cr_assert(!find(kept, targets[i], "", ALL, 10, CODING_IDENTITY, &b), "%s", targets[i]);
        query_answer_done(&a);
    }
    cr_assert_eq(query_answers_measure(kept).entries, 0);
    query_answers_free(kept);
    store_close(s);
}

Test(query_answers, memory_is_bounded_and_the_oldest_goes)
{
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(100000, &LOCK);
    struct query_answer b;
    char target[200];
    for (int i = 1; i <= 500; i++) {
        snprintf(target, sizeof target, TARGET "?limit=%d", i);
        struct query_answer a = ask(s, kept, target, "", ALL, 10, CODING_IDENTITY);
        query_answer_done(&a);
        cr_assert_leq(query_answers_measure(kept).bytes, 100000);
        if (find(kept, TARGET "?limit=1", "", ALL, 10, CODING_IDENTITY, &b)) { /* used again and again */
            query_answer_done(&b);
        } else {
            cr_assert(false, "lost at %d", i);
        }
    }
    cr_assert(find(kept, target, "", ALL, 10, CODING_IDENTITY, &b));
    query_answer_done(&b);
    cr_assert(!find(kept, TARGET "?limit=2", "", ALL, 10, CODING_IDENTITY, &b));
    query_answers_free(kept);
    store_close(s);
}

Test(query_coded, bodies_come_back_as_they_were_and_have_tags_of_their_own)
{
    struct store *s = fleet_of_one();
    struct query_answers *kept = query_answers_new(LIMIT_ANSWER_CACHE, &LOCK);
    struct query_answer plain = ask(s, kept, TARGET, "", ALL, 10, CODING_IDENTITY);
    cr_assert(plain.negotiated);
    for (enum coding c = CODING_GZIP; c <= CODING_ZSTD; c++) {
        struct query_answer a = ask(s, kept, TARGET, "", ALL, 10, c), b;
        char *out = malloc(plain.body.size);
        size_t n = 0;
        char tag[ETAG_SIZE];
        cr_assert_eq(a.coding, c);
        cr_assert_lt(a.body.size, plain.body.size);
        if (c == CODING_GZIP) {
            struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
            cr_assert_eq(libdeflate_gzip_decompress(d, a.body.data, a.body.size, out, plain.body.size, &n),
                         LIBDEFLATE_SUCCESS);
            libdeflate_free_decompressor(d);
            cr_assert_eq(n, plain.body.size);
        } else {
            cr_assert_eq(
                deflate_unpack((const uint8_t *)a.body.data, a.body.size, (uint8_t *)out, plain.body.size, NULL),
                PROFD_OK);
        }
        cr_assert_arr_eq(out, plain.body.data, plain.body.size);
        query_code_etag(plain.etag, c, tag);
        cr_assert_str_eq(a.etag, tag);
        cr_assert_str_neq(a.etag, plain.etag);
        for (int tagged = 0; tagged < 2; tagged++) { /* either tag is of an answer that is still right */
            b = ask(s, kept, TARGET, tagged ? a.etag : plain.etag, ALL, 10, c);
            cr_assert_eq(b.http_status, 304);
            cr_assert_str_eq(b.etag, tagged ? a.etag : plain.etag, "the one that was named");
        }
        cr_assert(find(kept, TARGET, "", ALL, 10, c, &b));
        cr_assert_eq(b.coding, c);
        cr_assert_str_eq(b.etag, a.etag);
        query_answer_done(&a);
        query_answer_done(&b);
        free(out);
    }
    query_answer_done(&plain);
    query_answers_free(kept);
    store_close(s);
}

Test(query_coded, small_and_unsuitable_bodies_stay_unless_they_must)
{
    struct store *s = fleet_of_one();
    struct query_answer a = ask(s, NULL, "/api/v1/labels", "", ALL, 0, CODING_GZIP);
    cr_assert_lt(a.body.size, LIMIT_CODING_LEAST);
    cr_assert_eq(a.coding, CODING_IDENTITY);
    cr_assert(strstr(a.etag, "gzip") == NULL);
    query_answer_done(&a);
    struct query_request r = {.target = "/api/v1/labels",
                              .if_none_match = "",
                              .scope = ALL,
                              .http = true,
                              .now = FLEET_NOW,
                              .coding = CODING_GZIP,
                              .coded_only = true};
    query_run(s, &r, &a);
    cr_assert_eq(a.coding, CODING_GZIP);
    query_answer_done(&a);
    a = ask(s, NULL, "/api/v1/builds/" PROGRAM "/counts", "", ALL, 0, CODING_ZSTD);
    cr_assert_eq(a.coding, CODING_IDENTITY, "it is packed already");
    cr_assert(!a.negotiated);
    query_answer_done(&a);
    store_close(s);
}

Test(query_coded, tags_match_in_any_coding)
{
    char out[ETAG_SIZE], longest[ETAG_SIZE + 10];
    cr_assert(query_match_etag("\"a-1\"", "\"a-1\"", CODING_GZIP, out));
    cr_assert_str_eq(out, "\"a-1\"");
    cr_assert(query_match_etag("\"x\", W/\"a-1-zstd\"", "\"a-1\"", CODING_GZIP, out));
    cr_assert_str_eq(out, "\"a-1-zstd\"");
    cr_assert(query_match_etag("\"a-1\", \"a-1-zstd\", \"a-1-gzip\"", "\"a-1\"", CODING_GZIP, out));
    cr_assert_str_eq(out, "\"a-1-gzip\"", "the one that would be sent");
    cr_assert(query_match_etag(" *", "\"a-1\"", CODING_ZSTD, out));
    cr_assert_str_eq(out, "\"a-1\"");
    cr_assert(!query_match_etag("\"a-1-br\", \"a-1-identity\", \"a-2-gzip\"", "\"a-1\"", CODING_GZIP, out));
    memset(longest, 'x', sizeof longest);
    longest[0] = longest[ETAG_SIZE - 2] = '"';
    longest[ETAG_SIZE - 1] = '\0';
    query_code_etag(longest, CODING_GZIP, out);
    cr_assert_str_eq(out, "", "no room");
    query_code_etag(longest, CODING_IDENTITY, out);
    cr_assert_str_eq(out, longest);
}
