/* What completion scripts offer: the values of options, and names that the daemon knows. */
#ifndef PROFD_CLIENT_PROFCTL_COMPLETE_H
#define PROFD_CLIENT_PROFCTL_COMPLETE_H

#include "profctl/profctl.h"

enum complete_kind { COMPLETE_TEXT, COMPLETE_WORDS, COMPLETE_FILES, COMPLETE_LABELS };

/* How an option's argument is completed; *words are separated by spaces, for COMPLETE_WORDS only. */
enum complete_kind complete_option(const struct profctl_option *o, const char **words);
/* What a verb's arguments are: builds, files too or not. */
bool complete_takes_build(const struct profctl_verb *v);
bool complete_takes_file(const struct profctl_verb *v);

/* Prints the daemon's builds (id, tab, program) or labels (NAME=VALUE), one per line, for completion. Without a daemon
 * it prints nothing. False if what is neither "builds" nor "labels". */
bool complete_list(const struct profctl_call *call, const char *what);

#endif
