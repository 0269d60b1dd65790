/* Operators' verbs: asked over a connection of their own, with progress where somebody watches. */
#ifndef PROFD_CLIENT_PROFCTL_ADMIN_H
#define PROFD_CLIENT_PROFCTL_ADMIN_H

#include <stddef.h>

#include "client/profctl.h"

/* Asks and returns the whole answer, a small JSON document, in a new NUL-terminated block. */
enum profd_status admin_read(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                             const char *word, char **text, size_t *size, struct profd_error *e);

#endif
