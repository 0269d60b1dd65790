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

/* The counters as a snapshot keeps them, clamped, never less than before. */
static void attach_counters_read(const struct attach_image *image, const struct attach_builds *b, uint64_t outside,
                                 const struct attach_snapshot *before, uint64_t out[ATTACH_SNAPSHOT_COUNTERS])
{
    bool saturated = false;
    memset(out, 0, ATTACH_SNAPSHOT_COUNTERS * sizeof out[0]);
    for (unsigned i = 0; i < ATTACH_COUNTER_COUNT; i++) {
        out[i] = image->header.counters[i] > SUM_MAX ? SUM_MAX : image->header.counters[i];
    }
    out[ATTACH_SNAPSHOT_NAMELESS] = b->nameless;
    out[ATTACH_SNAPSHOT_UNLISTED] = b->unlisted;
    for (unsigned i = 0; i < ATTACH_SNAPSHOT_COUNTERS; i++) {
        if (out[i] < before->counters[i]) {
            out[i] = before->counters[i];
        }
    }
    sum_add(&out[ATTACH_SNAPSHOT_OUTSIDE], outside, &saturated);
}

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

/* A build is one histogram of bins of one byte. A larger one is several, each of LIMIT_HISTOGRAM_BINS but the last. */
static uint32_t window_of(const struct attach_tick *t)
{
    return t->index / LIMIT_HISTOGRAM_BINS;
}

static bool same_histogram(const struct attach_tick *a, const struct attach_tick *b)
{
    return a->build == b->build && window_of(a) == window_of(b);
}

/* The clock of the ticks. */
static void clock_set(char dimension[16], char *abbreviation)
{
    memcpy(dimension, "seconds\0\0\0\0\0\0\0\0", 16);
    *abbreviation = 's';
}

static void histogram_make(const struct attach_news *n, const struct attach_tick *t, struct counts_histogram *h)
{
    const struct attach_build *b = &n->builds->build[t->build];
    uint64_t low = b->low + (uint64_t)window_of(t) * LIMIT_HISTOGRAM_BINS, high = b->high;
    if (high - low > LIMIT_HISTOGRAM_BINS) {
        high = low + LIMIT_HISTOGRAM_BINS;
    }
    *h = (struct counts_histogram){
        .build = t->build, .bins = (uint32_t)(high - low), .low = low, .high = high, .rate = n->rate};
    clock_set(h->dimension, &h->abbreviation);
}

static void ticks_put(const struct attach_news *n, struct counts *c, uint32_t *bin)
{
    const struct attach_ticks *s = &n->difference->ticks;
    uint32_t k = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (i == 0 || !same_histogram(&s->tick[i - 1], &s->tick[i])) {
            histogram_make(n, &s->tick[i], &c->histograms[k]);
            c->histograms[k++].first = *bin;
        }
        c->histograms[k - 1].used++;
        c->bin_index[*bin] = s->tick[i].index % LIMIT_HISTOGRAM_BINS;
        c->bin_ticks[(*bin)++] = s->tick[i].ticks;
    }
}

static void counters_put(const struct attach_news *n, struct counts *c, uint32_t *bin)
{
    struct counts_histogram *h = &c->histograms[c->histogram_count - 1];
    collector_make_histogram(h, 0);
    h->first = *bin;
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        if (n->counters[i] == 0) {
            continue;
        }
        c->bin_index[*bin] = i;
        c->bin_ticks[(*bin)++] = n->counters[i];
        h->used++;
    }
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

/* How many sampled pairs become arcs. */
static uint32_t pairs_kept(const struct attach_news *n)
{
    const struct attach_arcs *s = &n->difference->pairs;
    uint32_t kept = 0;
    if (n->builds->build[0].counted) {
        return 0;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        kept += s->arc[i].to_build == COUNTS_NOWHERE || !n->builds->build[s->arc[i].to_build].counted;
    }
    return kept;
}

static enum profd_status stacks_put(const struct attach_news *n, struct counts *c, struct profd_error *e)
{
    const struct attach_stacks *s = &n->difference->stacks;
    if (s->tree_count == 0) {
        return PROFD_OK;
    }
    struct counts_nodes nodes = COUNTS_NODES(c);
    c->trees[0].rate = n->rate;
    clock_set(c->trees[0].dimension, &c->trees[0].abbreviation);
    enum profd_status status = counts_tree_sort(s->tree, s->tree_count, &nodes, &c->trees[0].used, NULL, e);
    c->node_count = c->trees[0].used;
    c->tree_count = c->node_count > 0;
    return status;
}

static enum profd_status columns_put(const struct attach_news *news, uint32_t pairs, struct counts *c,
                                     struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    uint32_t bin = 0, arc = 0;
    ticks_put(news, c, &bin);
    if (c->bin_count > d->ticks.count) {
        counters_put(news, c, &bin);
    }
    arcs_put(&d->calls, NULL, c, &arc);
    if (pairs > 0) {
        arcs_put(&d->pairs, news->builds, c, &arc);
    }
    return stacks_put(news, c, e);
}

static struct counts_sizes sizes_of(const struct attach_news *n, uint32_t pairs)
{
    const struct attach_difference *d = n->difference;
    struct counts_sizes s = {.bins = d->ticks.count,
                             .arcs = d->calls.count + pairs,
                             .trees = d->stacks.tree_count > 0,
                             .nodes = d->stacks.tree_count};
    for (uint32_t i = 0; i < d->ticks.count; i++) {
        s.histograms += i == 0 || !same_histogram(&d->ticks.tick[i - 1], &d->ticks.tick[i]);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        s.bins += n->counters[i] != 0;
    }
    s.histograms += s.bins > d->ticks.count;
    return s;
}

static uint64_t ticks_sum(const struct attach_ticks *s)
{
    uint64_t sum = 0;
    bool saturated = false;
    for (uint32_t i = 0; i < s->count; i++) {
        sum_add(&sum, s->tick[i].ticks, &saturated);
    }
    return sum;
}

/* Everything as counts; sampled says whether pairs became arcs. any is false when there is nothing, and nothing to
 * free. */
static enum profd_status attach_counts_make(const struct attach_news *news, struct counts *c, bool *any, bool *sampled,
                                            struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    struct counts made;
    TRY(attach_stacks_list(&d->stacks, news->builds, ticks_sum(&d->ticks), &d->pairs, e));
    attach_ticks_sort(&d->ticks);
    uint32_t pairs = pairs_kept(news);
    struct counts_sizes sizes = sizes_of(news, pairs);
    if (sizes.bins + sizes.arcs == 0) { /* and no stacks, which are never more than ticks */
        *any = false;
        return PROFD_OK;
    }
    TRY(counts_init_sizes(&made, &sizes, e));
    enum profd_status status = columns_put(news, pairs, &made, e);
    if (status != PROFD_OK) {
        counts_done(&made);
        return status;
    }
    *any = true;
    *sampled = pairs > 0;
    *c = made;
    return PROFD_OK;
}

/* One harvest: read, subtract, validate, encode. */

/* The process's clock is this machine's, read a moment earlier or later: that is no reason to doubt it. */
static uint64_t start_judge(const struct attach_delivery *d)
{
    int64_t late = d->received + LIMIT_CLOCK_FUTURE_MINUTES * 60 * SECOND;
    return (uint64_t)(d->start > d->received && d->start <= late ? d->received : d->start < 0 ? 0 : d->start);
}

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
    for (size_t i = 0; i < d->label_count; i++) {
        labels[i] = (struct message_label){d->labels[i].name, d->labels[i].value};
    }
    struct message_upload m = {.sender = {d->instance, UPLOAD_SENDER_SIZE},
                               .sequence = 1,
                               .start = start_judge(d),
                               .end = d->received < 0 ? 0 : (uint64_t)d->received,
                               .build_count = d->build_count,
                               .builds = builds,
                               .label_count = d->label_count,
                               .labels = labels,
                               .inexact = d->inexact,
                               .processes_started = d->first,
                               .host = host,
                               .process = {d->instance, ATTACH_INSTANCE_SIZE}};
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

static void harvesting_done(struct harvesting *w)
{
    attach_reading_close(&w->reading);
    attach_snapshot_done(&w->before);
    attach_difference_done(&w->difference);
    counts_done(&w->counts);
    attach_inside_free(w->in);
}

static bool label_is_known(const struct store_label *labels, size_t n, const char *name, size_t name_size)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(labels[i].name) == name_size && memcmp(labels[i].name, name, name_size) == 0) {
            return true;
        }
    }
    return false;
}

/* Labels are the upload's: as text with NULs. One that breaks the rules is left out, and that is a reason in reports:
 * the calls of a process are worth more than its label. (A collector of this version leaves it out itself.) */
static enum profd_status labels_read(struct harvesting *w, struct profd_error *e)
{
    const struct attach_image *image = &w->reading.image;
    struct store_label *labels = ARENA_ARRAY(w->in->arena, LIMIT_LABELS, struct store_label);
    size_t n = 0, at = 0, bytes = 0, name_size;
    const char *name, *value;
    bool bad;
    if (!labels) {
        return profd_no_memory(e);
    }
    w->label_left_out = image->header.counters[ATTACH_COUNTER_LABELS_LEFT_OUT] > 0;
    while (attach_label_next(image, &at, &name, &name_size, &value, &bad)) {
        size_t size = name_size + 1 + strlen(value);
        if (n == LIMIT_LABELS || bytes + size > LIMIT_LABEL_BYTES || label_is_known(labels, n, name, name_size) ||
            label_judge(name, name_size, value, size - name_size - 1) != LABEL_GOOD) {
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
    if (bad) {
        return profd_error_set(e, PROFD_MALFORMED, "shared counts, labels: no name=value at byte %zu", at);
    }
    w->after.labels = labels;
    w->after.label_count = n;
    return PROFD_OK;
}

static enum profd_status read_all(struct harvesting *w, struct profd_error *e)
{
    struct attach_process *p = w->p;
    TRY(attach_reading_open(p->memfd, p->size, &w->reading, e));
    const struct attach_header *h = &w->reading.image.header;
    if (memcmp(h->instance, p->summary.instance, sizeof h->instance) != 0) {
        return profd_error_set(e, PROFD_MALFORMED, "shared counts have become those of another instance");
    }
    if (p->snapshot) {
        TRY(attach_snapshot_decode(p->snapshot, p->snapshot_size, &w->before, e));
    }
    return attach_builds_list(&w->reading.image, w->in->arena, &w->builds, e);
}

/* All at once: the count is written when the names are there. */
static uint32_t parents_count(const struct attach_snapshot *s)
{
    const uint64_t n = s->counters[ATTACH_COUNTER_IS_CHILD];
    return n < ATTACH_PARENTS_MAX ? (uint32_t)n : ATTACH_PARENTS_MAX;
}

/* The difference, as counts, and the next snapshot's contents. */
static enum profd_status subtract(struct harvesting *w, int64_t received, enum attach_end end, struct profd_error *e)
{
    const struct attach_header *h = &w->reading.image.header;
    struct attach_difference *d = &w->difference;
    uint64_t counters[COLLECTOR_COUNTERS_MAX];
    TRY(attach_difference_make(&w->reading, &w->builds, &w->before.places, d, e));
    TRY(labels_read(w, e));
    if (h->rate == 0 && d->ticks.count > 0) { /* ticks of nothing */
        d->bad += d->ticks.count;
        d->ticks.count = 0;
    }
    memcpy(w->after.instance, h->instance, sizeof h->instance);
    w->after.origin = w->p->origin;
    w->after.end = received;
    w->after.rate = h->rate;
    w->after.build_id = w->builds.build[0].id.text;
    w->after.name = w->builds.build[0].name;
    w->after.places = d->places;
    attach_counters_read(&w->reading.image, &w->builds, d->outside, &w->before, w->after.counters);
    attach_cpu_judge(h, w->p->cpu_ns, &w->before, w->after.counters);
    w->p->cpu_ns = 0;
    attach_counters_subtract(&w->after, &w->before, (enum attach_mode)h->mode, w->first, counters);
    w->children = w->after.counters[ATTACH_COUNTER_CHILDREN] - w->before.counters[ATTACH_COUNTER_CHILDREN];
    w->parents = parents_count(&w->after) - parents_count(&w->before);
    counters[COLLECTOR_END_NOT_SEEN] = end == ATTACH_NOT_SEEN;
    w->paused = counters[COLLECTOR_PAUSES] > 0;
    w->left_out = w->after.counters[ATTACH_COUNTER_LEFT_OUT] > 0;
    w->lost = attach_counters_lost(&w->after, &w->before);
    if (d->bad > 0 || (end != ATTACH_LIVES && !d->more && d->not_yet > 0)) { /* of calls or of ticks */
        w->lost |= (unsigned)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST;
    }
    struct attach_news news = {.builds = &w->builds, .difference = d, .counters = counters, .rate = h->rate};
    return attach_counts_make(&news, &w->counts, &w->any, &w->sampled, e);
}

/* The same rules, and the same order of them, as for an upload. */
static enum profd_status validate(struct harvesting *w, struct build_cache *cache, enum attach_end end,
                                  struct store_upload *u, struct profd_error *e)
{
    uint32_t retry_after_ms;
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
    return build_cache_charge(cache, w->p->uid, w->after.end, w->in->builds, u->build_count, &retry_after_ms, e);
}

static void summary_fill(struct harvesting *w)
{
    const struct attach_image *image = &w->reading.image;
    struct attach_summary *f = &w->in->summary;
    enum attach_counter why = ATTACH_COUNTER_COUNT, why_ticks = ATTACH_COUNTER_COUNT;
    *f = w->p->summary;
    f->rate = image->header.rate;
    f->mode = (enum attach_mode)image->header.mode;
    f->build_id = w->after.build_id;
    f->name = w->after.name;
    f->labels = w->after.labels;
    f->label_count = w->after.label_count;
    f->calls_exact = attach_calls_exact(image, &why);
    f->ticks_exact = attach_ticks_exact(image, &why_ticks);
    why = f->calls_exact ? why_ticks : why;
    f->why = why < ATTACH_COUNTER_COUNT ? attach_counter_name(why) : "";
    f->calls = w->difference.calls_total;
    f->ticks = w->after.counters[ATTACH_COUNTER_TICKS];
    f->ticks_inside = w->after.counters[ATTACH_COUNTER_TICKS_INSIDE];
    f->samples = w->after.counters[ATTACH_COUNTER_SAMPLES];
    f->cpu_ns = w->after.counters[ATTACH_COUNTER_CPU_NS];
    f->bytes = image->header.used;
    f->harvested = w->after.end;
}

/* Everything that can still fail, then everything that can't. */
static enum profd_status deliver(struct harvesting *w, struct build_cache *cache, enum attach_end end,
                                 struct attach_harvest *h, struct profd_error *e)
{
    struct attach_harvest made = {.any = true, .inside = w->in};
    struct store_upload *u = &made.put;
    size_t counts_size = 0;
    TRY(validate(w, cache, end, u, e));
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
    TRY(read_all(w, e));
    if (w->builds.count == 0) { /* the program has no row yet, so nothing is counted either */
        *h = (struct attach_harvest){.any = false};
        return PROFD_OK;
    }
    TRY(subtract(w, received, end, e));
    summary_fill(w);
    if (w->any || w->children > 0 || w->parents > 0 || end != ATTACH_LIVES || !w->p->told) {
        return deliver(w, cache, end, h, e);
    }
    attach_publish(w->p, &w->in->summary);
    *h = (struct attach_harvest){.any = false};
    return PROFD_OK;
}

enum profd_status attach_harvest(struct attach_process *p, struct build_cache *cache, uint64_t generation,
                                 int64_t received, enum attach_end end, struct attach_harvest *h, struct profd_error *e)
{
    struct harvesting w = {.p = p, .first = !p->snapshot, .in = attach_inside_new()};
    if (!w.in) {
        return profd_no_memory(e);
    }
    build_cache_begin(cache, generation);
    enum profd_status status = run(&w, cache, received, end, h, e);
    harvesting_done(&w);
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

/* Makes a histogram with the one counter n. Of such a process only the program is known. */
static enum profd_status counts_make(uint64_t n, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct counts c;
    TRY(counts_init(&c, 1, 1, 0, e));
    collector_make_histogram(&c.histograms[0], 0);
    c.histograms[0].used = n > 0;
    c.bin_index[0] = COLLECTOR_END_NOT_SEEN;
    c.bin_ticks[0] = n;
    enum profd_status status = counts_encode(&c, out, size, e);
    counts_done(&c);
    return status;
}

static enum profd_status close_it(const struct store_instance *i, const struct attach_snapshot *s, int64_t received,
                                  bool lives, struct attach_inside *in, struct store_upload *put, struct profd_error *e)
{
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
    TRY(counts_make(!lives, &in->counts, &put->counts_size, e));
    put->counts = in->counts;
    return PROFD_OK;
}

/* Texts of the upload live in the decoded snapshot: they are moved into the arena. */
static bool texts_keep(struct attach_inside *in, struct attach_snapshot *s)
{
    struct store_label *labels = ARENA_ARRAY(in->arena, s->label_count + 1, struct store_label);
    s->name = arena_copy(in->arena, s->name, strlen(s->name));
    if (!labels || !s->name) {
        return false;
    }
    for (size_t k = 0; k < s->label_count; k++) {
        labels[k].name = arena_copy(in->arena, s->labels[k].name, strlen(s->labels[k].name));
        labels[k].value = arena_copy(in->arena, s->labels[k].value, strlen(s->labels[k].value));
        if (!labels[k].name || !labels[k].value) {
            return false;
        }
    }
    free((void *)(uintptr_t)s->labels);
    s->labels = NULL;
    in->summary.labels = labels;
    return true;
}

enum profd_status attach_close_orphan(const struct store_instance *i, bool lives, int64_t now, struct attach_harvest *h,
                                      struct profd_error *e)
{
    struct attach_snapshot s;
    struct attach_harvest made = {.any = true};
    const int64_t received = i->ended || lives ? i->missing_since : now; /* about its children, or its own end */
    TRY(attach_snapshot_decode(i->snapshot, i->snapshot_size, &s, e));
    struct attach_inside *in = attach_inside_new();
    if (in) {
        in->snapshot = malloc(i->snapshot_size);
    }
    enum profd_status status = PROFD_OK;
    if (!in || !in->snapshot || !texts_keep(in, &s)) {
        status = profd_no_memory(e);
    } else {
        struct attach_snapshot kept = s;
        kept.labels = in->summary.labels;
        memcpy(in->snapshot, i->snapshot, i->snapshot_size);
        status = close_it(i, &kept, received, lives, in, &made.put, e);
    }
    attach_snapshot_done(&s);
    if (status != PROFD_OK) {
        attach_inside_free(in);
        return status;
    }
    memcpy(made.put.instance, i->instance, sizeof made.put.instance);
    made.put.base = i->generation;
    made.put.snapshot = in->snapshot;
    made.put.snapshot_size = i->snapshot_size;
    made.put.ended = made.put.told = !lives;
    made.put.marks = lives;
    made.inside = in;
    *h = made;
    return PROFD_OK;
}
