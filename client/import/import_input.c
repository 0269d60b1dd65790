#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "import/import_any_internal.h"
#include "proto/deflate.h"

enum profd_status import_input_open(const char *path, struct import_input *in, struct profd_error *e)
{
    const bool is_standard = strcmp(path, "-") == 0;
    struct stat s;
    struct timespec t = {.tv_sec = 0};
    enum profd_status status = PROFD_OK;
    *in = (struct import_input){.fd = is_standard ? STDIN_FILENO
                                                  : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    FAIL_IF(in->fd < 0, e, PROFD_NO_INPUT, "cannot open: %s", strerror(errno));
    if (fstat(in->fd, &s) != 0) {
        status = profd_error_set(e, PROFD_IO, "cannot stat: %s", strerror(errno));
    } else if (S_ISREG(s.st_mode)) {
        in->size = (uint64_t)s.st_size;
        in->ended = s.st_size == 0; /* files that the kernel generates on reading are no profiles */
        t = s.st_mtim;
    } else if (!is_standard) {
        status = profd_error_set(e, PROFD_REFUSED, "not a regular file (- is standard input)");
    } else {
        clock_gettime(CLOCK_REALTIME, &t);
    }
    in->time = t.tv_sec > 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
    in->capacity = IMPORT_INPUT_PEEK;
    in->buffer = status == PROFD_OK ? malloc(in->capacity) : NULL;
    if (status == PROFD_OK && !in->buffer) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to read a file");
    }
    if (status != PROFD_OK) {
        import_input_close(in);
    }
    return status;
}

void import_input_close(struct import_input *in)
{
    if (in->fd > STDIN_FILENO) {
        close(in->fd);
    }
    free(in->buffer);
    *in = (struct import_input){.fd = -1};
}

/* Appends at least one byte to the unread data, unless the input ends. */
static enum profd_status input_fill(struct import_input *in, struct profd_error *e)
{
    for (;;) {
        ssize_t n = read(in->fd, in->buffer + in->have, in->capacity - in->have);
        if (n >= 0) {
            in->have += (size_t)n;
            in->ended = n == 0;
            return PROFD_OK;
        }
        FAIL_IF(errno != EINTR, e, PROFD_IO, "cannot read: %s", strerror(errno));
    }
}

enum profd_status import_input_peek(struct import_input *in, const uint8_t **bytes, size_t *n, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && !in->ended && in->have < IMPORT_INPUT_PEEK) {
        status = input_fill(in, e);
    }
    *bytes = in->buffer;
    *n = in->have;
    return status;
}

/* Moves the unread data to the beginning of the buffer; doubles the buffer if it is full. */
static bool input_widen(struct import_input *in, size_t most)
{
    if (in->at > 0) {
        memmove(in->buffer, in->buffer + in->at, in->have - in->at);
        in->have -= in->at;
        in->at = 0;
    }
    if (in->have < in->capacity) {
        return true;
    }
    size_t capacity = in->capacity * 2 < most ? in->capacity * 2 : most;
    uint8_t *buffer = capacity > in->capacity ? realloc(in->buffer, capacity) : NULL;
    if (!buffer) {
        return false;
    }
    in->buffer = buffer;
    in->capacity = capacity;
    return true;
}

enum profd_status import_input_each_line(struct import_input *in, import_line *each, void *context,
                                         struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (uint64_t number = 1; status == PROFD_OK; number++) {
        size_t looked = 0;
        const uint8_t *end = NULL;
        while (status == PROFD_OK) {
            end = memchr(in->buffer + in->at + looked, '\n', in->have - in->at - looked);
            looked = in->have - in->at;
            if (end || in->ended) {
                break;
            }
            FAIL_IF(looked >= IMPORT_LINE_MAX || !input_widen(in, IMPORT_LINE_MAX + 1), e, PROFD_TOO_LARGE,
                    "line %" PRIu64 " has more than %zu bytes", number, IMPORT_LINE_MAX);
            status = input_fill(in, e);
        }
        if (status != PROFD_OK || (!end && looked == 0)) {
            break;
        }
        size_t n = end ? (size_t)(end - (in->buffer + in->at)) : looked, cut = n;
        const char *line = (const char *)in->buffer + in->at;
        if (cut > 0 && line[cut - 1] == '\r') {
            cut--;
        }
        status = each(context, line, cut, number, e);
        in->at += n + (end != NULL);
    }
    return status;
}

enum profd_status import_input_take_all(struct import_input *in, size_t max, uint8_t **bytes, size_t *n,
                                        struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && !in->ended) {
        FAIL_IF(in->have > max || (in->have == in->capacity && !input_widen(in, max + 1)), e, PROFD_TOO_LARGE,
                "more than %zu bytes, the limit", max);
        status = input_fill(in, e);
    }
    TRY(status);
    if (in->have >= 2 && in->buffer[0] == 0x1f && in->buffer[1] == 0x8b) {
        return deflate_gunzip(in->buffer, in->have, max, bytes, n, e);
    }
    *bytes = in->buffer;
    *n = in->have;
    in->buffer = NULL;
    in->capacity = in->have = in->at = 0;
    return PROFD_OK;
}
