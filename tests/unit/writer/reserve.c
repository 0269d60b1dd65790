/* Space that is kept for removing: a file whose blocks are allocated. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "writer/health.h"

static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/profd-reserve-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char path[80];

    snprintf(path, sizeof path, "%s/reserve", folder);
    unlink(path);
    rmdir(folder);
}

TestSuite(writer_reserve, .init = make_folder, .fini = remove_folder);

static uint64_t blocks(const struct reserve *r)
{
    struct stat st;

    return stat(r->path, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

Test(writer_reserve, its_blocks_are_there_and_an_eighth_of_the_disk_at_most)
{
    struct reserve r;
    struct statvfs fs;

    cr_assert_eq(reserve_open(&r, folder, NULL), PROFD_OK);
    cr_assert_eq(r.state, RESERVE_GIVEN_UP, "nothing was there");
    reserve_take(&r);
    cr_assert_eq(r.state, RESERVE_HELD, "%s", r.why.sentence);
    cr_assert_geq(blocks(&r), r.bytes);
    cr_assert_eq(statvfs(folder, &fs), 0);
    cr_assert_leq(r.bytes, (uint64_t)fs.f_blocks * fs.f_frsize / 8);
    cr_assert_leq(r.bytes, RESERVE_BYTES);
    cr_assert_str_eq(reserve_name(r.state), "held");
}

Test(writer_reserve, is_given_up_once_and_taken_again)
{
    struct reserve r;

    reserve_open(&r, folder, NULL);
    reserve_take(&r);
    cr_assert(reserve_give_up(&r));
    cr_assert_eq(blocks(&r), 0);
    cr_assert_not(reserve_give_up(&r), "there is nothing to give");
    reserve_take(&r);
    cr_assert_eq(r.state, RESERVE_HELD);
}

Test(writer_reserve, of_an_earlier_process_is_found_unless_it_has_holes)
{
    struct reserve r, later;

    reserve_open(&r, folder, NULL);
    reserve_take(&r);
    reserve_open(&later, folder, NULL);
    cr_assert_eq(later.state, RESERVE_HELD);
    cr_assert_eq(later.bytes, r.bytes);
    reserve_give_up(&r);
    cr_assert_eq(truncate(r.path, 1 << 20), 0);
    reserve_open(&later, folder, NULL);
    cr_assert_eq(later.state, RESERVE_GIVEN_UP, "a sparse file keeps no space");
}

Test(writer_reserve, where_no_file_can_be_made_it_is_missing_and_says_why)
{
    struct reserve r;
    char path[80];

    snprintf(path, sizeof path, "%s/reserve", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    reserve_open(&r, folder, NULL);
    reserve_take(&r);
    cr_assert_eq(r.state, RESERVE_MISSING);
    cr_assert_not_null(strstr(r.why.sentence, path));
    cr_assert_not(reserve_give_up(&r));
    rmdir(path);
}
