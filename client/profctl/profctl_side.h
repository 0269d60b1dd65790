/* Which build and labels a side of a comparison means. */
#ifndef PROFD_CLIENT_PROFCTL_SIDE_H
#define PROFD_CLIENT_PROFCTL_SIDE_H

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"

/* Appends the side's build as parameter name ("a"), and its labels as "a.label.…". argument: what build_find accepts,
 * or such a name followed by @LABEL=VALUE: of the builds of that name the one with uploads that have the label.
 * AMBIGUOUS, with a list, if several have it; NOT_FOUND. */
enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e);

#endif
