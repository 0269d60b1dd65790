/* The file of runs: what it says after stops, kills, damage, and thousands of runs. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writer/upkeep_job.h"

static char directory[64];
static int fd = -1;

static void setup(void)
{
    snprintf(directory, sizeof directory, "/tmp/profd-runs-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
}

static void teardown(void)
{
    char command[96];

    close(fd);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(run_times, .init = setup, .fini = teardown);

/* A run from one time to another; the number of gaps before it. */
static size_t run(int64_t from, int64_t to, struct downtime *out)
{
    struct run_times *r = run_times_open(fd, from);

    cr_assert_not_null(r);
    *out = *run_times_get_downtime(r);
    run_times_begin(r);
    if (to) {
        run_times_beat(r, to);
    }
    run_times_close(r);
    return out->count;
}

Test(run_times, a_start_that_fails_is_no_run)
{
    struct downtime d;

    cr_assert_eq(run(100, 200, &d), 0);
    run_times_close(run_times_open(fd, 300));
    cr_assert_eq(run(400, 500, &d), 1);
    cr_assert(d.gaps[0].from == 200 && d.gaps[0].to == 400);
}

Test(run_times, gaps_lie_between_runs)
{
    struct downtime d;

    cr_assert_eq(run(100, 200, &d), 0, "nothing is known of what was before the first run");
    cr_assert_eq(run(300, 0, &d), 1);
    cr_assert(d.gaps[0].from == 200 && d.gaps[0].to == 300);
    cr_assert_eq(run(500, 600, &d), 2, "a killed run was last seen at its start");
    cr_assert(d.gaps[1].from == 300 && d.gaps[1].to == 500);
    cr_assert_eq(run(550, 560, &d), 2, "the clock was set back");
    cr_assert_eq(run(700, 800, &d), 3);
    cr_assert(d.gaps[2].from == 600 && d.gaps[2].to == 700);
}

Test(run_times, a_later_write_to_the_database_shows_that_it_ran)
{
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
    const int file = openat(fd, "profd.db-wal", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    struct downtime d;

    cr_assert_eq(run(1000000000, 0, &d), 0);
    cr_assert_eq(futimens(file, times), 0);
    cr_assert_eq(run(9000000000, 0, &d), 1);
    cr_assert(d.gaps[0].from >= 5000000000 && d.gaps[0].from < 6000000000, "%ld", (long)d.gaps[0].from);
    close(file);
}

Test(run_times, the_latest_gaps_are_kept)
{
    const int64_t written = 4090, runs = 4110; /* more than are kept before older ones go */
    struct downtime d;
    struct stat st;
    int file = openat(fd, "runs", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    for (int64_t i = 1; i <= written; i++) { /* what those runs would leave */
        dprintf(file, "%019" PRId64 " %019" PRId64 "\n", 10 * i, 10 * i + 5);
    }
    close(file);
    for (int64_t i = written + 1; i <= runs; i++) {
        (void)run(10 * i, 10 * i + 5, &d);
    }
    cr_assert_eq(d.count, DOWNTIME_MAX);
    cr_assert(d.gaps[DOWNTIME_MAX - 1].from == 10 * (runs - 1) + 5 && d.gaps[DOWNTIME_MAX - 1].to == 10 * runs);
    cr_assert(d.gaps[0].to - d.gaps[0].from == 5);
    cr_assert_eq(fstatat(fd, "runs", &st, 0), 0);
    cr_assert_lt(st.st_size, written * 40, "it does not grow for ever");
}
