/* The sites of one object: found, rewritten, switched. */
#ifndef PROFD_COLLECT_REWRITE_OBJECT_H
#define PROFD_COLLECT_REWRITE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/collect/rewrite_find.h"

/* The collector's code within 2 GiB of an object: copies of the stub, and thunks. */

#define REWRITE_NO_THUNKS UINT32_MAX

struct rewrite_near {
    uintptr_t at; /* 0: none */
    size_t size;
    uint32_t first; /* number of the first thunk's site among all of the process, or REWRITE_NO_THUNKS */
};

enum rewrite_state { REWRITE_ON, REWRITE_OFF, REWRITE_MIXED };

struct rewrite_object {
    struct rewrite_image image;
    struct rewrite_site *sites; /* ascending */
    uint32_t sites_capacity;
    uint32_t count;           /* 0: not rewritten, or gone */
    uint32_t first, capacity; /* numbers of its sites: first … first + capacity − 1; 0: it has no thunks */
    uint32_t state;           /* enum rewrite_state */
    uint16_t module;
    struct rewrite_near near;
    const void *loaded;
};

/* Fills sites and count from image. trust_lazy: see rewrite_find_slots. False: there are none. */
bool rewrite_object_find(struct rewrite_object *o, const struct stub_code stub[2], bool trust_lazy);

/* Marks the sites that are in functions of the list that leave_out.h reads; returns their number. */
uint32_t rewrite_object_leave_out(struct rewrite_object *o);

/* Rewrites all sites; those that are marked so that they do not count. The process must have one thread; signals are
 * blocked meanwhile. False: code may not be changed, and is unchanged. */
bool rewrite_object_patch(struct rewrite_object *o, const struct stub_code stub[2]);

/* Switches all sites by changing one byte of each; threads may run. Code that is no longer a site is not changed. */
void rewrite_object_switch(struct rewrite_object *o, bool on);

/* For an object with unmapped code: only the collector's own code is changed. */
void rewrite_object_reset(struct rewrite_object *o);

/* Number + 1 of the site that returns to self among the object's; 0: none. O(log sites) */
uint32_t rewrite_object_search(const struct rewrite_object *o, uintptr_t self);

#endif
