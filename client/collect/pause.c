#include "client/collect/pause.h"

#include <stdint.h>

#include "client/collect/collect.h"
#include "client/collect/rewrite.h"
#include "client/collect/count_table.h"

static uint32_t denied;  /* set of enum pause_by */
static uint32_t changes; /* changes not handled yet; above 0: a thread is handling them */

/* Switches counting and ticks on or off for the whole process, as moncontrol does. Calls that other threads are
 * counting at this moment may still be counted. The last change takes effect, even if callers interrupt each other: the
 * first caller repeats until there is no new change. */
static void settle(void)
{
    uint32_t seen;
    if (__atomic_fetch_add(&changes, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    do {
        seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
        const bool on = __atomic_load_n(&denied, __ATOMIC_ACQUIRE) == 0;
        if (collect.stage != COLLECT_RUNNING || (collect.on != 0) == on) {
            continue; /* to the condition: there may be a new change */
        }
        if (!on) {
            collect_counter_add(ATTACH_COUNTER_PAUSES, 1);
        }
        __atomic_store_n(&collect.on, on, __ATOMIC_RELEASE);
        if (!on) {
            rewrite_switch(false);
        }
        count_table_switch_all(on);
        if (on) {
            rewrite_switch(true);
        }
    } while (!__atomic_compare_exchange_n(&changes, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

void pause_set(enum pause_by side, bool no)
{
    uint32_t bit = (uint32_t)side;
    uint32_t before =
        no ? __atomic_fetch_or(&denied, bit, __ATOMIC_ACQ_REL) : __atomic_fetch_and(&denied, ~bit, __ATOMIC_ACQ_REL);
    if (((before & bit) != 0) != no) {
        settle();
    }
}

void pause_begin_child(void)
{
    denied &= PAUSE_BY_PROGRAM;
    changes = 0; /* of a thread that does not exist in the child */
    settle();
    if (denied) {
        collect_counter_add(ATTACH_COUNTER_PAUSES,
                            1); /* the parent's counting was off, so the child starts with counting off */
    }
}
