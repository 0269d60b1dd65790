/* The sandbox of a worker: what a process that parses an untrusted file may still do. */
#ifndef PROFD_ELF_SANDBOX_H
#define PROFD_ELF_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

/* A sanitizer's runtime makes system calls and maps terabytes. Workers of these builds have no sandbox. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANDBOX_POSSIBLE = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
enum { SANDBOX_POSSIBLE = 0 };
#else
enum { SANDBOX_POSSIBLE = 1 };
#endif
#else
enum { SANDBOX_POSSIBLE = 1 };
#endif

/* The most that the worker may take; lowered later by sandbox_lower. */
struct sandbox_limits {
    uint64_t memory; /* address space, bytes */
    uint64_t cpu_seconds;
    uint64_t file_bytes; /* what one file may grow to */
};

/* Enters the sandbox. Must be called in a new child process with one thread. Closes all descriptors from `descriptors`
 * on, clears the environment, makes the process undumpable, sets the limits (no processes, no new descriptors, no
 * core), denies the file system and the network by Landlock where the kernel has it, and makes seccomp kill the process
 * at any system call except: read, pread, write and pwrite to `output`, private anonymous memory that is not
 * executable, fstat, the fcntl commands that only query, lowering its own limits, its own signals, exit. Calls that
 * open or examine a path fail with EPERM. If SANDBOX_POSSIBLE is 0 it only closes descriptors. INTERNAL if a
 * restriction cannot be set. */
enum profd_status sandbox_enter(const struct sandbox_limits *limits, unsigned descriptors, int output,
                                struct profd_error *e);

/* Lowers memory and CPU time from inside; limits above the first are ignored. */
void sandbox_lower(const struct sandbox_limits *limits);

/* Installs Landlock rules that allow nothing; NO_NEW_PRIVS must be set. OK if the kernel has no Landlock: seccomp also
 * forbids the calls. */
enum profd_status sandbox_deny_files(struct profd_error *e);

/* The kernel's Landlock version, 0 if it has none. */
int sandbox_landlock_version(void);

#endif
