#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/live_internal.h"

/* What a process is told over its connection: the ACK of ATTACH, or why it is given up. */

void answer_dismiss(struct live *l, struct live_process *a, enum profd_status status, const char *sentence)
{
    struct conn *c = a->conn ? conn_find(l->config.conns, a->conn) : NULL;

    a->conn = 0;
    table_file(l, a);
    if (!c) {
        return;
    }
    *l->config.get_slot(c) = NULL;
    if (a->owed) { /* otherwise the client would wait for an answer forever */
        conn_nack(c, a->tag, status, sentence, 1000);
    }
    a->owed = false;
    conn_fail(c, 0, status, sentence);
}

void answer_acknowledge(struct live *l, struct live_process *a)
{
    const struct message ack = {.type = FRAME_ACK};
    struct conn *c = a->owed && a->conn ? conn_find(l->config.conns, a->conn) : NULL;

    if (c) {
        conn_answer_fd(c, &ack, 0, a->tag, a->page_fd); /* takes the descriptor over */
        a->page_fd = -1;
        l->page_count--;
    }
    a->owed = a->owed && !c && a->conn;
    table_share(l);
}

/* A process from its memory to its removal. */

/* Puts a text behind the others. */
static const char *summary_put(char **at, const char *text)
{
    const size_t n = strlen(text) + 1;
    const char *place = memcpy(*at, text, n);

    *at += n;
    return place;
}

void summary_copy(struct live_process *a)
{
    struct attach_summary f;
    struct live_summary *copy;
    size_t size;
    char *at;

    attach_get_summary(a->process, &f);
    size =
        sizeof *copy + f.label_count * sizeof *copy->labels + strlen(f.build_id) + strlen(f.name) + strlen(f.why) + 3;
    for (size_t i = 0; i < f.label_count; i++) {
        size += strlen(f.labels[i].name) + strlen(f.labels[i].value) + 2;
    }
    copy = malloc(size);
    if (!copy) {
        return; /* the older summary stays */
    }
    copy->values = f;
    at = (char *)(copy->labels + f.label_count);
    copy->values.build_id = summary_put(&at, f.build_id);
    copy->values.name = summary_put(&at, f.name);
    copy->values.why = summary_put(&at, f.why);
    for (size_t i = 0; i < f.label_count; i++) {
        copy->labels[i].uploads = 0;
        copy->labels[i].name = summary_put(&at, f.labels[i].name);
        copy->labels[i].value = summary_put(&at, f.labels[i].value);
    }
    copy->values.labels = NULL;
    free(a->summary);
    a->summary = copy;
}

enum profd_status process_new(struct live *l, uint32_t uid, const struct attach_origin *origin, int fd,
                              struct live_process **out, struct profd_error *e)
{
    struct live_process *a = calloc(1, sizeof *a);
    enum profd_status status;
    struct stat st = {.st_dev = 0};

    FAIL_IF(!a, e, PROFD_NO_MEMORY, "no memory for a live process");
    status = attach_open(fd, uid, origin, &a->process, e);
    if (status) {
        free(a);
        return status;
    }
    (void)fstat(fd, &st); /* only now it is known to be memory, so that fstat cannot block */
    a->live = l;
    a->uid = uid;
    a->origin = *origin;
    a->device = st.st_dev;
    a->inode = st.st_ino;
    a->memory = fd;
    a->pidfd = -1;
    a->page_fd = -1;
    a->began = loop_now();
    a->resume = true;
    memcpy(a->instance, attach_get_instance(a->process), sizeof a->instance);
    *out = a;
    return PROFD_OK;
}

void process_discard(struct live_process *a)
{
    attach_close(a->process);
    free(a);
}

void process_set_page_fd(struct live *l, struct live_process *a, int fd)
{
    if (a->page_fd >= 0) {
        close(a->page_fd);
        l->page_count--;
    }
    a->page_fd = fd;
    l->page_count += fd >= 0;
    table_share(l);
}

void process_remove(struct live *l, struct live_process *a)
{
    struct conn *c = a->conn ? conn_find(l->config.conns, a->conn) : NULL;

    sync_clear_pending(l, a);
    if (c) {
        *l->config.get_slot(c) = NULL;
    }
    fdstore_drop(l, a);
    loop_watch_free(a->watch);
    if (a->pidfd >= 0) {
        close(a->pidfd);
    }
    process_set_page_fd(l, a, -1);
    page_free(a->page);
    attach_harvest_done(&a->harvest.harvest);
    attach_close(a->process);
    l->kept_bytes -= a->kept_bytes;
    table_remove(l, a);
    free(a->summary);
    free(a);
}
