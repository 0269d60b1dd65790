/* The seccomp program. */
#ifndef PROFD_ELF_SANDBOX_FILTER_H
#define PROFD_ELF_SANDBOX_FILTER_H

#include "proto/status.h"

/* Installs it permanently for this process. NO_NEW_PRIVS must be set. INTERNAL if the kernel refuses. */
enum profd_status sandbox_filter_install(int output, struct profd_error *e);

#endif
