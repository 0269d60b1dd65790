#include "render/linker.h"

#include <string.h>

#include "proto/sort.h"
#include "core/sum.h"
#include "proto/message.h"
#include "render/name.h"
#include "render/reasons.h"

/* A name that is one word of a line, and no comment. */
static bool is_word(const char *name)
{
    if (name[0] == '\0' || name[0] == '#') {
        return false;
    }
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        if (*c <= ' ' || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

static int by_name(const void *context, uint32_t a, uint32_t b)
{
    const struct report *r = context;
    return strcmp(r->functions[a].raw, r->functions[b].raw);
}

uint64_t linker_calls(const struct report_function *f)
{
    uint64_t calls = f->calls;
    bool saturated = false;
    sum_add(&calls, f->self_calls, &saturated);
    return calls;
}

/* Sums calls that functions make. */
static void count_calls(const struct report *r, struct linker_list *list)
{
    bool saturated = false;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        for (uint32_t k = 0; f->kind == REPORT_FUNCTION && k < f->callee_count; k++) {
            const struct report_arc *arc = &f->callees[k];
            sum_add(&list->calls, arc->calls, &saturated);
            if (list->numbers[i] != LINKER_LEFT_OUT && list->numbers[arc->other] != LINKER_LEFT_OUT) {
                sum_add(&list->calls_here, arc->calls, &saturated);
            }
        }
    }
}

/* Leaves out names that occur twice, and makes the others ascend by position again. sorted: by name. */
static void keep_unique(const struct report *r, struct linker_list *list, const uint32_t *sorted, uint32_t n)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i + 1;
        while (end < n && by_name(r, sorted[i], sorted[end]) == 0) {
            end++;
        }
        if (end - i == 1 && is_word(r->functions[sorted[i]].raw)) {
            list->numbers[sorted[i]] = 0;
        } else {
            list->unusable += end - i;
        }
        i = end;
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (list->numbers[i] != LINKER_LEFT_OUT) {
            list->numbers[i] = list->count;
            list->functions[list->count++] = i;
        }
    }
}

enum profd_status linker_list_make(const struct render_input *in, const char *format, struct arena *a,
                                   struct linker_list *out, struct profd_error *e)
{
    const struct report *r = in->report;
    const size_t capacity = (size_t)r->function_count + 1;
    struct linker_list list = {.functions = ARENA_ARRAY(a, capacity, uint32_t),
                               .numbers = ARENA_ARRAY(a, capacity, uint32_t)};
    uint32_t *sorted = ARENA_ARRAY(a, capacity, uint32_t), *scratch = ARENA_ARRAY(a, capacity, uint32_t), n = 0;
    uint64_t calls = 0, unnamed = 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        list.numbers[i] = LINKER_LEFT_OUT;
        if (f->index == 0 || f->build >= r->build_count || strcmp(r->builds[f->build], in->build_id) != 0) {
            continue;
        }
        if (f->kind == REPORT_FUNCTION) {
            sorted[n++] = i;
            calls |= linker_calls(f);
        }
        unnamed |= linker_calls(f);
    }
    if (calls == 0 && unnamed != 0) {
        return profd_error_set(
            e, PROFD_BAD_QUERY,
            "format=%s needs names, and the functions of build %s that are counted have none: send its "
            "executable or, if that is stripped, its debug file with: profctl symbols FILE",
            format, in->build_id);
    }
    if (calls == 0) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "format=%s needs counted calls, and no call of a function of build %s is counted: "
                               "compile it with -pg, and run it with: profctl run",
                               format, in->build_id);
    }
    sort_merge(sorted, scratch, n, by_name, r);
    keep_unique(r, &list, sorted, n);
    count_calls(r, &list);
    *out = list;
    return PROFD_OK;
}

void linker_add_heading(struct buffer *out, const struct render_input *in, const struct linker_list *list,
                        const char *what, struct arena *a)
{
    const uint32_t inexact = in->provenance->inexact;
    const char *name = name_make_safe(a, in->build_name != NULL ? in->build_name : ""), *reasons = reasons_list(in, a);
    buffer_add_format(out, "# %s, by profd " PROFD_VERSION "\n# Build: %s %s\n", what, in->build_id, name);
    buffer_add_format(out, "# Calls: %s\n",
                      (inexact & INEXACT_SAMPLED) != 0 ? "sampled, at least in part"
                      : (inexact & INEXACT_CALLS) == 0 ? "exact"
                                                       : "counted, but not exact");
    buffer_add_format(out, "# Not exact: %s\n", reasons);
    buffer_add_format(out, "# Functions: %lu; left out, because their names are not unique: %lu\n",
                      (unsigned long)list->count, (unsigned long)list->unusable);
    if (list->calls > 0) {
        buffer_add_format(out, "# Calls between functions: %llu, %.2f %% of them between functions of this list\n",
                          (unsigned long long)list->calls, 100.0 * (double)list->calls_here / (double)list->calls);
    }
}
