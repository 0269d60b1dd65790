/* Between spool.c and spool_file.c: the directory's descriptor and its size. */
#ifndef PROFD_CLIENT_SPOOL_FILE_H
#define PROFD_CLIENT_SPOOL_FILE_H

#include "client/spool.h"

int spool_fd(const struct spool *s);
/* Bytes of all entries: counted once, then what this process added is added. */
enum profd_status spool_used(struct spool *s, uint64_t *bytes, struct profd_error *e);
void spool_grew(struct spool *s, uint64_t bytes);

#endif
