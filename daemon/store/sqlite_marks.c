/* What is said of the hours and hosts of a query. */
#include <string.h>

#include "store/labels.h"
#include "store/sqlite_select.h"

/* Could rows of a host of this name match? Only what is asked of the label `host` is looked at. */
static bool host_matches(const struct store_filter *filter, const char *name)
{
    struct store_matcher of_host[LIMIT_MATCHERS + 1];
    char text[sizeof "host" + LIMIT_LABEL_VALUE + 1] = "host";
    size_t count = 0, n = strlen(name);
    for (size_t i = 0; i < filter->matcher_count && count < LIMIT_MATCHERS; i++) {
        if (strcmp(filter->matchers[i].name, "host") == 0) {
            of_host[count++] = filter->matchers[i];
        }
    }
    if (n > LIMIT_LABEL_VALUE) {
        return true;
    }
    memcpy(text + sizeof "host", name, n + 1);
    return labels_match(text, sizeof "host" + n + 1, of_host, count);
}

enum profd_status sqlite_get_marks(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter, uint32_t *reasons, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    sqlite3_stmt *q;
    bool row = false;
    const int64_t from = filter->since > 0 ? filter->since / SQLITE_HOUR : 0,
                  to = filter->until > 0 ? (filter->until - 1) / SQLITE_HOUR : INT64_MAX;
    *reasons = 0;
    if (!store_scope_has_tenants(scope)) {
        return PROFD_OK;
    }
    bool apart = false;
    enum profd_status status = filter->build_id && !filter->by_host && sqlite_filter_names(filter, "host")
                                   ? sqlite_has_totals(s, scope, filter, &apart, e)
                                   : PROFD_OK;
    if (status != PROFD_OK) {
        return status;
    }
    *reasons = apart ? (uint32_t)INEXACT_HOST_TOTALS : 0;
    status = sqlite_start(s, SQL_HOUR_MARKS, VALUES(INTEGER(from), INTEGER(to)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        if (sqlite3_column_type(q, 1) == SQLITE_NULL || host_matches(filter, sqlite_text(q, 1))) {
            *reasons |= (uint32_t)sqlite3_column_int64(q, 0);
        }
    }
    return status;
}
