/* Beginning and end of an object's functions, from the unwind information. */
#ifndef PROFD_COLLECT_REWRITE_FRAMES_H
#define PROFD_COLLECT_REWRITE_FRAMES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

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

/* Reads the next function: [*begin, *begin + *size) is code. False: there are no more. */
bool rewrite_frames_next(struct rewrite_frames *f, uintptr_t *begin, uint32_t *size);

#endif
