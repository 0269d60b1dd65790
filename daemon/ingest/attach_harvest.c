#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "ingest/attach_internal.h"
#include "ingest/build_cache.h"
#include "ingest/validate.h"
#include "proto/label.h"
#include "proto/message.h"

/* What a harvest brought, in the form of every upload's counts. */

#define SECOND INT64_C(1000000000)

__extension__ typedef unsigned __int128 wide;

static uint64_t to_ns(uint64_t ticks, uint32_t rate)
{
    wide ns = rate ? (wide)ticks * (wide)SECOND / rate : 0;
    return ns > SUM_MAX ? SUM_MAX : (uint64_t)ns;
}

/* CPU time. The collector states it only where it makes system calls anyway, and at the end by exit. Otherwise it is
 * that of the kernel (cpu_ns, 0: not known), or of a killed process, that of the harvest before and of its ticks since.
 */
static void attach_cpu_judge(const struct attach_header *h, uint64_t cpu_ns, const struct attach_snapshot *before,
                             uint64_t counters[ATTACH_SNAPSHOT_COUNTERS])
{
    static const unsigned char TICKS[] = {ATTACH_COUNTER_TICKS, ATTACH_COUNTER_TICKS_UNDELIVERED};
    uint64_t *cpu = &counters[ATTACH_COUNTER_CPU_NS], ticks = 0, least = 0;
    bool saturated = false;
    if (counters[ATTACH_COUNTER_ENDED]) {
        return;
    }
    for (unsigned i = 0; i < sizeof TICKS; i++) {
        sum_add(&ticks, counters[TICKS[i]] - before->counters[TICKS[i]], &saturated);
    }
    if (cpu_ns > h->cpu_before) {
        least = cpu_ns - h->cpu_before;
        if (least < before->counters[ATTACH_COUNTER_CPU_NS] + (uint64_t)SECOND / 100) {
            return; /* so that an idle process is not stored again at each harvest */
        }
    } else if (h->mode == ATTACH_MODE_CPU) {
        least = before->counters[ATTACH_COUNTER_CPU_NS];
        sum_add(&least, to_ns(ticks, h->rate), &saturated);
    }
    *cpu = least > SUM_MAX ? SUM_MAX : least > *cpu ? least : *cpu;
}

struct pair {
    const struct attach_snapshot *after, *before;
};

static uint64_t grown(const struct pair *p, unsigned counter)
{
    return p->after->counters[counter] - p->before->counters[counter];
}

/* Ticks as time. Rounded so that the differences add up to the whole's time. */
static uint64_t grown_ns(const struct pair *p, unsigned counter)
{
    uint32_t rate = p->after->rate;
    if (p->before->rate != rate) {
        return to_ns(grown(p, counter), rate);
    }
    return to_ns(p->after->counters[counter], rate) - to_ns(p->before->counters[counter], rate);
}

/* What is new of them, in proto/collector.h's terms; first: the process is new, too. */
static void attach_counters_subtract(const struct attach_snapshot *after, const struct attach_snapshot *before,
                                     enum attach_mode mode, bool first, uint64_t out[COLLECTOR_COUNTERS_MAX])
{
    static const struct {
        unsigned counter;
        unsigned char from, ns;
    } MAP[] = {
        {COLLECTOR_CPU_NS, ATTACH_COUNTER_CPU_NS, 0},
        {COLLECTOR_INSIDE_NS, ATTACH_COUNTER_TICKS_INSIDE, 1},
        {COLLECTOR_BLOCKED_NS, ATTACH_COUNTER_TICKS_BLOCKED, 1},
        {COLLECTOR_DROPPED_NS, ATTACH_COUNTER_TICKS_DROPPED, 1},
        {COLLECTOR_OUTSIDE_NS, ATTACH_SNAPSHOT_OUTSIDE, 1},
        {COLLECTOR_CALLS_LOST, ATTACH_COUNTER_CALLS_LOST, 0},
        {COLLECTOR_CALLS_JUNK, ATTACH_COUNTER_CALLS_JUNK, 0},
        {COLLECTOR_PAIRS_DROPPED, ATTACH_COUNTER_PAIRS_DROPPED, 0},
        {COLLECTOR_THREADS, ATTACH_COUNTER_THREADS, 0},
        {COLLECTOR_THREADS_UNTIMED, ATTACH_COUNTER_THREADS_UNTIMED, 0},
        {COLLECTOR_MODULES_LOST, ATTACH_COUNTER_MODULES_LOST, 0},
        {COLLECTOR_MODULES_NAMELESS, ATTACH_SNAPSHOT_NAMELESS, 0},
        {COLLECTOR_SIGPROF_FOREIGN, ATTACH_COUNTER_FOREIGN_SIGPROF, 0},
        {COLLECTOR_FORKS_UNSEEN, ATTACH_COUNTER_FORKS_UNSEEN, 0},
        {COLLECTOR_PAUSES, ATTACH_COUNTER_PAUSES, 0},
        {COLLECTOR_OVERLAPS, ATTACH_COUNTER_OVERLAPS, 0},
        {COLLECTOR_LEFT_OUT, ATTACH_COUNTER_LEFT_OUT, 0},
        {COLLECTOR_UNDELIVERED_NS, ATTACH_COUNTER_TICKS_UNDELIVERED, 1},
        {COLLECTOR_SAMPLES, ATTACH_COUNTER_SAMPLES, 0},
    };
    struct pair p = {after, before};
    bool saturated = false;
    memset(out, 0, COLLECTOR_COUNTERS_MAX * sizeof out[0]);
    for (unsigned i = 0; i < sizeof MAP / sizeof MAP[0]; i++) {
        out[MAP[i].counter] = MAP[i].ns ? grown_ns(&p, MAP[i].from) : grown(&p, MAP[i].from);
    }
    out[COLLECTOR_SAMPLED_NS] = grown_ns(&p, ATTACH_COUNTER_TICKS);
    out[COLLECTOR_CLOCK_OFF_NS] = mode == ATTACH_MODE_OFF ? out[COLLECTOR_CPU_NS] : 0;
    sum_add(&out[COLLECTOR_MODULES_LOST], grown(&p, ATTACH_SNAPSHOT_UNLISTED), &saturated);
    out[COLLECTOR_PROCESSES] = first;
}

/* Returns the reasons INEXACT_CALLS_LOST and INEXACT_TICKS_LOST, as far as something was lost since, or is still being
 * lost. */
static unsigned attach_counters_lost(const struct attach_snapshot *after, const struct attach_snapshot *before)
{
    /* A loss happened since. In a state, what goes on is lost, too. */
    static const struct {
        unsigned char counter;
        bool state;
        uint32_t why;
    } LOSSES[] = {
        {ATTACH_COUNTER_CALLS_LOST, false, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_CALLS_JUNK, false, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_TICKS_DROPPED, false, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_TICKS_BLOCKED, false, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_FORKS_UNSEEN, true, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_OVERLAPS, true, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_THREADS_UNTIMED, true, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_FOREIGN_SIGPROF, true, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_MODULES_LOST, true, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST},
        {ATTACH_SNAPSHOT_UNLISTED, true, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST},
    };
    struct pair p = {after, before};
    unsigned why = 0;
    for (unsigned i = 0; i < sizeof LOSSES / sizeof LOSSES[0]; i++) {
        if (LOSSES[i].state ? after->counters[LOSSES[i].counter] > 0 : grown(&p, LOSSES[i].counter) > 0) {
            why |= LOSSES[i].why;
        }
    }
    /* The second: ticks of two rates that cannot be distinguished. */
    if (attach_undelivered_matter(grown(&p, ATTACH_COUNTER_TICKS_UNDELIVERED), grown(&p, ATTACH_COUNTER_TICKS),
                                  after->rate) ||
        (before->rate != 0 && before->rate != after->rate && grown(&p, ATTACH_COUNTER_TICKS) > 0)) {
        why |= INEXACT_TICKS_LOST;
    }
    return why;
}

/* The number of a tick's histogram in its build. */
static uint32_t window_of(const struct attach_tick *t)
{
    return t->index / LIMIT_HISTOGRAM_BINS;
}

/* The clock of the ticks. */
static void clock_set(char dimension[16], char *abbreviation)
{
    memcpy(dimension, "seconds\0\0\0\0\0\0\0\0", 16);
    *abbreviation = 's';
}

static void arcs_put(const struct attach_arcs *s, const struct attach_builds *uncounted, struct counts *c, uint32_t *at)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct attach_arc *a = &s->arc[i];
        if (uncounted && a->to_build != COUNTS_NOWHERE && uncounted->build[a->to_build].counted) {
            continue;
        }
        c->from_build[*at] = a->from_build;
        c->to_build[*at] = a->to_build;
        c->from[*at] = a->from;
        c->to[*at] = a->to;
        c->calls[(*at)++] = a->calls;
    }
}

/* A build is one histogram of bins of one byte. A larger one is several, each of LIMIT_HISTOGRAM_BINS but the last.
 * Returns whether tick i of a sorted list begins one. */
static bool begins_histogram(const struct attach_ticks *s, uint32_t i)
{
    return i == 0 || s->tick[i - 1].build != s->tick[i].build || window_of(&s->tick[i - 1]) != window_of(&s->tick[i]);
}

/* Everything as counts; sampled says whether pairs became arcs. any is false when there is nothing, and nothing to
 * free. */
static enum profd_status attach_counts_make(const struct attach_news *news, struct counts *out, bool *any,
                                            bool *sampled, struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    const struct attach_builds *builds = news->builds;
    const struct attach_ticks *ticks = &d->ticks;
    bool saturated = false;
    uint64_t most = 0;
    for (uint32_t i = 0; i < ticks->count; i++) {
        sum_add(&most, ticks->tick[i].ticks, &saturated);
    }
    TRY(attach_stacks_list(&d->stacks, builds, most, &d->pairs, d->arena, e));
    attach_ticks_sort(&d->ticks);
    uint32_t pairs = 0; /* sampled ones that become arcs */
    for (uint32_t i = 0; i < d->pairs.count && !builds->build[0].counted; i++) {
        const uint32_t to = d->pairs.arc[i].to_build;
        pairs += to == COUNTS_NOWHERE || !builds->build[to].counted;
    }
    struct counts_sizes sizes = {.bins = ticks->count,
                                 .arcs = d->calls.count + pairs,
                                 .trees = d->stacks.tree_count > 0,
                                 .nodes = d->stacks.tree_count};
    for (uint32_t i = 0; i < ticks->count; i++) {
        sizes.histograms += begins_histogram(ticks, i);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        sizes.bins += news->counters[i] != 0;
    }
    sizes.histograms += sizes.bins > ticks->count;
    if (sizes.bins + sizes.arcs == 0) { /* and no stacks, which are never more than ticks */
        *any = false;
        return PROFD_OK;
    }

    struct counts c;
    TRY(counts_init_sizes(&c, &sizes, e));
    uint32_t bin = 0, arc = 0, used = 0;
    for (uint32_t i = 0; i < ticks->count; i++) {
        const struct attach_tick *t = &ticks->tick[i];
        if (begins_histogram(ticks, i)) {
            const struct attach_build *b = &builds->build[t->build];
            const uint64_t low = b->low + (uint64_t)window_of(t) * LIMIT_HISTOGRAM_BINS;
            const uint64_t high = b->high - low > LIMIT_HISTOGRAM_BINS ? low + LIMIT_HISTOGRAM_BINS : b->high;
            struct counts_histogram *h = &c.histograms[used++];
            *h = (struct counts_histogram){
                .build = t->build, .bins = (uint32_t)(high - low), .low = low, .high = high, .rate = news->rate};
            clock_set(h->dimension, &h->abbreviation);
            h->first = bin;
        }
        c.histograms[used - 1].used++;
        c.bin_index[bin] = t->index % LIMIT_HISTOGRAM_BINS;
        c.bin_ticks[bin++] = t->ticks;
    }
    if (c.bin_count > ticks->count) {
        struct counts_histogram *h = &c.histograms[c.histogram_count - 1];
        collector_make_histogram(h, 0);
        h->first = bin;
        for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
            if (news->counters[i] != 0) {
                c.bin_index[bin] = i;
                c.bin_ticks[bin++] = news->counters[i];
                h->used++;
            }
        }
    }
    arcs_put(&d->calls, NULL, &c, &arc);
    if (pairs > 0) {
        arcs_put(&d->pairs, builds, &c, &arc);
    }
    enum profd_status status = PROFD_OK;
    if (d->stacks.tree_count > 0) {
        struct counts_nodes nodes = COUNTS_NODES(&c);
        c.trees[0].rate = news->rate;
        clock_set(c.trees[0].dimension, &c.trees[0].abbreviation);
        status = counts_tree_sort(d->stacks.tree, d->stacks.tree_count, &nodes, &c.trees[0].used, NULL, e);
        c.node_count = c.trees[0].used;
        c.tree_count = c.node_count > 0;
    }
    if (status != PROFD_OK) {
        counts_done(&c);
        return status;
    }
    *any = true;
    *sampled = pairs > 0;
    *out = c;
    return PROFD_OK;
}

/* One harvest: read, subtract, validate, encode. */

static enum profd_status attach_upload_validate(const struct attach_delivery *d, struct attach_inside *in,
                                                struct store_upload *u, struct profd_error *e)
{
    struct message_build *builds = ARENA_ARRAY(in->arena, d->build_count, struct message_build);
    struct message_label *labels = ARENA_ARRAY(in->arena, d->label_count + 1, struct message_label);
    char *host = arena_copy(in->arena, d->host, strlen(d->host));
    if (!builds || !labels || !host) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < d->build_count; i++) {
        builds[i] = (struct message_build){d->builds[i].id.text, d->builds[i].name};
    }
    struct message_bytes process = {d->instance, ATTACH_INSTANCE_SIZE};
    for (size_t i = 0; i < d->label_count; i++) {
        labels[i] = (struct message_label){d->labels[i].name, d->labels[i].value};
        const size_t n = strlen(labels[i].value);
        if (strcmp(labels[i].name, LABEL_PAIR) == 0 && n <= LIMIT_PROCESS) {
            process = (struct message_bytes){(const uint8_t *)labels[i].value, n};
        }
    }
    /* The process's clock is this machine's, read a moment earlier or later: that is no reason to doubt it. */
    const int64_t late = d->received + LIMIT_CLOCK_FUTURE_MINUTES * 60 * SECOND;
    const int64_t start = d->start > d->received && d->start <= late ? d->received : d->start;
    struct message_upload m = {.sender = {d->instance, UPLOAD_SENDER_SIZE},
                               .sequence = 1,
                               .start = start < 0 ? 0 : (uint64_t)start,
                               .end = d->received < 0 ? 0 : (uint64_t)d->received,
                               .build_count = d->build_count,
                               .builds = builds,
                               .label_count = d->label_count,
                               .labels = labels,
                               .inexact = d->inexact,
                               .processes_started = d->first,
                               .host = host,
                               .process = process};
    TRY(validate_upload(d->uid, d->received, &m, in->arena, u, &in->builds, e));
    u->live = true;
    return PROFD_OK;
}

/* Data passed between the steps. */
struct harvesting {
    struct attach_process *p;
    struct attach_reading reading;
    struct attach_snapshot before, after;
    struct attach_builds builds;
    struct attach_difference difference;
    struct counts counts;
    bool first, any, sampled, paused, left_out, label_left_out;
    unsigned lost;     /* INEXACT_CALLS_LOST, INEXACT_TICKS_LOST */
    uint32_t parents;  /* processes that count it as a child, if that is new */
    uint64_t children; /* that are new */
    int64_t since;     /* ns: of all that was counted before then, nothing is in the difference */
    struct attach_inside *in;
};

/* Labels are where the process runs, then the upload's: as text with NULs. One that breaks the rules is left out, and
 * that is a reason in reports: the calls of a process are worth more than its label. (A collector of this version
 * leaves it out itself.) */
static enum profd_status labels_read(struct harvesting *w, struct profd_error *e)
{
    const struct attach_image *image = &w->reading.image;
    const struct process_place *place = attach_get_place(w->p);
    struct store_label *labels = ARENA_ARRAY(w->in->arena, LIMIT_LABELS, struct store_label);
    size_t n = 0, at = 0, bytes = 0, name_size;
    const char *name, *value;
    bool bad;
    if (!labels) {
        return profd_no_memory(e);
    }
    for (unsigned i = 0; place && i < PLACE_COUNT; i++) {
        if (*place_get_value(place, i)) {
            labels[n] = (struct store_label){place_get_name(i), place_get_value(place, i)};
            bytes += strlen(labels[n].name) + strlen(labels[n].value);
            n++;
        }
    }
    w->label_left_out = image->header.counters[ATTACH_COUNTER_LABELS_LEFT_OUT] > 0;
    while (attach_label_next(image, &at, &name, &name_size, &value, &bad)) {
        const size_t size = name_size + 1 + strlen(value);
        bool good = n < LIMIT_LABELS && bytes + size <= LIMIT_LABEL_BYTES &&
                    label_judge(name, name_size, value, size - name_size - 1) == LABEL_GOOD;
        const unsigned of_place = place ? place_find_label(name, name_size) : PLACE_COUNT;
        if (good && of_place < PLACE_COUNT) {
            good = place_allows(place, of_place, value);
            if (good && *place_get_value(place, of_place)) { /* the process states what was found, and it stands */
                continue;
            }
        }
        for (size_t i = 0; i < n && good; i++) { /* a name stands once */
            good = strlen(labels[i].name) != name_size || memcmp(labels[i].name, name, name_size) != 0;
        }
        if (!good) {
            w->label_left_out = true;
            continue;
        }
        bytes += size;
        labels[n].name = arena_copy(w->in->arena, name, name_size);
        labels[n].value = arena_copy(w->in->arena, value, size - name_size - 1);
        if (!labels[n].name || !labels[n].value) {
            return profd_no_memory(e);
        }
        n++;
    }
    FAIL_IF(bad, e, PROFD_MALFORMED, "shared counts, labels: no name=value at byte %zu", at);
    w->after.labels = labels;
    w->after.label_count = n;
    return PROFD_OK;
}

/* All at once: the count is written when the names are there. */
static uint32_t parents_count(const struct attach_snapshot *s)
{
    const uint64_t n = s->counters[ATTACH_COUNTER_IS_CHILD];
    return n < ATTACH_PARENTS_MAX ? (uint32_t)n : ATTACH_PARENTS_MAX;
}

/* Computes the difference, as counts, the next snapshot's contents, and what people may ask. */
static enum profd_status subtract(struct harvesting *w, int64_t received, enum attach_end end, struct profd_error *e)
{
    const struct attach_image *image = &w->reading.image;
    const struct attach_header *h = &image->header;
    struct attach_difference *d = &w->difference;
    struct attach_snapshot *before = &w->before, *after = &w->after;
    uint64_t counters[COLLECTOR_COUNTERS_MAX];
    bool saturated = false;
    TRY(attach_difference_make(&w->reading, &w->builds, &before->places, d, e));
    TRY(labels_read(w, e));
    if (h->rate == 0 && d->ticks.count > 0) { /* ticks of nothing */
        d->bad += d->ticks.count;
        d->ticks.count = 0;
    }
    memcpy(after->instance, h->instance, sizeof h->instance);
    after->origin = w->p->origin;
    after->end = received;
    after->rate = h->rate;
    after->build_id = w->builds.build[0].id.text;
    after->name = w->builds.build[0].name;
    after->places = d->places;

    /* Counters are clamped, and never less than before. */
    for (unsigned i = 0; i < ATTACH_COUNTER_COUNT; i++) {
        after->counters[i] = h->counters[i] > SUM_MAX ? SUM_MAX : h->counters[i];
    }
    after->counters[ATTACH_SNAPSHOT_NAMELESS] = w->builds.nameless;
    after->counters[ATTACH_SNAPSHOT_UNLISTED] = w->builds.unlisted;
    for (unsigned i = 0; i < ATTACH_SNAPSHOT_COUNTERS; i++) {
        after->counters[i] = after->counters[i] < before->counters[i] ? before->counters[i] : after->counters[i];
    }
    sum_add(&after->counters[ATTACH_SNAPSHOT_OUTSIDE], d->outside, &saturated);
    attach_cpu_judge(h, w->p->cpu_ns, before, after->counters);
    w->p->cpu_ns = 0;
    attach_counters_subtract(after, before, (enum attach_mode)h->mode, w->first, counters);
    w->children = after->counters[ATTACH_COUNTER_CHILDREN] - before->counters[ATTACH_COUNTER_CHILDREN];
    w->parents = parents_count(after) - parents_count(before);
    counters[COLLECTOR_END_NOT_SEEN] = end == ATTACH_NOT_SEEN;
    w->paused = counters[COLLECTOR_PAUSES] > 0;
    w->left_out = after->counters[ATTACH_COUNTER_LEFT_OUT] > 0;
    w->lost = attach_counters_lost(after, before);
    if (d->bad > 0 || (end != ATTACH_LIVES && !d->more && d->not_yet > 0)) { /* of calls or of ticks */
        w->lost |= (unsigned)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST;
    }
    struct attach_news news = {.builds = &w->builds, .difference = d, .counters = counters, .rate = h->rate};
    TRY(attach_counts_make(&news, &w->counts, &w->any, &w->sampled, e));

    struct attach_summary *f = &w->in->summary;
    enum attach_counter why = ATTACH_COUNTER_COUNT, why_ticks = ATTACH_COUNTER_COUNT;
    *f = w->p->summary;
    f->rate = h->rate;
    f->mode = (enum attach_mode)h->mode;
    f->build_id = after->build_id;
    f->name = after->name;
    f->labels = after->labels;
    f->label_count = after->label_count;
    f->calls_exact = attach_calls_exact(image, &why);
    f->ticks_exact = attach_ticks_exact(image, &why_ticks);
    why = f->calls_exact ? why_ticks : why;
    f->why = why < ATTACH_COUNTER_COUNT ? attach_counter_name(why) : "";
    f->calls = d->calls_total;
    f->ticks = after->counters[ATTACH_COUNTER_TICKS];
    f->ticks_inside = after->counters[ATTACH_COUNTER_TICKS_INSIDE];
    f->samples = after->counters[ATTACH_COUNTER_SAMPLES];
    f->cpu_ns = after->counters[ATTACH_COUNTER_CPU_NS];
    f->bytes = h->used;
    f->harvested = after->end;
    return PROFD_OK;
}

/* Validates by the rules of an upload, in their order, and makes the delivery: everything that can fail, then
 * everything that cannot. */
static enum profd_status deliver(struct harvesting *w, struct build_cache *cache, enum attach_end end,
                                 struct attach_harvest *h, struct profd_error *e)
{
    struct attach_harvest made = {.any = true, .inside = w->in};
    struct store_upload *u = &made.put;
    uint32_t retry_after_ms;
    size_t counts_size = 0;
    int64_t idle = w->p->summary.harvested; /* nothing was counted until then, or it is in the snapshot */
    struct attach_delivery d = {
        .uid = w->p->uid,
        .received = w->after.end,
        .start = w->first               ? w->p->summary.start
                 : idle > w->before.end ? idle
                                        : w->before.end,
        .instance = w->after.instance,
        .host = w->p->origin.host,
        .first = w->first,
        .inexact = w->lost | (w->sampled ? (unsigned)INEXACT_SAMPLED : 0u) |
                   (w->paused ? (unsigned)INEXACT_PAUSED : 0u) | (w->left_out ? (unsigned)INEXACT_LEFT_OUT : 0u) |
                   (w->label_left_out && (w->any || w->first) ? (unsigned)INEXACT_LABEL_LEFT_OUT : 0u) |
                   (end == ATTACH_NOT_SEEN ? (unsigned)INEXACT_END_NOT_SEEN : 0u),
        .build_count = w->builds.count,
        .builds = w->builds.build,
        .label_count = w->after.label_count,
        .labels = w->after.labels};
    w->since = w->p->behind ? w->p->behind : d.start > 0 ? d.start : 1;
    TRY(attach_upload_validate(&d, w->in, u, e));
    if (w->any) {
        bool cut = false; /* what is stored is encoded from these counts later */
        TRY(validate_decoded(cache, w->in->builds, u, &w->counts, &cut, e));
    }
    TRY(build_cache_charge(cache, w->p->uid, w->after.end, w->in->builds, u->build_count, &retry_after_ms, e));
    if (w->any || u->inexact) { /* a reason is stored even without counts */
        TRY(counts_encode(&w->counts, &w->in->counts, &counts_size, e));
    }
    TRY(attach_snapshot_encode(&w->after, &w->in->snapshot, &made.put.snapshot_size, e));
    TRY(build_cache_list_missing(cache, u, &made.missing, &made.missing_count, e));
    u->counts = w->in->counts;
    u->counts_size = counts_size;
    memcpy(made.put.instance, w->after.instance, sizeof made.put.instance);
    memcpy(w->in->parents[0], w->reading.image.header.parent, sizeof w->reading.image.header.parent);
    memcpy(w->in->parents[1], w->reading.image.header.elders, sizeof w->reading.image.header.elders);
    made.put.children = w->children < UINT32_MAX ? w->children : UINT32_MAX; /* sums must not overflow */
    made.put.parents = w->in->parents[0];
    made.put.parent_count = w->parents;
    made.put.base = w->p->generation;
    made.put.since = w->since;
    made.put.snapshot = w->in->snapshot;
    made.more = w->difference.more;
    made.put.ended = end != ATTACH_LIVES && !made.more;
    made.ticks = u->ticks;
    made.calls = u->calls;
    *h = made;
    w->in = NULL;
    return PROFD_OK;
}

static enum profd_status run(struct harvesting *w, struct build_cache *cache, int64_t received, enum attach_end end,
                             struct attach_harvest *h, struct profd_error *e)
{
    struct attach_process *p = w->p;
    TRY(attach_reading_open(p->memfd, p->size, &w->reading, e));
    FAIL_IF(memcmp(w->reading.image.header.instance, p->summary.instance, sizeof p->summary.instance) != 0, e,
            PROFD_MALFORMED, "shared counts have become those of another instance");
    if (p->snapshot) {
        TRY(attach_snapshot_decode(p->snapshot, p->snapshot_size, &w->before, e));
    }
    TRY(attach_builds_list(&w->reading.image, w->in->arena, &w->builds, e));
    if (w->builds.count == 0) { /* the program has no row yet, so nothing is counted either */
        *h = (struct attach_harvest){.any = false};
        return PROFD_OK;
    }
    TRY(subtract(w, received, end, e));
    if (w->any || w->children > 0 || w->parents > 0 || end != ATTACH_LIVES || !p->told) {
        return deliver(w, cache, end, h, e);
    }
    attach_publish(p, &w->in->summary);
    *h = (struct attach_harvest){.any = false};
    return PROFD_OK;
}

enum profd_status attach_harvest(struct attach_process *p, struct build_cache *cache, uint64_t generation,
                                 int64_t received, enum attach_end end, struct attach_harvest *h, struct profd_error *e)
{
    struct harvesting w = {.p = p, .first = !p->snapshot, .in = attach_inside_new(), .difference.arena = arena_new(0)};
    build_cache_begin(cache, generation);
    enum profd_status status = w.in && w.difference.arena ? run(&w, cache, received, end, h, e) : profd_no_memory(e);
    attach_reading_close(&w.reading);
    attach_snapshot_done(&w.before);
    arena_free(w.difference.arena);
    counts_done(&w.counts);
    attach_inside_free(w.in);
    return status;
}

/* Orphaned processes: they are in the store, but their memory no longer exists. */

enum profd_status attach_get_origin(const uint8_t *snapshot, size_t size, struct attach_origin *out,
                                    struct profd_error *e)
{
    struct attach_snapshot s;
    TRY(attach_snapshot_decode(snapshot, size, &s, e));
    *out = s.origin;
    attach_snapshot_done(&s);
    return PROFD_OK;
}

bool attach_still_lives(const struct attach_origin *o, const struct attach_origin *here,
                        uint64_t (*started_of)(uint32_t pid))
{
    bool known = o->pid != 0 && o->started != 0;
    return memcmp(o->boot, here->boot, sizeof o->boot) == 0 && strcmp(o->host, here->host) == 0 &&
           (!known || started_of(o->pid) == o->started);
}

/* Makes the upload of an end that was not observed, with the one counter END_NOT_SEEN unless the process lives. Of such
 * a process only the program is known. */
static enum profd_status orphan_upload(const struct store_instance *i, const struct attach_snapshot *s,
                                       int64_t received, bool lives, struct attach_inside *in, struct store_upload *put,
                                       struct profd_error *e)
{
    struct counts c;
    struct attach_build program = {.name = s->name};
    struct attach_delivery d = {.uid = i->uid,
                                .received = received,
                                .start = i->seen < received ? i->seen : received,
                                .instance = i->instance,
                                .host = s->origin.host,
                                .inexact = INEXACT_END_NOT_SEEN,
                                .build_count = 1,
                                .builds = &program,
                                .label_count = s->label_count,
                                .labels = s->labels};
    TRY(buildid_parse(s->build_id, strlen(s->build_id), &program.id, e));
    TRY(attach_upload_validate(&d, in, put, e));
    TRY(counts_init(&c, 1, 1, 0, e));
    collector_make_histogram(&c.histograms[0], 0);
    c.histograms[0].used = !lives;
    c.bin_index[0] = COLLECTOR_END_NOT_SEEN;
    c.bin_ticks[0] = !lives;
    enum profd_status status = counts_encode(&c, &in->counts, &put->counts_size, e);
    counts_done(&c);
    put->counts = in->counts;
    return status;
}

enum profd_status attach_close_orphan(const struct store_instance *i, bool lives, int64_t now, struct attach_harvest *h,
                                      struct profd_error *e)
{
    struct attach_snapshot s;
    struct attach_harvest made = {.any = true};
    const int64_t received = i->ended || lives ? i->missing_since : now; /* about its children, or its own end */
    TRY(attach_snapshot_decode(i->snapshot, i->snapshot_size, &s, e));
    struct attach_inside *in = attach_inside_new();
    uint8_t *snapshot = in ? in->snapshot = malloc(i->snapshot_size) : NULL;
    /* Texts of the upload live in the decoded snapshot: they are copied into the arena. */
    struct store_label *labels = in ? ARENA_ARRAY(in->arena, s.label_count + 1, struct store_label) : NULL;
    const char *name = in ? arena_copy(in->arena, s.name, strlen(s.name)) : NULL;
    bool copied = snapshot && labels && name;
    for (size_t k = 0; copied && k < s.label_count; k++) {
        labels[k].name = arena_copy(in->arena, s.labels[k].name, strlen(s.labels[k].name));
        labels[k].value = arena_copy(in->arena, s.labels[k].value, strlen(s.labels[k].value));
        copied = labels[k].name && labels[k].value;
    }
    enum profd_status status;
    if (copied) {
        struct attach_snapshot kept = s;
        kept.name = name;
        kept.labels = in->summary.labels = labels;
        memcpy(snapshot, i->snapshot, i->snapshot_size);
        status = orphan_upload(i, &kept, received, lives, in, &made.put, e);
    } else {
        status = profd_no_memory(e);
    }
    attach_snapshot_done(&s);
    if (status != PROFD_OK) {
        attach_inside_free(in);
        return status;
    }
    memcpy(made.put.instance, i->instance, sizeof made.put.instance);
    made.put.base = i->generation;
    made.put.snapshot = snapshot;
    made.put.snapshot_size = i->snapshot_size;
    made.put.ended = made.put.told = !lives;
    made.put.marks = lives;
    made.inside = in;
    *h = made;
    return PROFD_OK;
}
