/* Every writing verb of the store looks at its files. While nothing is written, this does every few seconds: /readyz of
 * an idle daemon must say that its database was removed. */
#ifndef PROFD_WRITER_FILE_CHECK_H
#define PROFD_WRITER_FILE_CHECK_H

#include <stddef.h>

#include "writer/aside.h"
#include "proto/status.h"

struct file_check;
struct loop;
struct writer;

/* state_dir must outlive it. */
enum profd_status file_check_start(struct loop *loop, struct writer *writer, const char *state_dir,
                                   struct file_check **out, struct profd_error *e);
/* Puts no further job. */
void file_check_stop(struct file_check *c);
/* After the writer. Accepts NULL. */
void file_check_free(struct file_check *c);

/* How many databases were put aside in the state directory because they were damaged, at the latest look; *latest is
 * the name of the latest, "" if there is none, valid until the loop goes on. */
size_t file_check_count_damaged(const struct file_check *c, const char **latest);

#endif
