#include "record/sums.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/upload.h"
#include "proto/limits.h"

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

static bool sum_matches(const struct sum *s, uint32_t program, const struct origin *origin)
{
    return s->program == program && s->origin.uid == origin->uid && strcmp(s->origin.comm, origin->comm) == 0 &&
           strcmp(s->origin.cgroup, origin->cgroup) == 0;
}

bool sums_has(const struct sums *s, uint32_t program, const struct origin *origin)
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

/* The first sum of the program and user of another one. */
static const struct sum *sums_first(const struct sums *s, const struct sum *like)
{
    const struct sum *sum = STAILQ_FIRST(&s->list);
    while (sum->program != like->program || sum->origin.uid != like->origin.uid) {
        sum = STAILQ_NEXT(sum, link);
    }
    return sum;
}

void sums_add_lost(struct sums *s, uint64_t samples)
{
    struct sum *sum;
    STAILQ_FOREACH(sum, &s->list, link)
    {
        sum->tally.counters[COLLECTOR_SAMPLES_LOST] += sums_first(s, sum) == sum ? samples : 0;
        sum->lost = true;
    }
}

struct sum *sums_take(struct sums *s, uint32_t program, const struct origin *origin, uint32_t group, const uint8_t *key)
{
    struct sum *found;
    STAILQ_FOREACH(found, &s->list, link)
    {
        if (found->group == group && sum_matches(found, program, origin)) {
            return found;
        }
    }
    found = ARENA_NEW(s->arena, struct sum);
    if (!found || tally_init(&found->tally, s->arena, program, s->rate, NULL) != PROFD_OK) {
        return NULL;
    }
    found->program = program;
    found->origin = *origin;
    found->group = group;
    memcpy(found->key, key, sizeof found->key);
    STAILQ_INSERT_TAIL(&s->list, found, link);
    s->count++;
    return found;
}

/* A label without a value is left out, and one that the upload has already; one that breaks a rule, too, which the
 * upload says. */
static bool add_label(struct profd_upload *u, const char *name, const char *value)
{
    return value[0] == '\0' || profd_upload_has_label(u, name) ||
           profd_upload_add_label(u, name, value, NULL) == PROFD_OK;
}

static enum profd_status add_counts(struct profd_upload *u, const struct sum *s, const struct images *images,
                                    struct profd_error *e)
{
    struct tally_range *ranges = calloc(s->tally.build_count, sizeof *ranges);
    struct counts counts;
    enum profd_status status = ranges ? PROFD_OK : profd_no_memory(e);
    for (uint32_t i = 0; i < s->tally.build_count && status == PROFD_OK; i++) {
        const uint32_t build = s->tally.builds[i];
        ranges[i] = images_get_range(images, build);
        status = profd_upload_add_build(u, images_get_id(images, build), images_get_name(images, build), NULL, e);
    }
    if (status == PROFD_OK) {
        status = tally_make_counts(&s->tally, ranges, &counts, e);
    }
    if (status == PROFD_OK) {
        status = upload_add_counts(u, &counts, e);
        counts_done(&counts);
    }
    free(ranges);
    return status;
}

enum profd_status sum_fill_upload(const struct sum *s, const struct images *images, const struct sums_window *w,
                                  struct profd_upload *u, struct profd_error *e)
{
    TRY(add_counts(u, s, images, e));
    char unit[ORIGIN_NAME_SIZE], container[ORIGIN_NAME_SIZE], host[256] = "";
    uint32_t inexact = PROFD_INEXACT_SAMPLED | (s->lost ? PROFD_INEXACT_TICKS_LOST : 0u);
    origin_find_unit(s->origin.cgroup, unit);
    origin_find_container(s->origin.cgroup, container);
    bool good = gethostname(host, sizeof host - 1) != 0 || add_label(u, "host", host);
    good &= add_label(u, "comm", s->origin.comm);
    good &= add_label(u, "unit", unit);
    good &= add_label(u, "container", container);
    good &= add_label(u, "cgroup", s->origin.cgroup);
    inexact |= good ? 0 : PROFD_INEXACT_LABEL_LEFT_OUT;
    profd_upload_set_inexact(u, inexact);
    profd_upload_set_window(u, w->start, w->end);
    profd_upload_set_processes_started(u, s->started);
    upload_set_process(u, s->key);
    return PROFD_OK;
}
