/* Uploads for a daemon that is older than stacks. */
#include <stdlib.h>

#include "lib/upload.h"
#include "proto/counts.h"
#include "proto/frame.h"
#include "proto/message.h"

static enum profd_status older_encode(struct message_upload *u, struct counts *c, uint32_t tag, uint8_t **frame,
                                      size_t *size, struct profd_error *e)
{
    struct message m = {.type = FRAME_UPLOAD};
    uint8_t *counts = NULL;
    size_t n = 0;
    c->tree_count = c->node_count = 0;
    enum profd_status status = counts_encode(c, &counts, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    u->counts = (struct message_bytes){counts, n};
    m.as.upload = *u;
    status = message_encode(&m, 0, tag, frame, size, e);
    free(counts);
    return status;
}

enum profd_status upload_leave_out_stacks(uint8_t **frame, size_t *size, struct profd_error *e)
{
    struct message m;
    struct frame f;
    struct counts c;
    uint8_t *older = NULL;
    size_t n = 0;
    enum profd_status status = frame_decode(*frame, &f, e);
    if (status == PROFD_OK) {
        status = message_decode(FRAME_UPLOAD, *frame + FRAME_HEADER_SIZE, *size - FRAME_HEADER_SIZE, &m, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct message_upload *u = &m.as.upload;
    status = counts_decode(u->counts.data, u->counts.size, (uint32_t)u->build_count, &c, e);
    if (status == PROFD_OK) {
        status = older_encode(u, &c, f.tag, &older, &n, e);
        counts_done(&c);
    }
    message_done(&m);
    if (status == PROFD_OK) {
        free(*frame);
        *frame = older;
        *size = n;
    }
    return status;
}
