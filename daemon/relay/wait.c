#include "relay/wait.h"

#define DAY_MS UINT64_C(86400000)
#define FIRST_MS UINT64_C(10000)
#define LEAST_MS UINT64_C(100) /* even if the centre says 0 */

uint64_t wait_first(int64_t interval_ns, uint32_t random)
{
    const uint64_t interval = (uint64_t)interval_ns / 1000000;

    return (interval < FIRST_MS ? interval : FIRST_MS) * random >> 32;
}

uint64_t wait_next(const struct flush *f, int64_t interval_ns, uint32_t random)
{
    const uint64_t interval = (uint64_t)interval_ns / 1000000, least = interval / 20;
    uint64_t wait = f->has_slot ? f->wait_ms : least + ((interval - least) * random >> 32);

    wait = wait < DAY_MS ? wait : DAY_MS;
    return wait > LEAST_MS ? wait : LEAST_MS;
}
