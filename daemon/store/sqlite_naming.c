/* Of which hosts an object that hosts attest may name functions (attestations.h). */
#include "store/sqlite.h"

enum profd_status sqlite_find_quorum(struct sqlite_store *s, int64_t build, int64_t *variant, struct profd_error *e)
{
    bool found;
    *variant = 0;
    return sqlite_find(s, SQL_VARIANT_QUORUM, VALUES(INTEGER(build), INTEGER(STORE_QUORUM)), variant, &found, e);
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* *names: each of these hosts attests the variant. */
static enum profd_status judge_each(struct sqlite_store *s, int64_t build, int64_t variant,
                                    const struct store_senders *of, bool *names, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    int64_t attested = 0;
    bool found = true;
    if (of->host_count == 0) {
        status = sqlite_find(s, SQL_ATTESTATION_OTHER, VALUES(INTEGER(build), INTEGER(variant)), &attested, &found, e);
        *names = !found;
        return status;
    }
    for (size_t i = 0; status == PROFD_OK && found && attested == (i == 0 ? 0 : variant) && i < of->host_count; i++) {
        uint8_t identity[STORE_HOST_SIZE];
        size_t n = 0;
        for (const char *at = of->hosts[i]; n < sizeof identity && at[0] != '\0' && at[1] != '\0'; at += 2) {
            identity[n++] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
        }
        status = sqlite_find(s, SQL_ATTESTATION_OF, VALUES(BLOB(identity, n), INTEGER(build)), &attested, &found, e);
    }
    *names = found && attested == variant;
    return status;
}

enum profd_status sqlite_judge_hosts(struct sqlite_store *s, int64_t build, int64_t object,
                                     const struct store_senders *of, struct sqlite_choice *choice, bool *names,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t variant = 0, quorum = 0;
    enum profd_status status = sqlite_start(s, SQL_VARIANT_OF, VALUES(INTEGER(object)), &q, e);
    *names = false;
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (!row) {
        return status;
    }
    variant = sqlite3_column_int64(q, 0);
    choice->hosts = (uint64_t)sqlite3_column_int64(q, 1);
    sqlite_finish(q);
    status = sqlite_find_quorum(s, build, &quorum, e);
    choice->by = quorum == variant ? STORE_NAMED_BY_QUORUM : STORE_NAMED_BY_HOSTS;
    *names = quorum == variant;
    return status == PROFD_OK && quorum == 0 ? judge_each(s, build, variant, of, names, e) : status;
}

enum profd_status sqlite_count_attesting(struct sqlite_store *s, int64_t build, uint64_t *hosts, struct profd_error *e)
{
    int64_t n = 0;
    bool found;
    enum profd_status status = sqlite_find(s, SQL_VARIANT_HOSTS, VALUES(INTEGER(build)), &n, &found, e);
    *hosts = (uint64_t)n;
    return status;
}
