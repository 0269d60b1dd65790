/* Whether to count: only if both the program (moncontrol) and the daemon (its page) allow it. */
#ifndef PROFD_COLLECT_PAUSE_H
#define PROFD_COLLECT_PAUSE_H

#include <stdbool.h>

enum pause_by { PAUSE_BY_PROGRAM = 1, PAUSE_BY_DAEMON = 2 };

/* Denies or allows for that side; collect_switch() is called when the result changes. Any thread, any handler: if
 * another thread is switching, that thread handles the change. */
void pause_set(enum pause_by side, bool denied);

/* In a fork's child, which counts already: the program's setting is inherited, the daemon's is not. */
void pause_begin_child(void);

#endif
