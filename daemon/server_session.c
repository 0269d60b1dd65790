/* What every request of a connection has in common. */
#include <stdlib.h>

#include "log.h"
#include "server_attach.h"
#include "server_parts.h"

/* Answers the SYNCs that wait for nothing any more. */
static void server_grant_syncs(struct conn *c)
{
    const struct message ack = {.type = FRAME_ACK};
    struct session *session = conn_get_user(c);
    uint32_t tag;
    bool failed;

    while (session_take_due(session, &tag, &failed)) {
        if (failed)
            conn_nack(c, tag, PROFD_IO, "what a live process counted could not be stored", 1000);
        else
            conn_answer(c, &ack, 0, tag);
    }
}

void server_end_job(struct conn *c, uint64_t job)
{
    session_end(conn_get_user(c), job);
    server_grant_syncs(c);
}

void server_fail_job(struct conn *c, uint64_t job)
{
    session_fail(conn_get_user(c), job);
    server_grant_syncs(c);
}

enum profd_status server_take_sync(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct session *session = conn_get_user(c);
    struct server *s = context;
    uint64_t job;

    if (f->body.size)
        return profd_error_set(e, PROFD_MALFORMED, "a SYNC has no body, this one has %zu bytes", f->body.size);
    job = session_begin(session);
    if (!session_sync(session, f->header.tag)) {
        session_end(session, job);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a SYNC");
    }
    /* It waits for processes that have ended, too, and ends the job then. */
    server_attach_sync(s, c, job);
    return PROFD_OK;
}

enum profd_status server_take_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct message m;
    enum profd_status status = server_decode(f, &m, e);

    (void)context;
    if (status)
        return status;
    log_write(LOG_LEVEL_INFO, "client complaint", "user %u says: %s", conn_get_peer(c)->uid, m.as.nack.sentence);
    message_done(&m);
    return PROFD_OK;
}

enum profd_status server_decode(const struct conn_frame *f, struct message *m, struct profd_error *e)
{
    enum profd_status status;
    uint8_t *inflated;
    size_t size;

    if (!(f->header.flags & FRAME_FLAG_COMPRESSED))
        return message_decode(f->header.type, f->body.data, f->body.size, m, e);
    status = frame_inflate(f->body.data, f->body.size, LIMIT_FRAME_SMALL, &inflated, &size, e);
    if (status)
        return status;
    status = message_decode(f->header.type, inflated, size, m, e); /* copies into its own block */
    free(inflated);
    return status;
}
