/* Administrative commands, over a connection of their own, with progress on a terminal. */
#ifndef PROFD_CLIENT_PROFCTL_ADMIN_H
#define PROFD_CLIENT_PROFCTL_ADMIN_H

#include <stddef.h>

#include "profctl/profctl.h"
#include "profctl/profctl_rows.h"

/* Sends the command and returns the complete answer, a small JSON document, in a new NUL-terminated block. */
enum profd_status admin_read(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                             const char *word, char **text, size_t *size, struct profd_error *e);
/* The same, and the answer as one row, or as its rows if it is a list. With --json it is printed, and *out is NULL. */
enum profd_status admin_ask(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                            const char *word, bool list, struct rows **out, struct profd_error *e);

#endif
