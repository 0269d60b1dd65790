/* format=exclude-list: the cheap and hot functions, of which counting the calls costs more than the calls themselves.
 * "BUILD-ID ADDRESS SIZE NAME" a line, as the collector reads it (PROFD_LEAVE_OUT). Comments begin with '#'.
 *
 * A counted call takes the same time in every function, so that a function's part of the ticks inside the collector is
 * its part of the calls. Functions are taken by calls, the most first, until the share of the ticks that would then be
 * inside the collector is TARGET or less. */
#include "core/coverage.h"
#include "proto/sort.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "render/formats.h"
#include "render/linker.h"

#define SAMPLES_LEAST 100
#define TARGET 0.15 /* so that a run with other input is still below a fifth */

struct excluding {
    const struct report *report;
    const struct linker_list *list;
    double inside, calls; /* seconds inside the collector, and the calls that took them */
};

static uint32_t position(const struct excluding *x, uint32_t item)
{
    return x->list->functions[item];
}

static int by_calls(const void *context, uint32_t a, uint32_t b)
{
    const struct excluding *x = context;
    uint64_t left = linker_calls(&x->report->functions[position(x, a)]),
             right = linker_calls(&x->report->functions[position(x, b)]);
    return left > right ? -1 : left < right;
}

/* Seconds inside the collector for that number of calls. */
static double cost(const struct excluding *x, uint64_t calls)
{
    return x->inside * ((double)calls / x->calls);
}

static void add_function(struct buffer *out, const struct render_input *in, const struct report_function *f)
{
    buffer_add_format(out, "%s 0x%llx 0x%llx %s\n", in->build_id, (unsigned long long)f->address,
                      (unsigned long long)f->size, f->raw);
}

static void add_list(struct buffer *out, const struct render_input *in, const struct excluding *x,
                     const uint32_t *order, double sampled)
{
    uint64_t calls = 0;
    double inside = x->inside;
    uint32_t count = 0;
    for (; count < x->list->count && inside > TARGET * (sampled - x->inside + inside); count++) {
        const struct report_function *f = &x->report->functions[position(x, order[count])];
        if (f->size == 0 || f->self > cost(x, linker_calls(f))) {
            continue;
        }
        calls += linker_calls(f);
        inside -= cost(x, linker_calls(f));
        add_function(out, in, f);
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
    if ((in->provenance->inexact & INEXACT_LEFT_OUT) != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "format=exclude-list needs calls of all functions, and in these profiles some were left "
                               "out; select others by time or label");
    }
    if (in->coverage != NULL && in->coverage->any && coverage_samples(in->coverage, r) < SAMPLES_LEAST) {
        return profd_error_set(
            e, PROFD_BAD_QUERY,
            "format=exclude-list needs %d samples, and these profiles have %.0f: run the program longer", SAMPLES_LEAST,
            coverage_samples(in->coverage, r));
    }
    if (in->coverage == NULL || !in->coverage->any || !coverage_overhead(in->coverage, &share)) {
        return profd_error_set(
            e, PROFD_BAD_QUERY,
            "format=exclude-list needs the share of ticks inside the collector, which these profiles "
            "do not have: run the program with: profctl run");
    }
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
