/* Files of other processes, opened so that their owners cannot make us wait or lead us elsewhere. */
#ifndef PROFD_CLIENT_RECORD_IMAGE_OPEN_H
#define PROFD_CLIENT_RECORD_IMAGE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/status.h"

/* UNAVAILABLE: the kernel, or a filter of system calls, has not what the functions below need. */
enum profd_status image_open_check(struct profd_error *e);

/* Opens a regular file for reading by its path in the root directory of a process, of this one if pid is 0. No part of
 * the path may be a symbolic link. −1: there is none, it is on a FUSE file system, it has more than LIMIT_OBJECT_BYTES,
 * or permission is missing. Does not block. */
int image_open(uint32_t pid, const char *path, struct stat *st);

/* Opens a regular file of that user likewise. −1: as above, or it is another user's. */
int image_open_of_user(uint32_t pid, const char *path, uint32_t uid);

/* False: the process has ended, so that files cannot be opened in its root directory. */
bool image_process_lives(uint32_t pid);

/* A copy of this process's vDSO, which all 64-bit processes share. −1: there is none. */
int image_open_vdso(void);

#endif
