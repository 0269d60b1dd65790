/* A descriptor of our own that becomes readable once: the handle of a process. Loop thread only. */
#ifndef PROFD_NET_WATCH_H
#define PROFD_NET_WATCH_H

struct loop;
struct watch;

/* f runs on the loop, once, when fd is readable; it may free the watch. The descriptor stays the caller's and is closed
 * after watch_free. NULL when out of memory or when the kernel cannot wait for such a descriptor. */
struct watch *watch_new(struct loop *l, int fd, void (*f)(void *context), void *context);
/* Accepts NULL. */
void watch_free(struct watch *w);

#endif
