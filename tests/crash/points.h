/* Faults at chosen operations of the daemon on its database. */
#ifndef PROFD_TESTS_CRASH_POINTS_H
#define PROFD_TESTS_CRASH_POINTS_H

#include "tests/crash/campaign.h"

/* What the daemon begins with and is made to do. */
struct scene {
    const char *name;
    const char *seed;           /* folder with the files it begins with; NULL: none */
    const struct stream *begun; /* what the client had sent by then; NULL: nothing */
    uint32_t more;              /* uploads to send, of each lane */
    uint32_t pause_ns;          /* between them */
    const struct habit *habit;
    uint64_t operations; /* counted in a run without faults */
};

/* What goes wrong. */
struct way {
    const char *name;
    enum fault_action action;
    uint32_t error, kinds;
    bool managed;
};

/* A run of the scene with the n-th operation going wrong, and what is demanded of the daemon then. False: something is
 * wrong, and was said. *hit: the operation was reached. n = 0: no fault; counts the scene's operations. */
bool points_try(struct campaign *c, struct scene *scene, const struct way *way, uint64_t n, bool *hit);

/* The memory shared with the library, at path. NULL: no memory. */
struct fault *points_share(const char *path);

#endif
