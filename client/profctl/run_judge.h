/* Programs that the collector cannot count. */
#ifndef PROFD_CLIENT_RUN_JUDGE_H
#define PROFD_CLIENT_RUN_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

/* The reason why the collector cannot be loaded into the program in this file, as the end of a sentence; NULL if there
 * is none, or if the file is not an ELF file (a script). Reads headers only. */
const char *run_judge_program(const char *path);

/* The same for the limits that a command inherits: writes the end of a sentence to out. False, and out unchanged, if
 * there is no reason. */
bool run_judge_limits(char *out, size_t size);

#endif
