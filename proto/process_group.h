/* The random group of a process (schema/spread.md): one of 16, the same for all its uploads. Pure. */
#ifndef PROFD_PROTO_PROCESS_GROUP_H
#define PROFD_PROTO_PROCESS_GROUP_H

#include <stddef.h>
#include <stdint.h>

/* The group, < 16, of the process with that key, of that user on that host (a machine-id in lower case, or ""). O(n).
 */
uint32_t process_group_find(const char *host, uint32_t uid, const void *key, size_t n);

#endif
