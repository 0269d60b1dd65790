#include "relay/wait.h"

#define DAY_MS UINT64_C(86400000)
#define FIRST_MS UINT64_C(10000)
#define LEAST_MS UINT64_C(100) /* even if the centre says 0 */
#define BACK_OFF_MS UINT64_C(1000)
#define BACK_OFF_MOST_MS UINT64_C(300000)

uint64_t wait_first(int64_t interval_ns, uint32_t random)
{
    const uint64_t interval = (uint64_t)interval_ns / 1000000;

    return (interval < FIRST_MS ? interval : FIRST_MS) * random >> 32;
}

uint64_t wait_round(const struct round_pause *p, uint32_t random)
{
    const uint64_t grown = BACK_OFF_MS << (p->failures < 9 ? p->failures : 9);
    uint64_t longest = p->kind == ROUND_FAILED && grown < BACK_OFF_MOST_MS ? grown : BACK_OFF_MOST_MS;

    if (p->kind == ROUND_DONE) {
        longest = p->said_ms < DAY_MS ? p->said_ms : DAY_MS;
        return longest > LEAST_MS ? longest : LEAST_MS;
    }
    if (p->kind == ROUND_SAID) {
        return p->said_ms + (p->said_ms / 4 * random >> 32);
    }
    return longest / 2 + (longest / 2 * random >> 32);
}
