/* The list of functions that are not to be counted: PROFD_LEAVE_OUT names a file with a line "BUILD-ID ADDRESS SIZE
 * NAME" for each; build-id and numbers in hexadecimal, the name is for people. Lines that begin with '#' are comments.
 * Raw system calls only. */
#ifndef PROFD_COLLECT_LEAVE_OUT_H
#define PROFD_COLLECT_LEAVE_OUT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the file. Without a name, or if it cannot be read or is larger than 1 MiB, the list is empty. */
void leave_out_read(const char *path);

/* Calls each() for every function of the list in the object with that build-id; at: its link-time address. Stops at
 * the first line that is no such line. O(file). */
void leave_out_each(const uint8_t *id, unsigned id_size, void (*each)(void *context, uint64_t at, uint64_t size),
                    void *context);

#endif
