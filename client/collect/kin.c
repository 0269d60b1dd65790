#include "client/collect/kin.h"

#include <stddef.h>
#include <sys/mman.h>

#include "client/collect/raw.h"

#ifdef __aarch64__
#define PAGE_MOST 65536u
#else
#define PAGE_MOST 4096u
#endif

uint32_t kin_untold;

/* Oldest first: each is the parent of the next, the last one the parent of this process. Only the last may have told
 * its own parent. They lie within the collector, as the daemon's page does (handover_page.c). */
static uint8_t pages[ATTACH_PARENTS_MAX][PAGE_MOST] __attribute__((aligned(PAGE_MOST)));

static struct attach_header *ancestor(uint32_t i)
{
    return (struct attach_header *)(void *)pages[i];
}

bool kin_tell_now(struct attach_header *child)
{
    uint32_t n = __atomic_exchange_n(&kin_untold, 0, __ATOMIC_ACQ_REL);
    for (uint32_t i = 0; i < n; i++) {
        __atomic_fetch_add(&ancestor(i)->counters[ATTACH_COUNTER_CHILDREN], 1, __ATOMIC_ACQ_REL);
    }
    for (uint32_t i = 0; i + 1 < n; i++) {
        raw_copy(child->elders[i], ancestor(n - 2 - i)->instance, ATTACH_INSTANCE_SIZE);
    }
    /* Last: a child that dies in between is missed once too often, not once too rarely. */
    if (n > 0) {
        __atomic_store_n(&child->counters[ATTACH_COUNTER_IS_CHILD], n, __ATOMIC_RELEASE);
    }
    return n > 0;
}

void kin_reset(void)
{
    kin_untold = 0;
}

/* Of length 0: a second mapping of the same page. A region that is not shared has none, and no daemon reads it. */
static bool page_keep(const void *page, uint32_t i)
{
    long p = raw_call6(SYS_mremap, (long)page, 0, ATTACH_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (long)pages[i], 0);
    return !(p < 0 && p > -4096);
}

void kin_begin_child(const struct attach_header *parent)
{
    uint32_t n = kin_untold;
    if (n == ATTACH_PARENTS_MAX) { /* the oldest is the one that counted, or began: it stays */
        n--;
        if (!page_keep(pages[n], n - 1)) {
            n--;
        }
    }
    kin_untold = page_keep(parent, n) ? n + 1 : 0;
}
