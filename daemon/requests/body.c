#include "requests/body.h"

#include <stdlib.h>
#include <string.h>

enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e)
{
    enum profd_status status;
    uint8_t *inflated;
    size_t size;

    if (!(f->header.flags & FRAME_FLAG_COMPRESSED)) {
        return message_decode(f->header.type, f->body.data, f->body.size, m, e);
    }
    TRY(frame_inflate(f->body.data, f->body.size, LIMIT_FRAME_SMALL, &inflated, &size, e));
    status = message_decode(f->header.type, inflated, size, m, e); /* copies into its own block */
    free(inflated);
    return status;
}

enum profd_status body_check_text(const char *what, const char *text, size_t most, struct profd_error *e)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return profd_error_set(e, PROFD_MALFORMED, "%s has characters other than printable ASCII", what);
        }
    }
    return n < most ? PROFD_OK
                    : profd_error_set(e, PROFD_MALFORMED, "%s has %zu bytes, at most %zu", what, n, most - 1);
}
