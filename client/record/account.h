/* CPU time of the processes that are sampled: what the kernel says of it goes to the sums that have their ticks. */
#ifndef PROFD_CLIENT_RECORD_ACCOUNT_H
#define PROFD_CLIENT_RECORD_ACCOUNT_H

#include "record/process.h"
#include "record/sums.h"

/* Reads the CPU time of a process now, if it exists. */
void account_read(struct process *p);
/* Adds the time since the previous call to the process's sum; of a process that is gone, or of which the time at the
 * previous call was not known, the ticks as those of unknown CPU time. account_read came before. */
void account_add(struct process *p);
/* The process calls execve: its program gets no time since the previous call, if a tick found it; otherwise the next
 * program gets it. */
void account_exec(struct process *p);
/* The process's CPU time until now, as account_read found it, is of no interest. */
void account_begin(struct process *p);

#endif
