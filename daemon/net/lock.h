/* A mutex, for directories that may not use threads themselves. */
#ifndef PROFD_NET_LOCK_H
#define PROFD_NET_LOCK_H

struct lock;

/* NULL when out of memory. */
struct lock *lock_new(void);
/* The lock must not be held. Accepts NULL. */
void lock_free(struct lock *l);

/* Waits for it; not to be taken twice by one thread. The argument is a struct lock, so that they fit as callbacks. */
void lock_take(void *lock);
void lock_give(void *lock);

#endif
