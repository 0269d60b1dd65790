/* One harvest: read, subtract, validate, encode. */
#include <string.h>

#include "ingest/attach_internal.h"
#include "ingest/build_cache.h"
#include "ingest/validate.h"
#include "proto/label.h"
#include "proto/message.h"

#define SECOND INT64_C(1000000000)

/* The process's clock is this machine's, read a moment earlier or later: that is no reason to doubt it. */
static uint64_t start_judge(const struct attach_delivery *d)
{
    int64_t late = d->received + LIMIT_CLOCK_FUTURE_MINUTES * 60 * SECOND;
    return (uint64_t)(d->start > d->received && d->start <= late ? d->received : d->start < 0 ? 0 : d->start);
}

enum profd_status attach_upload_validate(const struct attach_delivery *d, struct attach_inside *in,
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
