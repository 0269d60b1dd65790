/* Uploads in the making: what they refuse, and how they are named. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profd.h"
#include "proto/limits.h"

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
