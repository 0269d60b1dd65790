/* Call sites of an object as it lies in memory. */
#ifndef PROFD_COLLECT_REWRITE_FIND_H
#define PROFD_COLLECT_REWRITE_FIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/collect/stub.h"

/* Returns the length of the x86-64 instruction at code, which ends before end. 0: it is a call, jump, return, trap or
 * system call, is unknown, or does not end before end. Conditional jumps have a length. Reads nothing at end or beyond.
 * O(1). */
unsigned rewrite_decode_length(const uint8_t *code, const uint8_t *end);

/* An object: its program headers, and what the loader added. */
struct rewrite_image {
    const ElfW(Phdr) * headers;
    unsigned count;
    uintptr_t bias, low, high; /* [low, high) as mapped */
};

/* False: no header, or more than 4 GiB. */
bool rewrite_image_fill(const ElfW(Phdr) * headers, unsigned count, uintptr_t bias, struct rewrite_image *out);

/* True if [at, at + size) is inside a code segment. */
bool rewrite_image_has_code(const struct rewrite_image *image, uintptr_t at, uint64_t size);

/* A cursor over functions: by the sorted table of PT_GNU_EH_FRAME, or, where a static program has none, frame after
 * frame. */
struct rewrite_frames {
    const struct rewrite_image *image;
    uintptr_t table, frames, end; /* one of the first two; end of the frames */
    uint32_t count;               /* functions, at most */
    uint32_t next;                /* row of the table */
    uintptr_t common;             /* the last common entry that was read, and whether it is of the form that is known */
    bool known;
};

/* False if there is no unwind information. program: the image is the main program's, so its file may be read (by raw
 * system calls). */
bool rewrite_frames_find(const struct rewrite_image *image, bool program, struct rewrite_frames *out);

enum rewrite_form {
    REWRITE_FENTRY = 1, /* true: __fentry__; false: mcount */
    REWRITE_LONG = 2,   /* six bytes: a prefix precedes the opcode */
    REWRITE_LEFT = 4,   /* it is not to count, and always switched off */
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
