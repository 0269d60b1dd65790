/* The collector's code within 2 GiB of an object: copies of the stub, and thunks. */
#ifndef PROFD_COLLECT_REWRITE_NEAR_H
#define PROFD_COLLECT_REWRITE_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/collect/rewrite_find.h"

#define REWRITE_NO_THUNKS UINT32_MAX

struct rewrite_near {
    uintptr_t at; /* 0: none */
    size_t size;
    uint32_t first; /* number of the first thunk's site among all of the process, or REWRITE_NO_THUNKS */
};

/* Creates executable code for n sites of the object. first: as above. False: no memory is near enough, or the process
 * may not create code; nothing is left. */
bool rewrite_near_make(const struct rewrite_image *image, const struct rewrite_site *sites, uint32_t n, uint32_t first,
                       const struct stub_code stub[2], struct rewrite_near *out);

/* The address to which site number i of the object jumps, or which it calls. */
uintptr_t rewrite_near_target(const struct rewrite_near *near, const struct rewrite_site *site, uint32_t i);

void rewrite_near_free(struct rewrite_near *near);

#endif
