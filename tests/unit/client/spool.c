/* The spool: what is in it is whole, ours, bounded, young, and in order. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/client.h"
#include "proto/frame.h"
#include "proto/limits.h"

#define NOW 1790000000000000000ull
#define DAY 86400000000000ull

static char directory[] = "/tmp/client_spool_XXXXXX";
static char path[64];

static void begin(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/a/spool", directory);
    setenv("PROFD_SPOOL", path, 1);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(client_spool, .init = begin, .fini = end);

static uint8_t *frame_make(size_t payload)
{
    uint8_t *frame = calloc(1, FRAME_HEADER_SIZE + payload);
    frame_encode(&(struct frame_header){(uint32_t)payload, FRAME_VERSION, FRAME_UPLOAD, 0, 0}, frame);
    return frame;
}

static struct spool *spool(uint64_t now)
{
    struct spool *s;
    struct profd_error e = {""};
    cr_assert_eq(spool_open(true, now, &s, &e), PROFD_OK, "%s", e.sentence);
    return s;
}

static void put(struct spool *s, uint8_t time, uint32_t sequence, size_t payload, enum profd_status expect)
{
    struct profd_id id = {.sender = {0, time, 3}, .sequence = sequence};
    struct profd_error e = {""};
    uint8_t *frame = frame_make(payload);
    const struct spool_object objects[] = {{"abcd", "/bin/with space"}, {"ef01", "/bin/line\nbreak"}};
    cr_assert_eq(spool_add(s, &id, objects, 2, frame, FRAME_HEADER_SIZE + payload, &e), expect, "%s", e.sentence);
    free(frame);
}

static size_t count(struct spool *s)
{
    struct spool_entry *entries;
    size_t n;
    cr_assert_eq(spool_list(s, &entries, &n, NULL), PROFD_OK);
    free(entries);
    return n;
}

Test(client_spool, absent_is_not_made_by_looking)
{
    struct spool *s;
    cr_assert_eq(spool_open(false, NOW, &s, NULL), PROFD_NOT_FOUND);
    cr_assert_neq(access(path, F_OK), 0);
}

Test(client_spool, what_goes_in_comes_out_oldest_first)
{
    struct spool *s = spool(NOW);
    struct stat st;
    put(s, 9, 1, 10, PROFD_OK);
    put(s, 2, 11, 20, PROFD_OK);
    put(s, 2, 2, 30, PROFD_OK);
    put(s, 2, 2, 30, PROFD_OK); /* the same id: once */
    struct spool_entry *entries;
    size_t n;
    cr_assert_eq(spool_list(s, &entries, &n, NULL), PROFD_OK);
    cr_assert_eq(n, 3);
    cr_assert_str_eq(entries[0].name, "000203000000000000000000-00000002.upload");
    cr_assert_str_eq(entries[1].name, "000203000000000000000000-0000000b.upload");
    cr_assert_str_eq(entries[2].name, "000903000000000000000000-00000001.upload");
    struct spool_upload u;
    cr_assert_eq(spool_read(s, entries[0].name, &u, NULL), PROFD_OK);
    cr_assert_eq(u.frame_size, FRAME_HEADER_SIZE + 30);
    cr_assert_eq(u.object_count, 1, "a path with a line break cannot be written");
    cr_assert_str_eq(u.objects[0].build_id, "abcd");
    cr_assert_str_eq(u.objects[0].path, "/bin/with space");
    spool_upload_done(&u);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0700);
    spool_remove(s, entries[0].name);
    spool_remove(s, entries[0].name);
    cr_assert_eq(count(s), 2);
    free(entries);
    spool_close(s);
}

Test(client_spool, never_more_than_its_limit)
{
    struct spool *s = spool(NOW);
    put(s, 1, 1, 40u << 20, PROFD_OK);
    put(s, 1, 2, 30u << 20, PROFD_FULL);
    put(s, 1, 3, 20u << 20, PROFD_OK);
    put(s, 1, 4, 5u << 20, PROFD_FULL);
    cr_assert_eq(count(s), 2);
    spool_close(s);
    s = spool(NOW); /* another process sees the same */
    put(s, 1, 5, 5u << 20, PROFD_FULL);
    spool_close(s);
}

static void age(const char *name, uint64_t time)
{
    char file[256];
    const struct timespec times[2] = {{(time_t)(time / 1000000000u), 0}, {(time_t)(time / 1000000000u), 0}};
    snprintf(file, sizeof file, "%s/%s", path, name);
    cr_assert_eq(utimensat(AT_FDCWD, file, times, 0), 0);
}

Test(client_spool, what_is_too_old_goes)
{
    struct spool *s = spool(NOW);
    put(s, 1, 1, 10, PROFD_OK);
    put(s, 1, 2, 10, PROFD_OK);
    age("000103000000000000000000-00000001.upload", NOW - 7 * DAY - DAY / 24);
    age("000103000000000000000000-00000002.upload", NOW - 7 * DAY + DAY / 24);
    char part[128];
    snprintf(part, sizeof part, "%s/.new-1-piece", path);
    close(open(part, O_CREAT | O_WRONLY, 0600));
    age(".new-1-piece", NOW - 2 * DAY);
    snprintf(part, sizeof part, "%s/somebody-elses", path);
    close(open(part, O_CREAT | O_WRONLY, 0600));
    age("somebody-elses", NOW - 90 * DAY);
    spool_close(s);
    s = spool(NOW);
    cr_assert_eq(spool_expired(s), 1);
    cr_assert_eq(count(s), 1);
    cr_assert_eq(access(part, F_OK), 0, "what is not ours stays");
    snprintf(part, sizeof part, "%s/.new-1-piece", path);
    cr_assert_neq(access(part, F_OK), 0);
    spool_close(s);
}

Test(client_spool, broken_files_are_not_uploads)
{
    struct spool *s = spool(NOW);
    put(s, 1, 1, 100, PROFD_OK);
    const char *name = "000103000000000000000000-00000001.upload";
    char file[256];
    struct stat st;
    snprintf(file, sizeof file, "%s/%s", path, name);
    cr_assert_eq(stat(file, &st), 0);
    for (off_t size = st.st_size - 1; size >= 0; size--) { /* every truncation */
        struct spool_upload u;
        cr_assert_eq(truncate(file, size), 0);
        cr_assert_eq(spool_read(s, name, &u, NULL), PROFD_MALFORMED, "cut to %ld bytes", (long)size);
    }
    cr_assert_eq(unlink(file), 0);
    cr_assert_eq(symlink("/etc/passwd", file), 0);
    cr_assert_eq(count(s), 0, "a symbolic link is no entry");
    struct spool_upload u;
    cr_assert_neq(spool_read(s, name, &u, NULL), PROFD_OK);
    cr_assert_eq(spool_read(s, "000103000000000000000000-00000009.upload", &u, NULL), PROFD_NOT_FOUND);
    spool_close(s);
}

Test(client_spool, one_delivers_at_a_time)
{
    struct spool *a = spool(NOW), *b = spool(NOW);
    cr_assert(spool_lock(a));
    cr_assert(!spool_lock(b));
    spool_close(a);
    cr_assert(spool_lock(b));
    spool_close(b);
}

Test(client_spool, a_directory_that_others_write_is_not_used)
{
    struct spool *s;
    struct profd_error e;
    spool_close(spool(NOW));
    cr_assert_eq(chmod(path, 0777), 0);
    cr_assert_eq(spool_open(true, NOW, &s, &e), PROFD_UNTRUSTED);
    cr_assert(strstr(e.sentence, path));
    cr_assert_eq(chmod(path, 0700), 0);
    char link[96];
    snprintf(link, sizeof link, "%s/link", directory);
    cr_assert_eq(symlink(path, link), 0);
    setenv("PROFD_SPOOL", link, 1);
    cr_assert_neq(spool_open(true, NOW, &s, NULL), PROFD_OK, "nor a symbolic link");
}

Test(client_spool, where_it_is)
{
    char out[256];
    unsetenv("PROFD_SPOOL");
    setenv("XDG_STATE_HOME", "/x/state", 1);
    cr_assert_eq(profd_spool_directory(out, sizeof out, NULL), PROFD_OK);
    cr_assert_str_eq(out, geteuid() == 0 ? "/var/spool/profd" : "/x/state/profd/spool");
    cr_assert_eq(profd_spool_directory(out, 5, NULL), PROFD_UNAVAILABLE);
}
