/* Of which hosts an object that hosts attest may name functions (attestations.h). */
#include "store/sqlite.h"

enum profd_status sqlite_find_quorum(struct store *s, int64_t build, int64_t *variant, struct profd_error *e)
{
    bool found;
    *variant = 0;
    return sqlite_find(s, SQL_VARIANT_QUORUM, VALUES(INTEGER(build), INTEGER(STORE_QUORUM)), variant, &found, e);
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* What a host of the sum attests; 0: nothing. */
static enum profd_status find_attested(struct store *s, int64_t build, const char *host, int64_t *variant,
                                       struct profd_error *e)
{
    uint8_t identity[STORE_HOST_SIZE];
    size_t n = 0;
    bool found = false;
    *variant = 0;
    for (const char *at = host; n < sizeof identity && at[0] != '\0' && at[1] != '\0'; at += 2) {
        identity[n++] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
    }
    return sqlite_find(s, SQL_ATTESTATION_OF, VALUES(BLOB(identity, n), INTEGER(build)), variant, &found, e);
}

/* Counts the hosts of the sum: all of them, and by what they attest. */
static enum profd_status count_asked(struct store *s, int64_t build, const struct store_senders *of,
                                     struct sqlite_attested *a, struct profd_error *e)
{
    int64_t n = 0, variant;
    bool found;
    for (size_t i = 0; i < a->count; i++) {
        a->list[i].asked = of->host_count == 0 ? a->list[i].hosts : 0;
    }
    enum profd_status status = PROFD_OK;
    if (of->host_count == 0) {
        status = sqlite_find(s, SQL_ATTESTATIONS_COUNT, VALUES(INTEGER(build)), &n, &found, e);
        a->asked = (uint64_t)n;
        return status;
    }
    a->asked = of->host_count;
    for (size_t i = 0; i < of->host_count; i++) {
        TRY(find_attested(s, build, of->hosts[i], &variant, e));
        for (size_t k = 0; k < a->count; k++) {
            a->list[k].asked += a->list[k].id == variant;
        }
    }
    return PROFD_OK;
}

/* Reads what hosts attest of a build without a quorum. */
static enum profd_status load_attested(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_attested *a, struct profd_error *e)
{
    sqlite3_stmt *q;
    a->loaded = true;
    TRY(sqlite_start(s, SQL_VARIANT_OBJECTS, VALUES(INTEGER(build), INTEGER(SAME_NAMES_MOST)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct same_names *one = &a->list[a->count];
        one->id = sqlite3_column_int64(q, 2);
        one->hosts = (uint64_t)sqlite3_column_int64(q, 3);
        status = sqlite_take_content(s, q, &one->bytes, &one->size, e);
        a->count += status == PROFD_OK;
    }
    if (status == PROFD_OK) {
        TRY(count_asked(s, build, of, a, e));
    }
    if (status == PROFD_OK) {
        TRY(sqlite_count_attesting(s, build, &a->attesting, e));
    }
    return status == PROFD_OK ? same_names_find(a->list, a->count, e) : status;
}

static size_t find_variant(const struct sqlite_attested *a, int64_t variant)
{
    size_t i = 0;
    while (i < a->count && a->list[i].id != variant) {
        i++;
    }
    return i;
}

/* *names: each host of the sum attests this variant, and no names have a quorum. */
static enum profd_status judge_alone(struct store *s, int64_t build, int64_t variant, const struct store_senders *of,
                                     const struct sqlite_attested *a, bool *names, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    int64_t attested = variant;
    for (size_t i = 0; status == PROFD_OK && attested == variant && i < of->host_count; i++) {
        status = find_attested(s, build, of->hosts[i], &attested, e);
    }
    *names = of->host_count > 0 && attested == variant && !same_names_any_quorum(a->list, a->count, a->attesting);
    return status;
}

enum profd_status sqlite_judge_hosts(struct store *s, int64_t build, int64_t object, const struct store_senders *of,
                                     struct sqlite_attested *a, struct sqlite_choice *choice, bool *names,
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
    if (status == PROFD_OK && quorum == 0 && !a->loaded) {
        TRY(load_attested(s, build, of, a, e));
    }
    if (status != PROFD_OK || quorum != 0) {
        return status;
    }
    struct store_naming naming = {.by = choice->by, .hosts = choice->hosts};
    const size_t at = find_variant(a, variant);
    if (at == a->count) { /* more objects than are compared: it has its own hosts alone */
        return judge_alone(s, build, variant, of, a, names, e);
    }
    *names = a->list[at].leader == at && same_names_judge(a->list, a->count, at, a->attesting, a->asked, &naming);
    choice->hosts = naming.hosts;
    choice->by = naming.by;
    return PROFD_OK;
}

enum profd_status sqlite_count_attesting(struct store *s, int64_t build, uint64_t *hosts, struct profd_error *e)
{
    int64_t n = 0;
    bool found;
    TRY(sqlite_find(s, SQL_VARIANT_HOSTS, VALUES(INTEGER(build)), &n, &found, e));
    *hosts = (uint64_t)n;
    return PROFD_OK;
}
