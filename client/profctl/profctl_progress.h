/* One line on stderr that is written over while work goes on, if stderr is a terminal and the work takes a second. */
#ifndef PROFD_CLIENT_PROFCTL_PROGRESS_H
#define PROFD_CLIENT_PROFCTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Zeroed it is ready. */
struct progress {
    bool began, shown;
    struct timespec start, last;
};

/* "verifying [#####.....]  50 %  12 s": done of total, and how long the rest will take. detail: what else is said, or
 * "". The first call only starts the clock. */
void progress_show(struct progress *p, const char *word, uint64_t done, uint64_t total, const char *detail);
/* Clears the line. */
void progress_end(struct progress *p);
/* Clears whatever line there is: something else is about to be said on stderr. */
void progress_clear(void);

#endif
