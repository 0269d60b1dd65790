/* A database that the previous version of profd wrote. */
#ifndef PROFD_TESTS_CRASH_OLD_H
#define PROFD_TESTS_CRASH_OLD_H

#include <stdbool.h>

#include "tests/crash/stream.h"

#define OLD_UPLOADS 48u

/* Makes folder/profd.db from version1.sql at path. False, with words on standard output: it cannot be made. */
bool old_make(const char *path, const char *folder);
/* Lets the client go on where that database's senders stopped. */
void old_continue(struct stream *s);

#endif
