/* One connection to the centre: segments go there, acknowledgements come back. */
#ifndef PROFD_RELAY_FLUSH_H
#define PROFD_RELAY_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "proto/status.h"

#define FLUSH_SEGMENTS 20u /* at most, of one connection */

struct flush {
    unsigned delivered, acknowledged;
    bool has_slot;              /* the centre has said when to come again: */
    uint32_t wait_ms;           /* after that time */
    bool renew;                 /* the certificate of this host should be renewed now */
    struct profd_error symbols; /* why a parsed object did not reach the centre; "": none failed */
};

/* Fetches segments from profd, delivers them to the centre, and tells profd which of them the centre has committed.
 * last_error: of the flush before, or ""; profd is told it until the centre answers. If the centre cannot be reached or
 * refuses, profd is told why. A segment that was not answered stays with profd and is delivered again. *out is set
 * on failure, too. */
enum profd_status flush_run(const struct config *c, const char *last_error, struct flush *out, struct profd_error *e);

#endif
