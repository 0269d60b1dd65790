/* The inside of import_place. */
#ifndef PROFD_CLIENT_IMPORT_PLACE_INTERNAL_H
#define PROFD_CLIENT_IMPORT_PLACE_INTERNAL_H

#include "import/import_place.h"
#include "lib/upload.h"

/* An object of the profile. */
struct place_object {
    const struct import_binary *binary; /* NULL: not available */
    uint32_t build;                     /* of the upload; PROFD_NOWHERE if outside */
    bool used;                          /* a frame is in it */
    bool has_bias;                      /* of IMPORT_MOVED: what is to be subtracted from addresses */
    uint64_t bias;
    bool in_file; /* of IMPORT_MOVED: addresses are places in the file */
    uint32_t frames, placed;
};

/* Where a frame is. entry: the beginning of its function. */
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
    struct place_span *spans; /* of the upload's builds: what their histograms cover */
    uint32_t build_count;
    bool saturated; /* a sum reached its end */
    bool lost;      /* a frame of a build found no place */
    bool outside;   /* ticks of no build were left out */
};

/* Addresses of a build: [low, high). */
struct place_span {
    uint64_t low, high;
};

/* Finds the places of all frames. NO_MEMORY. */
enum profd_status place_frames_find(struct place *w, struct profd_error *e);

/* Adds ticks and pairs to the upload. Frames are placed. */
enum profd_status place_counts_add(struct place *w, struct profd_error *e);

#endif
