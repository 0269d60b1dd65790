/* Executables: whose word names functions, and for whom (reference U9); and the numbers for ETags. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

static void put_object(struct fixture *f, const char *id, const char *variant, uint32_t uid, bool trusted,
                       const char *content)
{
    struct made_object o;
    make_object(&o, id, variant, uid, trusted, content);
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

static void put_failure(struct fixture *f, const char *id, uint32_t uid, bool trusted, const char *note)
{
    struct made_object o;
    make_object(&o, id, "", uid, trusted, "");
    o.o.has_names = false;
    o.o.note = note;
    OK(f, store_put_object(f->w, &o.o, &f->e));
}

static bool knows(struct fixture *f, uint32_t uid, const char *id)
{
    bool writer, reader;
    OK(f, store_has_object(f->w, uid, full_id(id), &writer, &f->e));
    OK(f, store_has_object(f->r, uid, full_id(id), &reader, &f->e));
    cr_assert_eq(writer, reader);
    return writer;
}

#define UIDS(...)                                                                                                      \
    sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[])                                                                \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

STORE_TEST(untrusted_object_names_for_its_sender_only)
{
    uint32_t variants = 0;
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), "");
    put_object(f, "aa", "v1", 1, false, "lie");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), &variants), "lie");
    cr_assert_eq(variants, 1);
    cr_assert_str_eq(get_content(f, "aa", UIDS(2), NULL), "");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1, 2), NULL), "", "a sum of two users needs the word of both");
    cr_assert_str_eq(get_content(f, "aa", 0, NULL, NULL), "", "nobody's sum is not everybody's");
    cr_assert(knows(f, 1, "aa"));
    cr_assert_not(knows(f, 2, "aa"));
    put_object(f, "aa", "v1", 2, false, "lie");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1, 2), &variants), "lie", "both sent the same");
    cr_assert_eq(variants, 1);
    cr_assert(knows(f, 2, "aa"));
    fixture_reopen(f);
    cr_assert_str_eq(get_content(f, "aa", UIDS(1, 2), NULL), "lie");
}

STORE_TEST(trusted_object_names_for_everybody)
{
    uint32_t variants = 0;
    put_object(f, "aa", "v1", 1, false, "lie");
    put_object(f, "aa", "v2", 0, true, "truth");
    cr_assert_str_eq(get_content(f, "aa", UIDS(2), &variants), "truth");
    cr_assert_eq(variants, 2);
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), "truth", "trusted before the sender's own");
    cr_assert_str_eq(get_content(f, "aa", 0, NULL, NULL), "truth");
    cr_assert(knows(f, 77, "aa"));
}

/* The worker may be owned by the file it reads and claim any variant. */
STORE_TEST(claimed_variant_does_not_poison_the_real_one)
{
    uint32_t variants = 0;
    put_object(f, "aa", "v1", 1, false, "poison");
    put_object(f, "aa", "v1", 0, true, "truth");
    cr_assert_str_eq(get_content(f, "aa", UIDS(2), &variants), "truth");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1, 2), NULL), "truth");
    cr_assert_eq(variants, 2);
}

STORE_TEST(names_before_none_then_the_latest)
{
    struct made_object o;
    put_object(f, "aa", "v1", 1, false, "one");
    put_object(f, "aa", "v2", 1, false, "two");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), "two");
    put_object(f, "aa", "v1", 1, false, "one");
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), "one", "delivered again is latest again");
    make_object(&o, "aa", "v3", 0, true, "stripped");
    o.o.has_names = false;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), "one", "one's own names are better than none");
    cr_assert_str_eq(get_content(f, "aa", UIDS(2), NULL), "stripped");
}

STORE_TEST(a_worse_table_of_names_replaces_no_better_one)
{
    static const struct {
        const char *content;
        uint32_t uid;
        bool trusted;
        unsigned names;
        const char *chosen;
    } cases[] = {{"exported", 1, false, 1, "exported"},
                 {"all", 1, false, 2, "all"},
                 {"lines", 1, false, 3, "lines"},
                 {"exported again", 1, false, 1, "lines"},
                 {"all again", 1, false, 2, "lines"},
                 {"lines again", 1, false, 3, "lines again"},
                 {"exported, of root", 0, true, 1, "exported, of root"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_object o;
        make_object(&o, "aa", cases[i].content, cases[i].uid, cases[i].trusted, cases[i].content);
        o.o.has_names = cases[i].names;
        OK(f, store_put_object(f->w, &o.o, &f->e));
        cr_assert_str_eq(get_content(f, "aa", UIDS(1), NULL), cases[i].chosen);
    }
}

STORE_TEST(trust_is_not_lost_by_a_second_delivery)
{
    put_object(f, "aa", "v1", 1, true, "file of root");
    put_object(f, "aa", "v1", 1, false, "file of root");
    cr_assert_str_eq(get_content(f, "aa", UIDS(2), NULL), "file of root");
}

static void copy_note(void *context, const struct build_row *row)
{
    snprintf(context, 128, "%d %s", row->has_names, row->note);
}

static const char *note(struct fixture *f, struct store_scope scope, const char *id)
{
    static char text[128];
    OK(f, store_get_build(f->r, &scope, full_id(id), copy_note, text, &f->e));
    return text;
}

STORE_TEST(failure_is_remembered_and_shown)
{
    struct made m;
    for (uint32_t uid = 1; uid <= 2; uid++) {
        make_upload(&m, uid, 1, 1);
        put(f, &m);
    }
    put_failure(f, "aa01", 1, false, "not an ELF file");
    cr_assert(knows(f, 1, "aa01"), "the sender isn't asked again");
    cr_assert_not(knows(f, 2, "aa01"));
    cr_assert_str_eq(get_content(f, "aa01", UIDS(1), NULL), "");
    cr_assert_str_eq(note(f, only(1), "aa01"), "0 not an ELF file");
    cr_assert_str_eq(note(f, only(2), "aa01"), "0 ");
    cr_assert_str_eq(note(f, everybody, "aa01"), "0 not an ELF file");
    put_failure(f, "aa01", 0, true, "too large");
    cr_assert_not(knows(f, 2, "aa01"), "a trusted failure is no name");
    cr_assert_str_eq(note(f, only(2), "aa01"), "0 too large");
    put_object(f, "aa01", "v1", 1, false, "good");
    cr_assert_str_eq(note(f, only(1), "aa01"), "1 ");
    cr_assert_str_eq(note(f, only(2), "aa01"), "0 too large");
    cr_assert_str_eq(note(f, everybody, "aa01"), "0 too large", "two users' sum, one user's word");
}

static const char *bounds(struct store *s, uint32_t uid, const char *id)
{
    static char text[64];
    const uint8_t *bytes = NULL;
    size_t n = 99;
    struct profd_error e;
    cr_assert_eq(store_get_bounds(s, uid, full_id(id), &bytes, &n, &e), PROFD_OK);
    snprintf(text, sizeof text, "%.*s", (int)n, n > 0 ? (const char *)bytes : "");
    return text;
}

STORE_TEST(bounds_follow_the_object)
{
    for (int round = 0; round < 2; round++) {
        struct store *s = round ? f->r : f->w;
        const char *id = round ? "ab" : "ac";
        cr_assert_str_eq(bounds(s, 1, id), "");
        put_object(f, id, "v1", 1, false, "one");
        cr_assert_str_eq(bounds(s, 1, id), "one");
        cr_assert_str_eq(bounds(s, 2, id), "");
        put_object(f, id, "v2", 0, true, "two");
        cr_assert_str_eq(bounds(s, 1, id), "two");
        cr_assert_str_eq(bounds(s, 2, id), "two");
    }
}

STORE_TEST(large_object_comes_back_whole)
{
    size_t n = 5 << 20, got_size;
    uint8_t *bytes = malloc(n), *got;
    const uint32_t one = 1;
    const struct store_senders of = {.uids = &one, .uid_count = 1};
    struct store_naming naming;
    struct made_object o;
    unsigned x = 1;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> (i % 3 ? 24 : 31));
    }
    make_object(&o, "aa", "v1", 1, false, "");
    o.o.encoded = bytes;
    o.o.encoded_size = n;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    OK(f, store_get_object(f->r, &of, full_id("aa"), &got, &got_size, &naming, &f->e));
    cr_assert_eq(got_size, n);
    cr_assert_eq(memcmp(got, bytes, n), 0);
    free(got);
    free(bytes);
}

static uint64_t epoch(struct fixture *f, struct store_scope scope, const char *id)
{
    struct store_epoch n = {.number = 99};
    OK(f, store_epoch(f->r, &scope, full_id(id), &n, &f->e));
    return n.number;
}

static uint64_t list_epoch(struct fixture *f, struct store_scope scope)
{
    struct store_epoch n = {.number = 99};
    OK(f, store_epoch_all(f->r, &scope, &n, &f->e));
    return n.number;
}

/* All numbers that the steps below watch: of aa01, bb02 and cc, for everybody, 1 and 2, and of the three lists. */
static void watch(struct fixture *f, uint64_t out[12])
{
    static const char *const ids[] = {"aa01", "bb02", "cc"};
    for (unsigned i = 0; i < 12; i++) {
        struct store_scope scope = i % 3 == 0 ? everybody : only(i % 3);
        out[i] = i < 9 ? epoch(f, scope, ids[i / 3]) : list_epoch(f, scope);
    }
}

/* Which of them grew since the last look, as text; none may shrink. */
static const char *grown(struct fixture *f, uint64_t seen[12])
{
    static char text[13];
    uint64_t now[12];
    watch(f, now);
    for (unsigned i = 0; i < 12; i++) {
        cr_assert_geq(now[i], seen[i]);
        text[i] = now[i] > seen[i] ? '+' : '.';
    }
    memcpy(seen, now, sizeof now);
    return text;
}

STORE_TEST(epochs_grow_when_an_answer_may_change_and_only_then)
{
    uint64_t seen[12];
    struct made m, other;
    watch(f, seen);
    make_upload(&m, 1, 1, 1); /* aa01 with bb02 */
    put(f, &m);
    cr_assert_str_eq(grown(f, seen), "++.++....++.");
    put(f, &m);
    cr_assert_str_eq(grown(f, seen), "............", "a repeat changes nothing");
    make_upload(&other, 2, 1, 1);
    make_build(&other.builds[0], "cc", "other");
    put(f, &other); /* cc with bb02 */
    cr_assert_str_eq(grown(f, seen), "...+.++.++.+");
    put_object(f, "aa01", "v1", 1, false, "a");
    cr_assert_str_eq(grown(f, seen), "++.++....++.", "an object shows in reports of its companions");
    put_object(f, "aa01", "v1", 1, false, "a");
    cr_assert_str_eq(grown(f, seen), "............", "the same again changes nothing");
    put_object(f, "aa01", "v1", 2, false, "a");
    cr_assert_str_eq(grown(f, seen), "............", "user 2 has no upload with it");
    put_object(f, "bb02", "v1", 0, true, "b");
    cr_assert_str_eq(grown(f, seen), "++.++++.++++", "a trusted library: all who have it");
    put_failure(f, "cc", 2, false, "no");
    cr_assert_str_eq(grown(f, seen), "...+.++.++.+");
    put_object(f, "dd", "v1", 0, true, "d");
    cr_assert_str_eq(grown(f, seen), "............", "a build nobody uploaded");
    fixture_reopen(f);
    cr_assert_str_eq(grown(f, seen), "............");
    cr_assert_eq(epoch(f, only(1), "cc"), 0);
}
