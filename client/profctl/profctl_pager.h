/* The program that long text is read with on a terminal: $PROFD_PAGER, else $PAGER, else less -FRX. */
#ifndef PROFD_CLIENT_PROFCTL_PAGER_H
#define PROFD_CLIENT_PROFCTL_PAGER_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "proto/status.h"

struct pager {
    pid_t pid; /* 0: none runs */
    FILE *stream;
    const char *command;
    struct sigaction interrupt, quit, pipe; /* what signals meant before */
};

/* The command; NULL where there is to be none: an empty one, cat, no less, raised rights, TERM=dumb. */
const char *pager_choose(void);
/* Starts it; p->stream is its input. Ctrl-C is the pager's from now on, and its end comes as EPIPE. */
enum profd_status pager_start(struct pager *p, const char *command, struct profd_error *e);
/* Closes its input, waits for its end, and puts the signals back. USAGE where the command could not be run. */
enum profd_status pager_end(struct pager *p, struct profd_error *e);

#endif
