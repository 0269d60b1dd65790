/* What a process is told over its connection: the ACK of ATTACH, or why it is given up. */
#include "live/live_internal.h"

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
