#include "requests/body.h"

#include <stdlib.h>

enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e)
{
    enum profd_status status;
    uint8_t *inflated;
    size_t size;

    if (!(f->header.flags & FRAME_FLAG_COMPRESSED)) {
        return message_decode(f->header.type, f->body.data, f->body.size, m, e);
    }
    status = frame_inflate(f->body.data, f->body.size, LIMIT_FRAME_SMALL, &inflated, &size, e);
    if (status) {
        return status;
    }
    status = message_decode(f->header.type, inflated, size, m, e); /* copies into its own block */
    free(inflated);
    return status;
}
