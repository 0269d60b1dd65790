/* The stored bytes of objects. */
#include <stdlib.h>

#include "proto/deflate.h"
#include "store/sqlite.h"

enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e)
{
    size_t n, raw = (size_t)sqlite3_column_int64(q, 0);
    const uint8_t *stored = sqlite_blob(q, 1, &n);
    uint8_t *block = malloc(raw > 0 ? raw : 1);
    if (!block) {
        return profd_no_memory(e);
    }
    enum profd_status status = deflate_unpack(stored, n, block, raw, e);
    if (status != PROFD_OK) {
        free(block);
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED,
                                "database %s: the stored symbols of a build", s->path);
    }
    *bytes = block;
    *size = raw;
    return PROFD_OK;
}
