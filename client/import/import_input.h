/* A file, or standard input, read as it comes: its beginning can be looked at, then lines or everything taken. */
#ifndef PROFD_CLIENT_IMPORT_INPUT_H
#define PROFD_CLIENT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define IMPORT_INPUT_PEEK ((size_t)64 << 10)
#define IMPORT_LINE_MAX ((size_t)1 << 20) /* bytes of a line: names of C++ functions are long */

struct import_input {
    int fd;
    uint8_t *buffer; /* bytes that were read and not taken: [at, have) */
    size_t capacity, at, have;
    bool ended;
    uint64_t size; /* of the file; 0 of a pipe */
    uint64_t time; /* when the file was last written; now, if it is none; ns since 1970 */
};

/* "-" is standard input, which may be a pipe. NO_INPUT: cannot be opened; REFUSED: not a regular file. */
enum profd_status import_input_open(const char *path, struct import_input *in, struct profd_error *e);
void import_input_close(struct import_input *in);

/* The first bytes, at most IMPORT_INPUT_PEEK; fewer only if there are no more. IO. */
enum profd_status import_input_peek(struct import_input *in, const uint8_t **bytes, size_t *n, struct profd_error *e);

/* Calls each() with every line, without its end ("\n" or "\r\n") and numbered from 1; anything but PROFD_OK ends it.
 * TOO_LARGE: a longer line than IMPORT_LINE_MAX; IO. Memory O(line). */
typedef enum profd_status import_line(void *context, const char *line, size_t n, uint64_t number,
                                      struct profd_error *e);
enum profd_status import_input_each_line(struct import_input *in, import_line *each, void *context,
                                         struct profd_error *e);

/* All of it in a new block that the caller frees, inflated if it is gzip: TOO_LARGE above max bytes, before or after;
 * MALFORMED: damaged gzip. */
enum profd_status import_input_take_all(struct import_input *in, size_t max, uint8_t **bytes, size_t *n,
                                        struct profd_error *e);

/* Inflates one or several gzip members that fill in. As above; pure. */
enum profd_status import_inflate(const uint8_t *in, size_t n, size_t max, uint8_t **out, size_t *size,
                                 struct profd_error *e);

#endif
