/* Places in code as stored counts have them: pairs of build and address, ascending, as runs of equal builds and gaps of
 * addresses. Private to proto/counts*. */
#ifndef PROFD_PROTO_COUNTS_PLACES_H
#define PROFD_PROTO_COUNTS_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/sort.h"
#include "proto/status.h"

#define COUNTS_RUN_MAX 30u    /* bytes of the largest run */
#define COUNTS_PLACES_MAX 20u /* bytes of the two sizes before the runs */

/* The distinct places of rows, ascending by build (COUNTS_NOWHERE last) and address, and which of them each row has. */
struct counts_places {
    uint32_t count;
    uint32_t *build;
    uint64_t *address;
    uint64_t *of; /* of each row */
};

/* Finds them. out has arrays for n; items has space for 2n. O(n) if the rows ascend, else O(n) for each byte in which
 * the places differ. */
void counts_places_find(const uint32_t *builds, const uint64_t *addresses, uint32_t n, struct sort_item *items,
                        struct counts_places *out);

/* Writes count, number of runs, runs (length, build + 1 or 0 for nowhere, first address) and the column of the gaps;
 * the gap of the first place of a run is 0. scratch has count numbers. Returns the end. */
uint8_t *counts_places_put(const struct counts_places *p, uint64_t *scratch, uint8_t *out);

struct counts_reader {
    const uint8_t *at, *end;
};
/* MALFORMED: counts end inside what, or a number there is too long. */
enum profd_status counts_decode_short(const char *what, struct profd_error *e);
/* Reads places into arrays for most of them, scratch likewise. what has a place, for the sentence. MALFORMED or OK. */
enum profd_status counts_places_get(struct counts_reader *r, uint32_t builds, const char *what, uint32_t most,
                                    uint64_t *scratch, struct counts_places *out, struct profd_error *e);

#endif
