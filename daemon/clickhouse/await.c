/* The builds that hosts shall attest: those that their segments name (attestations.h). */
#include <string.h>

#include "clickhouse/engine_internal.h"
#include "proto/hex.h"

#define CACHE_SECONDS 3600u /* then what other daemons have removed is noticed */
#define COLUMNS "attestation (build, host, number, uid, has, hash, size, due, gone)"
#define BATCH_BYTES (64u << 20)

struct key {
    uint8_t host[STORE_HOST_SIZE];
    char build_id[BUILDID_TEXT_SIZE];
};

static void make_key(struct key *k, const uint8_t *host, const char *build_id, size_t n)
{
    memset(k, 0, sizeof *k);
    memcpy(k->host, host, sizeof k->host);
    memcpy(k->build_id, build_id, n < sizeof k->build_id ? n : sizeof k->build_id - 1);
}

void engine_forget_awaited(struct clickhouse_store *s)
{
    hashmap_clear(&s->awaited);
    s->awaited_since = engine_number(s);
}

static bool is_known(struct clickhouse_store *s, const struct engine_awaited *x)
{
    struct key k;
    make_key(&k, x->host, x->build_id, strlen(x->build_id));
    return hashmap_find(&s->awaited, &k, sizeof k) != NULL;
}

static bool note(struct clickhouse_store *s, const struct key *k)
{
    return hashmap_find(&s->awaited, k, sizeof *k) || hashmap_put(&s->awaited, k, sizeof *k, "", 1);
}

/* A row that attests nothing. */
static void put_row(struct buffer *b, const char *build_id, const uint8_t *host, uint64_t number, uint32_t uid,
                    bool gone)
{
    static const uint8_t nothing[STORE_HASH_SIZE];
    rows_put_text(b, build_id);
    rows_put_fixed(b, host, STORE_HOST_SIZE);
    rows_put_u64(b, number);
    rows_put_u32(b, uid);
    rows_put_u8(b, 0);
    rows_put_fixed(b, nothing, sizeof nothing);
    rows_put_u64(b, 0);
    rows_put_i64(b, 0);
    rows_put_u8(b, gone);
}

/* Reads which of them the table has. removed: gets the numbers of rows of those that are gone. */
static enum profd_status look(struct clickhouse_store *s, const struct engine_awaited *list, size_t n,
                              struct hashmap *removed, struct profd_error *e)
{
    struct row_reader rows;
    bool fine = true;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT host, build, number, gone FROM attestation FINAL WHERE build IN (''");
    for (size_t i = 0; i < n; i++) {
        if (!is_known(s, &list[i]) && (i == 0 || strcmp(list[i].build_id, list[i - 1].build_id) != 0)) {
            buffer_add_char(&s->statement, ',');
            engine_put_quoted(&s->statement, list[i].build_id);
        }
    }
    buffer_add_text(&s->statement, ") AND lower(hex(host)) IN (''");
    for (size_t i = 0; i < n; i++) {
        char digits[2 * STORE_HOST_SIZE + 1];
        if (!is_known(s, &list[i]) && (i == 0 || memcmp(list[i].host, list[i - 1].host, STORE_HOST_SIZE) != 0)) {
            hex_put(digits, list[i].host, STORE_HOST_SIZE);
            buffer_add_format(&s->statement, ",'%s'", digits);
        }
    }
    buffer_add_char(&s->statement, ')');
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (fine && rows_more(&rows)) {
        struct key k;
        uint8_t host[STORE_HOST_SIZE];
        size_t size;
        rows_fixed(&rows, host, sizeof host);
        const char *build = rows_string(&rows, &size);
        make_key(&k, host, build, rows.cut ? 0 : size);
        const uint64_t number = rows_u64(&rows);
        fine = rows_u8(&rows) != 0 ? hashmap_put(removed, &k, sizeof k, &number, sizeof number) != NULL : note(s, &k);
    }
    status = fine ? engine_rows_check(&rows, "attestations", e) : profd_no_memory(e);
    rows_close(&rows);
    return status;
}

/* Enters what is not known. A row has the smallest number with which it counts, so that it never replaces one in which
 * a host attests something. False: out of memory. */
static bool put_rows(struct clickhouse_store *s, const struct engine_awaited *list, size_t n, struct hashmap *removed,
                     struct buffer *rows)
{
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        struct key k;
        uint64_t number = 0;
        if (is_known(s, &list[i])) {
            continue;
        }
        make_key(&k, list[i].host, list[i].build_id, strlen(list[i].build_id));
        const uint64_t *gone = hashmap_find(removed, &k, sizeof k);
        number = gone ? *gone : 0;
        fine = note(s, &k);
        put_row(rows, list[i].build_id, list[i].host, number + 1, list[i].uid, false);
    }
    return fine;
}

enum profd_status engine_await_objects(struct clickhouse_store *s, const struct engine_awaited *list, size_t n,
                                       struct profd_error *e)
{
    struct hashmap removed;
    struct buffer rows;
    size_t fresh = 0;
    if (engine_number(s) - s->awaited_since > CACHE_SECONDS * UINT64_C(1000000000)) {
        engine_forget_awaited(s);
    }
    for (size_t i = 0; i < n; i++) {
        fresh += !is_known(s, &list[i]);
    }
    if (fresh == 0) {
        return PROFD_OK;
    }
    hashmap_init(&removed, 0);
    buffer_init(&rows, BATCH_BYTES);
    enum profd_status status = look(s, list, n, &removed, e);
    if (status == PROFD_OK) {
        status = put_rows(s, list, n, &removed, &rows) ? engine_insert(s, COLUMNS, &rows, e) : profd_no_memory(e);
    }
    if (status != PROFD_OK) {
        engine_forget_awaited(s); /* it may have what the table lacks */
    }
    buffer_done(&rows);
    hashmap_clear(&removed);
    return status;
}

enum profd_status engine_forget_attestations(struct clickhouse_store *s, const char *build_id, struct profd_error *e)
{
    struct row_reader rows;
    struct buffer out;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT host, number FROM attestation FINAL WHERE gone = 0 AND build = ");
    engine_put_quoted(&s->statement, build_id);
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    buffer_init(&out, BATCH_BYTES);
    while (rows_more(&rows)) {
        uint8_t host[STORE_HOST_SIZE];
        rows_fixed(&rows, host, sizeof host);
        put_row(&out, build_id, host, rows_u64(&rows) + 1, 0, true);
    }
    status = engine_rows_check(&rows, "attestations", e);
    rows_close(&rows);
    if (status == PROFD_OK) {
        status = engine_insert(s, COLUMNS, &out, e);
    }
    buffer_done(&out);
    engine_forget_awaited(s);
    return status;
}
