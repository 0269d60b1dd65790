#include "core/rollup_merge.h"

static uint64_t run_rows(const struct rollup_run *run)
{
    return (uint64_t)run->r.arc_count + run->r.bin_count + run->r.histogram_count;
}

bool rollup_stack_push(struct rollup_stack *s, struct rollup_runs *runs, struct rollup_run *run, bool own)
{
    while (s->depth > 0 && run_rows(s->runs[s->depth - 1]) <= 2 * run_rows(run)) {
        struct rollup_run *below = s->runs[--s->depth], *sum = rollup_run_merge(runs, below, run);
        if (sum == NULL) {
            return false;
        }
        rollup_run_give(runs, below);
        if (own) {
            rollup_run_give(runs, run);
        }
        run = sum;
        own = true;
    }
    if (!own) {
        run = rollup_run_copy(runs, run);
    }
    if (run == NULL || s->depth == sizeof s->runs / sizeof *s->runs) {
        return false;
    }
    s->runs[s->depth++] = run;
    return true;
}

bool rollup_stack_close(struct rollup_stack *s, struct rollup_runs *runs, struct rollup_run **out)
{
    struct rollup_run *run = s->depth > 0 ? s->runs[--s->depth] : rollup_run_take(runs, 0, 0, 0);
    while (run != NULL && s->depth > 0) {
        struct rollup_run *below = s->runs[--s->depth], *sum = rollup_run_merge(runs, below, run);
        rollup_run_give(runs, below);
        rollup_run_give(runs, run);
        run = sum;
    }
    *out = run;
    return run != NULL;
}
