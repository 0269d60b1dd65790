/* The daemon's control page (struct attach_page); read only. */
#ifndef PROFD_COLLECT_HANDOVER_PAGE_H
#define PROFD_COLLECT_HANDOVER_PAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the page of fd in place of the previous one; closes fd in any case. False: fd is not such a page, or could be
 * truncated, which would kill the program; the previous page then stays. One caller at a time. */
bool handover_page_take(int fd);

/* Reads the daemon's current request; false and zeros without a page. Any thread, any handler. */
bool handover_page_get(bool *paused, uint32_t *rate);

/* Returns true if the process need not look for the daemon: its page's heartbeat is not stale, and it asks for
 * nothing new; *asked is what it asks. now: ms of whatever clock. Any thread, any handler. Learns from the page that
 * the process has a new seccomp filter. */
bool handover_page_is_quiet(uint64_t now, uint32_t *asked);

/* The process has read its connection since it saw this. */
void handover_page_answer(uint32_t asked);

/* In a child of fork: ignores the page, which is the parent's. */
void handover_page_reset(void);

#endif
