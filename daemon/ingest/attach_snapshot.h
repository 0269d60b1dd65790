/* What is durably remembered of a live process: how far it was counted, and what is needed when it is gone. */
#ifndef PROFD_INGEST_ATTACH_SNAPSHOT_H
#define PROFD_INGEST_ATTACH_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/attach_origin.h"
#include "proto/attach.h"
#include "proto/status.h"
#include "store/store.h"

/* Counters of the header, then those that the reader counts. */
enum attach_snapshot_counter {
    ATTACH_SNAPSHOT_NAMELESS = ATTACH_COUNTERS_MAX, /* modules without build-id */
    ATTACH_SNAPSHOT_UNLISTED,                       /* modules beyond LIMIT_BUILDS */
    ATTACH_SNAPSHOT_OUTSIDE,                        /* ticks outside every build */
    ATTACH_SNAPSHOT_COUNTERS
};

/* Counts by place: slot numbers ascend within a table, tables by page. Columns. */
struct attach_place {
    uint32_t page, first, used;
};
struct attach_places {
    uint32_t table_count, count;
    struct attach_place *tables;
    uint32_t *slots;
    uint64_t *counts; /* 1 … 2^63−1 */
};

struct attach_snapshot {
    uint8_t instance[ATTACH_INSTANCE_SIZE];
    struct attach_origin origin;
    int64_t end;   /* ns: of the harvest that it belongs to; the next one begins there */
    uint32_t rate; /* of ticks */
    uint64_t counters[ATTACH_SNAPSHOT_COUNTERS];
    const char *build_id, *name; /* of the program */
    size_t label_count;
    const struct store_label *labels;
    struct attach_places places;
    void *block; /* of a decoded one: owns everything */
};

/* A new block that the caller frees: a format byte, the raw size, a zstd frame
 * with checksum; about 4 bytes a slot. TOO_LARGE, NO_MEMORY or OK. */
enum profd_status attach_snapshot_encode(const struct attach_snapshot *s, uint8_t **out, size_t *size,
                                         struct profd_error *e);
/* DAMAGED: the bytes are not a snapshot; NO_MEMORY. attach_snapshot_done frees. O(bytes). */
enum profd_status attach_snapshot_decode(const uint8_t *in, size_t n, struct attach_snapshot *out,
                                         struct profd_error *e);
void attach_snapshot_done(struct attach_snapshot *s);

#endif
