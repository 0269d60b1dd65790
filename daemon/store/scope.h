/* What is computed of a scope. */
#ifndef PROFD_STORE_SCOPE_H
#define PROFD_STORE_SCOPE_H

#include <stdint.h>

#include "store/store.h"

/* Adds the epoch of one of the users of a scope to the number of the scope's epoch, which is 0 at first. Of a scope of
 * one user it is that user's, of one of several a hash of them all: a user whose data is gone changes it, too. The
 * users must be added in the same order each time. */
uint64_t store_scope_mix(const struct store_scope *scope, uint64_t number, uint32_t uid, uint64_t epoch);

#endif
