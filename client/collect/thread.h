/* Beginning and end of threads. */
#ifndef PROFD_COLLECT_THREAD_H
#define PROFD_COLLECT_THREAD_H

/* Makes the key with the destructor that ends a thread's counting. Called once, from the constructor. */
void thread_prepare(void);

/* The calling thread counts or is sampled: its end must be seen. Not from handlers or the slow path: it calls libc. */
void thread_begin(void);
/* The same from the slow path, once for each thread that started unobserved. */
void thread_begin_late(void);

#endif
