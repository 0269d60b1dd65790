/* Claimed users: a program that samples a whole host sends what processes of other users did (DECISIONS 54). Pure. */
#ifndef PROFD_INGEST_CLAIM_H
#define PROFD_INGEST_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

/* A message of user sender, which may claim or not; it claims that it is of uid if claimed is set. */
struct claim {
    uint32_t sender;
    bool may_claim, claimed;
    uint32_t uid;
};

/* Sets *uid to the user that the message is of. FORBIDDEN: the sender may not claim, or the number is one of those of
 * tenants. */
enum profd_status claim_check(const struct claim *c, uint32_t *uid, struct profd_error *e);

#endif
