/* Synchronizes ticks, which read objects, with dlclose(), which unmaps them. */
#ifndef PROFD_COLLECT_UNLOAD_H
#define PROFD_COLLECT_UNLOAD_H

#include <stdbool.h>

/* Between the two calls, objects stay mapped, as far as the program unloads them by dlclose(). False: a dlclose() is in
 * progress. Addresses on a stack may be old, so even an object in which no code runs may be read. From the handler of
 * ticks only; lock-free. */
bool unload_read_begin(void);
void unload_read_end(void);

/* Around a dlclose(): waits until no other thread reads. A reader that has been stopped for a second is not waited for.
 */
void unload_begin(void);
void unload_end(void);

/* In a child of fork, which has one thread. */
void unload_reset(void);

#endif
