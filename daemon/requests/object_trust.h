/* Which files may name functions for every user (DECISIONS 12, 38). */
#ifndef PROFD_REQUESTS_OBJECT_TRUST_H
#define PROFD_REQUESTS_OBJECT_TRUST_H

#include <stdbool.h>

/* Does a process answer for this descriptor's file system? Reading or closing such a file may wait for ever. */
bool trusted_file_may_hang(int fd);
/* Whether the content of this descriptor, which a client opened, may name functions for all users. It must be a file of
 * root's that no other user can write. On a nosuid mount the owner proves nothing: a removable disk, an image, a server
 * of the user's. *nosuid is set if that is the only obstacle. */
bool trusted_file_check(int fd, bool *nosuid);
/* Opens the debug file of a build that the system's packages installed; −1 if there is none to be trusted. */
int trusted_file_open_debug(const char *build_id);

#endif
