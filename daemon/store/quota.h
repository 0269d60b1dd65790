/* The quota of a user, so that no user can fill the disk. */
#ifndef PROFD_STORE_QUOTA_H
#define PROFD_STORE_QUOTA_H

#include <stdint.h>

/* Bytes that a user may have in total, if all users have total and it has own: that percentage of what the others leave
 * of limit. UINT64_MAX: no limit (limit 0, or 100 percent). */
uint64_t quota_most(uint64_t limit, unsigned percent, uint64_t own, uint64_t total);

#endif
