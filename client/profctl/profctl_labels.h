/* -l NAME=VALUE of the command line, on uploads. */
#ifndef PROFD_CLIENT_PROFCTL_LABELS_H
#define PROFD_CLIENT_PROFCTL_LABELS_H

#include "profctl/profctl.h"

/* Adds each given value of the option "label". USAGE, with the verb and the value, if one is no label. */
enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e);
/* Whether labels_add would succeed on an upload without labels: bad ones are refused before anything is read or sent.
 */
enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e);

#endif
