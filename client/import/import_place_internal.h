/* State of placing a profile. Private to import_place*.c. */
#ifndef PROFD_CLIENT_IMPORT_PLACE_INTERNAL_H
#define PROFD_CLIENT_IMPORT_PLACE_INTERNAL_H

#include "core/arena.h"
#include "import/import_place.h"

/* An object of the profile. */
struct place_object {
    const struct import_binary *binary; /* NULL: not available */
    uint32_t build;                     /* of the upload; PROFD_NOWHERE if outside */
    bool used;                          /* a frame is in it */
    bool has_bias;                      /* of IMPORT_MOVED: offset to subtract from addresses */
    uint64_t bias;
    bool in_file; /* of IMPORT_MOVED: addresses are offsets in the file */
    uint32_t frames, placed;
};

/* Place of a frame. entry: first address of its function. */
struct place_frame {
    uint32_t build;
    uint64_t at, entry;
};

struct place {
    const struct import_profile *profile;
    struct import_notes *notes;
    struct arena *arena;
    struct place_object *objects;
    struct place_frame *frames;
    struct profd_upload *upload;
    struct place_span *spans; /* of the upload's builds: range of their histograms */
    uint32_t build_count;
    bool saturated; /* a sum reached its end */
    bool ambiguous; /* a frame was placed at the first of several functions of its name */
    bool lost;      /* a frame of a build could not be placed */
    bool outside;   /* ticks in no build were left out */
};

/* Addresses of a build: [low, high). */
struct place_span {
    uint64_t low, high;
};

/* Adds ticks and pairs to the upload. All frames must be placed. */
enum profd_status place_counts_add(struct place *w, struct profd_error *e);

/* Adds the stacks, except those that end in no build: their ticks are in no histogram. All frames must be placed.
 * O(stacks · depth). */
enum profd_status place_stacks_add(struct place *w, struct profd_error *e);

#endif
