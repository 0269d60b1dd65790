/* The control page of the daemon, which is only read here (struct attach_page). */
#ifndef PROFD_COLLECT_HANDOVER_PAGE_H
#define PROFD_COLLECT_HANDOVER_PAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the page behind fd in place of the last one; closes fd in any case. False: it is no such page, or could shrink
 * under its readers, which would kill the program; then the last one holds. One caller at a time. */
bool handover_page_take(int fd);

/* The daemon's current request; false and zeros without a page. Any thread, any handler. */
bool handover_page_get(bool *paused, uint32_t *rate);

/* In a fork's child: the page is that of the parent. */
void handover_page_reset(void);

#endif
