#include "query/joined_sum.h"

#include <string.h>

#include "core/buffer.h"
#include "core/sum.h"

#define NOT_JOINED UINT32_MAX

void joined_init(struct joined *j, struct arena *a)
{
    *j = (struct joined){.arena = a};
    set_init(&j->names, a);
    set_init(&j->places, a);
    set_init(&j->unnamed, a);
    set_init(&j->ambiguous, a);
}

/* name NUL file NUL, preceded by a build's number if there is one. */
static enum profd_status add_key(struct set *to, struct buffer *key, const struct report_function *f,
                                 const uint32_t *build, uint32_t *number, bool *added)
{
    const char *file = f->file != NULL ? f->file : "";
    key->size = 0;
    if (build != NULL) {
        buffer_add(key, build, sizeof *build);
    }
    buffer_add(key, f->name, strlen(f->name) + 1);
    buffer_add(key, file, strlen(file) + 1);
    return key->failed ? PROFD_NO_MEMORY : set_add(to, key->data, key->size, number, added);
}

/* Is it something that a report has to show: an entry, or with time? */
static bool is_shown(const struct report_function *f)
{
    return f->index != 0 || f->self > 0;
}

static enum profd_status add_unnamed(struct joined *j, const struct report *r, const struct report_function *f)
{
    uint32_t number;
    bool added = false;
    const char *id = f->build < r->build_count ? r->builds[f->build] : "";
    enum profd_status status = set_add(&j->unnamed, id, strlen(id) + 1, &number, &added);
    j->rest.unnamed_builds += added;
    j->rest.unnamed_functions++;
    j->rest.unnamed_seconds += f->self;
    return status;
}

static enum profd_status new_row(struct joined *j, uint32_t number, const struct report_function *f)
{
    struct joined_row *rows = arena_extend(j->arena, j->rows, number, &j->capacity, sizeof *rows);
    const char *file = f->file != NULL ? f->file : "";
    if (rows == NULL) {
        return PROFD_NO_MEMORY;
    }
    j->rows = rows;
    rows[number] = (struct joined_row){.name = arena_copy(j->arena, f->name, strlen(f->name)),
                                       .file = arena_copy(j->arena, file, strlen(file))};
    return rows[number].name != NULL && rows[number].file != NULL ? PROFD_OK : PROFD_NO_MEMORY;
}

/* A function may be in several builds of one report, like an inline function in libraries: it is counted once per
 * program. */
static enum profd_status add_named(struct joined *j, const struct report *r, const struct report_function *f,
                                   struct buffer *key, struct set *seen)
{
    uint32_t number, ignored;
    bool added, in_program, in_place;
    const char *id = r->builds[f->build];
    enum profd_status status = add_key(&j->names, key, f, NULL, &number, &added);
    if (status == PROFD_OK && added) {
        status = new_row(j, number, f);
    }
    if (status == PROFD_OK) {
        status = set_add(seen, &number, sizeof number, &ignored, &in_program);
    }
    if (status == PROFD_OK) {
        key->size = 0;
        buffer_add(key, &number, sizeof number);
        buffer_add_text(key, id);
        status = key->failed ? PROFD_NO_MEMORY : set_add(&j->places, key->data, key->size, &ignored, &in_place);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct joined_row *row = &j->rows[number];
    bool saturated = false;
    row->self += f->self;
    row->total += f->self + f->children;
    sum_add(&row->calls, f->calls, &saturated);
    sum_add(&row->self_calls, f->self_calls, &saturated);
    row->programs += in_program;
    row->builds += in_place;
    return status;
}

static enum profd_status add_ambiguous(struct joined *j, const struct report_function *f, struct buffer *key)
{
    uint32_t number;
    bool added = false;
    enum profd_status status = add_key(&j->ambiguous, key, f, NULL, &number, &added);
    j->rest.ambiguous_names += added;
    j->rest.ambiguous_functions++;
    j->rest.ambiguous_seconds += f->self;
    return status;
}

/* How many functions of the report have each function's build, name and file. */
static enum profd_status count_twins(const struct report *r, struct arena *scratch, struct buffer *key,
                                     uint32_t **place, uint32_t **counts)
{
    struct set twins;
    bool added;
    enum profd_status status = PROFD_OK;
    set_init(&twins, scratch);
    *place = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    *counts = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    if (*place == NULL || *counts == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; status == PROFD_OK && i < r->function_count; i++) {
        (*place)[i] = NOT_JOINED;
        if (r->functions[i].kind == REPORT_FUNCTION) {
            status = add_key(&twins, key, &r->functions[i], &r->functions[i].build, &(*place)[i], &added);
            (*counts)[(*place)[i]] += status == PROFD_OK;
        }
    }
    return status;
}

static enum profd_status add_functions(struct joined *j, const struct report *r, struct arena *scratch,
                                       struct buffer *key)
{
    uint32_t *place, *counts;
    struct set seen;
    enum profd_status status = count_twins(r, scratch, key, &place, &counts);
    set_init(&seen, scratch);
    for (uint32_t i = 0; status == PROFD_OK && i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (!is_shown(f)) {
            continue;
        }
        if (f->kind == REPORT_ADDRESS || f->kind == REPORT_UNKNOWN) {
            status = add_unnamed(j, r, f);
        } else if (f->kind != REPORT_FUNCTION) {
            j->rest.other_seconds += f->self;
        } else if (counts[place[i]] > 1) {
            status = add_ambiguous(j, f, key);
        } else {
            status = add_named(j, r, f, key, &seen);
        }
    }
    return status;
}

enum profd_status joined_add(struct joined *j, const struct report *r, struct arena *scratch, struct profd_error *e)
{
    struct buffer key;
    bool saturated = false;
    buffer_init(&key, 65536);
    enum profd_status status = add_functions(j, r, scratch, &key);
    buffer_done(&key);
    j->rest.seconds += r->total;
    sum_add(&j->rest.calls, r->calls, &saturated);
    return status == PROFD_OK ? status : profd_error_set(e, status, "no memory to join functions");
}
