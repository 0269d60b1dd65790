#include "core/never_called.h"

#include <string.h>

#include "core/names.h"
#include "proto/sort.h"

/* Functions of the build, entered or not: items below `idle` are in not_called. */
struct never_work {
    const struct object *object;
    const struct report_function **items;
    uint32_t count, idle;
};

static int never_compare_names(const struct report_function *x, const struct report_function *y)
{
    size_t n = clone_base(x->raw), m = clone_base(y->raw);
    int order = strncmp(x->raw, y->raw, n < m ? n : m);
    order = order != 0 ? order : compare_u64(n, m);
    return order != 0 ? order : strcmp(x->file, y->file);
}

static int never_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct never_work *w = context;
    return never_compare_names(w->items[x], w->items[y]);
}

static bool never_is_of(const struct report *r, const struct report_function *f, const char *build_id)
{
    return f->kind == REPORT_FUNCTION && strcmp(r->builds[f->build], build_id) == 0 && !runtime_is_startup(f->raw);
}

static bool never_is_whole(const struct never_row *row)
{
    return !row->entered_elsewhere && !row->inlined;
}

/* One name and file: a row of those that were not entered, if there are any. */
static void never_add(const struct never_work *w, const uint32_t *order, uint32_t n, struct never_called *out)
{
    struct never_row row = {.function = NULL};
    bool only_parts = true; /* the function was split: what is not in this part was inlined */
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = w->items[order[i]];
        only_parts = only_parts && strstr(f->raw + clone_base(f->raw), ".part") != NULL;
        if (order[i] >= w->idle) {
            row.entered_elsewhere = true;
            continue;
        }
        row.bytes += f->size;
        row.copies++;
        row.function = row.function == NULL || f->size > row.function->size ? f : row.function;
    }
    if (row.function == NULL) {
        return;
    }
    const char *raw = row.function->raw;
    row.inlined = only_parts || (w->object != NULL && object_has_inlined(w->object, raw, clone_base(raw)));
    out->rows[out->count++] = row;
    out->functions += never_is_whole(&row);
    *(never_is_whole(&row) ? &out->bytes : &out->copy_bytes) += row.bytes;
}

static int never_compare_rows(const void *context, uint32_t x, uint32_t y)
{
    const struct never_row *rows = context, *a = &rows[x], *b = &rows[y];
    if (never_is_whole(a) != never_is_whole(b)) {
        return never_is_whole(a) ? -1 : 1;
    }
    return a->bytes != b->bytes ? compare_u64(b->bytes, a->bytes)
                                : compare_u64(a->function->address, b->function->address);
}

void never_called_make(struct arena *a, const struct report *r, const char *build_id, const struct object *o,
                       struct never_called *out)
{
    const size_t most = (size_t)r->not_called_count + r->function_count;
    struct never_work w = {.object = o, .items = ARENA_ARRAY(a, most, const struct report_function *)};
    uint32_t *order = ARENA_ARRAY(a, most * 2, uint32_t);
    *out = (struct never_called){.rows = ARENA_ARRAY(a, r->not_called_count, struct never_row),
                                 .named = o == NULL || !o->has_names ? "no"
                                          : o->only_dynamic          ? "exported"
                                                                     : "yes",
                                 .not_called = r->not_called_count,
                                 .knows_inlined = o != NULL && o->knows_inlined};
    for (uint32_t i = 0; i < r->build_count; i++) {
        out->counted += strcmp(r->builds[i], build_id) == 0 ? r->counted_of[i] : 0;
    }
    for (uint32_t i = 0; i < r->not_called_count; i++) {
        if (never_is_of(r, &r->not_called[i], build_id)) {
            w.items[w.count++] = &r->not_called[i];
        }
    }
    w.idle = w.count;
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (r->functions[i].index != 0 && never_is_of(r, &r->functions[i], build_id)) {
            w.items[w.count++] = &r->functions[i];
        }
    }
    for (uint32_t i = 0; i < w.count; i++) {
        order[i] = i;
    }
    sort_merge(order, order + w.count, w.count, never_compare, &w);
    for (uint32_t i = 0, next; i < w.count; i = next) {
        for (next = i + 1; next < w.count; next++) {
            if (never_compare_names(w.items[order[i]], w.items[order[next]]) != 0) {
                break;
            }
        }
        never_add(&w, order + i, next - i, out);
    }

    struct never_row *sorted = ARENA_ARRAY(a, out->count, struct never_row);
    for (uint32_t i = 0; i < out->count; i++) {
        order[i] = i;
    }
    sort_merge(order, order + out->count, out->count, never_compare_rows, out->rows);
    for (uint32_t i = 0; i < out->count; i++) {
        sorted[i] = out->rows[order[i]];
    }
    out->rows = sorted;
}
