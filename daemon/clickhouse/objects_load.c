/* What is known of the objects of builds, for the decision which of them names functions. */
#include <string.h>

#include "clickhouse/engine_internal.h"
#include "clickhouse/naming.h"

/* Builds of which the rows are read. */
struct load {
    struct clickhouse_store *s;
    struct naming_build *list;
    size_t n;
    struct hashmap at; /* build-ids → positions in the list */
    struct arena *arena;
};

static enum profd_status load_begin(struct load *l, struct profd_error *e)
{
    hashmap_init(&l->at, 0);
    for (size_t i = 0; i < l->n; i++) {
        const char *id = l->list[i].build_id;
        if (!hashmap_find(&l->at, id, strlen(id)) && !hashmap_put(&l->at, id, strlen(id), &i, sizeof i)) {
            return profd_no_memory(e);
        }
        l->list[i] = (struct naming_build){.build_id = id};
    }
    return PROFD_OK;
}

/* Asks for the rows of the builds. */
static enum profd_status ask(struct load *l, const char *order, struct row_reader *rows, struct profd_error *e)
{
    struct buffer *b = &l->s->statement;
    buffer_add_text(b, " WHERE build IN (");
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0) {
            buffer_add_char(b, ',');
        }
        engine_put_quoted(b, l->list[i].build_id);
    }
    buffer_add_format(b, ") %s", order);
    return engine_query_printed(l->s, rows, e);
}

/* The build of the next row. */
static struct naming_build *read_build(struct load *l, struct row_reader *rows)
{
    size_t n;
    const char *id = rows_string(rows, &n);
    const size_t *at = rows->cut ? NULL : hashmap_find(&l->at, id, n);
    rows->cut |= !at; /* only these were asked for */
    return at ? &l->list[*at] : NULL;
}

static enum profd_status load_objects(struct load *l, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(l->s);
    buffer_add_text(&l->s->statement,
                    "SELECT build, variant, content, number, has_names, outdated, hashed, gone FROM object FINAL");
    enum profd_status status = ask(l, "", &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        struct naming_build *b = read_build(l, &rows);
        struct naming_object *o = ARENA_NEW(l->arena, struct naming_object);
        const char *variant = rows_copy(&rows, l->arena);
        if (!b || !o || !variant) {
            status = rows.cut ? engine_rows_check(&rows, "objects", e) : profd_no_memory(e);
            break;
        }
        o->variant = variant;
        rows_fixed(&rows, o->content, sizeof o->content);
        o->number = rows_u64(&rows);
        o->has_names = rows_u8(&rows) != 0;
        o->outdated = rows_u8(&rows) != 0;
        o->hashed = rows_u8(&rows) != 0;
        engine_saw(l->s, o->number);
        if (rows_u8(&rows) == 0) {
            o->next = b->objects;
            b->objects = o;
        }
    }
    if (status == PROFD_OK) {
        status = engine_rows_check(&rows, "objects", e);
    }
    rows_close(&rows);
    return status;
}

static struct naming_object *find_object(const struct naming_build *b, const char *variant,
                                         const uint8_t content[STORE_HASH_SIZE])
{
    struct naming_object *o = b->objects;
    while (o && (strcmp(o->variant, variant) != 0 || memcmp(o->content, content, STORE_HASH_SIZE) != 0)) {
        o = o->next;
    }
    return o;
}

static enum profd_status load_senders(struct load *l, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(l->s);
    buffer_add_text(&l->s->statement, "SELECT build, variant, content, uid, number, trusted, operator, gone, "
                                      "delivered, name, note FROM object_sender FINAL");
    enum profd_status status = ask(l, "", &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        uint8_t content[STORE_HASH_SIZE];
        const struct naming_build *b = read_build(l, &rows);
        const char *variant = rows_copy(&rows, l->arena);
        struct naming_sender *x = ARENA_NEW(l->arena, struct naming_sender);
        if (!b || !variant || !x) {
            status = rows.cut ? engine_rows_check(&rows, "senders", e) : profd_no_memory(e);
            break;
        }
        rows_fixed(&rows, content, sizeof content);
        x->uid = rows_u32(&rows);
        x->number = rows_u64(&rows);
        x->trusted = rows_u8(&rows) != 0;
        x->by_operator = rows_u8(&rows) != 0;
        const bool gone = rows_u8(&rows) != 0;
        x->delivered = rows_u64(&rows);
        x->name = rows_copy(&rows, l->arena);
        x->note = rows_copy(&rows, l->arena);
        struct naming_object *o = find_object(b, variant, content);
        engine_saw(l->s, x->number);
        if (!x->name || !x->note) {
            status = rows.cut ? engine_rows_check(&rows, "senders", e) : profd_no_memory(e);
        } else if (o && !gone) { /* an object may be gone since, with its senders */
            x->next = o->senders;
            o->senders = x;
        }
    }
    rows_close(&rows);
    return status;
}

/* Did a host send one of the objects? Else nothing depends on which hosts attest them. */
static bool any_hashed(const struct load *l)
{
    bool any = false;
    for (size_t i = 0; i < l->n && !any; i++) {
        for (const struct naming_object *o = l->list[i].objects; o && !any; o = o->next) {
            any = o->hashed;
        }
    }
    return any;
}

/* Columns asked and seen of the query for groups. */
static void put_asked(const struct load *l, const struct store_senders *of)
{
    struct buffer *b = &l->s->statement;
    buffer_add_text(b, ", toUInt64(");
    if (of && of->host_count > 0 && any_hashed(l)) {
        buffer_add_text(b, "countIf(lower(hex(host)) IN (");
        for (size_t i = 0; i < of->host_count; i++) {
            buffer_add_text(b, i > 0 ? "," : "");
            engine_put_quoted(b, of->hosts[i]);
        }
        buffer_add_text(b, "))");
    } else {
        buffer_add_text(b, "count()");
    }
    buffer_add_text(b, "), toUInt8(max(");
    if (of && of->seen) {
        engine_put_scope(b, of->seen);
    } else {
        buffer_add_char(b, '1');
    }
    buffer_add_text(b, "))");
}

static enum profd_status load_groups(struct load *l, const struct store_senders *of, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(l->s);
    buffer_add_text(&l->s->statement, "SELECT build, has, hash, toUInt64(count())");
    put_asked(l, of);
    buffer_add_text(&l->s->statement, " FROM attestation FINAL");
    enum profd_status status = ask(l, "AND gone = 0 GROUP BY build, has, hash", &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        struct naming_build *b = read_build(l, &rows);
        struct naming_group *g = ARENA_NEW(l->arena, struct naming_group);
        if (!b || !g) {
            status = rows.cut ? engine_rows_check(&rows, "attestations", e) : profd_no_memory(e);
            break;
        }
        g->has = rows_u8(&rows) != 0;
        rows_fixed(&rows, g->hash, sizeof g->hash);
        g->hosts = rows_u64(&rows);
        g->asked = rows_u64(&rows);
        g->seen = rows_u8(&rows) != 0;
        g->next = b->groups;
        b->groups = g;
    }
    if (status == PROFD_OK) {
        status = engine_rows_check(&rows, "attestations", e);
    }
    rows_close(&rows);
    return status;
}

enum profd_status engine_load_naming(struct clickhouse_store *s, const struct store_senders *of,
                                     struct naming_build *list, size_t n, struct arena *a, struct profd_error *e)
{
    struct load l = {.s = s, .list = list, .n = n, .arena = a};
    if (n == 0) {
        return PROFD_OK;
    }
    enum profd_status status = load_begin(&l, e);
    if (status == PROFD_OK) {
        status = load_objects(&l, e);
    }
    if (status == PROFD_OK) {
        status = load_senders(&l, e);
    }
    if (status == PROFD_OK) {
        status = load_groups(&l, of, e);
    }
    hashmap_clear(&l.at);
    return status;
}
