/* Answers /debug/pprof/profile: the counts that matching uploads of all programs add in some seconds, as one profile in
 * the format of pprof.
 *
 * The answer is the difference of two sums. The first look at the store makes a baseline, which has every count of
 * every program under a hash of what was counted. The second look, after the seconds, subtracts the baseline. Only the
 * baseline is held between them. Without seconds=, the answer is the stored sum of the window, at once. */
#include <string.h>

#include "core/pprof_codec.h"
#include "proto/sum.h"
#include "query/query_internal.h"

struct scrape_key {
    uint64_t a, b;
};

struct scrape_count {
    struct scrape_key key;
    uint64_t value;
};

struct scrape {
    struct job *job;
    struct programs programs;
    struct scrape_count *baseline; /* of the second look */
    uint32_t baseline_count;
    struct table table;
};

static struct scrape_key mix(struct scrape_key k, uint64_t x, uint64_t y)
{
    return (struct scrape_key){table_mix(k.a ^ x, y), table_mix(k.b ^ y, x ^ UINT64_C(0x9ddfea08eb382d69))};
}

static struct scrape_key mix_text(struct scrape_key k, const char *text)
{
    return mix(k, table_hash_text(text, 0, 1), table_hash_text(text, 0, 2));
}

static uint64_t baseline_hash(const void *context, uint32_t index)
{
    return ((const struct scrape *)context)->baseline[index].key.a;
}

/* Adds a count to the baseline that is being made, or subtracts from it what the baseline has. */
static void take_count(struct scrape *s, struct scrape_key key, uint64_t *value)
{
    if (!s->job->request->baseline) {
        const struct scrape_count c = {key, *value};
        buffer_add(&s->job->answer->body, &c, *value > 0 ? sizeof c : 0);
        return;
    }
    for (uint32_t at = table_slot(&s->table, key.a); s->table.slots && s->table.slots[at] != 0;
         at = (at + 1) & s->table.mask) {
        const struct scrape_count *c = &s->baseline[s->table.slots[at] - 1];
        if (c->key.a == key.a && c->key.b == key.b) {
            /* A sum shrinks only where its rarest stacks are folded into their parents. */
            *value -= c->value < *value ? c->value : *value;
            return;
        }
    }
}

/* Goes through all counts of a program. Its ticks and calls become what is left of them. */
static void take_profile(struct scrape *s, const char *program, struct profile *p)
{
    struct counts *c = &p->counts;
    const struct scrape_key begin = mix_text((struct scrape_key){1, 2}, program);
    struct scrape_key *builds = ARENA_ARRAY(s->job->arena, p->build_count + 1, struct scrape_key);
    const struct scrape_key nowhere = mix(begin, UINT64_MAX, UINT64_MAX);
    p->ticks = p->calls = 0;
    for (uint32_t i = 0; i < p->build_count; i++) {
        builds[i] = mix_text(begin, p->builds[i]);
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        struct scrape_key key = mix(mix(mix(builds[h->build], h->low, h->high), h->bins, h->rate), 1, 0);
        key = mix(mix_text(key, h->dimension), (unsigned char)h->abbreviation, 0);
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            take_count(s, mix(key, c->bin_index[k], 1), &c->bin_ticks[k]);
            sum_saturate(&p->ticks, c->bin_ticks[k]);
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const struct scrape_key from = c->from_build[i] < p->build_count ? builds[c->from_build[i]] : nowhere,
                                to = c->to_build[i] < p->build_count ? builds[c->to_build[i]] : nowhere;
        take_count(s, mix(mix(mix(from, c->from[i], 2), to.a, to.b), c->to[i], 2), &c->calls[i]);
        sum_saturate(&p->calls, c->calls[i]);
    }
    for (uint32_t i = 0; i < c->tree_count; i++) {
        const struct counts_tree *t = &c->trees[i];
        struct scrape_key path[LIMIT_STACK_DEPTH + 1];
        path[0] = mix(mix_text(mix(begin, t->rate, 3), t->dimension), (unsigned char)t->abbreviation, 3);
        for (uint32_t k = t->first; k < t->first + t->used; k++) {
            const uint32_t depth = c->node_depth[k] < LIMIT_STACK_DEPTH ? c->node_depth[k] : LIMIT_STACK_DEPTH - 1,
                           build = c->node_build[k];
            const struct scrape_key at = build < p->build_count ? builds[build] : nowhere;
            path[depth + 1] = mix(mix(path[depth], at.a, at.b), c->node_address[k], c->node_kind[k]);
            take_count(s, path[depth + 1], &c->node_ticks[k]);
        }
    }
}

/* A profile without samples, with the types of others. */
static void write_nothing(struct scrape *s, int64_t begin, int64_t duration)
{
    static const char *const texts[] = {"", "samples", "count", "cpu", "nanoseconds", "calls"};
    ProtobufCBinaryData strings[6];
    Profd__Pprof__ValueType types[] = {PROFD__PPROF__VALUE_TYPE__INIT, PROFD__PPROF__VALUE_TYPE__INIT,
                                       PROFD__PPROF__VALUE_TYPE__INIT},
                            *list[] = {&types[0], &types[1], &types[2]};
    Profd__Pprof__Profile p = PROFD__PPROF__PROFILE__INIT;
    for (size_t i = 0; i < 6; i++) {
        strings[i] = pprof_bytes(texts[i], strlen(texts[i]));
    }
    types[0].type = 1;
    types[0].unit = types[2].unit = 2;
    types[1].type = 3;
    types[1].unit = 4;
    types[2].type = 5;
    p.n_sample_type = 3;
    p.sample_type = list;
    p.n_string_table = 6;
    p.string_table = strings;
    p.time_nanos = begin;
    p.duration_nanos = duration;
    pprof_write(&s->job->answer->body, &p);
}

/* Makes the answer, or the baseline, of all programs. */
static enum profd_status take_programs(struct scrape *s, bool first, int64_t begin, int64_t end, struct profd_error *e)
{
    struct subreport subreport;
    struct pprof_parts parts = {.next_mapping = 0};
    subreport_init(&subreport, s->job);
    for (uint32_t i = 0; i < s->programs.count; i++) {
        struct report_work w = programs_work(&s->programs, i);
        TRY(subreport_load(&subreport, &w, e));
        if (w.load.provenance.uploads == 0) {
            continue;
        }
        if (first || s->job->request->baseline) {
            take_profile(s, w.id.text, w.load.profile);
        }
        if (first || (w.load.profile->ticks == 0 && w.load.profile->calls == 0)) {
            continue;
        }
        if (end > 0) {
            w.load.provenance.first = begin;
            w.load.provenance.last = end;
        }
        TRY(subreport_append(&subreport, &w, &s->job->answer->body, &parts, e));
    }
    if (!first && !parts.any) {
        write_nothing(s, begin, end > begin ? end - begin : 0);
    }
    return PROFD_OK;
}

enum profd_status scrape_show(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    const bool stored = !params_find(job->params, "seconds");
    struct scrape s = {.job = job, .programs = {.job = job}};
    struct options *o = &s.programs.options;
    unsigned long long seconds = 0;
    FAIL_IF(!stored && (params_find(job->params, "since") || params_find(job->params, "until")), e, PROFD_BAD_QUERY,
            "seconds= cannot be combined with since= or until=: it waits for new counts, and they select stored ones");
    TRY(params_parse_number(job->params, "seconds", 1, QUERY_SCRAPE_MOST, &seconds, e));
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, o, e));
    o->show.limit = 0; /* all */
    job->answer->cache_control = "no-store";
    job->answer->content_type = "application/octet-stream";
    if (!stored) { /* rows of an hour stay in that hour, however they are merged meanwhile */
        o->since = (r->now / STEPS_HOUR - 1) * STEPS_HOUR;
    }
    TRY(programs_find(&s.programs, e));
    FAIL_IF(s.programs.left > 0, e, PROFD_LIMIT, "%u programs have matching uploads in the window, the limit is %u",
            s.programs.count + s.programs.left, s.programs.count);
    if (r->baseline) {
        s.baseline_count = (uint32_t)(r->baseline->size / sizeof *s.baseline);
        s.baseline = ARENA_ARRAY(job->arena, s.baseline_count + 1, struct scrape_count);
        memcpy(s.baseline, r->baseline->data ? r->baseline->data : "", r->baseline->size);
        for (uint32_t i = 0; i < s.baseline_count; i++) {
            table_add(&s.table, job->arena, baseline_hash, &s);
        }
    }
    const bool first = !stored && !r->baseline;
    job->answer->wait_ms = first ? (uint32_t)seconds * 1000 : 0;
    TRY(take_programs(&s, first, stored ? o->since : r->now, stored ? 0 : r->now + (int64_t)seconds * 1000000000, e));
    /* Readers of the format expect gzip, whatever they accept. */
    return first || query_pack(CODING_GZIP, false, true, &job->answer->body) ? PROFD_OK : profd_no_memory(e);
}
