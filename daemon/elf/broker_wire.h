/* Messages between daemon and broker over their socket pair: one fixed struct for each packet, with descriptors. Both
 * sides are the same program. */
#ifndef PROFD_ELF_BROKER_WIRE_H
#define PROFD_ELF_BROKER_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BROKER_FDS 2

/* Descriptors: the executable and, if descriptors is 2, the debug file. */
struct broker_request {
    uint32_t magic, descriptors;
    uint64_t memory;       /* bytes */
    uint64_t instructions; /* 1: wanted */
};

/* With status OK one descriptor: the answer. The object begins after struct worker_answer. */
struct broker_reply {
    uint32_t magic, status;
    uint64_t size;
    char sentence[512];
};

/* Sends one packet with n descriptors. False on any failure, with errno. */
int broker_send(int socket, const void *packet, size_t size, const int *fds, unsigned n);

/* Receives one packet of exactly size bytes. fds gets up to BROKER_FDS descriptors (close-on-exec), −1 for missing
 * ones. 1: received; 0: the other side has closed; −1: an error or a malformed packet, the descriptors of which are
 * closed. */
int broker_receive(int socket, void *packet, size_t size, int fds[BROKER_FDS]);

#endif
