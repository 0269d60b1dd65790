#include "admin/revocations.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hashmap.h"
#include "proto/hex.h"

#define HASH REVOCATIONS_HASH_SIZE
#define FILE_MOST (64u << 20)
#define SECOND_NS INT64_C(1000000000)

struct revocations {
    int fd;
    struct hashmap seen; /* kind and hash → nothing */
    uint8_t *keys;
    int64_t *times; /* ns: when these were revoked */
    size_t key_count, key_capacity;
};

static const char *const words[] = {[REVOCATIONS_KEY] = "key ", [REVOCATIONS_TOKEN] = "token "};

static void make_entry(enum revocations_kind kind, const uint8_t *hash, uint8_t out[HASH + 1])
{
    out[0] = (uint8_t)kind;
    memcpy(out + 1, hash, HASH);
}

bool revocations_has(const struct revocations *r, enum revocations_kind kind, const uint8_t hash[HASH])
{
    uint8_t entry[HASH + 1];

    make_entry(kind, hash, entry);
    return hashmap_find(&r->seen, entry, sizeof entry) != NULL;
}

static bool reserve_key(struct revocations *r)
{
    const size_t more = r->key_capacity ? 2 * r->key_capacity : 64;
    void *larger;

    if (r->key_count < r->key_capacity) {
        return true;
    }
    larger = realloc(r->keys, more * HASH);
    if (!larger) {
        return false;
    }
    r->keys = larger;
    larger = realloc(r->times, more * sizeof *r->times);
    if (!larger) {
        return false;
    }
    r->times = larger;
    r->key_capacity = more;
    return true;
}

bool revocations_note(struct revocations *r, enum revocations_kind kind, const uint8_t hash[HASH], int64_t when)
{
    uint8_t entry[HASH + 1];

    make_entry(kind, hash, entry);
    if (hashmap_find(&r->seen, entry, sizeof entry)) {
        return true;
    }
    if ((kind == REVOCATIONS_KEY && !reserve_key(r)) || !hashmap_put(&r->seen, entry, sizeof entry, "", 1)) {
        return false;
    }
    if (kind == REVOCATIONS_KEY) {
        memcpy(r->keys + HASH * r->key_count, hash, HASH);
        r->times[r->key_count++] = when;
    }
    return true;
}

const uint8_t *revocations_keys(const struct revocations *r, uint64_t after, size_t *n)
{
    const size_t from = after < r->key_count ? (size_t)after : r->key_count;

    *n = r->key_count - from;
    return *n ? r->keys + HASH * from : (const uint8_t *)"";
}

const int64_t *revocations_times(const struct revocations *r)
{
    return r->times;
}

static bool read_hash(const char *digits, uint8_t out[HASH])
{
    for (size_t i = 0; i < HASH; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], 0};

        if (strspn(pair, "0123456789abcdef") != 2) {
            return false;
        }
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

/* Is it the beginning of a line with this word? That is a write that was cut off, and never answered. It may be empty:
 * blocks that were not written when the power failed hold NULs. */
static bool is_beginning(const char *line, const char *word)
{
    const size_t n = strlen(word), size = strlen(line);

    return size <= n + 2 * HASH && !strncmp(line, word, size < n ? size : n) &&
           (size <= n || !line[n + strspn(line + n, "0123456789abcdef")]);
}

/* "key HASH TIME" */
static enum profd_status read_line(struct revocations *r, const char *line, size_t number, struct profd_error *e)
{
    uint8_t hash[HASH];

    for (size_t kind = 0; kind < sizeof words / sizeof words[0]; kind++) {
        const size_t n = strlen(words[kind]);

        if (is_beginning(line, words[kind])) {
            return PROFD_OK;
        }
        if (!strncmp(line, words[kind], n) && read_hash(line + n, hash) && line[n + 2 * HASH] == ' ') {
            const int64_t seconds = strtol(line + n + 2 * HASH, NULL, 10);

            return revocations_note(r, (enum revocations_kind)kind, hash, seconds * SECOND_NS)
                       ? PROFD_OK
                       : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the file revocations");
        }
    }
    return profd_error_set(e, PROFD_DAMAGED, "line %zu of the file revocations in the state directory is none: %.60s",
                           number, line);
}

static enum profd_status read_all(struct revocations *r, struct profd_error *e)
{
    struct stat st;
    enum profd_status status = PROFD_OK;
    size_t got = 0, number = 0;
    char *text, *line, *end;

    if (fstat(r->fd, &st) || st.st_size > (off_t)FILE_MOST) {
        return profd_error_set(e, PROFD_IO,
                               "the file revocations in the state directory cannot be read, or is too long");
    }
    text = malloc((size_t)st.st_size + 1);
    if (!text) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the file revocations");
    }
    while (got < (size_t)st.st_size) {
        const ssize_t n = pread(r->fd, text + got, (size_t)st.st_size - got, (off_t)got);

        if (n <= 0) {
            free(text);
            return profd_error_set(e, PROFD_IO, "the file revocations in the state directory: %s",
                                   n ? strerror(errno) : "it became shorter");
        }
        got += (size_t)n;
    }
    text[got] = 0;
    for (line = text; !status && (end = memchr(line, '\n', got - (size_t)(line - text))) != NULL; line = end + 1) {
        *end = 0;
        status = read_line(r, line, ++number, e);
    }
    free(text);
    return status;
}

enum profd_status revocations_open(const char *state_dir, struct revocations **out, struct profd_error *e)
{
    char path[PATH_MAX];
    struct revocations *r = calloc(1, sizeof *r);
    enum profd_status status;

    if (!r) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the file revocations");
    }
    hashmap_init(&r->seen, 0);
    (void)snprintf(path, sizeof path, "%s/revocations", state_dir);
    r->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    status =
        r->fd < 0 ? profd_error_set(e, PROFD_CANT_CREATE, "cannot open %s: %s", path, strerror(errno)) : read_all(r, e);
    if (status) {
        revocations_close(r);
        return status;
    }
    *out = r;
    return PROFD_OK;
}

void revocations_close(struct revocations *r)
{
    if (!r) {
        return;
    }
    if (r->fd >= 0) {
        close(r->fd);
    }
    hashmap_clear(&r->seen);
    free(r->keys);
    free(r->times);
    free(r);
}

/* A line begins with a line end, because the one before may have been cut off. */
static enum profd_status write_one(const struct revocations *r, enum revocations_kind kind, const uint8_t *hash,
                                   int64_t now, struct profd_error *e)
{
    char line[128];
    char digits[2 * HASH + 1];

    hex_put(digits, hash, HASH);
    const size_t n =
        (size_t)snprintf(line, sizeof line, "\n%s%s %lld\n", words[kind], digits, (long long)(now / SECOND_NS));
    errno = ENOSPC; /* of a write that is cut off */
    return write(r->fd, line, n) == (ssize_t)n
               ? PROFD_OK
               : profd_error_set(e, errno == ENOSPC || errno == EDQUOT ? PROFD_FULL : PROFD_IO,
                                 "the file revocations in the state directory: %s", strerror(errno));
}

enum profd_status revocations_write(const struct revocations *r, enum revocations_kind kind, const uint8_t *hashes,
                                    size_t n, int64_t now, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < n && !status; i++) {
        status = write_one(r, kind, hashes + HASH * i, now, e);
    }
    if (!status && fsync(r->fd)) {
        status = profd_error_set(e, PROFD_IO, "the file revocations in the state directory: %s", strerror(errno));
    }
    return status;
}
