/* A SQLite file system layer that fails on command. */
#ifndef PROFD_TESTS_STORE_FAULTS_H
#define PROFD_TESTS_STORE_FAULTS_H

#include <stdbool.h>
#include <stdlib.h>

extern int faults_countdown; /* writes, syncs and truncations left until one fails; −1: none */
extern int faults_kind;      /* SQLITE_IOERR_FSYNC: I/O errors, torn writes; SQLITE_FULL: no space */
extern int faults_happened, faults_operations;
extern void (*faults_cause)(void); /* called before an operation fails; NULL: nothing */

/* A fault is tried at every third place where it is possible, by `make rounds` at every one. Under the address
 * sanitizer it is tried at every seventh: one takes three times as long there, and only the sanitizer's reports are
 * new. */
static inline int faults_step(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 7;
#else
    return getenv("PROFD_ROUNDS") ? 1 : 3;
#endif
}

/* A new directory for one test's database: in memory where there is /dev/shm, so that thousands of commits do not wait
 * for a disk. */
void faults_directory(char directory[64]);
/* Not through the layer. */
void faults_copy_file(const char *from, const char *to);
/* Every file that SQLite opens from here on goes through the layer. */
void faults_install(void);

#endif
