#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "render/render_internal.h"

struct function_order {
    const struct report *report;
    enum render_sort sort;
};

static int compare_most_first(double x, double y)
{
    return x > y ? -1 : x < y;
}

/* Positions ascend by (build, address): the last rule makes the order total. */
static int function_compare(const void *left, const void *right, void *context)
{
    const struct function_order *s = context;
    const uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
    const struct report_function *a = &s->report->functions[x], *b = &s->report->functions[y];
    const int by_calls = a->calls > b->calls ? -1 : a->calls < b->calls;
    int order = s->sort == RENDER_SORT_CALLS   ? by_calls
                : s->sort == RENDER_SORT_TOTAL ? compare_most_first(a->self + a->children, b->self + b->children)
                                               : 0;
    if (order == 0) {
        order = compare_most_first(a->self, b->self);
    }
    if (order == 0) {
        order = by_calls;
    }
    if (order == 0) {
        order = strcmp(a->name, b->name);
    }
    return order != 0 ? order : x < y ? -1 : x > y;
}

bool render_has_focus(const struct report_function *f, const char *focus)
{
    return strstr(f->name, focus) != NULL || strstr(f->raw, focus) != NULL;
}

bool render_find_focus(const struct report *r, const char *focus)
{
    for (uint32_t i = 0; i < r->order_count; i++) {
        if ((r->order[i] & REPORT_CYCLE) == 0 && render_has_focus(&r->functions[r->order[i]], focus)) {
            return true;
        }
    }
    return false;
}

void selection_make(const struct render_input *in, struct arena *a, struct selection *out)
{
    const struct report *r = in->report->shown ? in->report->shown : in->report; /* with the times that sort */
    uint32_t *list = ARENA_ARRAY(a, (size_t)r->function_count + 1, uint32_t), n = 0;
    uint32_t *entries = ARENA_ARRAY(a, (size_t)r->order_count + 1, uint32_t);
    bool *shown = ARENA_ARRAY(a, (size_t)r->function_count + 1, bool);
    bool *cycle_shown = ARENA_ARRAY(a, (size_t)r->cycle_count + 1, bool);
    struct selection s = {.entries = entries};

    /* The functions that are entries and wanted, in index order; then sorted and cut. */
    for (uint32_t i = 0; i < r->order_count; i++) {
        const uint32_t position = r->order[i];
        if (position & REPORT_CYCLE) {
            continue;
        }
        s.hidden++;
        if (in->only != 0 ? position == in->only - 1
                          : !in->show.focus || render_has_focus(&in->report->functions[position], in->show.focus)) {
            list[n++] = position;
        }
    }
    if (in->show.sort != RENDER_SORT_INDEX) {
        struct function_order order = {r, in->show.sort};
        qsort_r(list, n, sizeof *list, function_compare, &order);
    }
    s.function_count = in->show.limit != 0 && n > in->show.limit ? in->show.limit : n;
    s.hidden -= s.function_count;
    for (uint32_t i = 0; i < s.function_count; i++) {
        const uint32_t cycle = r->functions[list[i]].cycle;
        shown[list[i]] = true;
        if (cycle != 0) {
            cycle_shown[cycle - 1] = true;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        s.hidden_seconds += shown[i] ? 0 : r->functions[i].self;
    }

    /* In index order a cycle has its own place, else it stands before the first of its members. */
    for (uint32_t i = 0; in->show.sort == RENDER_SORT_INDEX && i < r->order_count; i++) {
        const uint32_t entry = r->order[i];
        if (entry & REPORT_CYCLE ? cycle_shown[entry & ~REPORT_CYCLE] : shown[entry]) {
            entries[s.entry_count++] = entry;
        }
    }
    for (uint32_t i = 0; in->show.sort != RENDER_SORT_INDEX && i < s.function_count; i++) {
        const uint32_t cycle = r->functions[list[i]].cycle;
        if (cycle != 0 && cycle_shown[cycle - 1]) {
            entries[s.entry_count++] = REPORT_CYCLE | (cycle - 1);
            cycle_shown[cycle - 1] = false;
        }
        entries[s.entry_count++] = list[i];
    }
    *out = s;
}

void selection_make_picture(const struct render_input *in, struct arena *a, struct selection *out, bool **shown)
{
    struct render_input picture = *in;
    bool *among = ARENA_ARRAY(a, (size_t)in->report->function_count + 1, bool);
    picture.show.sort = in->show.sort == RENDER_SORT_INDEX ? RENDER_SORT_TOTAL : in->show.sort;
    selection_make(&picture, a, out);
    for (uint32_t i = 0; i < out->entry_count; i++) {
        if (!(out->entries[i] & REPORT_CYCLE)) {
            among[out->entries[i]] = true;
        }
    }
    *shown = among;
}

struct row_cut row_cut_make(const struct report_arc *rows, uint32_t n, uint32_t most, bool last_is_heaviest)
{
    struct row_cut cut = {.count = n};
    if (most == 0 || n <= most) {
        return cut;
    }
    cut.first = last_is_heaviest ? n - most : 0;
    cut.count = most;
    cut.left = n - most;
    uint32_t start = last_is_heaviest ? 0 : most;
    for (uint32_t i = start; i < start + cut.left; i++) {
        sum_saturate(&cut.calls, rows[i].calls);
        cut.seconds += rows[i].self + rows[i].children;
    }
    return cut;
}

const char *reasons_list(const struct render_input *in, struct arena *a)
{
    const char *list = NULL;
    const uint64_t *w = in->coverage ? in->coverage->counters : NULL;
    uint32_t inexact = in->provenance->inexact;
    if (w && (w[COLLECTOR_INSIDE_NS] | w[COLLECTOR_BLOCKED_NS] | w[COLLECTOR_DROPPED_NS]) != 0) {
        inexact |= INEXACT_TICKS_OUTSIDE;
    }
    for (uint32_t bit = 1; bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name) {
            list = list ? arena_format(a, "%s, %s", list, name) : name;
        }
    }
    return list ? list : "none";
}
