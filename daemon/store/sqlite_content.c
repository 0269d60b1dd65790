/* The stored bytes of objects. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "store/sqlite.h"

enum profd_status sqlite_take_content(struct sqlite_store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e)
{
    size_t n, raw = (size_t)sqlite3_column_int64(q, 0);
    const uint8_t *stored = sqlite_blob(q, 2, &n);
    uint8_t *block = malloc(raw > 0 ? raw : 1);
    if (!block) {
        return profd_no_memory(e);
    }
    bool good;
    if (sqlite3_column_int(q, 1) != 0) {
        good = ZSTD_decompress(block, raw, stored, n) == raw;
    } else {
        good = n == raw;
        if (good && n > 0) {
            memcpy(block, stored, n);
        }
    }
    if (!good) {
        free(block);
        return profd_error_set(e, PROFD_DAMAGED, "database %s: the stored symbols of a build cannot be read", s->path);
    }
    *bytes = block;
    *size = raw;
    return PROFD_OK;
}
