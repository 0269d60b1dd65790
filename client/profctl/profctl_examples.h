/* Examples of every verb, for its help. */
#ifndef PROFD_CLIENT_PROFCTL_EXAMPLES_H
#define PROFD_CLIENT_PROFCTL_EXAMPLES_H

/* Complete command lines with a comment, one per line. "" for a verb that does everything itself. */
const char *examples_of(const char *verb);

#endif
