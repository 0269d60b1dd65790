#include "requests/sync.h"

#include <stdlib.h>

#include "core/container.h"
#include "live/live.h"
#include "base/log.h"
#include "requests/body.h"
#include "requests/session.h"

/* One that waits for live processes. */
struct sync_wait {
    struct live_sync sync;
    const struct sync_config *config;
    conn_id conn;
    uint64_t job; /* of the connection's session */
};

/* Answers the SYNCs that have no unfinished jobs. */
static void sync_answer_granted(const struct sync_config *config, struct conn *c)
{
    struct message ack = {.type = FRAME_ACK};
    struct session *session = conn_get_user(c);
    uint32_t tag;
    bool failed;

    while (session_take_granted(session, &tag, &failed)) {
        if (failed) {
            conn_nack(c, tag, PROFD_IO, "what a live process counted could not be stored", 1000);
        } else {
            live_tell(config->live, conn_get_peer(c)->uid, &ack.as.ack.run, &ack.as.ack.refused);
            conn_answer(c, &ack, 0, tag);
        }
    }
}

void sync_end_job(const struct sync_config *config, struct conn *c, uint64_t job)
{
    session_end(conn_get_user(c), job);
    sync_answer_granted(config, c);
}

void sync_nack_job(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence,
                   uint32_t retry_after_ms)
{
    conn_nack(c, tag, status == PROFD_DAMAGED ? PROFD_IO : status, sentence, retry_after_ms);
}

/* Fails a job of the session, and refuses the SYNCs that waited for it. */
static void fail_job(const struct sync_config *config, struct conn *c, uint64_t job)
{
    session_fail(conn_get_user(c), job);
    sync_answer_granted(config, c);
}

static void sync_granted(struct live_sync *sync, enum profd_status status)
{
    struct sync_wait *w = container_of(sync, struct sync_wait, sync);
    struct conn *c = status == PROFD_STOPPING ? NULL : conn_find(w->config->conns, w->conn);

    if (c && status) {
        fail_job(w->config, c, w->job);
    } else if (c) {
        sync_end_job(w->config, c, w->job);
    }
    free(w);
}

/* Waits for live processes, and ends the job then. */
static enum profd_status sync_wait_for_live(const struct sync_config *config, struct conn *c, uint64_t job,
                                            struct profd_error *e)
{
    struct sync_wait *w = calloc(1, sizeof *w);
    enum profd_status status;

    if (!w) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a SYNC");
    }
    w->sync.uid = conn_get_peer(c)->uid;
    w->sync.granted = sync_granted;
    w->config = config;
    w->conn = conn_get_id(c);
    w->job = job;
    status = live_sync(config->live, &w->sync, e);
    if (status) {
        free(w);
    }
    return status;
}

enum profd_status sync_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct sync_config *config = context;
    struct session *session = conn_get_user(c);
    struct profd_error why;
    uint64_t job;

    if (f->body.size) {
        return profd_error_set(e, PROFD_MALFORMED, "a SYNC has no body, this one has %zu bytes", f->body.size);
    }
    job = session_begin(session);
    if (!session_sync(session, f->header.tag)) {
        session_end(session, job);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a SYNC");
    }
    if (sync_wait_for_live(config, c, job, &why)) {
        log_write(LOG_LEVEL_WARNING, "sync", "a SYNC of user %u was refused: %s", conn_get_peer(c)->uid, why.sentence);
        fail_job(config, c, job);
    }
    return PROFD_OK;
}

enum profd_status sync_receive_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct message m;
    enum profd_status status = body_decode(f, &m, e);

    (void)context;
    if (status) {
        return status;
    }
    log_write(LOG_LEVEL_INFO, "client complaint", "the client of user %u reports: %s", conn_get_peer(c)->uid,
              m.as.nack.sentence);
    message_done(&m);
    return PROFD_OK;
}
