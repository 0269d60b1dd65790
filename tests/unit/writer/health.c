/* What the loop knows of the store: failing is for good and told once, a full disk passes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer/health.h"
#include "writer/database.h"

static struct health *make(void)
{
    struct health *h = NULL;

    cr_assert_eq(health_new("/var/lib/profd", &h, NULL), PROFD_OK);
    return h;
}

static void publish(struct health *h, bool failed, bool damaged, bool full, const char *why)
{
    static struct store_health now;

    now.changes++;
    now.failed = failed;
    now.damaged = damaged;
    now.full = full;
    profd_error_set(&now.error, PROFD_IO, "%s", why);
    health_publish(h, &now);
}

Test(health, nothing_published_is_nothing_changed)
{
    struct health *h = make();

    cr_assert_eq(health_update(h, false), HEALTH_SAME);
    cr_assert_eq(health_check(h, NULL), PROFD_OK);
    cr_assert_null(health_get_failure(h));
    cr_assert_null(health_get_full(h));
    health_free(h);
}

Test(health, a_failure_is_told_once_and_stays)
{
    struct profd_error e = {""};
    struct health *h = make();

    publish(h, true, false, false, "disk gone; mount it");
    cr_assert_eq(health_check(h, NULL), PROFD_OK, "the loop has not looked yet");
    cr_assert_eq(health_update(h, false), HEALTH_FAILED);
    cr_assert_eq(health_update(h, false), HEALTH_SAME);
    publish(h, true, false, false, "disk gone again");
    cr_assert_eq(health_update(h, false), HEALTH_SAME);
    cr_assert_eq(health_check(h, &e), PROFD_IO);
    cr_assert_str_eq(e.sentence,
                     "the store failed and nothing is written any more: disk gone; mount it, then start profd again");
    cr_assert_str_eq(health_get_failure(h), e.sentence);
    health_free(h);
}

Test(health, damage_is_a_failure_with_a_name)
{
    struct health *h = make();

    publish(h, true, true, false, "page 7");
    cr_assert_eq(health_update(h, false), HEALTH_DAMAGED);
    cr_assert_str_eq(health_get_failure(h), "the store failed and nothing is written any more: page 7; start profd "
                                            "again: it checks the whole file and puts a damaged one aside");
    cr_assert_eq(health_check(h, NULL), PROFD_IO);
    health_free(h);
}

Test(health, a_full_disk_passes)
{
    struct health *h = make();

    publish(h, false, false, true, "no space left");
    cr_assert_eq(health_update(h, false), HEALTH_SAME);
    cr_assert_str_eq(health_get_full(h), "no space left");
    cr_assert_eq(health_check(h, NULL), PROFD_OK, "the next write is tried all the same");
    publish(h, false, false, false, "");
    cr_assert_eq(health_update(h, true), HEALTH_SAME);
    cr_assert_not_null(health_get_full(h), "a write into what the reserve freed says nothing about space");
    publish(h, false, false, false, "");
    cr_assert_eq(health_update(h, false), HEALTH_SAME);
    cr_assert_null(health_get_full(h));
    health_free(h);
}

Test(health, a_disk_that_has_space_again_is_found_by_looking)
{
    char directory[] = "/tmp/profd-space-XXXXXX", path[64];
    struct space *space = NULL;
    struct health *h = make();
    uint64_t bytes = 1;

    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(space_open(&(struct space_config){.state_dir = directory, .user_share = 100}, &space, NULL), PROFD_OK);
    cr_assert_eq(space_get_reserve(space, &bytes), RESERVE_GIVEN_UP, "none is held before space_keep");
    cr_assert(space_look(space, h));
    cr_assert_not_null(strstr(health_get_full(h), directory));
    space_keep(space);
    if (space_get_reserve(space, &bytes) == RESERVE_HELD) { /* this machine's disk has room */
        cr_assert_gt(bytes, 0);
        cr_assert_not(space_look(space, h));
        cr_assert_null(health_get_full(h));
        cr_assert(space_give_up(space));
        cr_assert_not(space_give_up(space), "there is nothing left to give");
    }
    space_close(space);
    health_free(h);
    snprintf(path, sizeof path, "rm -rf %s", directory);
    cr_assert_eq(system(path), 0);
}

Test(state_dir, a_second_daemon_is_refused)
{
    char directory[] = "/tmp/profd-state-XXXXXX", path[64];
    int lock = -1, folder = -1, second = -1, second_folder = -1;
    struct profd_error e = {""};

    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(state_dir_lock(directory, &lock, &folder, &e), PROFD_OK);
    cr_assert_eq(state_dir_lock(directory, &second, &second_folder, &e), PROFD_BUSY);
    cr_assert_not_null(strstr(e.sentence, directory));
    cr_assert_eq(second, -1);
    close(lock), close(folder);
    cr_assert_eq(state_dir_lock(directory, &second, &second_folder, &e), PROFD_OK);
    close(second), close(second_folder);
    snprintf(path, sizeof path, "rm -rf %s", directory);
    cr_assert_eq(system(path), 0);
}

Test(state_dir, paths_are_bounded)
{
    char path[20];

    cr_assert_eq(state_dir_database_path("/var/lib", path, sizeof path, NULL), PROFD_OK);
    cr_assert_str_eq(path, "/var/lib/profd.db");
    cr_assert_eq(state_dir_database_path("/var/lib/profd", path, sizeof path, NULL), PROFD_TOO_LARGE);
}
