/* Thousands of hosts in one process, which reach a centre through its gate. */
#ifndef PROFD_TESTS_FLEET_SIMULATE_H
#define PROFD_TESTS_FLEET_SIMULATE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/segment.h"

#define SIMULATE_PER_CONNECTION 20u /* segments, as profd-relay */

/* A host: its segments have the sequences from first + 1 on; a set bit of acknowledged is one of these. */
struct simulate_host {
    X509 *certificate;
    EVP_PKEY *key;
    uint64_t first;
    uint32_t acknowledged;
    uint64_t due; /* ms of the monotonic clock: it does not come before */
    bool busy;
};

/* Certificates of count hosts. from: the key of the CA, which signs them, and they share a key; or a directory where
 * host-N/relay.crt and relay.key are those of host N. Ends the process with a sentence if it cannot. */
void simulate_certify(const char *ca, const char *from, struct simulate_host *hosts, size_t count);

/* The epoch of a host: the same in each run of the process. */
void simulate_epoch(size_t host, uint8_t out[SEGMENT_EPOCH_SIZE]);
/* A segment of the current hour, of one of `programs` programs, with as many arcs, and half as many bins. The caller
 * frees *out. */
void simulate_segment(size_t host, uint64_t sequence, unsigned programs, unsigned arcs, uint8_t **out, size_t *size);

#endif
