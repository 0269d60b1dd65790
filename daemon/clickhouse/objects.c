/* Parsed objects: stored once for each content, with a row for each user that has sent it. */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/engine_internal.h"
#include "clickhouse/naming.h"

#define OBJECT_COLUMNS "object (build, variant, content, number, has_names, outdated, hashed, gone, encoded, bounds)"
#define SENDER_COLUMNS                                                                                                 \
    "object_sender (build, variant, content, uid, number, trusted, operator, gone, delivered, received, name, note)"
#define OBJECT_BYTES (256u << 20)

/* A delivery, and what is known of its build. */
struct putting {
    struct clickhouse_store *s;
    const struct store_object *o;
    struct naming_build build;
    struct naming_object *object; /* NULL: its content is new */
    struct naming_sender *sender; /* NULL: new */
    struct naming_object made;
    struct naming_sender making;
};

static enum profd_status put_content(struct putting *p, struct profd_error *e)
{
    const struct store_object *o = p->o;
    const struct naming_object *x = p->object;
    struct buffer row;
    buffer_init(&row, OBJECT_BYTES);
    rows_put_text(&row, o->id.text);
    rows_put_text(&row, o->variant);
    rows_put_fixed(&row, x->content, sizeof x->content);
    rows_put_u64(&row, engine_number(p->s));
    rows_put_u8(&row, x->has_names);
    rows_put_u8(&row, x->outdated);
    rows_put_u8(&row, x->hashed);
    rows_put_u8(&row, 0);
    rows_put_bytes(&row, o->encoded, o->encoded_size);
    rows_put_bytes(&row, o->bounds, o->bounds_size);
    const enum profd_status status = engine_insert(p->s, OBJECT_COLUMNS, &row, e);
    buffer_done(&row);
    return status;
}

/* Stores the content, unless it is there. */
static enum profd_status find_or_add(struct putting *p, struct profd_error *e)
{
    const struct store_object *o = p->o;
    struct sha256_ctx sha;
    uint8_t content[STORE_HASH_SIZE];
    sha256_init(&sha);
    sha256_update(&sha, o->encoded_size, o->encoded);
    sha256_digest(&sha, sizeof content, content);
    if (o->hash && memcmp(o->hash, content, sizeof content) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "an object of build %s has another hash than its bytes", o->id.text);
    }
    for (p->object = p->build.objects; p->object; p->object = p->object->next) {
        if (strcmp(p->object->variant, o->variant) == 0 && memcmp(p->object->content, content, sizeof content) == 0) {
            break;
        }
    }
    if (p->object && (p->object->hashed || !o->hash)) {
        return PROFD_OK;
    }
    if (!p->object) {
        p->made = (struct naming_object){
            .next = p->build.objects, .variant = o->variant, .has_names = o->has_names, .outdated = o->outdated};
        memcpy(p->made.content, content, sizeof content);
        p->object = p->build.objects = &p->made;
    }
    p->object->hashed |= o->hash != NULL;
    return put_content(p, e);
}

static void put_sender_row(struct buffer *b, const char *build_id, const struct naming_object *o,
                           const struct naming_sender *x, bool gone, int64_t received)
{
    rows_put_text(b, build_id);
    rows_put_text(b, o->variant);
    rows_put_fixed(b, o->content, sizeof o->content);
    rows_put_u32(b, x->uid);
    rows_put_u64(b, x->number);
    rows_put_u8(b, x->trusted);
    rows_put_u8(b, x->by_operator);
    rows_put_u8(b, gone);
    rows_put_u64(b, x->delivered);
    rows_put_i64(b, received);
    rows_put_text(b, gone ? "" : x->name);
    rows_put_text(b, gone ? "" : x->note);
}

static enum profd_status put_sender(struct putting *p, struct profd_error *e)
{
    struct buffer row;
    buffer_init(&row, 1 << 20);
    put_sender_row(&row, p->o->id.text, p->object, p->sender, false, p->o->received);
    const enum profd_status status = engine_insert(p->s, SENDER_COLUMNS, &row, e);
    buffer_done(&row);
    return status;
}

/* Enters the delivery into p->sender. True if answers to any user may change, or have changed without a word to
 * readers: then number and delivered are the same. */
static bool enter_sender(struct putting *p)
{
    const struct store_object *o = p->o;
    struct naming_sender *x = p->object->senders;
    while (x && x->uid != o->uid) {
        x = x->next;
    }
    const bool told = x && x->number != x->delivered;
    const bool same = x && (x->trusted || !o->trusted) && (x->by_operator || !o->by_operator) &&
                      strcmp(x->note, o->note) == 0 && x->delivered == naming_latest(&p->build);
    if (!x) {
        x = &p->making;
        *x = (struct naming_sender){.next = p->object->senders, .uid = o->uid};
        p->object->senders = x;
    }
    p->sender = x;
    x->number = engine_number(p->s);
    x->delivered = same ? x->delivered : x->number;
    x->trusted |= o->trusted; /* a file keeps what it was shown to be */
    x->by_operator |= o->by_operator;
    x->name = same ? x->name : o->name;
    x->note = o->note;
    return !same || !told;
}

static void put_gone_object(struct buffer *b, const char *build_id, const struct naming_object *o)
{
    rows_put_text(b, build_id);
    rows_put_text(b, o->variant);
    rows_put_fixed(b, o->content, sizeof o->content);
    rows_put_u64(b, o->number + 1); /* what another daemon stores now stays */
    rows_put_u8(b, 0);
    rows_put_u8(b, 0);
    rows_put_u8(b, 0);
    rows_put_u8(b, 1);
    rows_put_text(b, "");
    rows_put_text(b, "");
}

enum profd_status engine_remove_objects(struct clickhouse_store *s, struct naming_build *b,
                                        bool (*goes)(const void *context, const struct naming_object *o,
                                                     const struct naming_sender *x),
                                        const void *context, struct profd_error *e)
{
    struct buffer objects, senders;
    buffer_init(&objects, OBJECT_BYTES);
    buffer_init(&senders, OBJECT_BYTES);
    for (struct naming_object **at = &b->objects; *at;) {
        struct naming_object *o = *at;
        bool any = false;
        for (struct naming_sender **by = &o->senders; *by;) {
            struct naming_sender gone = **by;
            if (!goes(context, o, *by)) {
                by = &(*by)->next;
                continue;
            }
            any = true;
            gone.number++;
            put_sender_row(&senders, b->build_id, o, &gone, true, 0);
            *by = (*by)->next;
        }
        if (any && !o->senders) {
            put_gone_object(&objects, b->build_id, o);
            *at = o->next;
        } else {
            at = &o->next;
        }
    }
    enum profd_status status = engine_insert(s, SENDER_COLUMNS, &senders, e);
    if (status == PROFD_OK) {
        status = engine_insert(s, OBJECT_COLUMNS, &objects, e);
    }
    buffer_done(&objects);
    buffer_done(&senders);
    return status;
}

/* Is it an outdated object that the delivered one replaces? */
static bool is_replaced(const void *context, const struct naming_object *o, const struct naming_sender *x)
{
    const struct putting *p = context;
    (void)x;
    return o != p->object && o->outdated && strcmp(o->variant, p->object->variant) == 0 &&
           naming_replaces(p->object, o);
}

static bool is_any(const void *context, const struct naming_object *o, const struct naming_sender *x)
{
    (void)context, (void)o, (void)x;
    return true;
}

enum profd_status engine_forget_objects(struct clickhouse_store *s, const char *build_id, struct profd_error *e)
{
    struct naming_build b = {.build_id = build_id};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_naming(s, NULL, &b, 1, a, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_remove_objects(s, &b, is_any, NULL, e);
    }
    arena_free(a);
    return status == PROFD_OK ? engine_forget_attestations(s, build_id, e) : status;
}

enum profd_status engine_touch_object(struct clickhouse_store *s, const char *build_id, uint32_t from, uint32_t to,
                                      struct profd_error *e)
{
    struct row_reader rows;
    struct engine_touch *list = NULL;
    uint32_t n = 0, capacity = 0;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT DISTINCT uid, arrayJoin(builds) FROM series WHERE has(builds, ");
    engine_put_quoted(&s->statement, build_id);
    buffer_add_format(&s->statement, ") AND uid >= %u AND uid <= %u", from, to);
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_query_printed(s, &rows, e) : profd_no_memory(e);
    if (status != PROFD_OK) {
        arena_free(a);
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        struct engine_touch *longer = arena_extend(a, list, n, &capacity, sizeof *list);
        const uint32_t uid = rows_u32(&rows);
        const char *build = rows_copy(&rows, a);
        if (!longer || !build) {
            status = profd_no_memory(e);
        } else {
            list = longer;
            list[n++] = (struct engine_touch){build, uid};
        }
    }
    if (status == PROFD_OK) {
        status = engine_rows_check(&rows, "builds", e);
    }
    rows_close(&rows);
    if (status == PROFD_OK) {
        status = engine_touch(s, list, n, e);
    }
    arena_free(a);
    return status;
}

/* Makes the reports new, and notes that this was done. */
static enum profd_status tell(struct putting *p, struct profd_error *e)
{
    const struct store_object *o = p->o;
    const bool all = p->sender->trusted, hosts = o->hash != NULL; /* hosts of every tenant may attest it */
    const enum profd_status status = engine_touch_object(p->s, o->id.text,
                                                         all     ? 0
                                                         : hosts ? STORE_TENANT_LAST
                                                                 : o->uid,
                                                         all     ? UINT32_MAX
                                                         : hosts ? STORE_TENANT
                                                                 : o->uid,
                                                         e);
    p->sender->number = engine_number(p->s);
    return status == PROFD_OK ? put_sender(p, e) : status;
}

enum profd_status engine_put_object(struct store *base, const struct store_object *object, struct profd_error *e)
{
    struct putting p = {.s = engine_self(base), .o = object, .build = {.build_id = object->id.text}};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_naming(p.s, NULL, &p.build, 1, a, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = find_or_add(&p, e);
    }
    const bool changed = status == PROFD_OK && enter_sender(&p);
    if (status == PROFD_OK) {
        status = put_sender(&p, e);
    }
    if (status == PROFD_OK && object->variant[0] != '\0' && !object->outdated) {
        status = engine_remove_objects(p.s, &p.build, is_replaced, &p, e);
    }
    if (status == PROFD_OK && changed) {
        status = tell(&p, e);
    }
    arena_free(a);
    return status;
}

enum profd_status engine_has_object(struct store *base, uint32_t uid, const char *build_id, bool *known,
                                    struct profd_error *e)
{
    struct naming_build b = {.build_id = build_id};
    struct arena *a = arena_new(0);
    const enum profd_status status = a ? engine_load_naming(engine_self(base), NULL, &b, 1, a, e) : profd_no_memory(e);
    *known = status == PROFD_OK && naming_knows(&b, uid);
    arena_free(a);
    return status;
}

static enum profd_status read_content(struct clickhouse_store *s, const char *build_id, const struct naming_object *o,
                                      uint8_t **bytes, size_t *size, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT encoded FROM object WHERE build = ");
    engine_put_quoted(&s->statement, build_id);
    buffer_add_text(&s->statement, " AND variant = ");
    engine_put_quoted(&s->statement, o->variant);
    buffer_add_text(&s->statement, " AND content = ");
    engine_put_unhex(&s->statement, o->content, sizeof o->content);
    buffer_add_text(&s->statement, " AND gone = 0 LIMIT 1"); /* all versions have the same content */
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!rows_more(&rows)) {
        status = profd_error_set(e, PROFD_BUSY, "store: the symbols of build %s were removed just now", build_id);
    } else {
        const char *at = rows_string(&rows, size);
        status = engine_rows_check(&rows, "an object", e);
        *bytes = status == PROFD_OK ? malloc(*size + 1) : NULL;
        if (*bytes) {
            memcpy(*bytes, at, *size);
        } else if (status == PROFD_OK) {
            status = profd_no_memory(e);
        }
    }
    rows_close(&rows);
    return status;
}

/* Adds the object of a group to those that are compared: they stand in descending order of their hosts. */
static void add_same(struct naming_build *b, const struct naming_group *g)
{
    size_t at = b->same_count < SAME_NAMES_MOST ? b->same_count++ : SAME_NAMES_MOST - 1;
    if (b->same_groups[at] && b->same_groups[at]->hosts >= g->hosts) {
        return;
    }
    for (; at > 0 && b->same_groups[at - 1]->hosts < g->hosts; at--) {
        b->same_groups[at] = b->same_groups[at - 1];
    }
    b->same_groups[at] = g;
}

static enum profd_status compare_names(struct clickhouse_store *s, struct naming_build *b, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t loaded = 0;
    for (const struct naming_group *g = b->groups; g; g = g->next) {
        if (naming_find_attested(b, g)) {
            add_same(b, g);
        }
    }
    for (; loaded < b->same_count && status == PROFD_OK; loaded++) {
        const struct naming_group *g = b->same_groups[loaded];
        b->same[loaded] = (struct same_names){.hosts = g->hosts, .asked = g->asked};
        status =
            read_content(s, b->build_id, naming_find_attested(b, g), &b->same[loaded].bytes, &b->same[loaded].size, e);
    }
    b->same_count = loaded;
    return status == PROFD_OK ? same_names_find(b->same, b->same_count, e) : status;
}

enum profd_status engine_compare_names(struct clickhouse_store *s, struct naming_build *list, size_t n,
                                       struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        if (list[i].groups && !naming_find_quorum(&list[i])) {
            status = compare_names(s, &list[i], e);
        }
    }
    return status;
}

void engine_names_done(struct naming_build *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        same_names_done(list[i].same, list[i].same_count);
        list[i].same_count = 0;
    }
}

enum profd_status engine_get_object(struct store *base, const struct store_senders *of, const char *build_id,
                                    uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct naming_build b = {.build_id = build_id};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_naming(s, of, &b, 1, a, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_compare_names(s, &b, 1, e);
    }
    if (status == PROFD_OK) {
        const struct naming_choice c = naming_choose(&b, of);
        *naming = c.naming;
        status = c.object ? read_content(s, build_id, c.object, bytes, size, e)
                          : profd_error_set(e, PROFD_NOT_FOUND, "no trusted user has sent the executable of build %s",
                                            build_id);
    }
    engine_names_done(&b, 1);
    arena_free(a);
    return status;
}
