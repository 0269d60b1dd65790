/* The 16 random groups of processes that sums keep apart. */
#include <stdio.h>
#include <string.h>

#include "ingest/validate.h"
#include "tests/unit/ingest/bed.h"

static struct bed b;
static struct arena *arena;

static void enter(void)
{
    bed_open();
    bed_init(&b);
    arena = arena_new(0);
}

static void leave(void)
{
    arena_free(arena);
    bed_done(&b);
    bed_close();
}

TestSuite(ingest_process, .init = enter, .fini = leave);

static uint32_t group_of(uint32_t uid)
{
    struct store_upload u;
    struct store_build *builds;
    struct profd_error e;
    cr_assert_eq(validate_upload(uid, NOON, b.m, arena, &u, &builds, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_lt(u.group, 16);
    return u.group;
}

Test(ingest_process, all_uploads_of_a_process_are_in_its_group)
{
    uint8_t process[16] = {9, 8, 7};
    b.m->process = (struct message_bytes){process, sizeof process};
    uint32_t group = group_of(5);
    for (uint32_t i = 2; i < 200; i++) {
        b.m->sequence = i;
        cr_assert_eq(group_of(5), group);
    }
}

/* 1,600 of each kind: every group gets 100 ± 5 standard errors. */
Test(ingest_process, processes_uploads_users_and_hosts_are_spread_over_the_groups)
{
    uint8_t process[16] = {0};
    char host[33];
    for (int kind = 0; kind < 4; kind++) {
        unsigned seen[16] = {0};
        b.m->process = (struct message_bytes){process, kind == 1 ? 0 : sizeof process};
        for (uint32_t i = 1; i <= 1600; i++) {
            if (kind == 0) {
                memcpy(process, &i, sizeof i);
            } else if (kind == 1) {
                b.m->sequence = i;
            } else if (kind == 3) {
                snprintf(host, sizeof host, "%032x", i);
            }
            b.m->host = kind == 3 ? host : "";
            seen[group_of(kind == 2 ? i : 5)]++;
        }
        for (int g = 0; g < 16; g++) {
            cr_assert(seen[g] > 50 && seen[g] < 150, "kind %d, group %d: %u of 1600", kind, g, seen[g]);
        }
    }
}

Test(ingest_process, too_many_bytes_are_refused)
{
    struct store_upload u;
    struct store_build *builds;
    struct profd_error e;
    uint8_t process[17] = {1};
    b.m->process = (struct message_bytes){process, sizeof process};
    cr_assert_eq(validate_upload(1, NOON, b.m, arena, &u, &builds, &e), PROFD_TOO_LARGE);
    cr_assert(strstr(e.sentence, "at most 16 bytes, not 17"), "%s", e.sentence);
}
