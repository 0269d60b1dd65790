/* ATTACH: a process sends the descriptor of the memory that it counts in, for the first time or again. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "live/live_internal.h"

#define POD_MS 1000 /* in which the kubelet links the log of a container that has started */

/* The same memory was attached over another connection, because the process or the daemon lost the earlier one. */
static enum profd_status attach_judge_again(const struct live_process *old, const struct live_process *a,
                                            struct profd_error *e)
{
    if (old->device == a->device && old->inode == a->inode) {
        /* The same memory may be attached by the same user, or by the same process, which has changed its user. */
        if (old->uid == a->uid || (a->origin.pid && a->origin.started && a->origin.pid == old->origin.pid &&
                                   a->origin.started == old->origin.started && search_has_user(&a->origin, a->uid))) {
            return PROFD_OK;
        }
        return profd_error_set(e, PROFD_CONFLICT, "the memory is attached as that of process %u of another user",
                               old->origin.pid);
    }
    FAIL_IF(old->conn, e, PROFD_CONFLICT,
            "process %u has attached another memory file of this instance and is connected", old->origin.pid);
    FAIL_IF(old->stage != LIVE_IDLE, e, PROFD_BUSY,
            "another memory file of this instance is being read for the last time");
    return PROFD_OK;
}

/* Finds or creates the entry for the memory that came with the frame. */
static enum profd_status attach_enter(struct live *l, struct conn *c, struct conn_frame *f, struct live_process **out,
                                      struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct live_process *a, *old;
    struct attach_origin origin;
    enum profd_status status;

    origin_of(l, peer->pid, &origin);
    TRY(process_new(l, peer->uid, &origin, f->fds[0], &a, e));
    conn_frame_take_fd(f, 0); /* attach_open has it */
    old = table_find_same(l, a);
    if (!old) {
        old = table_find(l, a->uid, a->instance);
    }
    status = old ? attach_judge_again(old, a, e) : table_check_capacity(l, peer->uid, e);
    if (status) {
        process_discard(a);
        return status;
    }
    *out = a;
    if (old && old->device == a->device && old->inode == a->inode) {
        /* Closes the earlier connection of the same memory; *out becomes the earlier entry. */
        answer_dismiss(l, old, PROFD_CONFLICT, "the process has attached over another connection");
        process_discard(*out);
        *out = old;
        return PROFD_OK;
    }
    if (old) {
        process_remove(l, old);
    }
    if (table_insert(l, a)) {
        return PROFD_OK;
    }
    process_discard(a);
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a live process");
}

/* The page, and its descriptor, for the ACK. */
static enum profd_status attach_greet(struct live *l, struct live_process *a, struct conn *c, uint32_t tag,
                                      struct profd_error *e)
{
    struct attach_page *page;
    int fd;
    TRY(page_new(&page, &fd, e));
    if (a->page) { /* what was said last holds */
        page_write(page, a->page->paused, a->page->rate);
    }
    page_free(a->page);
    a->page = page;
    process_set_page_fd(l, a, fd);
    a->tag = tag;
    a->owed = true;
    a->conn = conn_get_id(c);
    table_file(l, a);
    return PROFD_OK;
}

static enum profd_status attach_take(struct live *l, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct live_process *a;
    enum profd_status status;
    enum peer_process state;
    const struct process_place *place;
    int pidfd;

    FAIL_IF(f->body.size, e, PROFD_MALFORMED, "an ATTACH has no body, this one has %zu bytes", f->body.size);
    FAIL_IF(*l->config.get_slot(c), e, PROFD_PROTOCOL, "a second ATTACH on one connection");
    FAIL_IF(l->stopping, e, PROFD_STOPPING, "the daemon is stopping");
    if (writer_check(l->config.writer, e)) {
        return PROFD_IO;
    }
    TRY(attach_enter(l, c, f, &a, e));
    status = attach_greet(l, a, c, f->header.tag, e);
    if (status) { /* without an answer it would still be attached, if it was */
        if (!a->summary && a->stage == LIVE_IDLE) {
            process_remove(l, a);
        }
        return status;
    }
    *l->config.get_slot(c) = a;
    state = conn_open_process(c, &pidfd);
    exits_watch(l, a, state, pidfd);
    exits_mark_earlier(l, a);
    awaited_end_earlier(l, a);
    fdstore_keep(l, a);
    place = a->stage == LIVE_IDLE ? attach_get_place(a->process) : NULL;
    if (place && place->waits) { /* so that the first harvest has the names of the pod, too */
        a->next_at = loop_now() + POD_MS;
        harvest_sweep(l);
    } else {
        harvest_want(l, a, false);
    }
    l->counts.attached++;
    return PROFD_OK;
}

enum profd_status live_attach(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct live *l = context;
    enum profd_status status = attach_take(l, c, f, e);

    if (status) {
        refusals_add(&l->counts.attach_refused, status);
        live_count_refused(l, &conn_get_peer(c)->uid);
        log_write(LOG_LEVEL_INFO, "attach refused", "a process of user %u was not attached: %s", conn_get_peer(c)->uid,
                  e->sentence);
    }
    return status;
}
