#include "ingest/claim.h"

#include "proto/limits.h"

enum profd_status claim_check(const struct claim *c, uint32_t *uid, struct profd_error *e)
{
    if (c->claimed && !c->may_claim) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u sends in the name of user %u: only root and the user profd-record may do that",
                               c->sender, c->uid);
    }
    if (c->claimed && c->uid >= LIMIT_UID_TENANTS) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u sends in the name of user %u: numbers of users from %u on belong to the "
                               "tenants of a centre",
                               c->sender, c->uid, LIMIT_UID_TENANTS);
    }
    *uid = c->claimed ? c->uid : c->sender;
    return PROFD_OK;
}
