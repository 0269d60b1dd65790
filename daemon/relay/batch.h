/* Encodes a batch of uploads for the centre, and reads the answer. Pure. */
#ifndef PROFD_RELAY_BATCH_H
#define PROFD_RELAY_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "proto/limits.h"
#include "proto/segment.h"
#include "proto/status.h"

#define BATCH_CENTRE_SIZE 16 /* of a centre's name, and of its incarnation */
#define BATCH_HASH_SIZE 32
#define BATCH_BUILDS 256u /* limit of offers in a batch, and of builds that are read from an answer */

struct batch_upload {
    uint64_t id; /* at the host's daemon */
    uint8_t sender[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t *bytes; /* owned */
    size_t size;
};

struct batch_offer {
    struct buildid build;
    bool has_hash; /* false: the host has no symbols of it */
    uint8_t hash[BATCH_HASH_SIZE];
    uint64_t size;
};

/* The content of a Batch. Texts are borrowed; "" stands for unknown. */
struct batch {
    bool has_centre, has_incarnation;
    uint8_t centre[BATCH_CENTRE_SIZE], incarnation[BATCH_CENTRE_SIZE];
    const char *host, *machine, *boot, *version;
    uint64_t clock, number, held, oldest;
    size_t upload_count, offer_count;
    size_t bytes; /* of all uploads */
    struct batch_upload uploads[LIMIT_BATCH_UPLOADS];
    struct batch_offer offers[BATCH_BUILDS];
};

/* Encodes as message Batch, into a new block that the caller frees. NO_MEMORY. O(bytes). */
enum profd_status batch_encode(const struct batch *b, uint8_t **out, size_t *size, struct profd_error *e);
/* Frees and forgets all uploads but the first n. */
void batch_keep(struct batch *b, size_t n);

enum batch_outcome { BATCH_COUNTED, BATCH_KNOWN, BATCH_PUT_ASIDE, BATCH_CONFLICT, BATCH_REFUSED, BATCH_OUTCOMES };

struct batch_result {
    enum batch_outcome outcome;
    uint64_t number; /* which the centre gave the upload; 0: none */
    char detail[200];
};

struct batch_answer {
    uint8_t centre[BATCH_CENTRE_SIZE], incarnation[BATCH_CENTRE_SIZE];
    uint64_t backed_up, wait_ms, number;
    bool went_back;
    struct batch_result results[LIMIT_BATCH_UPLOADS]; /* one for each upload of the batch */
    size_t wanted_count, send_count;
    struct buildid wanted[BATCH_BUILDS], send[BATCH_BUILDS];
};

/* Reads the body of an answer to this batch. PROTOCOL, with the fault, unless the body is the complete answer of a
 * centre about exactly these uploads; *out is undefined then. Unknown members are ignored. O(n). */
enum profd_status batch_read_answer(const struct batch *b, const char *text, size_t n, struct batch_answer *out,
                                    struct profd_error *e);

/* Reads the sentence of a problem document (RFC 9457); "" if the body is no such document. */
void batch_read_problem(const char *text, size_t n, char *out, size_t size);

#endif
