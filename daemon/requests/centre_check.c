/* What ARRIVE and DELIVER have in common. */
#include <string.h>

#include "requests/centre_internal.h"

enum profd_status centre_check(const struct centre_service *s, const struct conn *c, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);

    if (!peer->may_deliver) {
        return profd_error_set(
            e, PROFD_FORBIDDEN,
            "user %u may not send segments of hosts; only root, the daemon's user and profd-gate may", peer->uid);
    }
    if (!s->config.active) {
        return profd_error_set(e, PROFD_CONFIG, "this daemon is no centre: gate is not configured");
    }
    return writer_check(s->config.writer, e);
}

enum profd_status centre_copy(const struct message_bytes *from, const char *what, uint8_t *to, size_t size,
                              struct profd_error *e)
{
    if (from->size != size) {
        return profd_error_set(e, PROFD_MALFORMED, "%s has %zu bytes, not %zu", what, from->size, size);
    }
    memcpy(to, from->data, size);
    return PROFD_OK;
}
