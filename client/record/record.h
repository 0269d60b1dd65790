/* Samples processes of this host from outside, and delivers uploads. */
#ifndef PROFD_CLIENT_RECORD_RECORD_H
#define PROFD_CLIENT_RECORD_RECORD_H

#include "profd.h"

struct record;

struct record_config {
    struct profd_options daemon;
    uint32_t rate;      /* ticks per second of CPU time; 1 to RECORD_RATE_MAX */
    bool kernel;        /* its functions, too; otherwise the kernel is one function */
    bool tables;        /* callers are found by unwind tables, not by frame pointers */
    uint32_t pid;       /* sample this process and what it starts; 0: all */
    const char *cgroup; /* sample the processes of this control group, a path; NULL: no matter which */
    bool on_exec;       /* pid is about to call execve; its ticks before that are of no interest */
    /* Gives an upload labels of the caller's, which go before those that record finds; NULL: none. */
    enum profd_status (*label)(void *context, struct profd_upload *u, struct profd_error *e);
    profd_outcome_sink sink;
    void *context;
};

#define RECORD_RATE_MAX 10000u
#define RECORD_RATE_DEFAULT 19u

/* The results of the samples: samples = functions + kernel + outside + lost + elsewhere. */
struct record_counts {
    uint64_t samples;
    uint64_t functions;    /* in another build than the kernel */
    uint64_t kernel;       /* in the kernel, which worked for a process, or in threads of its own */
    uint64_t outside;      /* in no build: generated code, and processes that ended before they were looked at */
    uint64_t lost;         /* the kernel or this program had no memory for them */
    uint64_t elsewhere;    /* of processes that the collector counts */
    uint64_t complete;     /* of those in a build: the whole stack is known */
    uint64_t records_lost; /* of processes: what they mapped may be unknown */
    uint64_t uploads;
    uint64_t unclaimed; /* of these, of other users, stored as of this one: the daemon is older, or does not let it */
};

/* Prepares to sample. FORBIDDEN: this user may not sample; the sentence says what to do. UNAVAILABLE, NO_INPUT. Without
 * a daemon, uploads go to the spool. */
enum profd_status record_open(const struct record_config *config, struct record **out, struct profd_error *e);
/* Accepts NULL. */
void record_close(struct record *r);

/* Begins to sample. */
enum profd_status record_start(struct record *r, struct profd_error *e);
/* Waits for samples, or until one of the n descriptors is readable, for at most 200 ms. Reads samples, and every ten
 * seconds sends uploads. */
enum profd_status record_step(struct record *r, const int *fds, size_t n, struct profd_error *e);
/* Ends sampling: reads the last samples, sends them, and waits for the daemon's answers. */
enum profd_status record_finish(struct record *r, struct profd_error *e);
/* Returns false if perf_event_paranoid hides the time that processes spend in the kernel. */
bool record_sees_kernel(const struct record *r);
const struct record_counts *record_get_counts(const struct record *r);

#endif
