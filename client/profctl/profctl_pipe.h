/* Programs of which profctl reads the output. */
#ifndef PROFD_CLIENT_PROFCTL_PIPE_H
#define PROFD_CLIENT_PROFCTL_PIPE_H

#include "profctl/profctl.h"

/* Starts the program words[0] of PATH with these words, ended by NULL, without a shell, with an empty standard input,
 * no standard error and LC_ALL=C. Calls each with every line of its output, without the line feed; false stops the
 * program. NOT_FOUND if it is not in PATH; INTERNAL if it fails. package: of the program, for the sentence. */
enum profd_status pipe_read_lines(const char *const *words, const char *package,
                                  bool (*each)(void *context, char *line), void *context, struct profd_error *e);

#endif
