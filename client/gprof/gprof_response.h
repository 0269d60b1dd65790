/* @FILE on a command line: the file's words in its place. */
#ifndef PROFD_CLIENT_GPROF_RESPONSE_H
#define PROFD_CLIENT_GPROF_RESPONSE_H

#include <stdbool.h>

struct gprof_words {
    char **list; /* NULL behind the last; strings borrowed from argv, or owned by texts */
    int count;
    char **texts; /* contents of files */
    int text_count;
};

/* Expands every @FILE of argv, in files too; words are separated by white space, and ' " and \ quote as in a shell.
 * What cannot be opened stays as it stands. False with a complaint on stderr: a folder, more than 2000 files (they name
 * each other), or no memory. */
bool gprof_words_expand(const char *program, int argc, char **argv, struct gprof_words *out);
void gprof_words_done(struct gprof_words *w);

#endif
