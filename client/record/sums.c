#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/profd_upload.h"
#include "proto/limits.h"
#include "proto/place.h"
#include "record/record_internal.h"

enum profd_status sums_init(struct sums *s, uint32_t rate, struct profd_error *e)
{
    *s = (struct sums){.arena = arena_new(0), .rate = rate};
    STAILQ_INIT(&s->list);
    return s->arena ? PROFD_OK : profd_no_memory(e);
}

static void tallies_done(struct sums *s)
{
    struct sum *sum;
    STAILQ_FOREACH(sum, &s->list, link)
    {
        tally_done(&sum->tally);
    }
}

void sums_done(struct sums *s)
{
    tallies_done(s);
    arena_free(s->arena);
    s->arena = NULL;
}

void sums_clear(struct sums *s)
{
    tallies_done(s);
    STAILQ_INIT(&s->list);
    s->count = 0;
    arena_reset(s->arena);
}

static bool sum_matches(const struct sum *s, uint32_t program, const struct sum_origin *origin)
{
    return s->program == program && s->origin.uid == origin->uid && strcmp(s->origin.comm, origin->comm) == 0 &&
           strcmp(s->origin.cgroup, origin->cgroup) == 0 &&
           memcmp(s->origin.context, origin->context, sizeof origin->context) == 0;
}

bool sums_has(const struct sums *s, uint32_t program, const struct sum_origin *origin)
{
    const struct sum *sum;
    STAILQ_FOREACH(sum, &s->list, link)
    {
        if (sum_matches(sum, program, origin)) {
            return true;
        }
    }
    return false;
}

void sums_add_lost(struct sums *s, uint64_t samples)
{
    struct sum *sum;
    STAILQ_FOREACH(sum, &s->list, link)
    {
        const struct sum *first = STAILQ_FIRST(&s->list); /* of this program and user */
        while (first->program != sum->program || first->origin.uid != sum->origin.uid) {
            first = STAILQ_NEXT(first, link);
        }
        sum->tally.counters[COLLECTOR_SAMPLES_LOST] += first == sum ? samples : 0;
        sum->lost = true;
    }
}

struct sum *sums_take(struct sums *s, uint32_t program, const struct sum_origin *o, uint32_t group, const uint8_t *key)
{
    struct sum *found;
    STAILQ_FOREACH(found, &s->list, link)
    {
        if (found->group == group && sum_matches(found, program, o)) {
            return found;
        }
    }
    found = ARENA_NEW(s->arena, struct sum);
    if (!found || tally_init(&found->tally, s->arena, program, s->rate, NULL) != PROFD_OK) {
        return NULL;
    }
    found->program = program;
    found->origin = *o;
    found->group = group;
    memcpy(found->key, key, sizeof found->key);
    STAILQ_INSERT_TAIL(&s->list, found, link);
    s->count++;
    return found;
}

/* Adds a label, unless it has no value or the upload has it already. Returns false if the label breaks a rule: the
 * upload states that it was left out. */
static bool add_label(struct profd_upload *u, const char *name, const char *value)
{
    return value[0] == '\0' || profd_upload_has_label(u, name) ||
           profd_upload_add_label(u, name, value, NULL) == PROFD_OK;
}

enum profd_status sum_fill_upload(const struct sum *s, const struct images *images, const struct sums_window *w,
                                  struct profd_upload *u, struct profd_error *e)
{
    struct tally_range *ranges = calloc(s->tally.build_count, sizeof *ranges);
    struct counts counts;
    enum profd_status status = ranges ? PROFD_OK : profd_no_memory(e);
    for (uint32_t i = 0; i < s->tally.build_count && status == PROFD_OK; i++) {
        const uint32_t build = s->tally.builds[i];
        ranges[i] = images_get_range(images, build);
        status = profd_upload_add_build(u, images_get_id(images, build), images_get_name(images, build), NULL, e);
    }
    status = status ? status : tally_make_counts(&s->tally, ranges, &counts, e);
    if (status == PROFD_OK) {
        status = upload_add_counts(u, &counts, e);
        counts_done(&counts);
    }
    free(ranges);
    TRY(status);
    struct process_place place;
    char host[256] = "";
    uint32_t inexact = PROFD_INEXACT_SAMPLED | (s->lost ? PROFD_INEXACT_TICKS_LOST : 0u);
    place_parse(s->origin.cgroup, &place);
    place_find_pod(&place, PLACE_LINKS);
    bool good = gethostname(host, sizeof host - 1) != 0 || add_label(u, "host", host);
    good &= add_label(u, "comm", s->origin.comm);
    for (unsigned i = 0; i < PLACE_COUNT; i++) {
        good &= add_label(u, place_get_name(i), place_get_value(&place, i));
    }
    good &= add_label(u, "cgroup", s->origin.cgroup) && !s->origin.context_cut;
    for (const char *name = s->origin.context, *value; *name; name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        good &= add_label(u, name, value);
    }
    inexact |= good ? 0 : PROFD_INEXACT_LABEL_LEFT_OUT;
    profd_upload_set_inexact(u, inexact);
    profd_upload_set_window(u, w->start, w->end);
    profd_upload_set_processes_started(u, s->started);
    upload_set_process(u, s->key);
    return PROFD_OK;
}

struct tally_bin {
    uint64_t address, build;
    uint64_t ticks;
};

/* Finds or adds a build. Returns false if there is no space. */
static bool take_build(struct ticks *t, uint32_t build, uint32_t *out)
{
    if (build == COUNTS_NOWHERE) {
        *out = COUNTS_NOWHERE;
        return true;
    }
    const bool taken = TABLE_TAKE_NUMBER(&t->build_table, t->arena, t->builds, build, out);
    t->build_count = t->build_table.used < LIMIT_BUILDS ? t->build_table.used : LIMIT_BUILDS;
    return taken && *out < LIMIT_BUILDS;
}

enum profd_status tally_init(struct ticks *t, struct arena *a, uint32_t program, uint32_t rate, struct profd_error *e)
{
    uint32_t index;
    *t = (struct ticks){.arena = a, .rate = rate, .stacks = counts_stacks_new()};
    if (!t->stacks || !take_build(t, program, &index)) {
        tally_done(t);
        return profd_no_memory(e);
    }
    return PROFD_OK;
}

void tally_done(struct ticks *t)
{
    counts_stacks_free(t->stacks);
    t->stacks = NULL;
}

static struct tally_bin *take_bin(struct ticks *t, uint32_t build, uint64_t address)
{
    const struct tally_bin fresh = {.address = address, .build = build};
    uint32_t at;
    const bool taken = TABLE_TAKE(&t->bin_table, t->arena, t->bins, fresh, build, &at);
    t->bin_count = t->bin_table.used < LIMIT_BINS ? t->bin_table.used : LIMIT_BINS;
    return taken && at < LIMIT_BINS ? &t->bins[at] : NULL;
}

bool tally_add(struct ticks *t, const struct counts_frame *frames, uint32_t n)
{
    struct counts_frame own[LIMIT_STACK_DEPTH];
    for (uint32_t i = 0; i < n; i++) {
        own[i] = frames[i];
        if (take_build(t, frames[i].build, &own[i].build)) {
            continue;
        }
        if (i + 1 == n) {
            return false;
        }
        own[i].build = COUNTS_NOWHERE;
        own[i].address = COUNTS_FRAME_OUTSIDE;
    }
    struct tally_bin *bin = take_bin(t, own[n - 1].build, own[n - 1].address);
    if (!bin) {
        return false;
    }
    bin->ticks++;
    /* Without memory the stack is missing, but its tick is counted. */
    (void)counts_stacks_add(t->stacks, t->rate, "seconds", 's', own, n, 1, NULL);
    return true;
}

/* --- the counts --- */

static int compare_bins(const void *a, const void *b)
{
    const struct tally_bin *x = a, *y = b;
    if (x->build != y->build) {
        return x->build < y->build ? -1 : 1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

/* A histogram covers a build, or a part of LIMIT_HISTOGRAM_BINS bytes of it. Returns the number of the part. */
static uint64_t part_of(const struct tally_range *ranges, const struct tally_bin *b)
{
    return (b->address - ranges[b->build].low) / LIMIT_HISTOGRAM_BINS;
}

static bool begins_histogram(const struct tally_range *ranges, const struct tally_bin *bins, uint32_t i)
{
    return i == 0 || bins[i].build != bins[i - 1].build || part_of(ranges, &bins[i]) != part_of(ranges, &bins[i - 1]);
}

enum profd_status tally_make_counts(const struct ticks *t, const struct tally_range *ranges, struct counts *out,
                                    struct profd_error *e)
{
    struct tally_bin *bins = malloc(((size_t)t->bin_count + 1) * sizeof *bins);
    struct counts_sizes sizes = {.histograms = 1, .bins = t->bin_count};
    TRY(bins ? PROFD_OK : profd_no_memory(e));
    if (t->bin_count > 0) {
        memcpy(bins, t->bins, t->bin_count * sizeof *bins);
    }
    qsort(bins, t->bin_count, sizeof *bins, compare_bins);
    for (uint32_t i = 0; i < t->bin_count; i++) {
        sizes.histograms += begins_histogram(ranges, bins, i);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        sizes.bins += t->counters[i] > 0;
    }
    enum profd_status status = counts_stacks_finish(t->stacks, &sizes, e);
    status = status ? status : counts_init_sizes(out, &sizes, e);
    if (status != PROFD_OK) {
        free(bins);
        return status;
    }
    struct counts_histogram *h = out->histograms - 1;
    for (uint32_t i = 0; i < t->bin_count; i++) {
        const struct tally_range *r = &ranges[bins[i].build];
        if (begins_histogram(ranges, bins, i)) {
            const uint64_t low = r->low + part_of(ranges, &bins[i]) * LIMIT_HISTOGRAM_BINS;
            const uint64_t size = r->high - low < LIMIT_HISTOGRAM_BINS ? r->high - low : LIMIT_HISTOGRAM_BINS;
            *++h = (struct counts_histogram){.build = (uint32_t)bins[i].build,
                                             .bins = (uint32_t)size,
                                             .low = low,
                                             .high = low + size,
                                             .rate = t->rate,
                                             .dimension = "seconds",
                                             .abbreviation = 's',
                                             .first = i};
        }
        out->bin_index[i] = (uint32_t)(bins[i].address - h->low);
        out->bin_ticks[i] = bins[i].ticks;
        h->used++;
    }
    h = &out->histograms[out->histogram_count - 1];
    collector_make_histogram(h, 0);
    h->first = t->bin_count;
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        if (t->counters[i] > 0) {
            out->bin_index[t->bin_count + h->used] = i;
            out->bin_ticks[t->bin_count + h->used++] = t->counters[i];
        }
    }
    counts_stacks_copy(t->stacks, out);
    free(bins);
    return PROFD_OK;
}
