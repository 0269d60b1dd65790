/* Call sites of an object as it lies in memory. */
#ifndef PROFD_COLLECT_REWRITE_FIND_H
#define PROFD_COLLECT_REWRITE_FIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/collect/rewrite_frames.h"
#include "client/collect/stub.h"

enum rewrite_form {
    REWRITE_FENTRY = 1, /* true: __fentry__; false: mcount */
    REWRITE_LONG = 2,   /* six bytes: a prefix precedes the opcode */
};

struct rewrite_site {
    uint32_t at; /* offset of the opcode byte from the image's low; the displacement follows, then the return address */
    uint32_t form; /* set of enum rewrite_form */
};

#define REWRITE_SLOTS_MAX 8u

/* Targets of the object's calls of our functions: GOT slots, and the functions themselves. */
struct rewrite_slots {
    uintptr_t at[REWRITE_SLOTS_MAX];
    uint32_t form[REWRITE_SLOTS_MAX];
    unsigned count;
    uintptr_t entry[2]; /* mcount and __fentry__ */
    bool own;           /* these are the object's own */
};

/* Finds slots that contain our function. trust_lazy: also those that the loader has not bound yet, which it will bind
 * to the first definition of the name. False: the object never calls our functions, or has text relocations. O(imports
 * + relocations). */
bool rewrite_find_slots(const struct rewrite_image *image, const struct stub_code stub[2], bool trust_lazy,
                        struct rewrite_slots *out);

/* Writes at most `most` sites in ascending order of address; returns their number. frames: as rewrite_frames_find
 * states. O(functions); O(n log n) if they are not in order. */
uint32_t rewrite_find_sites(const struct rewrite_image *image, const struct rewrite_frames *frames,
                            const struct rewrite_slots *slots, struct rewrite_site *out, uint32_t most);

#endif
