/* One harvest: read, subtract, believe, encode. */
#include <stdlib.h>
#include <string.h>

#include "ingest/attach_parts.h"
#include "ingest/believe.h"
#include "ingest/ingest_believed.h"
#include "ingest/known.h"
#include "ingest/ingest_wanted.h"
#include "proto/utf8.h"

/* What the steps hand to each other. */
struct harvesting {
    struct attach_process *p;
    struct attach_reading reading;
    struct attach_snapshot before, after;
    struct attach_builds builds;
    struct attach_difference difference;
    struct counts counts;
    bool first, any, sampled, lost, paused;
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

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a harvest");
}

/* Labels are the upload's: as text with NULs. What they may say is judged with the upload. */
static enum profd_status labels_read(struct harvesting *w, struct profd_error *e)
{
    const struct attach_image *image = &w->reading.image;
    struct store_label *labels = ARENA_ARRAY(w->in->arena, LIMIT_LABELS, struct store_label);
    size_t n = 0, at = 0, name_size;
    const char *name, *value;
    bool bad;
    if (!labels)
        return no_memory(e);
    while (attach_label_next(image, &at, &name, &name_size, &value, &bad)) {
        size_t size = name_size + 1 + strlen(value);
        if (n == LIMIT_LABELS)
            return profd_error_set(e, PROFD_TOO_LARGE, "shared counts have more than %u labels", LIMIT_LABELS);
        if (!utf8_valid((const uint8_t *)name, size))
            return profd_error_set(e, PROFD_REFUSED, "label number %zu of a process is not UTF-8: \"%.200s\"", n + 1,
                                   name);
        labels[n].name = arena_copy(w->in->arena, name, name_size);
        labels[n].value = arena_copy(w->in->arena, value, size - name_size - 1);
        if (!labels[n].name || !labels[n].value)
            return no_memory(e);
        n++;
    }
    if (bad)
        return profd_error_set(e, PROFD_MALFORMED, "shared counts, labels: no name=value at byte %zu", at);
    w->after.labels = labels;
    w->after.label_count = n;
    return PROFD_OK;
}

static enum profd_status read_all(struct harvesting *w, struct profd_error *e)
{
    struct attach_process *p = w->p;
    enum profd_status status = attach_reading_open(p->memfd, p->size, &w->reading, e);
    if (status != PROFD_OK)
        return status;
    const struct attach_header *h = &w->reading.image.header;
    if (memcmp(h->instance, p->facts.instance, sizeof h->instance) != 0)
        return profd_error_set(e, PROFD_MALFORMED, "shared counts have become those of another instance");
    if (p->snapshot)
        status = attach_snapshot_decode(p->snapshot, p->snapshot_size, &w->before, e);
    if (status == PROFD_OK)
        status = attach_builds_list(&w->reading.image, w->in->arena, &w->builds, e);
    return status;
}

/* The difference, as counts, and the next snapshot's contents. */
static enum profd_status subtract(struct harvesting *w, int64_t received, enum attach_end end, struct profd_error *e)
{
    const struct attach_header *h = &w->reading.image.header;
    struct attach_difference *d = &w->difference;
    uint64_t words[WORDS_ROOM];
    enum profd_status status = attach_difference_make(&w->reading, &w->builds, &w->before.places, d, e);
    if (status == PROFD_OK)
        status = labels_read(w, e);
    if (status != PROFD_OK)
        return status;
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
    attach_words_take(&w->reading.image, &w->builds, d->outside, &w->before, w->after.words);
    attach_words_subtract(&w->after, &w->before, (enum attach_mode)h->mode, w->first, words);
    words[WORDS_END_NOT_SEEN] = end == ATTACH_NOT_SEEN;
    w->paused = words[WORDS_PAUSES] > 0;
    w->lost =
        attach_words_lose(&w->after, &w->before) || d->bad > 0 || (end != ATTACH_LIVES && !d->more && d->not_yet > 0);
    struct attach_news news = {
        .builds = &w->builds, .difference = d, .words = words, .rate = h->rate, .wall = h->mode == ATTACH_MODE_WALL};
    return attach_counts_make(&news, &w->counts, &w->any, &w->sampled, e);
}

/* The same rules, and the same order of them, as for an upload. */
static enum profd_status believe(struct harvesting *w, struct known *known, enum attach_end end, struct store_upload *u,
                                 struct profd_error *e)
{
    uint32_t retry_after_ms;
    struct attach_delivery d = {.uid = w->p->uid,
                                .received = w->after.end,
                                .start = w->first ? w->p->facts.start : w->before.end,
                                .instance = w->after.instance,
                                .host = w->p->origin.host,
                                .first = w->first,
                                .inexact = (w->lost ? (unsigned)INEXACT_LOST : 0u) |
                                           (w->sampled ? (unsigned)INEXACT_SAMPLED : 0u) |
                                           (w->paused ? (unsigned)INEXACT_PAUSED : 0u) |
                                           (end == ATTACH_NOT_SEEN ? (unsigned)INEXACT_END_NOT_SEEN : 0u),
                                .build_count = w->builds.count,
                                .builds = w->builds.build,
                                .label_count = w->after.label_count,
                                .labels = w->after.labels};
    enum profd_status status = attach_upload_believe(&d, w->in, u, e);
    if (status == PROFD_OK && w->any)
        status = believe_decoded(known, w->in->builds, u, &w->counts, e);
    if (status == PROFD_OK)
        status = known_charge(known, w->p->uid, w->after.end, w->in->builds, u->build_count, &retry_after_ms, e);
    return status;
}

static void facts_fill(struct harvesting *w)
{
    const struct attach_image *image = &w->reading.image;
    struct attach_facts *f = &w->in->facts;
    enum attach_word why = ATTACH_WORD_COUNT, why_ticks = ATTACH_WORD_COUNT;
    *f = w->p->facts;
    f->rate = image->header.rate;
    f->mode = (enum attach_mode)image->header.mode;
    f->build_id = w->after.build_id;
    f->name = w->after.name;
    f->labels = w->after.labels;
    f->label_count = w->after.label_count;
    f->calls_exact = attach_calls_exact(image, &why);
    f->ticks_exact = attach_ticks_exact(image, &why_ticks);
    why = f->calls_exact ? why_ticks : why;
    f->why = why < ATTACH_WORD_COUNT ? attach_word_name(why) : "";
    f->calls = w->difference.calls_total;
    f->ticks = w->after.words[ATTACH_WORD_TICKS];
    f->ticks_inside = w->after.words[ATTACH_WORD_TICKS_INSIDE];
    f->cpu_ns = w->after.words[ATTACH_WORD_CPU_NS];
    f->slots = image->slots;
    f->bytes = image->header.used;
    f->harvested = w->after.end;
}

/* Everything that can still fail, then everything that can't. */
static enum profd_status deliver(struct harvesting *w, struct known *known, enum attach_end end,
                                 struct attach_harvest *h, struct profd_error *e)
{
    struct attach_harvest made = {.any = true, .inside = w->in};
    struct store_upload *u = &made.put.upload;
    size_t counts_size = 0;
    enum profd_status status = believe(w, known, end, u, e);
    if (status == PROFD_OK && (w->any || u->inexact)) /* a reason is told even if it is all there is */
        status = counts_encode(&w->counts, &w->in->counts, &counts_size, e);
    if (status == PROFD_OK)
        status = attach_snapshot_encode(&w->after, &w->in->snapshot, &made.put.snapshot_size, e);
    if (status == PROFD_OK)
        status = wanted_list_known(known, u, &made.wanted, &made.wanted_count, e);
    if (status != PROFD_OK)
        return status;
    u->counts = w->in->counts;
    u->counts_size = counts_size;
    memcpy(made.put.instance, w->after.instance, sizeof made.put.instance);
    made.put.base = w->p->generation;
    made.put.snapshot = w->in->snapshot;
    made.more = w->difference.more;
    made.put.ended = end != ATTACH_LIVES && !made.more;
    made.ticks = u->ticks;
    made.calls = u->calls;
    *h = made;
    w->in = NULL;
    return PROFD_OK;
}

static enum profd_status run(struct harvesting *w, struct known *known, int64_t received, enum attach_end end,
                             struct attach_harvest *h, struct profd_error *e)
{
    enum profd_status status = read_all(w, e);
    if (status != PROFD_OK)
        return status;
    if (w->builds.count == 0) { /* the program has no row yet, so nothing is counted either */
        *h = (struct attach_harvest){.any = false};
        return PROFD_OK;
    }
    status = subtract(w, received, end, e);
    if (status != PROFD_OK)
        return status;
    facts_fill(w);
    if (w->any || end != ATTACH_LIVES)
        return deliver(w, known, end, h, e);
    attach_publish(w->p, &w->in->facts);
    *h = (struct attach_harvest){.any = false};
    return PROFD_OK;
}

enum profd_status attach_harvest(struct attach_process *p, struct ingest_checker *checker, uint64_t generation,
                                 int64_t received, enum attach_end end, struct attach_harvest *h, struct profd_error *e)
{
    struct known *known = ingest_checker_known(checker);
    struct harvesting w = {.p = p, .first = !p->snapshot, .in = attach_inside_new()};
    if (!w.in)
        return no_memory(e);
    known_begin(known, generation);
    enum profd_status status = run(&w, known, received, end, h, e);
    harvesting_done(&w);
    return status;
}
