/* What a centre has accepted, of the engine in memory. Only memory*.c include this. */
#ifndef PROFD_STORE_MEMORY_ARRIVAL_H
#define PROFD_STORE_MEMORY_ARRIVAL_H

#include "proto/buildid.h"
#include "store/attestations.h"

struct memory_host {
    uint8_t identity[STORE_HOST_SIZE];
    char *name;
    int64_t clock;
    uint64_t number;
};

struct memory_arrival {
    uint8_t epoch[SEGMENT_EPOCH_SIZE], digest[SEGMENT_DIGEST_SIZE];
    uint64_t sequence, number;
    size_t host; /* index */
    enum store_segment_outcome outcome;
    struct store_amount amount;
};

/* A marked hour. */
struct memory_mark {
    int64_t hour;
    size_t host;
    uint32_t reasons;
};

/* A program that was deleted. */
struct memory_deletion {
    char build_id[BUILDID_TEXT_SIZE];
    int64_t before; /* ns */
};

/* What a host attests of a build. */
struct memory_attestation {
    char build_id[BUILDID_TEXT_SIZE];
    size_t host;
    bool has;
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t size;
    int64_t due;
};

struct memory_centre {
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number, quarantined, quarantine_bytes;
    int64_t last;
    struct store_amount counted, removed;
    struct memory_host *hosts;
    struct memory_arrival *arrivals;
    struct memory_mark *marks;
    struct memory_deletion *deletions;
    struct memory_attestation *attestations;
    size_t attestation_count, attestation_capacity;
    size_t deletion_count, deletion_capacity;
    size_t host_count, host_capacity, arrival_count, arrival_capacity, mark_count, mark_capacity;
};

/* False: there are no random bytes. */
bool memory_centre_init(struct memory_centre *c);
void memory_centre_done(struct memory_centre *c);

#endif
