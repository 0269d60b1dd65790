/* Whether to count: only if both the program (moncontrol) and the daemon (its page) allow it. */
#ifndef PROFD_COLLECT_PAUSE_H
#define PROFD_COLLECT_PAUSE_H

#include <stdbool.h>

enum pause_by { PAUSE_BY_PROGRAM = 1, PAUSE_BY_DAEMON = 2 };

/* Forbids or allows counting for that side; calls collect_switch() if the result changes. Any thread, any handler. If
 * another thread is switching, that thread handles the change. */
void pause_set(enum pause_by side, bool denied);

/* In a child of fork that counts already: inherits the program's setting, not the daemon's. */
void pause_begin_child(void);

#endif
