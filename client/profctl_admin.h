/* Operators' verbs: asked over a connection of their own, with progress where somebody watches. */
#ifndef PROFD_CLIENT_PROFCTL_ADMIN_H
#define PROFD_CLIENT_PROFCTL_ADMIN_H

#include <stdint.h>

#include "client/profctl.h"

/* One line on stderr that is written over, if stderr is a terminal. */
struct admin_progress {
    bool shown;
    int last; /* percent; −1: nothing yet */
};
/* "verifying 40 %": done of total. */
void admin_progress_show(struct admin_progress *p, const char *word, uint64_t done, uint64_t total);
/* Clears the line. */
void admin_progress_end(struct admin_progress *p);

/* Asks and returns the whole answer, a small JSON document, in a new NUL-terminated block. */
enum profd_status admin_read(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                             const char *word, char **text, size_t *size, struct profd_error *e);

#endif
