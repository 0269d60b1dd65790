/* Who allows counting: the program (moncontrol) and the daemon (its page) each say yes or no, and only two yeses count.
 */
#ifndef PROFD_COLLECT_PAUSE_H
#define PROFD_COLLECT_PAUSE_H

#include <stdbool.h>

enum pause_by { PAUSE_BY_PROGRAM = 1, PAUSE_BY_DAEMON = 2 };

/* Denies or allows for that side; collect_switch() is called when both together changed. Any thread, any handler:
 * whoever comes while another switches leaves it to that one. */
void pause_set(enum pause_by side, bool denied);

/* In a fork's child, which counts already: the program's word holds there, too; the daemon has not yet spoken of this
 * process. */
void pause_begin_child(void);

#endif
