/* Ticks that read objects, and dlclose(), which unmaps them. */
#ifndef PROFD_COLLECT_UNLOAD_H
#define PROFD_COLLECT_UNLOAD_H

#include <stdbool.h>

/* Between them, what is mapped of objects stays so, as far as the program closes them. False while a dlclose() is under
 * way: addresses on a stack may be old, so an object that nothing runs in may be met. Of the tick's handler only;
 * lock-free. */
bool unload_read_begin(void);
void unload_read_end(void);

/* Around a dlclose(): begins when no other thread reads. A reader that was stopped for a second is not waited for. */
void unload_begin(void);
void unload_end(void);

/* In a fork's child, which has one thread. */
void unload_reset(void);

#endif
