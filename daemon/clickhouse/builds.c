/* Lists of builds. */
#include <stdio.h>
#include <string.h>

#include "clickhouse/catalogue.h"
#include "clickhouse/naming.h"
#include "core/sum.h"

enum profd_status engine_find_builds(struct store *base, const struct store_scope *scope, const char *prefix,
                                     bool exact, struct buildid found[2], size_t *count, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_catalogue c;
    struct engine_ids ids = {.count = 0};
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? engine_load_series(s, a, scope, exact ? ENGINE_BUILD : ENGINE_PREFIX, prefix, &c, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(s, &c, e);
    }
    if (status == PROFD_OK) {
        status = engine_collect_ids(a, &c, "", prefix, &ids, e);
    }
    size_t hits = 0;
    for (size_t i = 0; i < ids.count && hits < 2 && status == PROFD_OK; i++) {
        if (!exact || strcmp(ids.list[i], prefix) == 0) {
            (void)snprintf(found[hits++].text, sizeof found[0].text, "%s", ids.list[i]);
        }
    }
    if (status == PROFD_OK) {
        *count = hits;
    }
    arena_free(a);
    return status;
}

/* --- Rows of builds --- */

struct listed {
    struct build_row row;
    uint64_t named; /* number of the series that has the name */
    uint32_t *uids; /* ascending */
    uint32_t uid_count, uid_capacity;
};

struct listing {
    struct clickhouse_store *s;
    struct arena *a;
    const struct store_scope *scope;
    struct engine_catalogue c;
    struct engine_sums *sums;
    struct engine_ids ids;
    struct listed *rows; /* by id */
};

/* Keeps the series that have one of the builds. */
static void keep_named(struct listing *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->c.count; i++) {
        bool named = false;
        for (size_t k = 0; k < l->c.list[i].build_count && !named; k++) {
            named = engine_find_id(&l->ids, l->c.list[i].builds[k]) < l->ids.count;
        }
        if (named) {
            l->c.list[kept++] = l->c.list[i];
        }
    }
    l->c.count = kept;
}

static enum profd_status add_uid(struct arena *a, struct listed *x, uint32_t uid, struct profd_error *e)
{
    uint32_t at = 0;
    while (at < x->uid_count && x->uids[at] < uid) {
        at++;
    }
    if (at < x->uid_count && x->uids[at] == uid) {
        return PROFD_OK;
    }
    uint32_t *longer = arena_extend(a, x->uids, x->uid_count, &x->uid_capacity, sizeof *longer);
    if (!longer) {
        return profd_no_memory(e);
    }
    x->uids = longer;
    memmove(&x->uids[at + 1], &x->uids[at], (x->uid_count - at) * sizeof *x->uids);
    x->uids[at] = uid;
    x->uid_count++;
    return PROFD_OK;
}

/* Adds what a series has of its build k. */
static enum profd_status add_series(struct listing *l, const struct engine_series *series,
                                    const struct engine_sums *sums, size_t k, struct profd_error *e)
{
    const size_t at = engine_find_id(&l->ids, series->builds[k]);
    if (at == l->ids.count) {
        return PROFD_OK;
    }
    struct listed *x = &l->rows[at];
    struct build_row *r = &x->row;
    bool saturated = false;
    const bool first = x->uid_count == 0;
    if (first || series->number < x->named) {
        x->named = series->number;
        r->name = series->names[k];
    }
    r->is_program |= k == series->program_at;
    r->first_seen = first || sums->first < r->first_seen ? sums->first : r->first_seen;
    r->last_seen = first || sums->last > r->last_seen ? sums->last : r->last_seen;
    sum_add(&r->uploads, sums->uploads, &saturated);
    sum_add(&r->processes, sums->processes, &saturated);
    sum_add(&r->nanoseconds, sums->nanoseconds[k], &saturated);
    sum_add(&r->calls, sums->into[k], &saturated);
    r->inexact |= sums->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    return add_uid(l->a, x, series->uid, e);
}

/* Which objects name the builds' functions. */
static enum profd_status name_rows(struct listing *l, struct profd_error *e)
{
    struct naming_build *builds = ARENA_ARRAY(l->a, l->ids.count + 1, struct naming_build);
    if (!builds) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < l->ids.count; i++) {
        builds[i] = (struct naming_build){.build_id = l->ids.list[i]};
    }
    const struct store_senders every = {.uid_count = 0};
    enum profd_status status =
        l->ids.count == 0 ? PROFD_OK : engine_load_naming(l->s, &every, builds, l->ids.count, l->a, e);
    if (status == PROFD_OK) {
        status = engine_compare_names(l->s, builds, l->ids.count, e);
    }
    for (size_t i = 0; i < l->ids.count && status == PROFD_OK; i++) {
        struct listed *x = &l->rows[i];
        const struct store_senders of = {.uids = x->uids, .uid_count = x->uid_count};
        const struct naming_choice choice = naming_choose(&builds[i], &of);
        x->row.has_names = choice.object && choice.object->has_names;
        x->row.note = choice.note ? choice.note : "";
    }
    engine_names_done(builds, l->ids.count);
    return status;
}

/* The rows of l->ids. Those without uids have nothing. */
static enum profd_status make_rows(struct listing *l, struct profd_error *e)
{
    const struct store_filter filter = {.build_id = NULL};
    uint32_t reasons = 0;
    keep_named(l);
    l->sums = ARENA_ARRAY(l->a, l->c.count + 1, struct engine_sums);
    l->rows = ARENA_ARRAY(l->a, l->ids.count + 1, struct listed);
    enum profd_status status =
        l->sums && l->rows ? engine_load_sums(l->s, l->a, &l->c, NULL, l->sums, e) : profd_no_memory(e);
    for (size_t i = 0; i < l->c.count && status == PROFD_OK; i++) {
        for (size_t k = 0; k < l->c.list[i].build_count && status == PROFD_OK && l->sums[i].hours > 0; k++) {
            status = add_series(l, &l->c.list[i], &l->sums[i], k, e);
        }
    }
    if (status == PROFD_OK) {
        status = name_rows(l, e);
    }
    if (status == PROFD_OK && l->ids.count > 0) {
        status = engine_get_marks(&l->s->base, l->scope, &filter, &reasons, e);
    }
    for (size_t i = 0; i < l->ids.count && status == PROFD_OK; i++) {
        l->rows[i].row.inexact |= reasons;
        (void)snprintf(l->rows[i].row.build_id.text, sizeof l->rows[i].row.build_id.text, "%s", l->ids.list[i]);
    }
    return status;
}

enum profd_status engine_each_build(struct store *base, const struct store_scope *scope, const char *after,
                                    size_t limit, bool (*each)(void *context, const struct build_row *row),
                                    void *context, struct profd_error *e)
{
    struct listing l = {.s = engine_self(base), .a = arena_new(0), .scope = scope};
    enum profd_status status =
        l.a ? engine_load_series(l.s, l.a, scope, ENGINE_EVERY, NULL, &l.c, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(l.s, &l.c, e);
    }
    if (status == PROFD_OK) {
        status = engine_collect_ids(l.a, &l.c, after, "", &l.ids, e);
    }
    if (status == PROFD_OK) {
        l.ids.count = l.ids.count < limit ? l.ids.count : limit;
        status = make_rows(&l, e);
    }
    bool more = status == PROFD_OK;
    for (size_t i = 0; i < l.ids.count && more; i++) {
        more = l.rows[i].uid_count == 0 || each(context, &l.rows[i].row);
    }
    arena_free(l.a);
    return status;
}

enum profd_status engine_get_build(struct store *base, const struct store_scope *scope, const char *build_id,
                                   void (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    struct listing l = {
        .s = engine_self(base), .a = arena_new(0), .scope = scope, .ids = {.list = &build_id, .count = 1}};
    enum profd_status status =
        l.a ? engine_load_series(l.s, l.a, scope, ENGINE_BUILD, build_id, &l.c, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = make_rows(&l, e);
    }
    if (status == PROFD_OK && l.rows[0].uid_count == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    if (status == PROFD_OK) {
        each(context, &l.rows[0].row);
    }
    arena_free(l.a);
    return status;
}
