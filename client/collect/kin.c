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

/* Oldest first: each is the parent of the next one, the last one is the parent of this process. Only the last one may
 * be recorded in its own parent. They are inside the collector, like the daemon's page (handover_page.c). */
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
    /* Last: a child that ends in between is then reported as missing although it is not, and never the reverse. */
    if (n > 0) {
        __atomic_store_n(&child->counters[ATTACH_COUNTER_IS_CHILD], n, __ATOMIC_RELEASE);
    }
    return n > 0;
}

void kin_reset(void)
{
    kin_untold = 0;
}

/* Length 0: creates a second mapping of the same page. This fails for a region that is not shared, which no daemon
 * reads. */
static bool page_keep(const void *page, uint32_t i)
{
    long p = raw_call6(SYS_mremap, (long)page, 0, ATTACH_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (long)pages[i], 0);
    return !(p < 0 && p > -4096);
}

void kin_begin_child(const struct attach_header *parent)
{
    uint32_t n = kin_untold;
    if (n == ATTACH_PARENTS_MAX) { /* the oldest one, which counted or was the first process, stays */
        n--;
        if (!page_keep(pages[n], n - 1)) {
            n--;
        }
    }
    kin_untold = page_keep(parent, n) ? n + 1 : 0;
}
