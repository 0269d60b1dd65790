/* A command that profctl starts: its signals and its exit status are passed on. */
#ifndef PROFD_CLIENT_PROFCTL_RUN_COMMAND_H
#define PROFD_CLIENT_PROFCTL_RUN_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct run_command {
    const char *verb, *name; /* for messages */
    pid_t child;
    int gate, report; /* pipes */
    int why;          /* errno of execvp; 0: it succeeded */
    sigset_t watched, before;
};

/* Creates the child, which waits for run_command_release. Signals to profctl are blocked until run_command_end. False:
 * there is no process; said. */
bool run_command_start(struct run_command *c, const char *verb, char **argv);
/* The child calls execvp. False: it could not, which run_command_end reports after run_command_step. */
bool run_command_release(struct run_command *c);
/* Handles signals that are pending: those that were sent to profctl alone go to the command; those of the terminal
 * reach it without us. If wait is set, waits for the next one first. True: the command has ended, *status is its exit
 * status, or 128 plus the signal that ended it; its process exists until run_command_end. */
bool run_command_step(struct run_command *c, bool wait, int *status);
/* Restores the signals. If the command did not run, says why. Returns the exit status: status, if it ran. */
int run_command_end(struct run_command *c, int status);
/* Instead of run_command_release: the child ends without calling execvp, and the signals are restored. */
void run_command_abandon(struct run_command *c);

#endif
