/* A file system with a journal of its own, in a file: what a power cut leaves of it can be looked at. */
#ifndef PROFD_TESTS_CRASH_IMAGE_H
#define PROFD_TESTS_CRASH_IMAGE_H

#include <stdbool.h>

/* Makes an ext4 of so many MiB, its journal and inode tables written in full. */
bool image_make(const char *path, unsigned mib);
/* Mounts it by a loop device that goes with the mount. why: what the kernel says when it refuses; may be NULL. The
 * journal is written when somebody syncs, not every five seconds. errors_read_only: on an error the kernel makes it
 * read-only. */
bool image_mount(const char *path, const char *folder, bool errors_read_only, char why[128]);
/* Loop devices report a write that their file took only the first part of as done. No request to the folder's device is
 * to be larger than so many KiB: one of 4 is taken or not. False: not allowed here. The device keeps it, so set it
 * back. */
bool image_limit_requests(const char *folder, unsigned kib);
#define IMAGE_REQUEST_USUAL 1280u
/* The device is gone: from now on everything fails until it is mounted anew, for reading and for writing. */
bool image_shut_down(const char *folder);
/* A tmpfs of so many KiB. */
bool image_mount_memory(const char *folder, unsigned kib);
/* Waits for the last handle to close; false: it stayed busy and was detached. */
bool image_unmount(const char *folder);

#endif
