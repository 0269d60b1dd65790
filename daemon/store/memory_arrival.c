#include "store/memory.h"

#include <stdlib.h>
#include <sys/random.h>

bool memory_centre_init(struct memory_centre *c)
{
    return getrandom(c->incarnation, sizeof c->incarnation, 0) == (ssize_t)sizeof c->incarnation;
}

void memory_centre_done(struct memory_centre *c)
{
    for (size_t i = 0; i < c->host_count; i++) {
        free(c->hosts[i].name);
    }
    free(c->hosts);
    free(c->arrivals);
    free(c->marks);
    free(c->deletions);
    free(c->attestations);
    free(c->tenants);
    free(c->tokens);
    free(c->enrolments);
}
