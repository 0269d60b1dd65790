#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "store/labels.h"
#include "store/memory.h"

static int compare_builds(const void *a, const void *b)
{
    const struct memory_build *x = *(struct memory_build *const *)a, *y = *(struct memory_build *const *)b;
    int ids = strcmp(x->id.text, y->id.text);
    return ids != 0 ? ids : (x->uid > y->uid) - (x->uid < y->uid);
}

/* Lists visible rows in a new array, ascending by id and uid. */
static enum profd_status sort_visible(struct memory_store *s, const struct store_scope *scope,
                                      struct memory_build ***out, size_t *count, struct profd_error *e)
{
    struct memory_build **list = calloc(s->build_count + 1, sizeof(struct memory_build *));
    size_t n = 0;
    if (!list) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < s->build_count; i++) {
        if (store_scope_has(scope, s->builds[i].uid)) {
            list[n++] = &s->builds[i];
        }
    }
    qsort(list, n, sizeof(struct memory_build *), compare_builds);
    *out = list;
    *count = n;
    return PROFD_OK;
}

/* Adds up the n rows of one build, of ascending uids. */
static void add_rows(struct memory_build *const *rows, size_t n, struct build_row *r, uint32_t *uids)
{
    bool saturated = false;
    uint64_t added = UINT64_MAX;
    *r = (struct build_row){.build_id = rows[0]->id,
                            .first_seen = rows[0]->sums.first_seen,
                            .last_seen = rows[0]->sums.last_seen,
                            .note = ""};
    for (size_t i = 0; i < n; i++) {
        const struct build_row *x = &rows[i]->sums;
        uids[i] = rows[i]->uid;
        if (x->first_seen < r->first_seen) {
            r->first_seen = x->first_seen;
        }
        if (x->last_seen > r->last_seen) {
            r->last_seen = x->last_seen;
        }
        if (rows[i]->added < added) {
            added = rows[i]->added;
            r->name = rows[i]->name;
        }
        r->is_program |= x->is_program;
        sum_add(&r->uploads, x->uploads, &saturated);
        sum_add(&r->processes, x->processes, &saturated);
        sum_add(&r->nanoseconds, x->nanoseconds, &saturated);
        sum_add(&r->calls, x->calls, &saturated);
        r->inexact |= x->inexact;
    }
    r->inexact |= saturated ? (uint32_t)INEXACT_SATURATED : 0;
}

/* Returns the end of the equal ids that begin at i. */
static size_t run_end(struct memory_build *const *list, size_t count, size_t i)
{
    size_t end = i + 1;
    while (end < count && strcmp(list[end]->id.text, list[i]->id.text) == 0) {
        end++;
    }
    return end;
}

static enum profd_status make_row(const struct memory_store *s, struct memory_build *const *rows, size_t n,
                                  struct build_row *r, struct profd_error *e)
{
    uint32_t *uids = calloc(n, sizeof *uids);
    if (!uids) {
        return profd_no_memory(e);
    }
    add_rows(rows, n, r, uids);
    struct memory_choice choice =
        memory_choose_object(s, r->build_id.text, &(struct store_senders){.uids = uids, .uid_count = n});
    r->has_names = choice.object >= 0 && s->objects[choice.object].has_names;
    r->note = choice.note;
    free(uids);
    return PROFD_OK;
}

enum profd_status memory_find_builds(struct store *base, const struct store_scope *scope, const char *prefix,
                                     bool exact, struct buildid found[2], size_t *count, struct profd_error *e)
{
    struct memory_build **list;
    size_t n, hits = 0;
    enum profd_status status = sort_visible(memory_self(base), scope, &list, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    for (size_t i = 0; i < n && hits < 2; i = run_end(list, n, i)) {
        if (exact ? strcmp(list[i]->id.text, prefix) == 0 : strncmp(list[i]->id.text, prefix, strlen(prefix)) == 0) {
            found[hits++] = list[i]->id;
        }
    }
    *count = hits;
    free(list);
    return PROFD_OK;
}

enum profd_status memory_each_build(struct store *base, const struct store_scope *scope, const char *after,
                                    size_t limit, bool (*each)(void *context, const struct build_row *row),
                                    void *context, struct profd_error *e)
{
    struct memory_build **list;
    size_t n;
    bool more = true;
    enum profd_status status = sort_visible(memory_self(base), scope, &list, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    for (size_t i = 0, end; status == PROFD_OK && more && i < n && limit > 0; i = end) {
        struct build_row row;
        end = run_end(list, n, i);
        if (strcmp(list[i]->id.text, after) <= 0) {
            continue;
        }
        status = make_row(memory_self(base), list + i, end - i, &row, e);
        more = status == PROFD_OK && each(context, &row);
        limit--;
    }
    free(list);
    return status;
}

enum profd_status memory_get_build(struct store *base, const struct store_scope *scope, const char *build_id,
                                   void (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    struct memory_build **list;
    struct build_row row;
    size_t n;
    bool found = false;
    enum profd_status status = sort_visible(memory_self(base), scope, &list, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    for (size_t i = 0; status == PROFD_OK && i < n && !found; i = run_end(list, n, i)) {
        found = strcmp(list[i]->id.text, build_id) == 0;
        if (found) {
            status = make_row(memory_self(base), list + i, run_end(list, n, i) - i, &row, e);
        }
    }
    free(list);
    if (status == PROFD_OK && !found) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    if (status == PROFD_OK) {
        each(context, &row);
    }
    return status;
}

static bool upload_has(const struct memory_upload *u, const char *build_id, uint32_t *position)
{
    for (size_t i = 0; i < u->build_count; i++) {
        if (strcmp(u->builds[i].id.text, build_id) == 0) {
            *position = (uint32_t)i;
            return true;
        }
    }
    return false;
}

enum profd_status memory_each_label(struct store *base, const struct store_scope *scope, const char *build_id,
                                    bool (*each)(void *context, const struct label_row *row), void *context,
                                    struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    struct label_tally tally;
    uint32_t position;
    enum profd_status status = PROFD_OK;
    label_tally_init(&tally);
    for (size_t i = 0; status == PROFD_OK && i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        if (store_scope_has(scope, u->uid) && (!build_id || upload_has(u, build_id, &position))) {
            status = label_tally_add(&tally, u->labels, u->labels_size, 1, e);
        }
    }
    if (status == PROFD_OK) {
        status = label_tally_each(&tally, each, context, e);
    }
    label_tally_done(&tally);
    return status;
}

/* True if this user has seen both builds in one process. */
static bool are_companions(const struct memory_store *s, uint32_t uid, const char *a, const char *b)
{
    uint32_t position;
    for (size_t i = 0; i < s->upload_count; i++) {
        if (s->uploads[i].uid == uid && upload_has(&s->uploads[i], a, &position) &&
            upload_has(&s->uploads[i], b, &position)) {
            return true;
        }
    }
    return false;
}

enum profd_status memory_each_companion(struct store *base, const struct store_scope *scope, const char *build_id,
                                        bool (*each)(void *context, const char *companion, const char *name),
                                        void *context, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    struct memory_build **list;
    size_t n;
    bool more = true;
    enum profd_status status = sort_visible(s, scope, &list, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    for (size_t i = 0, end; more && i < n; i = end) {
        bool companion = false;
        const struct memory_build *named = list[i];
        end = run_end(list, n, i);
        for (size_t k = i; k < end; k++) {
            companion |=
                strcmp(list[k]->id.text, build_id) != 0 && are_companions(s, list[k]->uid, list[k]->id.text, build_id);
            if (list[k]->added < named->added) {
                named = list[k];
            }
        }
        if (companion) {
            more = each(context, named->id.text, named->name);
        }
    }
    free(list);
    return PROFD_OK;
}

const struct memory_upload *memory_find_upload(const struct memory_store *s, uint64_t number)
{
    for (size_t i = 0; number > 0 && i < s->upload_count; i++) {
        if (s->uploads[i].number == number) {
            return &s->uploads[i];
        }
    }
    return NULL;
}

static bool is_found(const struct memory_store *s, const struct memory_instance *m, const struct store_scope *scope,
                     const struct store_filter *f)
{
    const struct memory_upload *u = memory_find_upload(s, m->upload);
    uint32_t position = 0;
    return u && store_scope_has(scope, m->uid) &&
           (!f->build_id || (upload_has(u, f->build_id, &position) && (!f->as_program || position == u->program))) &&
           labels_match(u->labels, u->labels_size, f->matchers, f->matcher_count);
}

static bool is_living(const struct memory_store *s, const struct memory_instance *m, enum store_living_kind kind,
                      const struct store_filter *f)
{
    bool read = m->run == s->base.run;
    return !m->ended && read == (kind == STORE_READ) && (f->until <= 0 || m->seen < f->until) &&
           (!read || m->seen >= f->since);
}

static void add_living(struct store_living *out, uint64_t processes, int64_t seen)
{
    out->earliest = out->processes == 0 || seen < out->earliest ? seen : out->earliest;
    out->latest = seen > out->latest ? seen : out->latest;
    out->processes += processes;
}

enum profd_status memory_get_living(struct store *base, enum store_living_kind kind, const struct store_scope *scope,
                                    const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    (void)e;
    for (size_t i = 0; i < s->instance_count; i++) {
        const struct memory_instance *m = &s->instances[i];
        if (!is_found(s, m, scope, filter)) {
            continue;
        }
        if (is_living(s, m, kind, filter)) {
            add_living(out, 1, m->seen);
        }
        if (kind == STORE_UNREAD && m->missing > 0 && (filter->until <= 0 || m->missing_since < filter->until)) {
            add_living(out, (uint64_t)m->missing, m->missing_since);
        }
    }
    return PROFD_OK;
}

/* Does it satisfy the filter, whatever its window? */
static bool memory_matches(const struct memory_upload *u, const struct store_scope *scope, const struct store_filter *f)
{
    uint32_t position;
    return store_scope_has(scope, u->uid) && upload_has(u, f->build_id, &position) &&
           (!f->as_program || position == u->program) &&
           labels_match(u->labels, u->labels_size, f->matchers, f->matcher_count);
}

enum profd_status memory_get_range(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter, int64_t *since, int64_t *until,
                                   struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    *since = filter->since;
    *until = filter->until;
    for (size_t i = 0; i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        const int64_t width = u->rolled ? u->width : MEMORY_SLICE;
        int64_t slice = u->end - u->end % width;
        if ((!u->live && !u->rolled) || !memory_matches(u, scope, filter)) {
            continue;
        }
        if (*since > slice && *since < slice + width) {
            *since = slice;
        }
        if (*until > slice && *until < slice + width) {
            *until = slice + width;
        }
    }
    return PROFD_OK;
}

enum profd_status
memory_each_upload(struct store *base, const struct store_scope *scope, const struct store_filter *filter,
                   enum profd_status (*each)(void *context, const struct store_row *row, struct profd_error *e),
                   void *context, struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    int64_t since, until;
    enum profd_status status = memory_get_range(base, scope, filter, &since, &until, e);
    for (size_t i = 0; status == PROFD_OK && i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        if (!memory_matches(u, scope, filter) || (since > 0 && u->end < since) || (until > 0 && u->end >= until)) {
            continue;
        }
        const char *const host = u->host;
        struct store_row row = {.commit = u->number,
                                .id = u->number,
                                .rolled = u->rolled,
                                .version = u->rolled ? u->number : 0,
                                .uploads = u->uploads,
                                .width = u->rolled ? u->width
                                         : u->live ? MEMORY_SLICE
                                                   : 0,
                                .label_count = u->label_count,
                                .labels = u->label_list,
                                .uid = u->uid,
                                .host = u->rolled ? NULL : u->host,
                                .host_count = u->rolled ? 1 : 0,
                                .hosts = &host,
                                .start = u->start,
                                .end = u->end,
                                .inexact = u->inexact,
                                .processes_started = u->processes_started,
                                .program = u->program,
                                .build_count = u->build_count,
                                .builds = u->builds,
                                .counts = u->counts,
                                .counts_size = u->counts_size,
                                .series = u->series};
        row.groups = u->groups;
        row.group = u->rolled ? 0 : u->group;
        const bool spread = filter->spread;
        row.spread = spread ? u->spread : NULL;
        row.spread_size = spread ? u->spread_size : 0;
        row.groups.of[u->group] += u->rolled ? 0 : u->processes_started;
        status = each(context, &row, e);
    }
    return status;
}
