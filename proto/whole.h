/* Reads and writes that are not cut short by signals. */
#ifndef PROFD_PROTO_WHOLE_H
#define PROFD_PROTO_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads n bytes at an offset. Returns how many there are, fewer than n only where the file ends; -1 with errno set. */
ssize_t whole_read(int fd, void *out, size_t n, uint64_t at);
/* Reads the beginning of a file as a text of fewer than size bytes. Returns its bytes; 0, and an empty text, if it
 * cannot be read. */
size_t whole_read_text(const char *path, char *out, size_t size);
/* Writes n bytes. False with errno set. */
bool whole_write(int fd, const void *bytes, size_t n);
/* Closes a descriptor, unless it is negative. */
void whole_close(int fd);

#endif
