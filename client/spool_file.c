/* One file of the spool: written whole or not at all, read with suspicion. */
#include "client/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/limits.h"

#define MAGIC "profd-spool 1\n"

static void name_format(const struct profd_id *id, char name[64])
{
    char sender[2 * PROFD_SENDER_SIZE + 1];
    for (size_t i = 0; i < PROFD_SENDER_SIZE; i++) {
        (void)snprintf(sender + 2 * i, 3, "%02x", id->sender[i]);
    }
    (void)snprintf(name, 64, "%s-%08" PRIx32 ".upload", sender, id->sequence);
}

static enum profd_status space_check(struct spool *s, uint64_t more, struct profd_error *e)
{
    uint64_t used = 0;
    enum profd_status status = spool_used(s, &used, e);
    if (status == PROFD_OK && used + more > LIMIT_SPOOL_BYTES) {
        return profd_error_set(e, PROFD_FULL,
                               "the spool %s holds %" PRIu64 " bytes; %" PRIu64 " more would exceed its %u",
                               spool_path(s), used, more, LIMIT_SPOOL_BYTES);
    }
    return status;
}

static bool bytes_write(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR) {
            return false;
        }
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

static bool file_write(int fd, const struct spool_object *objects, size_t object_count, const uint8_t *frame,
                       size_t size)
{
    bool good = bytes_write(fd, MAGIC, strlen(MAGIC));
    for (size_t i = 0; i < object_count && good; i++) {
        if (strpbrk(objects[i].path, "\r\n") == NULL) {
            good = dprintf(fd, "object %s %s\n", objects[i].build_id, objects[i].path) > 0;
        }
    }
    return good && bytes_write(fd, "\n", 1) && bytes_write(fd, frame, size) && fsync(fd) == 0;
}

enum profd_status spool_add(struct spool *s, const struct profd_id *id, const struct spool_object *objects,
                            size_t object_count, const uint8_t *frame, size_t frame_size, struct profd_error *e)
{
    char name[64], part[128];
    uint64_t size = strlen(MAGIC) + 1 + frame_size;
    for (size_t i = 0; i < object_count; i++) {
        size += strlen("object  \n") + strlen(objects[i].build_id) + strlen(objects[i].path);
    }
    enum profd_status status = space_check(s, size, e);
    if (status != PROFD_OK) {
        return status;
    }
    name_format(id, name);
    (void)snprintf(part, sizeof part, ".new-%ld-%s", (long)getpid(), name);
    int fd = openat(spool_fd(s), part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot write to the spool %s: %s", spool_path(s),
                               strerror(errno));
    }
    bool good = file_write(fd, objects, object_count, frame, frame_size);
    int why = errno;
    if (close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && renameat(spool_fd(s), part, spool_fd(s), name) != 0) {
        good = false;
        why = errno;
    }
    if (!good) {
        unlinkat(spool_fd(s), part, 0);
        return profd_error_set(e, why == ENOSPC || why == EDQUOT ? PROFD_FULL : PROFD_IO,
                               "cannot write to the spool %s: %s", spool_path(s), strerror(why));
    }
    spool_grew(s, size);
    (void)fsync(spool_fd(s)); /* the name too; without it the file may be missing after a power loss, never half */
    return PROFD_OK;
}

static enum profd_status file_read(struct spool *s, const char *name, char **out, size_t *size, struct profd_error *e)
{
    struct stat st;
    int fd = openat(spool_fd(s), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)LIMIT_SPOOL_BYTES) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
            return profd_error_set(e, PROFD_MALFORMED, "%s in the spool is not a spooled upload", name);
        }
        return profd_error_set(e, why == ENOENT ? PROFD_NOT_FOUND : PROFD_IO, "cannot open %s in the spool: %s", name,
                               strerror(why));
    }
    size_t n = (size_t)st.st_size, got = 0;
    char *bytes = malloc(n + 1);
    while (bytes && got < n) {
        ssize_t more = pread(fd, bytes + got, n - got, (off_t)got);
        if (more == 0 || (more < 0 && errno != EINTR)) {
            break;
        }
        got += more > 0 ? (size_t)more : 0;
    }
    close(fd);
    if (!bytes || got < n) {
        free(bytes);
        return profd_error_set(e, bytes ? PROFD_IO : PROFD_NO_MEMORY, "cannot read %s in the spool", name);
    }
    bytes[n] = '\0';
    *out = bytes;
    *size = n;
    return PROFD_OK;
}

/* Cuts the lines before the empty one into objects; what follows is the frame. */
static bool file_parse(char *bytes, size_t n, struct spool_upload *u)
{
    size_t magic = strlen(MAGIC), room = 0;
    if (n < magic || memcmp(bytes, MAGIC, magic) != 0) {
        return false;
    }
    char *p = bytes + magic, *end = bytes + n;
    for (;;) {
        char *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end) {
            return false;
        }
        *line_end = '\0';
        if (line_end == p) {
            u->frame = (const uint8_t *)line_end + 1;
            u->frame_size = (size_t)(end - line_end - 1);
            break;
        }
        char *space = strncmp(p, "object ", 7) == 0 ? strchr(p + 7, ' ') : NULL;
        if (!space || u->object_count >= LIMIT_BUILDS) {
            return false;
        }
        *space = '\0';
        if (u->object_count == room) {
            room = room ? 2 * room : 4;
            struct spool_object *grown = realloc(u->objects, room * sizeof *grown);
            if (!grown) {
                return false;
            }
            u->objects = grown;
        }
        u->objects[u->object_count++] = (struct spool_object){p + 7, space + 1};
        p = line_end + 1;
    }
    struct frame f;
    return u->frame_size >= FRAME_HEADER_SIZE && frame_decode(u->frame, &f, NULL) == PROFD_OK &&
           f.type == FRAME_UPLOAD && frame_fds(&f) == 0 && u->frame_size - FRAME_HEADER_SIZE == f.length;
}

enum profd_status spool_read(struct spool *s, const char *name, struct spool_upload *out, struct profd_error *e)
{
    char *bytes = NULL;
    size_t n = 0;
    enum profd_status status = file_read(s, name, &bytes, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct spool_upload u = {.block = bytes};
    if (!file_parse(bytes, n, &u)) {
        spool_upload_done(&u);
        return profd_error_set(e, PROFD_MALFORMED, "%s in the spool is not a spooled upload", name);
    }
    *out = u;
    return PROFD_OK;
}

void spool_upload_done(struct spool_upload *u)
{
    free(u->objects);
    free(u->block);
    *u = (struct spool_upload){.object_count = 0};
}
