#include <math.h>
#include <string.h>

#include "core/pprof_codec.h"
#include "core/report.h"
#include "proto/message.h"
#include "render/render_internal.h"

/* format=pprof: profile.proto of github.com/google/pprof, as protobuf without gzip (every reader takes both). Sample
 * types are samples/count, cpu/nanoseconds (wall/nanoseconds, or DIMENSION/count for what is no time) and calls/count.
 * Stacks are derived, and a comment in the payload says so; call counts stand in samples of caller and callee alone,
 * where they are as counted. The leaf of a sample is an address, where one is known; other frames are functions.
 *
 * Addresses are link-time addresses. A mapping from 0 to the end of the address space tells readers that: they must not
 * relocate them. It has no lines, so that the pprof tool looks them up in the executable. */

#define SMALL 1e-12 /* of all time: less is what rounding leaves */

/* What was added up, and how much of it was said in whole numbers. */
struct rounding {
    double exact, said;
};

/* How much of a function's time has found its address: places[next − 1] has left seconds of its own. */
struct place_time {
    uint32_t next, end;
    double left, scale;
};

struct pprof_writer {
    const struct render_input *in;
    struct report_places places;
    struct place_time *placing; /* by function */
    bool *place_used;
    const struct name_list *names;
    struct stack_tree stacks;
    struct arena *arena;
    struct buffer *out;
    struct buffer strings; /* the table of strings, as parts of the profile */
    int64_t string_count;
    struct rounding *ticks, *amount; /* by location: each function has the ticks that the report gives it */
    bool *used; /* those that have a location: by number, which is that of a function, then of a cycle, then that of
                   what was not followed. Places come behind them */
};

/* Adds a string and returns its index. The caller adds each string once. */
static int64_t add_string(struct pprof_writer *p, const char *text)
{
    ProtobufCBinaryData bytes = pprof_bytes(text, strlen(text));
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    part.n_string_table = 1;
    part.string_table = &bytes;
    pprof_write(&p->strings, &part);
    return p->string_count++;
}

static uint32_t place_location(const struct pprof_writer *p, uint32_t place)
{
    return p->in->report->function_count + p->in->report->cycle_count + 1 + place;
}

/* locations: leaf first. */
static void add_sample(struct pprof_writer *p, const uint32_t *locations, uint32_t n, uint64_t ticks,
                       uint64_t nanoseconds, uint64_t calls)
{
    const uint32_t first = place_location(p, 0);
    uint64_t ids[STACKS_DEPTH + 2];
    int64_t values[] = {(int64_t)ticks, (int64_t)nanoseconds, (int64_t)calls};
    Profd__Pprof__Sample sample = PROFD__PPROF__SAMPLE__INIT, *list = &sample;
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (uint64_t)locations[i] + 1;
        *(locations[i] < first ? &p->used[locations[i]] : &p->place_used[locations[i] - first]) = true;
    }
    sample.n_location_id = n;
    sample.location_id = ids;
    sample.n_value = sizeof values / sizeof *values;
    sample.value = values;
    part.n_sample = 1;
    part.sample = &list;
    pprof_write(p->out, &part);
}

/* Rounded so that the sum of all roundings is the rounded sum, which has at most the largest number of the format. */
static uint64_t round_on(double value, struct rounding *r)
{
    r->exact += value;
    double whole = floor(r->exact - r->said + 0.5), most = 0x1p63 - 1024 - r->said;
    whole = whole > 0 ? (whole < most ? whole : most) : 0;
    r->said += whole;
    return (uint64_t)whole;
}

/* The next address of a function that has time left, and at most these seconds of it. False: the function itself
 * stands for the rest. Stacks of a function get its addresses in order: both sums are true, their pairing is not known.
 */
static bool take_place(struct pprof_writer *p, uint32_t function, double most, uint32_t *location, double *seconds)
{
    struct place_time *g = &p->placing[function];
    const double small = SMALL * p->in->report->total;
    while (!(g->left > small) && g->next < g->end) {
        g->left += p->places.list[g->next++].seconds * g->scale;
    }
    if (!(g->left > small)) {
        return false;
    }
    *seconds = most - g->left > small ? g->left : most;
    g->left -= *seconds;
    *location = place_location(p, g->next - 1);
    return true;
}

/* A sample for each stack that has time of its own, or for each address of its leaf. */
static void add_stacks(struct pprof_writer *p)
{
    const struct report *r = p->in->report;
    const double rate = r->rate_count > 0 ? r->rates[0] : 0, scale = r->in_seconds ? 1e9 : 1;
    uint32_t path[STACKS_DEPTH + 2], leaf_first[STACKS_DEPTH + 2];
    for (uint32_t i = 0; i < p->stacks.count && !p->out->failed; i++) {
        const struct stack_node *n = &p->stacks.nodes[i];
        const uint32_t own = n->frame == STACKS_CUT    ? r->function_count + r->cycle_count
                             : n->frame & REPORT_CYCLE ? r->function_count + (n->frame & ~REPORT_CYCLE)
                                                       : n->frame;
        path[n->depth] = own;
        if (!(n->self > 0)) {
            continue;
        }
        for (uint32_t d = 0; d <= n->depth; d++) {
            leaf_first[d] = path[n->depth - d];
        }
        for (double rest = n->self, seconds; rest > 0 && !p->out->failed; rest -= seconds) {
            seconds = rest;
            if (own >= r->function_count || !take_place(p, own, rest, &leaf_first[0], &seconds)) {
                leaf_first[0] = own;
            }
            p->used[own] = true;
            const uint64_t ticks = round_on(seconds * rate, &p->ticks[own]);
            add_sample(p, leaf_first, n->depth + 1, ticks, round_on(seconds * scale, &p->amount[own]), 0);
        }
    }
}

/* function: of this number, or none. */
static void add_location(struct pprof_writer *p, uint32_t location, uint32_t function, uint64_t address)
{
    const struct report *r = p->in->report;
    const struct report_function *f = function < r->function_count ? &r->functions[function] : NULL;
    Profd__Pprof__Line line = PROFD__PPROF__LINE__INIT, *lines = &line;
    Profd__Pprof__Location row = PROFD__PPROF__LOCATION__INIT, *list = &row;
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    line.function_id = (uint64_t)function + 1;
    line.line = f ? f->line : 0;
    row.id = (uint64_t)location + 1;
    row.mapping_id = f && f->build < r->build_count ? f->build + 1 : 0;
    row.address = address; /* outside all builds: COUNTS_FRAME_INCOMPLETE, by which an import knows it */
    row.n_line = 1;
    row.line = &lines;
    part.n_location = 1;
    part.location = &list;
    pprof_write(p->out, &part);
}

static void add_function(struct pprof_writer *p, uint32_t location)
{
    const struct report *r = p->in->report;
    const struct report_function *f = location < r->function_count ? &r->functions[location] : NULL;
    uint32_t frame = location < r->function_count                    ? location
                     : location < r->function_count + r->cycle_count ? REPORT_CYCLE | (location - r->function_count)
                                                                     : STACKS_CUT;
    const char *name = stacks_frame_name(p->names, r, frame, p->arena);
    Profd__Pprof__Function row = PROFD__PPROF__FUNCTION__INIT, *list = &row;
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    row.id = (uint64_t)location + 1;
    row.name = add_string(p, name);
    row.system_name = add_string(p, f ? name_make_safe(p->arena, f->raw) : name);
    row.filename = f && f->file ? add_string(p, name_make_safe(p->arena, f->file)) : 0;
    row.start_line = f ? f->line : 0;
    part.n_function = 1;
    part.function = &list;
    pprof_write(p->out, &part);
    add_location(p, location, location, f ? f->address : 0);
}

#define COMMENT_DERIVED                                                                                                \
    PPROF_COMMENT_OWN ", never observed; calls stand in samples of caller and callee alone; the time of a cycle with " \
                      "several callers stands below the function that all calls to it pass"
#define COMMENT_SEEN PPROF_COMMENT_SEEN "; calls stand in samples of caller and callee alone"

static void add_heading(struct pprof_writer *p)
{
    const struct report *r = p->in->report;
    const struct provenance *from = p->in->provenance;
    const char *dimension = strcmp(r->dimension, "seconds") == 0 ? "cpu" : name_make_safe(p->arena, r->dimension);
    Profd__Pprof__ValueType types[] = {PROFD__PPROF__VALUE_TYPE__INIT, PROFD__PPROF__VALUE_TYPE__INIT,
                                       PROFD__PPROF__VALUE_TYPE__INIT},
                            *list[] = {&types[0], &types[1], &types[2]};
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    int64_t comments[6];
    add_string(p, "");
    types[0].type = add_string(p, "samples");
    types[0].unit = types[2].unit = add_string(p, "count");
    types[1].type = add_string(p, dimension);
    types[1].unit = r->in_seconds ? add_string(p, "nanoseconds") : types[0].unit;
    types[2].type = add_string(p, "calls");
    part.n_sample_type = sizeof list / sizeof *list;
    part.sample_type = list;
    part.period_type = &types[1];
    part.period = r->rate_count > 0 ? (r->in_seconds ? 1000000000u : 1u) / r->rates[0] : 0;
    part.default_sample_type = types[1].type;
    part.time_nanos = from->first;
    part.duration_nanos = from->last - from->first;
    part.comment = comments;
    comments[part.n_comment++] = add_string(p, p->stacks.synthetic ? COMMENT_DERIVED : COMMENT_SEEN);
    comments[part.n_comment++] =
        add_string(p, (from->inexact & INEXACT_SAMPLED) != 0 ? PPROF_COMMENT_SAMPLED ", where they were not counted"
                      : (from->inexact & INEXACT_CALLS) == 0 ? "calls: exact"
                                                             : PPROF_COMMENT_LOSSY);
    if (p->places.bin_bytes > 0) {
        comments[part.n_comment++] = add_string(
            p, arena_format(p->arena,
                            "addresses: beginnings of bins of up to %llu bytes; each function's sums by address and by "
                            "stack are true, which address is of which stack is not known; " PPROF_LINES_FUNCTION,
                            (unsigned long long)p->places.bin_bytes));
    }
    comments[part.n_comment++] =
        add_string(p, arena_format(p->arena, PPROF_COMMENT_REASONS "%s", reasons_list(p->in, p->arena)));
    comments[part.n_comment++] =
        add_string(p, arena_format(p->arena, PPROF_COMMENT_PROCESSES "%llu", (unsigned long long)from->processes));
    if (p->stacks.cut > 0) {
        comments[part.n_comment++] =
            add_string(p, arena_format(p->arena, "%.6g s lie below paths that were not followed", p->stacks.cut));
    }
    pprof_write(p->out, &part);
}

/* Mappings have the numbers of builds from 1; what is outside all builds has none. */
static void add_mapping(struct pprof_writer *p, uint32_t build)
{
    const struct report *r = p->in->report;
    Profd__Pprof__Mapping row = PROFD__PPROF__MAPPING__INIT, *list = &row;
    Profd__Pprof__Profile part = PROFD__PPROF__PROFILE__INIT;
    row.id = build + 1;
    row.memory_limit = UINT64_MAX;
    row.filename = add_string(p, name_make_safe(p->arena, r->build_names[build] ? r->build_names[build] : ""));
    row.build_id = add_string(p, r->builds[build]);
    row.has_functions = true;
    part.n_mapping = 1;
    part.mapping = &list;
    pprof_write(p->out, &part);
}

enum profd_status pprof_render(const struct render_input *in, struct arena *a, struct buffer *out,
                               struct profd_error *e)
{
    (void)e;
    struct name_list names;
    struct pprof_writer p = {.in = in, .names = &names, .arena = a, .out = out};
    uint32_t locations = in->report->function_count + in->report->cycle_count + 1;
    struct arena_deferred deferred;
    p.used = ARENA_ARRAY(a, locations, bool);
    p.ticks = ARENA_ARRAY(a, locations, struct rounding);
    p.amount = ARENA_ARRAY(a, locations, struct rounding);
    p.placing = ARENA_ARRAY(a, locations, struct place_time);
    name_list_make(in->report, in->show.short_names, a, &names);
    stacks_make(in->report, a, &p.stacks);
    report_places_make(a, in->report, in->profile, &p.places);
    p.place_used = ARENA_ARRAY(a, (size_t)p.places.first[in->report->function_count] + 1, bool);
    buffer_init(&p.strings, out->limit);
    arena_defer(a, &deferred, buffer_release, &p.strings);

    /* The addresses of a function have as much time as the stacks that end in it. */
    const struct report *r = in->report;
    for (uint32_t i = 0; i < p.stacks.count; i++) {
        if (p.stacks.nodes[i].frame < r->function_count) {
            p.placing[p.stacks.nodes[i].frame].scale += p.stacks.nodes[i].self;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        const double self = r->functions[i].self;
        p.placing[i].next = p.places.first[i];
        p.placing[i].end = p.places.first[i + 1];
        p.placing[i].scale = self > 0 ? p.placing[i].scale / self : 0;
    }
    add_heading(&p);
    add_stacks(&p);
    for (uint32_t i = 0; i < r->function_count && !out->failed; i++) {
        const struct report_function *f = &r->functions[i];
        for (uint32_t k = 0; f->index != 0 && k < f->callee_count; k++) {
            uint32_t pair[2] = {f->callees[k].other, i};
            if (f->callees[k].calls > 0) {
                add_sample(&p, pair, pair[0] == pair[1] ? 1 : 2, 0, 0, f->callees[k].calls);
            }
        }
    }

    for (uint32_t i = 0; i < r->build_count; i++) {
        add_mapping(&p, i);
    }
    for (uint32_t i = 0; i < locations && !out->failed; i++) {
        if (p.used[i]) {
            add_function(&p, i);
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        for (uint32_t k = p.places.first[i]; k < p.places.first[i + 1] && !out->failed; k++) {
            if (p.place_used[k]) {
                add_location(&p, place_location(&p, k), i, p.places.list[k].address);
            }
        }
    }
    out->failed |= p.strings.failed;
    buffer_add(out, p.strings.data, p.strings.size);
    arena_undefer(a, &deferred);
    return PROFD_OK;
}
