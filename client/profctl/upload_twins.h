/* Executables that a gmon.out fits as well as the one that was named: it says only where code is, not of which file. */
#ifndef PROFD_CLIENT_UPLOAD_TWINS_H
#define PROFD_CLIENT_UPLOAD_TWINS_H

#include "profd.h"

/* Warns of each other executable that could have written the gmon.out: of the regular files in the directories of both,
 * and of the programs that the daemon has, if their files are still in place. Reads 64 files at most,
 * which have between half and twice the size of the executable's. */
void upload_twins_warn(const struct profd_executable *x, const char *gmon, const struct profd_options *server);

#endif
