/* Begin and end of counting in threads. */
#ifndef PROFD_COLLECT_THREAD_H
#define PROFD_COLLECT_THREAD_H

/* Creates the key with the destructor that ends a thread's counting. Called once, from the constructor. */
void thread_prepare(void);

/* Registers the calling thread, which counts or is sampled, so that its end is noticed. Not from handlers or the slow
 * path: it calls libc. */
void thread_begin(void);
/* Likewise from the slow path, once for each thread that started unobserved. */
void thread_begin_late(void);

#endif
