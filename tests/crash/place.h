/* Where a campaign happens: a private folder and private mounts, which vanish with the process whatever becomes of it.
 */
#ifndef PROFD_TESTS_CRASH_PLACE_H
#define PROFD_TESTS_CRASH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_PATH 512

/* Joins and checks the length; returns out. Ends the program when it does not fit. */
char *place_join(char out[PLACE_PATH], const char *folder, const char *name);
/* Makes a folder below $TMPDIR. */
bool place_make(char folder[PLACE_PATH]);
/* Removes a folder with what is in it (two levels of folders, plain files). */
void place_remove(const char *folder);
/* Copies the plain files of a folder into another, which is made; keeps holes. */
bool place_copy(const char *from, const char *to);
/* Copies one file, keeping its holes. */
bool place_copy_file(const char *from, const char *to);
/* Runs a program to its end, without output; its exit status, −1: not run. */
int place_run(const char *const argv[]);
/* Writes bytes over the whole file. */
bool place_write(const char *path, const void *bytes, size_t n);

/* A mount namespace of our own. False: not allowed here. */
bool place_unshare(void);

#endif
