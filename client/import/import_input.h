/* Reads a file or standard input. The beginning can be inspected before the rest is read, by lines or completely. */
#ifndef PROFD_CLIENT_IMPORT_INPUT_H
#define PROFD_CLIENT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define IMPORT_INPUT_PEEK ((size_t)64 << 10)
#define IMPORT_LINE_MAX ((size_t)1 << 20) /* bytes of a line, because names of C++ functions are long */

struct import_input {
    int fd;
    uint8_t *buffer; /* unread bytes: [at, have) */
    size_t capacity, at, have;
    bool ended;
    uint64_t size; /* of the file; 0 of a pipe */
    uint64_t time; /* modification time of the file, or now if it is not a file; ns since 1970 */
};

/* Opens path. "-" is standard input, which may be a pipe. NO_INPUT: cannot be opened; REFUSED: not a regular file. */
enum profd_status import_input_open(const char *path, struct import_input *in, struct profd_error *e);
void import_input_close(struct import_input *in);

/* Returns the first bytes, IMPORT_INPUT_PEEK or all that there are. They stay unread. IO. */
enum profd_status import_input_peek(struct import_input *in, const uint8_t **bytes, size_t *n, struct profd_error *e);

/* Calls each with every line, without its end ("\n" or "\r\n"), numbered from 1; any status but PROFD_OK ends it.
 * TOO_LARGE: a line exceeds IMPORT_LINE_MAX; IO. Memory O(line). */
typedef enum profd_status import_line(void *context, const char *line, size_t n, uint64_t number,
                                      struct profd_error *e);
enum profd_status import_input_each_line(struct import_input *in, import_line *each, void *context,
                                         struct profd_error *e);

/* Reads everything into a new block, which the caller frees, inflated if it is gzip. TOO_LARGE: above max bytes,
 * compressed or not; MALFORMED: damaged gzip. */
enum profd_status import_input_take_all(struct import_input *in, size_t max, uint8_t **bytes, size_t *n,
                                        struct profd_error *e);

/* Inflates in, which consists of gzip members, into a new block. Statuses as above. Pure. */
enum profd_status import_inflate(const uint8_t *in, size_t n, size_t max, uint8_t **out, size_t *size,
                                 struct profd_error *e);

#endif
