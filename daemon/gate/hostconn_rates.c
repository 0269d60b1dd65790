/* How many hosts may enrol, or renew their certificates, in a second. */
#include <string.h>
#include <time.h>

#include "gate/hostconns_internal.h"

bool hostconn_same_site(const struct in6_addr *a, const struct in6_addr *b)
{
    return !memcmp(a, b, IN6_IS_ADDR_V4MAPPED(b) ? sizeof *a : sizeof *a / 2);
}

/* A host renews once in a second, so that none uses up the renewals of the others. */
static enum profd_status hostconn_may_renew(struct hostconns *h, const struct hostconn *c, struct profd_error *e)
{
    bool again = false;

    for (unsigned i = 0; i < h->renewed; i++) {
        again |= !memcmp(h->renewed_by[i], c->host.host, TLS_HOST_SIZE);
    }
    if (again || h->renewed == LIMIT_GATE_ENROLMENTS_PER_SECOND) {
        return profd_error_set(e, PROFD_BUSY, "%s in this second; try again in a few seconds",
                               again ? "this host has renewed its certificate" : "too many hosts renew certificates");
    }
    memcpy(h->renewed_by[h->renewed++], c->host.host, TLS_HOST_SIZE);
    return PROFD_OK;
}

enum profd_status hostconn_may_enrol(const struct hostconn *c, struct profd_error *e)
{
    struct hostconns *h = c->all;
    struct timespec now;
    unsigned same = 0;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != h->enrolled_since) {
        h->enrolled_since = now.tv_sec;
        h->enrolled = h->renewed = 0;
    }
    if (c->frame.type == FRAME_RENEW) {
        return hostconn_may_renew(h, c, e);
    }
    for (unsigned i = 0; i < h->enrolled; i++) {
        same += hostconn_same_site(&h->enrolled_from[i], &c->address);
    }
    if (h->enrolled == LIMIT_GATE_ENROLMENTS_PER_SECOND || same >= LIMIT_GATE_ENROLMENTS_PER_ADDRESS_AND_SECOND) {
        return profd_error_set(e, PROFD_BUSY,
                               "more than %u hosts, or %u of one address, enrol in this second; try again in a few "
                               "seconds",
                               LIMIT_GATE_ENROLMENTS_PER_SECOND, LIMIT_GATE_ENROLMENTS_PER_ADDRESS_AND_SECOND);
    }
    h->enrolled_from[h->enrolled++] = c->address;
    return PROFD_OK;
}
