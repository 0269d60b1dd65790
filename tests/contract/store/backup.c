/* A copy made while uploads go on, and pages given back. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/contract/store/upkeep_fixture.h"

static void put_some(struct fixture *f, uint32_t first, uint32_t n)
{
    struct made m;
    for (uint32_t i = first; i < first + n; i++) {
        make_counted(&m, 1, 1, i, MIDNIGHT + i * HOUR / 4, i);
        cr_assert_eq(put_counted(f, &m), STORE_STORED);
    }
}

/* What is in the copy, looked at as a database of its own. */
static void expect_copy(const char *path, uint64_t uploads)
{
    struct fixture copy = {.w = NULL};
    snprintf(copy.path, sizeof copy.path, "%s", path);
    OK(&copy, store_sqlite_open_writer(path, &copy.w, &copy.e));
    OK(&copy, store_sqlite_open_reader(path, &copy.r, &copy.e));
    cr_assert_eq(look_window(&copy, 0, 0).uploads, uploads);
    expect_clean(&copy);
    put_some(&copy, 5000, 1);
    store_close(copy.r);
    store_close(copy.w);
}

Test(store_backup, copy_is_whole_while_uploads_go_on)
{
    struct fixture f;
    struct store_backup *b;
    struct stat st;
    char path[90], part[100];
    uint64_t left = 1, before = UINT64_MAX;
    uint32_t next = 201;
    fixture_open(&f);
    put_some(&f, 1, 200);
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 40 * HOUR);
    snprintf(path, sizeof path, "%s/copy.db", f.directory);
    snprintf(part, sizeof part, "%s.part", path);
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    for (int steps = 0; left > 0; steps++) {
        cr_assert_lt(steps, 1000);
        cr_assert_neq(access(path, F_OK), 0, "not before it is whole");
        OK(&f, store_backup_step(b, 8000, &left, &f.e));
        if (left > 0 && next < 240) {
            put_some(&f, next++, 1);
        }
        if (next == 220) {
            compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 45 * HOUR);
        }
        cr_assert(left < before || next < 240, "it ends once uploads pause");
        before = left;
    }
    OK(&f, store_backup_step(b, 8000, &left, &f.e));
    cr_assert_eq(left, 0);
    store_backup_end(b);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0600);
    cr_assert_neq(access(part, F_OK), 0);
    expect_copy(path, next - 1);
    cr_assert_eq(look_window(&f, 0, 0).uploads, next - 1, "the original is as it was");
    expect_clean(&f);
    FAILS(&f, PROFD_CANT_CREATE, store_backup_begin(f.w, path, &b, &f.e));
    cr_assert(strstr(f.e.sentence, "exists already"), "%s", f.e.sentence);
    FAILS(&f, PROFD_CANT_CREATE, store_backup_begin(f.w, "/nowhere/at/all", &b, &f.e));
    fixture_close(&f);
}

Test(store_backup, copy_given_up_leaves_nothing)
{
    struct fixture f;
    struct store_backup *b;
    char path[90], part[100];
    uint64_t left;
    fixture_open(&f);
    put_some(&f, 1, 100);
    snprintf(path, sizeof path, "%s/copy.db", f.directory);
    snprintf(part, sizeof part, "%s.part", path);
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    OK(&f, store_backup_step(b, 8000, &left, &f.e));
    cr_assert_gt(left, 0);
    cr_assert_eq(access(part, F_OK), 0);
    store_backup_end(b);
    store_backup_end(NULL);
    cr_assert_neq(access(path, F_OK), 0);
    cr_assert_neq(access(part, F_OK), 0);
    /* Somebody takes the name meanwhile: it stays his. */
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    FILE *his = fopen(path, "w");
    cr_assert(his && fputs("his", his) >= 0 && fclose(his) == 0);
    enum profd_status status = PROFD_OK;
    for (left = 1; status == PROFD_OK && left > 0;) {
        status = store_backup_step(b, 1 << 20, &left, &f.e);
    }
    cr_assert_eq(status, PROFD_CANT_CREATE, "%s", f.e.sentence);
    store_backup_end(b);
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_size, 3);
    cr_assert_neq(access(part, F_OK), 0);
    put_some(&f, 200, 1);
    expect_clean(&f);
    fixture_close(&f);
}

/* What cannot be replaced under the name of the copy in progress is not touched. */
Test(store_backup, copy_leaves_what_belongs_to_another_program)
{
    struct fixture f;
    struct store_backup *b;
    char path[90], part[100], his[110];
    fixture_open(&f);
    put_some(&f, 1, 10);
    snprintf(path, sizeof path, "%s/copy.db", f.directory);
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(his, sizeof his, "%s/his", part);
    cr_assert(mkdir(part, 0700) == 0 && mkdir(his, 0700) == 0);
    FAILS(&f, PROFD_CANT_CREATE, store_backup_begin(f.w, path, &b, &f.e));
    cr_assert(access(his, F_OK) == 0 && access(path, F_OK) != 0, "%s", f.e.sentence);
    cr_assert(rmdir(his) == 0 && rmdir(part) == 0);
    expect_clean(&f);
    fixture_close(&f);
}

Test(store_backup, free_pages_are_given_back_in_slices)
{
    struct fixture f;
    struct store_totals before, after;
    struct store_progress p;
    int calls = 0;
    fixture_open(&f);
    put_some(&f, 1, 400);
    OK(&f, store_shrink(f.w, 1 << 20, &p, &f.e));
    cr_assert_not(p.more, "nothing is free");
    retire_all(&f, DAY, 0, MIDNIGHT + 30 * DAY);
    OK(&f, store_get_totals(f.r, &before, &f.e));
    cr_assert_gt(before.free_bytes, 30000);
    do {
        OK(&f, store_shrink(f.w, 8000, &p, &f.e));
        calls++;
    } while (p.more);
    cr_assert_gt(calls, 3);
    OK(&f, store_get_totals(f.r, &after, &f.e));
    cr_assert_eq(after.free_bytes, 0);
    cr_assert_eq(after.file_bytes, before.file_bytes - before.free_bytes);
    expect_clean(&f);
    fixture_close(&f);
}
