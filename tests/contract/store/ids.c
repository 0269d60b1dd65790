/* Exactly once: ids, their key, their gaps, and what stays of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sequence.h"
#include "tests/contract/store/fixture.h"

STORE_TEST(repeat_counts_once_and_first_content_wins)
{
    struct made m;
    make_upload(&m, 1000, 1, 1);
    cr_assert_eq(put(f, &m), STORE_STORED);
    m.u.counts = (const uint8_t *)"other";
    m.u.counts_size = 5;
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    cr_assert_str_eq(list_all(f, everybody), "1:u1000 s1 n1 ");
    fixture_reopen(f);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    cr_assert_str_eq(list_all(f, everybody), "1:u1000 s1 n1 ");
    struct store_totals t;
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.uploads, 1);
    cr_assert_eq(t.ticks, 7);
    cr_assert_eq(t.calls, 5);
}

STORE_TEST(repeat_inside_one_batch_counts_once)
{
    struct made m[3];
    struct store_upload batch[3];
    enum store_outcome outcomes[3];
    for (unsigned i = 0; i < 3; i++) {
        make_upload(&m[i], 1000, 1, i == 1 ? 1 : i + 1);
        batch[i] = m[i].u;
    }
    OK(f, store_put_uploads(f->w, batch, 3, outcomes, &f->e));
    cr_assert_eq(outcomes[0], STORE_STORED);
    cr_assert_eq(outcomes[1], STORE_DUPLICATE);
    cr_assert_eq(outcomes[2], STORE_STORED);
    cr_assert_str_eq(list_all(f, everybody), "1:u1000 s1 n1 2:u1000 s1 n3 ");
}

/* Reference U8: one user cannot pre-claim another's id; nor one host another's. */
STORE_TEST(id_is_of_host_uid_and_sender)
{
    struct made a, b, c, d;
    make_upload(&a, 1000, 1, 1);
    make_upload(&b, 1001, 1, 1);
    make_upload(&c, 1000, 1, 1);
    make_upload(&d, 1000, 2, 1);
    strcpy(c.u.host, "");
    cr_assert_eq(put(f, &a), STORE_STORED);
    cr_assert_eq(put(f, &b), STORE_STORED);
    cr_assert_eq(put(f, &c), STORE_STORED);
    cr_assert_eq(put(f, &d), STORE_STORED);
    cr_assert_eq(put(f, &a), STORE_DUPLICATE);
    cr_assert_eq(put(f, &b), STORE_DUPLICATE);
    cr_assert_eq(put(f, &c), STORE_DUPLICATE);
    cr_assert_eq(put(f, &d), STORE_DUPLICATE);
}

STORE_TEST(any_order_of_delivery_counts_once)
{
    enum { N = 300 };
    bool sent[N + 1] = {false};
    struct made m;
    srand(4);
    for (int i = 0; i < 3 * N; i++) {
        uint32_t sequence = 1 + (uint32_t)rand() % N;
        make_upload(&m, 7, 3, sequence);
        cr_assert_eq(put(f, &m), sent[sequence] ? STORE_DUPLICATE : STORE_STORED, "step %d, sequence %u", i, sequence);
        sent[sequence] = true;
        bool counted;
        OK(f, store_has_upload(f->r, &m.u, &counted, &f->e));
        cr_assert(counted);
        if (i % 100 == 0) {
            fixture_reopen(f);
        }
    }
    for (uint32_t sequence = 1; sequence <= N; sequence++) {
        bool counted;
        make_upload(&m, 7, 3, sequence);
        OK(f, store_has_upload(f->r, &m.u, &counted, &f->e));
        cr_assert_eq(counted, sent[sequence]);
    }
}

STORE_TEST(too_many_gaps_are_not_stored_and_heal)
{
    struct made m;
    /* 3, 5, 7 …: each opens a range of its own. */
    for (uint32_t i = 0; i < STORE_ID_RANGES; i++) {
        make_upload(&m, 7, 3, 3 + 2 * i);
        cr_assert_eq(put(f, &m), STORE_STORED);
    }
    uint32_t next = 3 + 2 * STORE_ID_RANGES;
    make_upload(&m, 7, 3, next);
    cr_assert_eq(put(f, &m), STORE_TOO_MANY_GAPS);
    struct store_totals t;
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.uploads, STORE_ID_RANGES);
    make_upload(&m, 7, 3, 4);
    cr_assert_eq(put(f, &m), STORE_STORED);
    make_upload(&m, 7, 3, next);
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
}

STORE_TEST(extreme_sequences)
{
    struct made m;
    make_upload(&m, 7, 3, UINT32_MAX);
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    make_upload(&m, 7, 3, UINT32_MAX - 1);
    cr_assert_eq(put(f, &m), STORE_STORED);
    make_upload(&m, 7, 3, 1);
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    make_upload(&m, 7, 3, 0);
    enum store_outcome outcome;
    FAILS(f, PROFD_INTERNAL, store_put_uploads(f->w, &m.u, 1, &outcome, &f->e));
}

STORE_TEST(ids_are_forgotten_by_age)
{
    struct made old, young;
    make_upload(&old, 7, 1, 1);
    make_upload(&young, 7, 2, 1);
    old.u.received = NOON - 31 * 24 * HOUR;
    put(f, &old);
    put(f, &young);
    OK(f, store_remove_ids(f->w, NOON - 30 * 24 * HOUR, &f->e));
    cr_assert_eq(put(f, &young), STORE_DUPLICATE);
    cr_assert_eq(put(f, &old), STORE_STORED, "an id of 31 days is forgotten");
    OK(f, store_remove_ids(f->w, NOON - 30 * 24 * HOUR, &f->e));
    cr_assert_eq(put(f, &young), STORE_DUPLICATE, "a second round looks again");
}

/* A repeat is a sign of life too: an id must outlive the client that goes on trying. */
STORE_TEST(repeat_keeps_an_id_alive)
{
    struct made m;
    make_upload(&m, 7, 1, 1);
    m.u.received = NOON - 31 * 24 * HOUR;
    put(f, &m);
    m.u.received = NOON;
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    OK(f, store_remove_ids(f->w, NOON - 30 * 24 * HOUR, &f->e));
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
}

STORE_TEST(empty_batch_is_nothing)
{
    OK(f, store_put_uploads(f->w, NULL, 0, NULL, &f->e));
    cr_assert_str_eq(list_all(f, everybody), "");
}

/* The set against a plain table of booleans. */
Test(store_sequence, agrees_with_a_table)
{
    enum { N = 400 };
    for (unsigned seed = 0; seed < 300; seed++) {
        static struct sequence_set set, copy;
        bool table[N + 2] = {false};
        uint8_t bytes[SEQUENCE_BYTES];
        memset(&set, 0, sizeof set);
        srand(seed);
        for (int i = 0; i < 600; i++) {
            uint32_t sequence = 1 + (uint32_t)rand() % N;
            cr_assert_eq(sequence_holds(&set, sequence), table[sequence], "seed %u", seed);
            enum sequence_outcome out = sequence_add(&set, sequence);
            cr_assert_eq(out, table[sequence] ? SEQUENCE_SEEN : SEQUENCE_NEW, "seed %u, step %d", seed, i);
            table[sequence] = true;
            size_t n = sequence_encode(&set, bytes);
            cr_assert(sequence_decode(&copy, set.mark, bytes, n), "seed %u, step %d", seed, i);
            cr_assert_eq(copy.count, set.count);
        }
        uint32_t mark = 0, ranges = 0;
        while (table[mark + 1]) {
            mark++;
        }
        for (uint32_t k = mark + 1; k <= N; k++) {
            ranges += table[k] && !table[k - 1];
        }
        cr_assert_eq(set.mark, mark, "seed %u", seed);
        cr_assert_eq(set.count, ranges, "seed %u", seed);
    }
}

Test(store_sequence, refuses_lists_that_break_the_rules)
{
    static struct sequence_set set;
    const uint8_t touching[] = {2, 0, 0, 0, 2, 0, 0, 0}, backwards[] = {5, 0, 0, 0, 4, 0, 0, 0};
    const uint8_t overlapping[] = {5, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 12, 0, 0, 0};
    cr_assert(sequence_decode(&set, 0, touching, 8));
    cr_assert_not(sequence_decode(&set, 1, touching, 8), "a range that touches the mark");
    cr_assert_not(sequence_decode(&set, 1, backwards, 8));
    cr_assert_not(sequence_decode(&set, 1, overlapping, 16));
    cr_assert_not(sequence_decode(&set, 0, touching, 7));
}
