#include "render/reasons.h"

#include "core/arena.h"
#include "proto/message.h"
#include "proto/collector.h"

const char *reasons_list(const struct render_input *in, struct arena *a)
{
    const char *list = NULL;
    const uint64_t *w = in->coverage != NULL ? in->coverage->counters : NULL;
    uint32_t inexact = in->provenance->inexact;
    if (w != NULL && (w[COLLECTOR_INSIDE_NS] | w[COLLECTOR_BLOCKED_NS] | w[COLLECTOR_DROPPED_NS]) != 0) {
        inexact |= INEXACT_TICKS_OUTSIDE;
    }
    for (uint32_t bit = 1; bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name != NULL) {
            list = list != NULL ? arena_format(a, "%s, %s", list, name) : name;
        }
    }
    return list != NULL ? list : "none";
}
