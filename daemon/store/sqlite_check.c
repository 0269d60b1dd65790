#include <string.h>
#include <sys/stat.h>

#include "store/sqlite.h"
#include "store/store.h"

/* SQLite reads what is missing of the last page as zeros. */
static enum profd_status check_size(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                                    struct profd_error *e)
{
    struct stat st;
    int64_t page = 0;
    TRY(sqlite_direct_integer(s->db, "PRAGMA page_size", &page, e));
    if (stat(s->path, &st) != 0) {
        return profd_error_set(e, PROFD_IO, "cannot check the database \"%s\"", s->path);
    }
    if (page > 0 && st.st_size % page != 0) {
        fault(context, "the file ends within a page");
    }
    return PROFD_OK;
}

int64_t store_sqlite_bad_page(const struct store *s)
{
    return s->bad_page;
}

enum profd_status store_sqlite_check(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    (void)sqlite_seal_take_fault();
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(100)", -1, &q, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && strcmp(sqlite_text(q, 0), "ok") != 0) {
            fault(context, sqlite_text(q, 0));
        }
    }
    int64_t page = sqlite_seal_take_fault();
    s->bad_page = page ? page : s->bad_page;
    enum profd_status status = rc == SQLITE_DONE ? PROFD_OK : sqlite_fail(s, e);
    sqlite3_finalize(q);
    return status == PROFD_OK ? check_size(s, fault, context, e) : status;
}
