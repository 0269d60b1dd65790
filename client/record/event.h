/* Records of the kernel's ring buffers, decoded. Pure. */
#ifndef PROFD_CLIENT_RECORD_EVENT_H
#define PROFD_CLIENT_RECORD_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define EVENT_ID_MAX 20 /* bytes of a build-id that the kernel reports */

/* What all events record; those of samples also EVENT_SAMPLES. Every other record ends with pid, tid and time. */
#define EVENT_ALL (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define EVENT_SAMPLES (PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN)
#define EVENT_STACKS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct event {
    uint32_t type; /* PERF_RECORD_…; the members below are those of MMAP2, COMM, FORK, EXIT, LOST and SAMPLE */
    uint16_t misc;
    uint32_t pid, tid, parent, parent_tid;
    uint64_t time; /* ns of CLOCK_MONOTONIC */
    uint64_t lost; /* records */
    /* MMAP2 */
    uint64_t start, size, offset;
    const char *path;
    uint8_t id[EVENT_ID_MAX];
    uint8_t id_size; /* 0: the record has no build-id, but the numbers of the file */
    uint32_t major, minor;
    uint64_t inode, generation;
    /* COMM */
    const char *comm;
    /* SAMPLE */
    const uint64_t *chain; /* innermost first, with PERF_CONTEXT_… before each part */
    uint64_t chain_count;
    const uint64_t *registers; /* in the order of the bits of attr.sample_regs_user; NULL: none */
    const uint8_t *stack;      /* a copy of the user stack, from the stack pointer upwards */
    uint64_t stack_size;
};

/* Decodes a record of an event with EVENT_ALL, of samples also with EVENT_SAMPLES and, if registers is not 0,
 * EVENT_STACKS; registers is the number of recorded registers. Pointers point into the record. False if the record
 * contradicts its size. O(1). */
bool event_decode(const struct perf_event_header *h, unsigned registers, struct event *out);

#endif
