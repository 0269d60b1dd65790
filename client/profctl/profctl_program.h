/* Programs of profd that profctl starts. */
#ifndef PROFD_CLIENT_PROFCTL_PROGRAM_H
#define PROFD_CLIENT_PROFCTL_PROGRAM_H

#include "proto/status.h"

/* Becomes the program of this name beside profctl, in ../sbin, or in /usr/sbin. arguments begin with its name, which is
 * replaced by its path, and end with NULL. Returns only on failure: UNAVAILABLE. */
enum profd_status program_become(const char *name, const char **arguments, struct profd_error *e);

#endif
