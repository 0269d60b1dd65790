/* Files of certificates and keys. */
#ifndef PROFD_TLS_FILE_H
#define PROFD_TLS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

#define TLS_FILE_MAX (1u << 20) /* bytes */

/* What a file holds; NUL-terminated too. Zeroed: nothing. */
struct tls_text {
    const char *name; /* path of the file, for sentences; borrowed */
    char *data;       /* owned */
    size_t size;
};

/* Opens a regular file of at most TLS_FILE_MAX bytes. CONFIG if there is none, or if secret and a user other than the
 * owner may access it. */
enum profd_status tls_file_open(const char *path, bool secret, int *fd, struct profd_error *e);
/* Reads the file from its beginning. The descriptor stays the caller's. CONFIG or NO_MEMORY. */
enum profd_status tls_file_read(int fd, const char *name, struct tls_text *out, struct profd_error *e);
/* Overwrites and frees what was read. */
void tls_text_done(struct tls_text *t);

#endif
