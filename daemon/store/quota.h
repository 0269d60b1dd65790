/* The quota of a user, so that no user can fill the disk. */
#ifndef PROFD_STORE_QUOTA_H
#define PROFD_STORE_QUOTA_H

#include <stdint.h>

#include "store/store.h"

/* Returns the bytes that a user may store, if all users store total and the user own: this percentage of limit without
 * the bytes of the others. UINT64_MAX: no limit (limit is 0, or percent is 100). */
uint64_t quota_most(uint64_t limit, unsigned percent, uint64_t own, uint64_t total);

#endif
