/* The kernel's events: opened on every CPU, and their records in the order of time. */
#ifndef PROFD_CLIENT_RECORD_SAMPLER_H
#define PROFD_CLIENT_RECORD_SAMPLER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "record/event.h"

struct sampler;

struct sampler_config {
    uint32_t rate;      /* ticks per second of CPU time */
    bool kernel;        /* chains contain the kernel's frames */
    uint64_t registers; /* of the user, as in attr.sample_regs_user; 0: neither these nor stacks */
    bool tables;        /* copies of the user's stacks instead of the user's chains; else only of their ends */
    int cgroup;         /* a directory of the cgroup file system, −1: none */
    uint32_t pid;       /* sample only this process and what it starts; 0: everything */
    bool on_exec;       /* with pid: begin when it calls execve */
};

/* Opens the events; they do not count yet. With a pid, every process of the host is sampled where the user may do that,
 * because a process that is shorter than a tick would otherwise never have one; *whole says so, and the caller selects.
 * FORBIDDEN: the user may not sample, and what to do. UNAVAILABLE: the kernel has no such events. */
enum profd_status sampler_open(const struct sampler_config *config, struct sampler **out, bool *whole,
                               struct profd_error *e);
/* Accepts NULL. */
void sampler_close(struct sampler *s);
/* True if the kernel's time is sampled, too: perf_event_paranoid may forbid it. */
bool sampler_sees_kernel(const struct sampler *s);

/* Begins to record what happens to processes; with samples set, at the second call, to sample. What is read of
 * processes between the two calls is older than every sample. */
enum profd_status sampler_start(struct sampler *s, bool samples, struct profd_error *e);
void sampler_stop(struct sampler *s);

/* Descriptors that become readable when a ring is half full. */
uint32_t sampler_get_polls(const struct sampler *s, struct pollfd *out, uint32_t most);
/* Passes all records that are older than a few milliseconds, or all if everything is set, to each() in the order of
 * time. A record of samples that were lost has type PERF_RECORD_LOST; one of other records PERF_RECORD_LOST_SAMPLES. An
 * event's pointers live until each() returns. O(records · CPUs). */
void sampler_read(struct sampler *s, bool everything, void (*each)(void *context, const struct event *e),
                  void *context);

#endif
