/* The processes that samples come from: what they have mapped, which user they run as, and where they stand. */
#ifndef PROFD_CLIENT_RECORD_PROCESS_H
#define PROFD_CLIENT_RECORD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/limits.h"
#include "record/event.h"
#include "record/image.h"
#include "record/jit.h"
#include "record/origin.h"

/* Executable memory of a process: the file's bytes from offset are at [start, end). */
struct process_map {
    uint64_t start, end, offset;
    uint32_t file; /* of struct images */
};

struct sum;

struct process {
    LIST_ENTRY(process) link;
    uint32_t pid;
    uint32_t elder; /* the process that had its maps when it was forked; 0: after execve, or it was not seen to begin */
    bool wanted;    /* its samples are taken */
    bool ended;     /* the kernel reported the end of its first thread */
    bool looked;    /* in this interval */
    bool known;     /* origin is its own; else that of its parent */
    bool collected; /* it counts itself: the collector is in it */
    bool preloaded; /* it has mapped the library of the collector */
    bool in_kernel; /* it is a thread of the kernel, without a program */
    bool counted;   /* as a process of its program */
    uint32_t map_count, map_capacity;
    struct process_map *maps; /* ascending, apart from each other */
    uint32_t program;         /* the file of its main executable; IMAGE_NONE */
    struct origin origin;
    uint64_t user_read; /* time of the event at which its user was read */
    uint64_t next_from; /* next_user is its user from then on; 0: no other was read */
    uint32_t next_user;
    bool has_key;
    uint8_t key[LIMIT_PROCESS]; /* of this process among all of this host */
    struct jit *jit;            /* NULL: no tick was in generated code */
    struct sum *sum;            /* where its samples go; NULL: to be found */
    /* CPU time in ns (record/account.h) */
    bool cpu_read, cpu_begun, clocked; /* cpu_now, cpu_before is known; the process counts as one with CPU time */
    uint64_t cpu_now, cpu_before;
    uint64_t ticks_ns; /* of ticks in known objects since cpu_before */
};

struct processes;

/* The build of a file that the process has mapped: see images_find_build. */
uint32_t process_find_build(struct images *images, const struct process *p, uint32_t file);

/* images outlives the processes. */
enum profd_status processes_new(struct images *images, struct processes **out, struct profd_error *e);
/* Accepts NULL. */
void processes_free(struct processes *t);

/* Reads all processes that exist, but this one, from /proc. NO_INPUT: there is no /proc. */
enum profd_status processes_read_all(struct processes *t, struct profd_error *e);
/* Processes of another table that still live keep that they were counted, and that they are wanted. O(processes). */
void processes_keep_counted(struct processes *t, struct processes *before);
/* Applies a record: MMAP2, COMM, FORK or EXIT. False: no memory. */
bool processes_apply(struct processes *t, const struct event *e);
/* The process of that number; NULL: it is not known. O(1). */
struct process *processes_find(const struct processes *t, uint32_t pid);
/* The process of that number; one that is not known is read from /proc. NULL: no memory. O(1). */
struct process *processes_take(struct processes *t, uint32_t pid);
/* Reads user and cgroup of a process, once in an interval, and whether it has a collector; and the user again, once a
 * second of time, which is that of an event, on the monotonic clock. A user that was read again is its user from the
 * time of the reading on. A process that ended before keeps the user of its parent. True: the user is another one than
 * before, in this interval. */
bool process_look(struct process *p, uint64_t time);
/* The key of a process: the same as long as it lives, and of no other one that lives. */
const uint8_t *process_get_key(struct process *p);
/* The mapping of an address; NULL: none that is executable. O(log maps). */
const struct process_map *process_find_map(const struct process *p, uint64_t address);
/* What is done with a process. */
typedef void processes_act(void *context, struct process *p);
/* Passes every process to act. O(processes). */
void processes_each(struct processes *t, processes_act *act, void *context);
/* Passes processes that ended to act, and forgets them. O(processes). */
void processes_forget_ended(struct processes *t, processes_act *act, void *context);
/* Begins an interval: no process stands with a sum, and all are to be looked at again. */
void processes_begin_interval(struct processes *t);

#endif
