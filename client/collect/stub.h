/* Definitions shared with assembly: offsets, the thread-local variable, the dummy table. */
#ifndef PROFD_COLLECT_STUB_H
#define PROFD_COLLECT_STUB_H

#define STUB_TABLE_MASK 16  /* struct attach_chunk.client[0]: byte mask of the first area */
#define STUB_TABLE_HMASK 24 /* client[1]: byte mask of the second area */
#define STUB_TABLE_HASH 32  /* client[2]: where the second area begins, from the chunk's beginning */
#define STUB_SLOTS 64       /* the first slot; a slot has 16 bytes: key, count */
#define STUB_TOMB 1         /* a key that no call has */
#define STUB_FACTOR 0x9e3779b97f4a7c15
#define STUB_DIRECT 8     /* struct stub_thread.direct */
#define STUB_SITES 16     /* struct stub_thread.sites */
#define STUB_SITE_SLOTS 8 /* that a site has in a thread's table of sites; which: three bits of the key above 8 */
#define STUB_SITE_KEY 3   /* key of a caller there: from × 2 + 3. Odd, never STUB_TOMB; even while counting is off */
#define STUB_OFTEN 64     /* calls after which one is worth a slot there */

/* A thunk: what a rewritten call site jumps to and comes back from. rewrite_object.c writes them, stub_x86_64.S reads
 * from behind a thunk's call: where the thunk goes on, and the site's place in the thread's table. */
#define STUB_THUNK_SIZE 64
#define STUB_THUNK_AFTER 51 /* a jump back to the site: its displacement begins one byte later */
#define STUB_THUNK_PLACE 28 /* 32 bits */

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "proto/attach_memory.h"

/* Key of a call: self << 32 | from, 32 bits each. Index in the first area: from / 8, in the second: the high half of
 * key × STUB_FACTOR; there, probing goes upwards to the first free slot. */
static inline uint64_t stub_key(uintptr_t from, uintptr_t self)
{
    return (uint64_t)self << 32 | (uint32_t)from;
}

struct stub_dummy {
    struct attach_chunk head;
    struct attach_slot never, empty;
};
/* Every call misses in it. A thread begins with it. */
extern struct stub_dummy profd_collect_dummy;

/* Code of the x86-64 stub for one name, mcount or __fentry__. */
struct stub_code {
    void (*entry)(void); /* our own function, whatever the name is bound to */
    /* What is copied into a page near rewritten sites: the thread's offset ends at near_offset, and the last 8 bytes
     * are the address of `none`. */
    const uint8_t *near, *near_offset, *near_end;
    void (*none)(void);
    void (*site)(void); /* called by a thunk that found another caller in its site's first slot */
};
extern const struct stub_code profd_collect_stub[2] __attribute__((visibility("hidden"))); /* mcount, __fentry__ */

/* As many sites as may have thunks: beyond that the thunks' own code would be what caches miss. */
#define STUB_SITES_MAX 512u
extern struct attach_slot profd_collect_dummy_sites[STUB_SITES_MAX * STUB_SITE_SLOTS];

struct stub_thread {
    uintptr_t table; /* of the thread's table above &profd_collect_dummy. Zero works before anything was set up */
    struct attach_chunk
        *direct; /* the same as an address: for code that runs only when threads have their first values */
    struct attach_slot *sites; /* of the thread's table of sites, or profd_collect_dummy_sites */
    uint32_t tid;
    int32_t timer;                   /* id + 1 of its sampling timer; 0: none, −1: never try again */
    uintptr_t stack_low, stack_high; /* zeros: not known */
    uint32_t begun;                  /* its end will be seen */
    uint32_t passes;                 /* of the key's destructor */
    uint32_t closing;                /* dlclose()s that it is in */
    uint32_t reading;                /* 1: it reads objects (unload_read_begin) */
};
extern _Thread_local struct stub_thread profd_collect_thread __attribute__((tls_model("initial-exec")));

_Static_assert(offsetof(struct attach_chunk, client) == STUB_TABLE_MASK, "as the stubs have it");
_Static_assert(sizeof(struct attach_chunk) == STUB_SLOTS, "as the stubs have it");
_Static_assert(offsetof(struct stub_thread, direct) == STUB_DIRECT && offsetof(struct stub_thread, sites) == STUB_SITES,
               "as the stubs have it");
#endif

#endif
