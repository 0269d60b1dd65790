/* Compares samples of processes with the daemon's own code, without a daemon: resample EXECUTABLE…
 * It reads lines, and numbers what they describe from 0 on, each kind by itself:
 *   a FROM TO          an arc, of addresses
 *   c ARC:CALLS…       calls
 *   p CALLS BIN:TICKS… a process: the number of its calls, and its samples
 *   t THRESHOLD        the increase that is planned for from now on
 *   d METRICS EXECUTABLE LOW HIGH BINS RATE PROCESS:GROUP… / EXECUTABLE LOW HIGH BINS RATE PROCESS:GROUP…
 * The last one compares two sides, each of processes in random groups: METRICS has bit i for metric i. It prints one
 * line for each test, then one with a dot: metric, function, caller, verdict, ticks of both, ratios of both, the
 * logarithms of change, low and high, p, q, and how many times the data an increase by the threshold needs to be found
 * by this test alone, and among all. Lines are not checked: pool.py writes them. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/diff.h"
#include "core/rollup.h"
#include "elf/elf_read.h"

#define EXECUTABLES 8
#define FDR 0.05

struct list { /* of pairs of numbers */
    uint32_t count, capacity;
    uint64_t (*items)[2];
};

struct process {
    uint32_t calls;
    struct list ticks;
};

struct program {
    struct arena *arena, *job, *scratch;
    const char *paths[EXECUTABLES];
    const struct object *objects[EXECUTABLES];
    struct list arcs;
    uint32_t set_count, set_capacity, process_count, process_capacity;
    struct list *sets; /* of calls */
    struct process *processes;
    struct list members[RANDOM_GROUPS]; /* of a side */
    uint32_t bins, *ticks;              /* of a group, zero between groups */
    uint64_t *touched;                  /* a bit of each bin that may have some */
    double threshold;
};

static void *need(void *memory)
{
    if (memory == NULL) {
        (void)fprintf(stderr, "resample: no memory\n");
        exit(71);
    }
    return memory;
}

static void succeed(enum profd_status status, const struct profd_error *e)
{
    if (status != PROFD_OK) {
        (void)fprintf(stderr, "resample: %s\n", e->sentence);
        exit(70);
    }
}

static uint64_t number(char **at)
{
    return strtoull(*at, at, 10);
}

static void append(struct list *l, uint64_t a, uint64_t b)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 16;
        l->items = need(realloc(l->items, l->capacity * sizeof *l->items));
    }
    l->items[l->count][0] = a;
    l->items[l->count++][1] = b;
}

/* "A:B A:B …", up to the line's end or a slash. */
static void read_pairs(char **at, struct list *out)
{
    while ((*at)[0] == ' ' && (*at)[1] != '/') {
        const uint64_t a = number(at);
        ++*at;
        append(out, a, number(at));
    }
}

static void *extend(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = *capacity * 2 + 16;
    return need(realloc(array, *capacity * size));
}

static const struct object *read_object(struct arena *a, const char *path)
{
    const struct elf_read_options how = {.static_arcs = true, .demangle = true, .lines = true};
    struct profd_error e = {""};
    struct object *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    succeed(fd < 0 ? profd_error_set(&e, PROFD_MALFORMED, "%s cannot be opened", path) : PROFD_OK, &e);
    succeed(elf_read(fd, -1, &how, a, &out, &e), &e);
    (void)close(fd);
    return out;
}

/* What all processes of a group counted. Returns how many bins may have ticks. */
static uint32_t sum_group(struct program *p, const struct list *members, uint64_t *calls)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < members->count; i++) {
        const struct process *one = &p->processes[members->items[i][0]];
        const struct list *set = &p->sets[one->calls];
        for (uint32_t k = 0; k < one->ticks.count; k++) {
            const uint64_t bin = one->ticks.items[k][0], bit = UINT64_C(1) << bin % 64;
            used += (p->touched[bin / 64] & bit) == 0;
            p->touched[bin / 64] |= bit;
            p->ticks[bin] += (uint32_t)one->ticks.items[k][1];
        }
        for (uint32_t k = 0; k < set->count; k++) {
            calls[set->items[k][0]] += set->items[k][1];
        }
    }
    return used;
}

/* Likewise as one upload. */
static void make_counts(struct program *p, const struct counts_geometry *g, const struct list *members,
                        struct counts *c)
{
    struct profd_error e = {""};
    uint64_t *calls = need(ARENA_ARRAY(p->scratch, p->arcs.count, uint64_t));
    succeed(counts_init(c, 1, sum_group(p, members, calls), p->arcs.count, &e), &e);
    c->histograms[0].geometry = *g;
    c->histograms[0].used = c->bin_count;
    c->bin_count = c->arc_count = 0;
    for (uint32_t i = 0; i <= g->bins / 64; i++) {
        for (; p->touched[i] != 0; p->touched[i] &= p->touched[i] - 1) {
            const uint32_t bin = i * 64 + (uint32_t)__builtin_ctzll(p->touched[i]);
            c->bin_index[c->bin_count] = bin;
            c->bin_ticks[c->bin_count++] = p->ticks[bin];
            p->ticks[bin] = 0;
        }
    }
    for (uint32_t i = 0; i < p->arcs.count; i++) {
        if (calls[i] > 0) {
            c->from[c->arc_count] = p->arcs.items[i][0];
            c->to[c->arc_count] = p->arcs.items[i][1];
            c->calls[c->arc_count++] = calls[i];
        }
    }
}

static void take_bins(struct program *p, uint32_t bins)
{
    if (bins > p->bins) {
        free(p->ticks);
        free(p->touched);
        p->ticks = need(calloc(bins, sizeof *p->ticks));
        p->touched = need(calloc((size_t)bins / 64 + 1, sizeof *p->touched));
        p->bins = bins;
    }
}

static void sum_side(struct program *p, const struct counts_geometry *g, struct profile *out)
{
    struct profd_error e = {""};
    struct rollup_sum *groups = need(rollup_sum_new(p->job, ROLLUP_ALL));
    for (uint32_t k = 0; k < RANDOM_GROUPS; k++) {
        struct counts c;
        arena_reset(p->scratch);
        make_counts(p, g, &p->members[k], &c);
        succeed(rollup_sum_add_upload(groups, &c, k + 1, k, &e), &e);
        counts_done(&c);
    }
    succeed(rollup_sum_finish(groups, &out->counts, &out->shares, &e), &e);
    counts_totals(&out->counts, &out->ticks, &out->calls);
}

/* Reads a side from the line. Returns its build. */
static const char *make_side(struct program *p, char **at, struct diff_side *out)
{
    struct profd_error e = {""};
    struct random_groups processes = {.unknown = 0};
    struct list all = {.count = 0};
    const uint64_t exe = number(at);
    struct counts_geometry g = {.dimension = "seconds", .abbreviation = 's'};
    g.low = number(at);
    g.high = number(at);
    g.bins = (uint32_t)number(at);
    g.rate = (uint32_t)number(at);
    read_pairs(at, &all);
    take_bins(p, g.bins);
    for (uint32_t k = 0; k < RANDOM_GROUPS; k++) {
        p->members[k].count = 0;
    }
    for (uint32_t i = 0; i < all.count; i++) {
        append(&p->members[all.items[i][1]], all.items[i][0], 0);
        processes.of[all.items[i][1]]++;
    }
    free(all.items);
    struct report_request report = {.objects = &p->objects[exe], .names = &p->paths[exe]};
    struct profile *profile = need(ARENA_NEW(p->job, struct profile));
    const char **builds = need(ARENA_NEW(p->job, const char *));
    *builds = p->objects[exe]->id.text;
    *profile = (struct profile){.build_count = 1, .builds = builds};
    sum_side(p, &g, profile);
    report.profile = profile;
    const struct diff_side_request request = {&report, &processes};
    succeed(diff_side_make(p->job, p->scratch, &request, out, &e), &e);
    return p->objects[exe]->id.text;
}

static void print_tests(const struct diff *d, enum diff_metric metric, double threshold)
{
    const struct diff_table *t = &d->tables[metric];
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        const struct diff_estimate *y = &x->estimate;
        if (x->estimated && y->error > 0) {
            const double alone = diff_stat_effect(y->freedom, FDR) * y->error / log1p(threshold);
            printf("%s\t%s\t%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n",
                   diff_metric_name(metric), diff_function(d, x->row) != NULL ? diff_function(d, x->row)->name : "",
                   x->caller == DIFF_NONE ? "" : diff_function(d, x->caller)->name, diff_verdict_name(x->verdict),
                   x->ticks[0], x->ticks[1], x->ratio[0], x->ratio[1], y->log, y->low, y->high, y->p, x->q,
                   alone * alone, x->needed);
        }
    }
}

static void compare(struct program *p, char *at)
{
    struct diff_side sides[2];
    struct diff d;
    struct diff_request request = {.sides = {&sides[0], &sides[1]}, .fdr = FDR, .threshold = p->threshold};
    const uint64_t metrics = number(&at);
    arena_reset(p->job);
    for (unsigned i = 0; i < DIFF_METRIC_COUNT; i++) {
        request.metrics[i] = (metrics >> i & 1) != 0;
    }
    for (unsigned s = 0; s < 2; s++) {
        request.programs[s] = make_side(p, &at, &sides[s]);
        at += s == 0 ? 2 : 0; /* the slash */
    }
    diff_make(p->job, &request, &d);
    for (unsigned i = 0; i < DIFF_METRIC_COUNT; i++) {
        print_tests(&d, (enum diff_metric)i, p->threshold);
    }
    puts(".");
    (void)fflush(stdout);
}

static void take_line(struct program *p, char *line)
{
    char *at = line + 1;
    if (line[0] == 'a') {
        const uint64_t from = number(&at);
        append(&p->arcs, from, number(&at));
    } else if (line[0] == 'c') {
        p->sets = extend(p->sets, p->set_count, &p->set_capacity, sizeof *p->sets);
        p->sets[p->set_count] = (struct list){.count = 0};
        read_pairs(&at, &p->sets[p->set_count++]);
    } else if (line[0] == 'p') {
        p->processes = extend(p->processes, p->process_count, &p->process_capacity, sizeof *p->processes);
        p->processes[p->process_count] = (struct process){.calls = (uint32_t)number(&at)};
        read_pairs(&at, &p->processes[p->process_count++].ticks);
    } else if (line[0] == 't') {
        p->threshold = strtod(at, NULL);
    } else {
        compare(p, at);
    }
}

int main(int argc, char *argv[])
{
    struct program p = {
        .threshold = 0.02, .arena = need(arena_new(0)), .job = need(arena_new(0)), .scratch = need(arena_new(0))};
    char *line = NULL;
    size_t size = 0;
    for (int i = 1; i < argc && i <= EXECUTABLES; i++) {
        p.paths[i - 1] = argv[i];
        p.objects[i - 1] = read_object(p.arena, argv[i]);
    }
    while (getline(&line, &size, stdin) > 0) {
        take_line(&p, line);
    }
    return ferror(stdin) || ferror(stdout) ? 74 : 0;
}
