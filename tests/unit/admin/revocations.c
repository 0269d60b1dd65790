/* The file of revoked keys and used tokens: nothing that was answered is forgotten, wherever a write was cut off. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/revocations.h"

#define NOW INT64_C(1700000000000000000)

static char directory[64], path[96];

static void setup(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/profd-revocations-XXXXXX");
    cr_assert(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/revocations", directory);
}

static void teardown(void)
{
    unlink(path);
    rmdir(directory);
}

TestSuite(revocations, .init = setup, .fini = teardown);

static struct revocations *open_file(void)
{
    struct revocations *r = NULL;
    struct profd_error e = {""};

    cr_assert_eq(revocations_open(directory, &r, &e), PROFD_OK, "%s", e.sentence);
    return r;
}

static void write_hash(enum revocations_kind kind, int byte)
{
    struct revocations *r = open_file();
    uint8_t hash[REVOCATIONS_HASH_SIZE];

    memset(hash, byte, sizeof hash);
    cr_assert_eq(revocations_write(r, kind, hash, 1, NOW, NULL), PROFD_OK);
    revocations_close(r);
}

static bool has(enum revocations_kind kind, int byte)
{
    struct revocations *r = open_file();
    uint8_t hash[REVOCATIONS_HASH_SIZE];
    bool found;

    memset(hash, byte, sizeof hash);
    found = revocations_has(r, kind, hash);
    revocations_close(r);
    return found;
}

Test(revocations, what_was_written_is_read_with_its_time)
{
    struct revocations *r;
    struct stat st;
    size_t n;

    write_hash(REVOCATIONS_KEY, 0xab);
    write_hash(REVOCATIONS_TOKEN, 0xcd);
    cr_assert(has(REVOCATIONS_KEY, 0xab) && has(REVOCATIONS_TOKEN, 0xcd));
    cr_assert(!has(REVOCATIONS_KEY, 0xcd) && !has(REVOCATIONS_TOKEN, 0xab), "a key is no token");
    r = open_file();
    cr_assert(revocations_keys(r, 0, &n)[0] == 0xab && n == 1 && revocations_times(r)[0] == NOW);
    (void)revocations_keys(r, 1, &n);
    cr_assert_eq(n, 0);
    revocations_close(r);
    cr_assert(!stat(path, &st) && (st.st_mode & 0777) == 0600);
}

Test(revocations, a_write_that_was_cut_off_anywhere_hides_nothing)
{
    for (int kind = REVOCATIONS_KEY; kind <= REVOCATIONS_TOKEN; kind++) {
        off_t whole;
        struct stat st;

        unlink(path);
        write_hash((enum revocations_kind)kind, 0x12);
        cr_assert(!stat(path, &st));
        whole = st.st_size;
        for (off_t cut = 0; cut <= whole; cut++) {
            unlink(path);
            write_hash(REVOCATIONS_KEY, 0x11);
            cr_assert(!stat(path, &st));
            write_hash((enum revocations_kind)kind, 0x12);
            cr_assert(!truncate(path, st.st_size + cut));
            write_hash(REVOCATIONS_KEY, 0x13);
            cr_assert(has(REVOCATIONS_KEY, 0x11) && has(REVOCATIONS_KEY, 0x13), "cut at %ld", (long)cut);
            cr_assert(cut < whole || has((enum revocations_kind)kind, 0x12));
        }
    }
}

Test(revocations, blocks_that_were_never_written_hide_nothing)
{
    struct stat st;

    write_hash(REVOCATIONS_KEY, 0x11);
    cr_assert(!stat(path, &st) && !truncate(path, st.st_size + 4096));
    write_hash(REVOCATIONS_KEY, 0x12);
    cr_assert(has(REVOCATIONS_KEY, 0x11) && has(REVOCATIONS_KEY, 0x12));
}

Test(revocations, other_lines_are_no_file_of_revocations)
{
    static const char *const lines[] = {"key 12 17\n", "keys\n", "token xy\n",
                                        "key 1212121212121212121212121212121212121212121212121212121212121212x17\n"};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        struct revocations *r;
        struct profd_error e;

        cr_assert(fd >= 0 && write(fd, lines[i], strlen(lines[i])) == (ssize_t)strlen(lines[i]) && !close(fd));
        cr_assert_eq(revocations_open(directory, &r, &e), PROFD_DAMAGED, "%s", lines[i]);
    }
}
