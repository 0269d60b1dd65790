#include <string.h>

#include "store/sqlite.h"
#include "store/store.h"

enum profd_status store_sqlite_check(struct store *base, void (*fault)(void *context, const char *sentence),
                                     void *context, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(100)", -1, &q, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && strcmp(sqlite_text(q, 0), "ok") != 0)
            fault(context, sqlite_text(q, 0));
    }
    enum profd_status status = rc == SQLITE_DONE ? PROFD_OK : sqlite_fail(s, e);
    sqlite3_finalize(q);
    return status;
}
