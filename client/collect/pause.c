#include "client/collect/pause.h"

#include <stdint.h>

#include "client/collect/collect.h"

static uint32_t denied;  /* set of enum pause_by */
static uint32_t changes; /* that nobody has looked at yet; above 0: somebody is at it */

/* The last change wins, however the callers were interrupted: who began looks again until nothing new came. */
static void settle(void)
{
    uint32_t seen;
    if (__atomic_fetch_add(&changes, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    do {
        seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
        collect_switch(__atomic_load_n(&denied, __ATOMIC_ACQUIRE) == 0);
    } while (!__atomic_compare_exchange_n(&changes, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

void pause_set(enum pause_by side, bool no)
{
    uint32_t bit = (uint32_t)side;
    uint32_t before =
        no ? __atomic_fetch_or(&denied, bit, __ATOMIC_ACQ_REL) : __atomic_fetch_and(&denied, ~bit, __ATOMIC_ACQ_REL);
    if (((before & bit) != 0) != no)
        settle();
}

void pause_begin_child(void)
{
    denied &= PAUSE_BY_PROGRAM;
    changes = 0; /* of a thread that is not here */
    settle();
    if (denied)
        collect_word_add(ATTACH_WORD_PAUSES, 1); /* the parent's switch was off, and so is ours from the beginning */
}
