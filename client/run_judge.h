/* Programs that no preloaded library reaches. */
#ifndef PROFD_CLIENT_RUN_JUDGE_H
#define PROFD_CLIENT_RUN_JUDGE_H

#include <stddef.h>

/* Why the collector cannot be loaded into the program in this file, as the end of a sentence; NULL if nothing speaks
 * against it, or if the file is no ELF file (a script). Reads headers only. */
const char *run_judge_program(const char *path);

#endif
