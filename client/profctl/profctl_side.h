/* Which build and labels are meant by PROGRAM@LABEL=VALUE, and by a side of a comparison. */
#ifndef PROFD_CLIENT_PROFCTL_SIDE_H
#define PROFD_CLIENT_PROFCTL_SIDE_H

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"

#define SIDE_BUILD "PROGRAM|BUILD|EXE" /* a build, in the usage of a verb */

/* Replaces PROGRAM@LABEL=VALUE where a verb with -l takes a build: by the build-id, and by one more -l LABEL=VALUE. Of
 * other arguments nothing changes, nor if a file has this name. Errors as of side_add. */
enum profd_status side_take(struct profctl_call *call, struct profd_error *e);

/* Appends the side's build as parameter name ("a"), and its labels as "a.label.…". argument: what build_find accepts,
 * or such a name followed by @LABEL=VALUE: of the builds of that name the one with uploads that have the label.
 * AMBIGUOUS, with a list, if several have it; NOT_FOUND. */
enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e);

#endif
