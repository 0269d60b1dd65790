/* Numbers with a noun, the same in the daemon's texts, its log and profctl: 1 is followed by the singular. */
#ifndef PROFD_PROTO_NOUN_H
#define PROFD_PROTO_NOUN_H

#include <stdint.h>

/* "tick" for 1 tick, "ticks" for 0 and 2 ticks. */
static inline const char *noun_for(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

#endif
