#include "proto/message.h"

#include <stdlib.h>

const char *message_inexact_name(uint32_t bit)
{
    switch (bit) {
    case INEXACT_THREADS_UNKNOWN:
        return "threads-unknown";
    case INEXACT_CALLER_BUCKET:
        return "caller-bucket";
    case INEXACT_BINS_16_BIT:
        return "16-bit-bins";
    case INEXACT_CLOCK:
        return "clock";
    case INEXACT_SATURATED:
        return "saturated";
    case INEXACT_LOST:
        return "lost";
    case INEXACT_PAUSED:
        return "paused";
    case INEXACT_TICKS_OUTSIDE:
        return "ticks-outside";
    case INEXACT_END_NOT_SEEN:
        return "end-not-seen";
    case INEXACT_SAMPLED:
        return "sampled";
    default:
        return NULL;
    }
}

void message_done(struct message *m)
{
    free(m->block);
    *m = (struct message){0};
}
