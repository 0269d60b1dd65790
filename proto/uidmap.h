/* Which user a uid that the kernel reports stands for. In a user namespace every user that is not mapped is reported as
 * the overflow uid, so that this number proves nothing there, not even that two processes have the same user. */
#ifndef PROFD_PROTO_UIDMAP_H
#define PROFD_PROTO_UIDMAP_H

#include <stddef.h>
#include <stdint.h>

#define UIDMAP_OVERFLOW_PATH "/proc/sys/kernel/overflowuid"
#define UIDMAP_PATH "/proc/self/uid_map"
#define UIDMAP_OVERFLOW 65534u /* where the first file cannot be read */
#define UIDMAP_ALL 4294967295u /* users, when all are mapped */
#define UIDMAP_NONE UINT32_MAX /* no user has this uid */

/* The next decimal number of a text of n bytes, from *at on; 0 where there is none. */
static inline uint64_t uidmap_number(const char *text, size_t n, size_t *at)
{
    uint64_t value = 0;

    while (*at < n && (text[*at] < '0' || text[*at] > '9')) {
        ++*at;
    }
    for (; *at < n && text[*at] >= '0' && text[*at] <= '9' && value <= UINT32_MAX; ++*at) {
        value = value * 10 + (uint64_t)(text[*at] - '0');
    }
    return value;
}

/* The uid that may represent any unmapped user; UIDMAP_NONE if all users are mapped, so that each uid identifies its
 * user. overflow and map are the contents of the two files, of 0 bytes if they cannot be read. */
static inline uint32_t uidmap_unproven(const char *overflow, size_t overflow_size, const char *map, size_t map_size)
{
    size_t at = 0;
    uint64_t mapped = 0;
    const uint32_t uid = overflow_size ? (uint32_t)uidmap_number(overflow, overflow_size, &at) : UIDMAP_OVERFLOW;

    for (at = 0; at < map_size;) {
        uidmap_number(map, map_size, &at); /* first uid inside, first uid outside, count */
        uidmap_number(map, map_size, &at);
        mapped += uidmap_number(map, map_size, &at);
    }
    return mapped >= UIDMAP_ALL ? UIDMAP_NONE : uid;
}

#endif
