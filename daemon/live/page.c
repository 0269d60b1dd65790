/* The control page of a process, which the daemon writes and the process reads (DECISIONS 25). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/live_internal.h"

/* Sealed while the daemon has it mapped writable: no new writable mapping is possible afterwards. */
static bool page_seal(int fd, struct attach_page **page)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void *at = MAP_FAILED;

    if (!ftruncate(fd, ATTACH_PAGE)) {
        at = mmap(NULL, ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        return false;
    }
    if (fcntl(fd, F_ADD_SEALS, seals)) {
        munmap(at, ATTACH_PAGE);
        return false;
    }
    *page = at;
    return true;
}

enum profd_status page_new(struct attach_page **page, int *fd, struct profd_error *e)
{
    const int memory = memfd_create("profd-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct attach_page *made;

    if (memory < 0 || !page_seal(memory, &made)) {
        profd_error_set(e, PROFD_NO_MEMORY, "cannot create the control page of the process: %s", strerror(errno));
        if (memory >= 0) {
            close(memory);
        }
        return PROFD_NO_MEMORY;
    }
    made->layout = ATTACH_LAYOUT;
    made->magic = ATTACH_PAGE_MAGIC;
    *page = made;
    *fd = memory;
    return PROFD_OK;
}

void page_free(struct attach_page *page)
{
    if (page) {
        munmap(page, ATTACH_PAGE);
    }
}

void page_write(struct attach_page *page, bool paused, uint32_t rate)
{
    __atomic_store_n(&page->rate, rate, __ATOMIC_RELAXED);
    __atomic_store_n(&page->paused, paused ? 1u : 0u, __ATOMIC_RELEASE);
}
