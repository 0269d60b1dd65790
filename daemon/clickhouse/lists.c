/* Lists of labels and companions. */
#include <string.h>

#include "clickhouse/catalogue.h"
#include "store/labels.h"

enum profd_status engine_each_label(struct store *base, const struct store_scope *scope, const char *build_id,
                                    bool (*each)(void *context, const struct label_row *row), void *context,
                                    struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_catalogue c;
    struct engine_sums *sums = NULL;
    struct label_tally tally;
    struct buffer text;
    struct arena *a = arena_new(0);
    label_tally_init(&tally);
    buffer_init(&text, 1 << 20);
    enum profd_status status =
        a ? engine_load_series(s, a, scope, build_id ? ENGINE_BUILD : ENGINE_EVERY, build_id, &c, e)
          : profd_no_memory(e);
    if (status == PROFD_OK) {
        sums = ARENA_ARRAY(a, c.count + 1, struct engine_sums);
        status = sums ? engine_load_sums(s, a, &c, NULL, sums, e) : profd_no_memory(e);
    }
    for (size_t i = 0; status == PROFD_OK && i < c.count; i++) {
        if (sums[i].hours > 0) {
            text.size = 0;
            labels_encode(c.list[i].labels, c.list[i].label_count, &text);
            status =
                text.failed ? profd_no_memory(e) : label_tally_add(&tally, text.data, text.size, sums[i].uploads, e);
        }
    }
    if (status == PROFD_OK) {
        status = label_tally_each(&tally, each, context, e);
    }
    buffer_done(&text);
    label_tally_done(&tally);
    arena_free(a);
    return status;
}

static bool has_build(const struct engine_series *x, const char *build_id)
{
    bool has = false;
    for (size_t k = 0; k < x->build_count && !has; k++) {
        has = strcmp(x->builds[k], build_id) == 0;
    }
    return has;
}

/* names[i] is that of ids[i] in the series that was made first, of all of the scope. */
static void find_names(const struct engine_catalogue *c, const struct engine_ids *ids, const char **names,
                       uint64_t *made)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->list[i].build_count; k++) {
            const size_t at = engine_find_id(ids, c->list[i].builds[k]);
            if (at < ids->count && (!names[at] || c->list[i].number < made[at])) {
                names[at] = c->list[i].names[k];
                made[at] = c->list[i].number;
            }
        }
    }
}

enum profd_status engine_each_companion(struct store *base, const struct store_scope *scope, const char *build_id,
                                        bool (*each)(void *context, const char *companion, const char *name),
                                        void *context, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_catalogue c, with = {.count = 0};
    struct engine_ids ids = {.count = 0};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_series(s, a, scope, ENGINE_EVERY, NULL, &c, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(s, &c, e);
    }
    if (status == PROFD_OK) {
        with.list = ARENA_ARRAY(a, c.count + 1, struct engine_series);
        status = with.list ? PROFD_OK : profd_no_memory(e);
    }
    for (size_t i = 0; i < c.count && status == PROFD_OK; i++) {
        if (has_build(&c.list[i], build_id)) {
            with.list[with.count++] = c.list[i];
        }
    }
    if (status == PROFD_OK) {
        status = engine_collect_ids(a, &with, "", "", &ids, e);
    }
    const char **names = status == PROFD_OK ? ARENA_ARRAY(a, ids.count + 1, const char *) : NULL;
    uint64_t *made = names ? ARENA_ARRAY(a, ids.count + 1, uint64_t) : NULL;
    if (status == PROFD_OK && !made) {
        status = profd_no_memory(e);
    }
    bool more = status == PROFD_OK;
    if (more) {
        find_names(&c, &ids, names, made);
    }
    for (size_t i = 0; i < ids.count && more; i++) {
        more = strcmp(ids.list[i], build_id) == 0 || each(context, ids.list[i], names[i]);
    }
    arena_free(a);
    return status;
}
