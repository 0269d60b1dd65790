/* Examples of every verb, for its help. */
#ifndef PROFD_CLIENT_PROFCTL_EXAMPLES_H
#define PROFD_CLIENT_PROFCTL_EXAMPLES_H

/* Whole command lines with a comment behind, each on a line of its own; "" for a verb that explains itself. */
const char *examples_of(const char *verb);

#endif
