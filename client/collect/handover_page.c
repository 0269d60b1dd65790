#include "client/collect/handover_page.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/collect/raw.h"
#include "proto/attach_memory.h"

#define STALE_MS 3000 /* without a heartbeat: then the daemon may have ended */

#ifdef __aarch64__
#define PAGE_MOST 65536u
#else
#define PAGE_MOST 4096u
#endif

/* Pages are mapped alternately at two addresses that are never unmapped. A handler that was interrupted between finding
 * the page and reading it therefore still reads a page. The addresses are inside the collector: a separate mapping
 * could take the address of the program's next library. */
static uint8_t places[2][PAGE_MOST] __attribute__((aligned(PAGE_MOST)));
static uint32_t next; /* of the two */
static uint32_t beat_seen, asked_seen;
static uint64_t beat_at; /* ms: when beat_seen was new */
static const struct attach_page *current;

static bool is_page(int fd)
{
    struct stat st;
    struct attach_page page;
    raw_zero(&st, sizeof st);
    if (raw_call(SYS_fstat, fd, &st, 0, 0) != 0 || !S_ISREG(st.st_mode) || st.st_size != ATTACH_PAGE) {
        return false;
    }
    long seals = raw_call(SYS_fcntl, fd, F_GET_SEALS, 0, 0);
    return seals >= 0 && (seals & F_SEAL_SHRINK) &&
           raw_call(SYS_pread64, fd, &page, sizeof page, 0) == (long)sizeof page && page.magic == ATTACH_PAGE_MAGIC &&
           page.layout == ATTACH_LAYOUT;
}

bool handover_page_take(int fd)
{
    bool good = is_page(fd);
    if (good) {
        long p = raw_call6(SYS_mmap, (long)places[next], ATTACH_PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
        good = !(p < 0 && p > -4096);
        if (good) {
            next ^= 1;
            asked_seen = 0;
            __atomic_store_n(&current, (const struct attach_page *)p, __ATOMIC_RELEASE);
        }
    }
    raw_call(SYS_close, fd, 0, 0, 0);
    return good;
}

bool handover_page_get(bool *paused, uint32_t *rate)
{
    const struct attach_page *page = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    *paused = page && __atomic_load_n(&page->paused, __ATOMIC_RELAXED) == 1;
    *rate = page ? __atomic_load_n(&page->rate, __ATOMIC_RELAXED) : 0;
    return page != NULL;
}

bool handover_page_is_quiet(uint64_t now, uint32_t *asked)
{
    const struct attach_page *page = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (!page) {
        *asked = 0;
        return false;
    }
    uint32_t beat = __atomic_load_n(&page->beat, __ATOMIC_RELAXED);
    *asked = __atomic_load_n(&page->asked, __ATOMIC_RELAXED);
    if (__atomic_load_n(&page->filtered, __ATOMIC_RELAXED)) {
        __atomic_fetch_or(&raw_denied, 1u << 31, __ATOMIC_RELAXED);
    }
    if (beat != __atomic_load_n(&beat_seen, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&beat_at, now, __ATOMIC_RELAXED);
        __atomic_store_n(&beat_seen, beat, __ATOMIC_RELEASE);
    }
    return beat != 0 && (int64_t)(now - __atomic_load_n(&beat_at, __ATOMIC_RELAXED)) < STALE_MS &&
           *asked == __atomic_load_n(&asked_seen, __ATOMIC_RELAXED);
}

void handover_page_answer(uint32_t asked)
{
    __atomic_store_n(&asked_seen, asked, __ATOMIC_RELAXED);
}

void handover_page_reset(void)
{
    current = NULL;
}
