/* Programs of seccomp: what a process may still ask of the kernel. */
#ifndef PROFD_ELF_SANDBOX_FILTER_H
#define PROFD_ELF_SANDBOX_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

#include "proto/status.h"

#define SANDBOX_FILTER_STEPS 180

struct sandbox_filter {
    struct sock_filter code[SANDBOX_FILTER_STEPS];
    unsigned short count; /* beyond SANDBOX_FILTER_STEPS: it was too long */
};

/* A process that makes calls of another machine's numbering is ended. */
void sandbox_filter_begin(struct sandbox_filter *f);
void sandbox_filter_allow(struct sandbox_filter *f, long call);
/* Answers EPERM to the call. */
void sandbox_filter_refuse(struct sandbox_filter *f, long call);
/* Allows the call if the argument, an int for the kernel, has one of at most 250 values; with another, the process is
 * ended. */
void sandbox_filter_allow_with(struct sandbox_filter *f, long call, unsigned argument, const uint32_t *values,
                               uint8_t count);
/* mmap of private anonymous memory, and mprotect; both never executable. */
void sandbox_filter_allow_memory(struct sandbox_filter *f);
/* Installs it permanently for this process; otherwise is the verdict for other calls (SECCOMP_RET_…). NO_NEW_PRIVS must
 * be set. INTERNAL if the kernel refuses, or if the program is too long. */
enum profd_status sandbox_filter_install(struct sandbox_filter *f, uint32_t otherwise, struct profd_error *e);

#endif
