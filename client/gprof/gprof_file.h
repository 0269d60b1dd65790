/* Whole files in memory. */
#ifndef PROFD_CLIENT_GPROF_FILE_H
#define PROFD_CLIENT_GPROF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gprof_file {
    uint8_t *bytes; /* owned; a NUL stands behind them */
    size_t size;
    bool seekable;
};

/* Reads to the end, "-" from standard input; what cannot be read ends there, as for stdio. False with errno set if it
 * cannot be opened, or memory is out. */
bool gprof_file_read(const char *path, struct gprof_file *out);
void gprof_file_done(struct gprof_file *f);

/* All of it, however many times it takes. False with errno set. */
bool gprof_file_write_all(int fd, const void *bytes, size_t n);

/* Requests a buffer of one MiB for a pipe, so that its reader and its writer work at the same time. Does nothing for
 * other files. */
void gprof_file_widen(int fd);

/* Creates or overwrites a file. False with errno set. */
bool gprof_file_write(const char *path, const void *bytes, size_t n);

#endif
