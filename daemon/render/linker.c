/* Lists of functions for linkers and compilers: format=symbol-order and format=exclude-list. */
#include <string.h>

#include "core/cluster.h"
#include "core/coverage.h"
#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "proto/sort.h"
#include "render/render_internal.h"

/* What lists for compilers and linkers share: the functions of the one build that is linked, by the names that stand in
 * its symbol table, and comments that say where the numbers come from. Internal to render. */

#define LINKER_LEFT_OUT UINT32_MAX

struct linker_list {
    uint32_t count;
    uint32_t *functions;        /* positions in the report, ascending */
    uint32_t *numbers;          /* of each position: index into functions, or LINKER_LEFT_OUT */
    uint32_t unusable;          /* functions of the build with a name that is not unique, or no word of a line */
    uint64_t calls, calls_here; /* of the report between functions; of them, with both ends in the list */
};

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

/* Calls into a function, its own among them. */
static uint64_t linker_calls(const struct report_function *f)
{
    uint64_t calls = f->calls;
    sum_saturate(&calls, f->self_calls);
    return calls;
}

/* Functions of the build that in is about, which are entries of its report. BAD_QUERY naming the format if no call into
 * them is counted. O(functions log functions + arcs). */
static enum profd_status linker_list_make(const struct render_input *in, const char *format, struct arena *a,
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
    FAIL_IF(calls == 0 && unnamed != 0, e, PROFD_BAD_QUERY,
            "format=%s needs names, and the functions of build %s that are counted have none: send its executable or, "
            "if that is stripped, its debug file with: profctl symbols FILE",
            format, in->build_id);
    FAIL_IF(calls == 0, e, PROFD_BAD_QUERY,
            "format=%s needs counted calls, and no call of a function of build %s is counted: compile it with -pg, and "
            "run it with: profctl run",
            format, in->build_id);

    /* Names that occur twice are left out, and the others ascend by position again. */
    sort_merge(sorted, scratch, n, by_name, r);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_name(r, sorted[i], sorted[end]) == 0;) {
            end++;
        }
        if (end - i == 1 && is_word(r->functions[sorted[i]].raw)) {
            list.numbers[sorted[i]] = 0;
        } else {
            list.unusable += end - i;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (list.numbers[i] != LINKER_LEFT_OUT) {
            list.numbers[i] = list.count;
            list.functions[list.count++] = i;
        }
    }

    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        for (uint32_t k = 0; f->kind == REPORT_FUNCTION && k < f->callee_count; k++) {
            const struct report_arc *arc = &f->callees[k];
            sum_saturate(&list.calls, arc->calls);
            if (list.numbers[i] != LINKER_LEFT_OUT && list.numbers[arc->other] != LINKER_LEFT_OUT) {
                sum_saturate(&list.calls_here, arc->calls);
            }
        }
    }
    *out = list;
    return PROFD_OK;
}

/* Comment lines: the build, whether its calls are exact, and what is not in the list. what: "Symbol order (C3)". */
static void linker_add_heading(struct buffer *out, const struct render_input *in, const struct linker_list *list,
                               const char *what, struct arena *a)
{
    const uint32_t inexact = in->provenance->inexact;
    const char *name = name_make_safe(a, in->build_name ? in->build_name : ""), *reasons = reasons_list(in, a);
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

/* format=exclude-list: cheap and hot functions. Counting a call of such a function costs more than the call itself.
 * "BUILD-ID ADDRESS SIZE NAME" a line, as the collector reads it (PROFD_LEAVE_OUT). Comments begin with '#'.
 *
 * A counted call takes the same time in every function, so that a function's part of the ticks inside the collector is
 * its part of the calls. Functions are taken by calls, the most first, until the share of the ticks that would then be
 * inside the collector is TARGET or less. */

#define SAMPLES_LEAST 100
#define TARGET 0.15 /* so that a run with other input is still below a fifth */

struct excluding {
    const struct report *report;
    const struct linker_list *list;
    double inside, calls; /* seconds inside the collector, and the calls that took them */
};

static int by_calls(const void *context, uint32_t a, uint32_t b)
{
    const struct excluding *x = context;
    uint64_t left = linker_calls(&x->report->functions[x->list->functions[a]]),
             right = linker_calls(&x->report->functions[x->list->functions[b]]);
    return left > right ? -1 : left < right;
}

/* Seconds inside the collector for that number of calls. */
static double cost(const struct excluding *x, uint64_t calls)
{
    return x->inside * ((double)calls / x->calls);
}

static void add_list(struct buffer *out, const struct render_input *in, const struct excluding *x,
                     const uint32_t *order, double sampled)
{
    uint64_t calls = 0;
    double inside = x->inside;
    uint32_t count = 0;
    for (; count < x->list->count && inside > TARGET * (sampled - x->inside + inside); count++) {
        const struct report_function *f = &x->report->functions[x->list->functions[order[count]]];
        if (f->size == 0 || f->self > cost(x, linker_calls(f))) {
            continue;
        }
        calls += linker_calls(f);
        inside -= cost(x, linker_calls(f));
        buffer_add_format(out, "%s 0x%llx 0x%llx %s\n", in->build_id, (unsigned long long)f->address,
                          (unsigned long long)f->size, f->raw);
    }
    if (calls == 0) {
        bool few = inside <= TARGET * sampled;
        buffer_add_format(out, "# No function is listed: %.1f %% of the ticks are inside the collector%s\n",
                          100 * x->inside / sampled,
                          few ? ", and 15 % may be" : "; each function runs for longer than its calls take to count");
        return;
    }
    inside = inside > 0 ? inside : 0;
    buffer_add_format(out,
                      "# Without them: %.1f %% of the calls are counted, and about %.1f %% of the ticks (now %.1f %%) "
                      "are inside the collector\n",
                      100 * (1 - (double)calls / x->calls), 100 * inside / (sampled - x->inside + inside),
                      100 * x->inside / sampled);
}

enum profd_status exclude_list_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                      struct profd_error *e)
{
    const struct report *r = in->report;
    struct linker_list list;
    double share = 0;
    TRY(linker_list_make(in, "exclude-list", a, &list, e));
    FAIL_IF((in->provenance->inexact & INEXACT_LEFT_OUT) != 0, e, PROFD_BAD_QUERY,
            "format=exclude-list needs calls of all functions, and in these profiles some were left out; select others "
            "by time or label");
    FAIL_IF(in->coverage && in->coverage->any && coverage_samples(in->coverage, r) < SAMPLES_LEAST, e, PROFD_BAD_QUERY,
            "format=exclude-list needs %d samples, and these profiles have %.0f: run the program longer", SAMPLES_LEAST,
            coverage_samples(in->coverage, r));
    FAIL_IF(!in->coverage || !in->coverage->any || !coverage_overhead(in->coverage, &share), e, PROFD_BAD_QUERY,
            "format=exclude-list needs the share of ticks inside the collector, which these profiles do not have: run "
            "the program with: profctl run");
    uint32_t *order = ARENA_ARRAY(a, (size_t)list.count + 1, uint32_t),
             *scratch = ARENA_ARRAY(a, (size_t)list.count + 1, uint32_t);
    for (uint32_t i = 0; i < list.count; i++) {
        order[i] = i;
    }
    const double sampled = (double)in->coverage->counters[COLLECTOR_SAMPLED_NS] / 1e9;
    const struct excluding x = {r, &list, share * sampled, (double)r->calls};
    sort_merge(order, scratch, list.count, by_calls, &x);
    linker_add_heading(out, in, &list, "Functions to leave out of counting (PROFD_LEAVE_OUT)", a);
    add_list(out, in, &x, order, sampled);
    return PROFD_OK;
}

/* format=symbol-order: names of functions, one a line, in the order in which they should lie (core/cluster.h), for
 * --symbol-ordering-file of ld.lld. Comments begin with '#'. Functions with samples but without counted calls come
 * last. */
enum profd_status symbol_order_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                      struct profd_error *e)
{
    const struct report *r = in->report;
    struct linker_list list;
    size_t most = 1;
    uint32_t arc_count = 0;
    TRY(linker_list_make(in, "symbol-order", a, &list, e));
    struct cluster_node *nodes = ARENA_ARRAY(a, (size_t)list.count + 1, struct cluster_node);
    uint32_t *order = ARENA_ARRAY(a, (size_t)list.count + 1, uint32_t);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct report_function *f = &r->functions[list.functions[i]];
        nodes[i] = (struct cluster_node){f->size, linker_calls(f)};
        most += f->callee_count;
    }
    struct cluster_arc *arcs = most <= UINT32_MAX ? ARENA_ARRAY(a, most, struct cluster_arc) : arena_fail(a);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct report_function *f = &r->functions[list.functions[i]];
        for (uint32_t k = 0; k < f->callee_count; k++) {
            const uint32_t to = list.numbers[f->callees[k].other];
            if (to != LINKER_LEFT_OUT) {
                arcs[arc_count++] = (struct cluster_arc){i, to, f->callees[k].calls};
            }
        }
    }
    cluster_order(a, nodes, list.count, arcs, arc_count, order);
    linker_add_heading(out, in, &list, "Symbol order (C3) for ld.lld --symbol-ordering-file", a);
    for (uint32_t i = 0; i < list.count && !out->failed; i++) {
        buffer_add_text(out, r->functions[list.functions[order[i]]].raw);
        buffer_add_char(out, '\n');
    }
    return PROFD_OK;
}
