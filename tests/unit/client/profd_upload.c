/* Uploads in the making: what they refuse, and how they are named. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/profd_upload.h"
#include "profd.h"
#include "proto/counts_tree.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"

Test(client_upload, what_an_upload_refuses)
{
    struct profd_upload *u;
    cr_assert_eq(profd_upload_new(&u, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_build(u, "ABCD0123", "/bin/x", NULL, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_label(u, "service", "web", NULL), PROFD_OK);
    struct profd_error e;
    char *long_value = calloc(1, LIMIT_LABEL_VALUE + 2);
    memset(long_value, 'x', LIMIT_LABEL_VALUE + 1);
    static const char *const names[] = {"", "1a", "__x", "a-b", "a b", "é"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert_eq(profd_upload_add_label(u, names[i], "v", &e), PROFD_REFUSED, "%s", names[i]);
        cr_assert(strstr(e.sentence, "label name"));
    }
    cr_assert_eq(profd_upload_add_label(u, "a", long_value, NULL), PROFD_TOO_LARGE);
    cr_assert_eq(profd_upload_add_label(u, "a", "\xff", &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "not UTF-8"));
    cr_assert_eq(profd_upload_add_label(u, "a", "ok\xc0\xaf", NULL), PROFD_REFUSED);
    cr_assert_eq(profd_upload_add_label(u, "service", "v", &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "twice"));
    cr_assert_eq(profd_upload_add_build(u, "xyz", "n", NULL, NULL), PROFD_REFUSED);
    cr_assert_eq(profd_upload_add_build(u, "abcd0123", "n", NULL, &e), PROFD_REFUSED);
    for (int i = 0; i < 63; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%d", i);
        cr_assert_eq(profd_upload_add_label(u, name, "v", NULL), PROFD_OK);
    }
    cr_assert_eq(profd_upload_add_label(u, "one_too_many", "v", &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "64"));
    const uint32_t down[] = {3, 1}, one[] = {1};
    const uint64_t ticks[] = {1, 1}, zero[] = {0};
    const struct profd_histogram bad[] = {
        {1, 10, 100, 1, 0, 10, one, ticks},  {0, 0, 100, 0, 0, 10, one, ticks},   {0, 10, 0, 1, 0, 10, one, ticks},
        {0, 10, 100, 1, 10, 10, one, ticks}, {0, 10, 100, 2, 0, 10, down, ticks}, {0, 10, 100, 1, 0, 10, one, zero},
        {0, 1, 100, 1, 0, 10, one, ticks},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(profd_upload_add_histogram(u, &bad[i], NULL), PROFD_REFUSED, "histogram %zu", i);
    }
    const struct profd_arc arc = {0, 5, 1, 1, 1};
    cr_assert_eq(profd_upload_add_arc(u, &arc, &e), PROFD_REFUSED);
    free(long_value);
    profd_upload_free(u);
}

Test(client_upload, two_senders_differ_and_carry_the_time)
{
    struct profd_id a, b;
    cr_assert_eq(profd_id_make(&a, NULL), PROFD_OK);
    cr_assert_eq(profd_id_make(&b, NULL), PROFD_OK);
    cr_assert_neq(memcmp(a.sender, b.sender, sizeof a.sender), 0);
    cr_assert_leq(memcmp(a.sender, b.sender, 6), 0, "ordered by time");
    cr_assert_eq(a.sequence, 0);
}

/* Two clocks; a stack that is cut, one with unknown outer frames, one outside. */
Test(client_upload, counts_are_added_with_their_stacks)
{
    struct counts_tree trees[] = {{99, "seconds", 's', 0, 4}, {250, "seconds", 's', 4, 3}};
    uint8_t depth[] = {0, 1, 2, 1, 0, 1, 0}, kind[] = {0, 0, 1, 1, 0, 1, 0}; /* COUNTS_NODE_RETURN, COUNTS_NODE_PC */
    uint32_t build[] = {0, 0, 0, 0, 0, 0, COUNTS_NOWHERE};
    uint64_t address[] = {0x10, 0x20, 0x30, 0x28, 0x10, 0x12, COUNTS_FRAME_INCOMPLETE}, ticks[] = {0, 2, 3, 4, 0, 5, 6};
    const struct counts c = {.tree_count = 2,
                             .node_count = 7,
                             .trees = trees,
                             .node_depth = depth,
                             .node_kind = kind,
                             .node_build = build,
                             .node_address = address,
                             .node_ticks = ticks};
    struct profd_upload *u;
    struct profd_id id = {.sequence = 1};
    struct message m;
    struct counts back;
    struct frame_header f;
    uint8_t *frame;
    size_t size;
    cr_assert_eq(profd_upload_new(&u, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_build(u, "abcd0123", "/bin/x", NULL, NULL), PROFD_OK);
    cr_assert_eq(upload_add_counts(u, &c, NULL), PROFD_OK);
    cr_assert_eq(upload_encode(u, &id, &frame, &size, NULL), PROFD_OK);
    cr_assert_eq(frame_decode(frame, &f, NULL), PROFD_OK);
    cr_assert_eq(message_decode(f.type, frame + FRAME_HEADER_SIZE, f.length, &m, NULL), PROFD_OK);
    cr_assert_eq(counts_decode(m.as.upload.counts.data, m.as.upload.counts.size, 1, &back, NULL), PROFD_OK);
    cr_assert(back.tree_count == 2 && back.trees[1].rate == 250 && back.trees[1].used == 3 && back.node_count == 7);
    cr_assert(!memcmp(back.node_depth, depth, sizeof depth) && !memcmp(back.node_kind, kind, sizeof kind));
    cr_assert(!memcmp(back.node_build, build, sizeof build) && !memcmp(back.node_address, address, sizeof address));
    cr_assert_arr_eq(back.node_ticks, ticks, sizeof ticks);
    counts_done(&back);
    message_done(&m);
    free(frame);
    profd_upload_free(u);
}
