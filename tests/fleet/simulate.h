/* Thousands of hosts in one process, which reach a centre through its proxy. */
#ifndef PROFD_TESTS_FLEET_SIMULATE_H
#define PROFD_TESTS_FLEET_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A batch of one host: its uploads have the sequences from first + 1 on. */
struct simulate_batch {
    const uint8_t *centre; /* 16 bytes, or NULL: not known yet */
    bool named;            /* the batch says the name of the host, simulated-N */
    size_t host;
    uint64_t first;
    unsigned uploads, programs, arcs;
};

/* Message Batch, with uploads of the current hour, of `programs` programs in turn, each with as many arcs, and half as
 * many bins. A host has the same epoch in each run of the process. The caller frees *out. */
void simulate_make_batch(const struct simulate_batch *batch, uint8_t **out, size_t *size);

#endif
