#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/diff.h"
#include "core/report.h"
#include "query/query_internal.h"

/* /api/v1/diff: two builds, versions, times or label sets compared, with intervals. */

#define PLANNED 0.02                               /* the increase that is planned for where no threshold is given */
#define LONGEST (INT64_C(30) * 86400 * 1000000000) /* for which to go on collecting is a plan */

struct comparison {
    struct job *job;
    struct job sides[2]; /* with parameters of their own */
    struct report_work works[2];
    struct diff_side made[2];
    struct diff_request request;
    unsigned long long limit;
};

static const char *const NAMES[] = {"a", "b"};

/* Finds the build of a side, by the parameters of both sides and its own without their prefix. Its own window replaces
 * that of both. */
static enum profd_status find_side(struct comparison *q, uint32_t s, struct profd_error *e)
{
    static const char *const SHARED[] = {"since", "until", "match", "scope", "uid", "dimension"};
    const struct params *all = q->job->params;
    const char *build = params_find(all, NAMES[s]);
    const char prefix[] = {NAMES[s][0], '.', '\0'};
    struct params *own = ARENA_NEW(q->job->arena, struct params);
    FAIL_IF(!build || build[0] == '\0', e, PROFD_BAD_QUERY,
            "%s= is missing: a build-id, or its beginning; a= and b= are compared", NAMES[s]);
    for (size_t i = 0; i < all->count; i++) {
        const struct param *item = &all->items[i];
        bool shared = strncmp(item->name, "label.", 6) == 0;
        for (size_t k = 0; k < sizeof SHARED / sizeof *SHARED; k++) {
            shared = shared || strcmp(item->name, SHARED[k]) == 0;
        }
        if (strncmp(item->name, prefix, 2) == 0) {
            own->items[own->count++] = (struct param){item->name + 2, item->value};
        } else if (shared) {
            char name[16];
            const bool window = strcmp(item->name, "since") == 0 || strcmp(item->name, "until") == 0;
            (void)snprintf(name, sizeof name, "%s%s", prefix, window ? item->name : "");
            if (!window || params_find(all, name) == NULL) {
                own->items[own->count++] = *item;
            }
        }
    }
    q->sides[s] = *q->job;
    q->sides[s].params = own;
    enum profd_status status = work_find(&q->sides[s], own, build, false, &q->works[s], e);
    q->works[s].options.empty_is_error = true;
    return !status ? status : profd_error_wrap(e, status, "%s=%.80s", NAMES[s], build);
}

/* A metric's name at the beginning of a text that goes on with one of the characters, or ends. */
static bool parse_metric(const char *text, const char *stops, enum diff_metric *out)
{
    size_t n = strcspn(text, stops);
    for (unsigned i = 0; i < DIFF_METRIC_COUNT; i++) {
        const char *name = diff_metric_name((enum diff_metric)i);
        if (strlen(name) == n && strncmp(text, name, n) == 0) {
            *out = (enum diff_metric)i;
            return true;
        }
    }
    return false;
}

/* A number within (0, most), which ends at the character stop. */
static bool parse_real(const char *text, char stop, double most, double *out)
{
    char *end;
    double value = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : 0;
    if (!(value > 0) || !(value < most) || *end != stop || (stop != '\0' && end[1] != '\0')) {
        return false;
    }
    *out = value;
    return true;
}

/* The tag covers the states of both builds. */
static enum profd_status set_tag(struct comparison *q, struct profd_error *e)
{
    struct store_epoch epochs[2];
    struct {
        struct buildid ids[2];
        int64_t numbers[2][5];
        uint64_t epoch;
    } resolved;
    memset(&resolved, 0, sizeof resolved);
    for (uint32_t s = 0; s < 2; s++) {
        const struct report_work *w = &q->works[s];
        const int64_t numbers[] = {(int64_t)w->scope, w->options.since, w->options.until, w->used_since, w->used_until};
        TRY(store_epoch(q->job->store, &q->job->request->scope, w->id.text, &epochs[s], e));
        (void)snprintf(resolved.ids[s].text, sizeof resolved.ids[s].text, "%s", w->id.text);
        memcpy(resolved.numbers[s], numbers, sizeof numbers);
    }
    resolved.epoch = epochs[1].number;
    return job_set_etag(q->job, &resolved, sizeof resolved, &epochs[0]);
}

struct side_version {
    struct job *job;
    const char *value;
    unsigned count;
};

static bool take_version(void *context, const struct label_row *row)
{
    struct side_version *v = context;
    ARENA_BOUNDARY(v->job->arena, false);
    if (strcmp(row->name, "version") == 0) {
        v->value = job_copy(v->job, row->value);
        v->count++;
    }
    return true;
}

/* The version of a side: that of its only matcher, or the only value of that label among the uploads of its build;
 * NULL: it has none or several. */
static enum profd_status find_version(struct comparison *q, uint32_t s, const char **out, struct profd_error *e)
{
    const struct options *o = &q->works[s].options;
    const struct store_matcher *m = o->matchers;
    struct side_version v = {.job = q->job};
    if (o->matcher_count == 1 && strcmp(m->name, "version") == 0 && m->match == STORE_MATCH_EQUAL && m->value[0]) {
        *out = m->value;
        return PROFD_OK;
    }
    TRY(store_each_label(q->job->store, &q->job->request->scope, q->works[s].id.text, take_version, &v, e));
    arena_continue(q->job->arena);
    *out = v.count == 1 ? v.value : NULL;
    return PROFD_OK;
}

/* What only one side needs lies in scratch, and the other side has the same memory again: most of the time of a
 * comparison can go into clearing new pages. */
static enum profd_status make_side(struct comparison *q, uint32_t s, struct arena *scratch, struct profd_error *e)
{
    struct report_work *w = &q->works[s];
    struct report_request report = {.dimension = w->options.dimension};
    struct job *job = &q->sides[s], of_scratch = *job;
    arena_reset(scratch);
    of_scratch.arena = w->shares = scratch;
    TRY(work_load(job, w, false, e));
    TRY(work_find_objects(job, w, e));
    TRY(work_load_ever(&of_scratch, w, &report.ever, e));
    const struct diff_side_request side = {&report, &w->load.provenance.groups};
    report.profile = w->load.profile;
    report.objects = w->objects;
    report.names = w->load.names;
    report.outside = w->scope == OPTIONS_SCOPE_PROGRAM;
    q->request.sides[s] = &q->made[s];
    q->request.programs[s] = w->id.text;
    return diff_side_make(job->arena, scratch, &side, &q->made[s], e);
}

/* Makes both sides, and what differs. */
static enum profd_status compare(struct comparison *q, struct arena *scratch, struct profd_error *e)
{
    struct diff d;
    for (uint32_t s = 0; s < 2; s++) {
        const enum profd_status status = make_side(q, s, scratch, e);
        if (status) {
            return profd_error_wrap(e, status, "%s", NAMES[s]);
        }
    }
    FAIL_IF(strcmp(q->made[0].dimension, q->made[1].dimension) != 0, e, PROFD_BAD_QUERY,
            "a has samples of dimension %s and b of %s, which cannot be compared; choose with dimension=",
            q->made[0].dimension, q->made[1].dimension);
    const struct provenance *p = &q->works[1].load.provenance;
    const double span = (double)(p->last - p->first), most = 1 + (double)LONGEST / span;
    q->request.most_data = span > 0 && most < DIFF_DATA_MOST ? most : DIFF_DATA_MOST;

    /* Calls are compared if both sides counted them in the same way: all, or with functions left out in every upload.
     */
    const uint32_t left = INEXACT_LEFT_OUT;
    uint32_t all = left;
    for (uint32_t s = 0; s < 2; s++) {
        all &= q->works[s].load.provenance.inexact_all;
    }
    for (uint32_t s = 0; s < 2; s++) {
        const uint32_t inexact = q->works[s].load.provenance.inexact;
        q->request.sampled[s] = ((inexact & left) != 0 && all == 0) || (inexact & INEXACT_SAMPLED) != 0;
    }
    arena_reset(scratch);
    diff_make(scratch, &q->request, &d);
    struct render_diff out = {.diff = &d,
                              .request = &q->request,
                              .limit = q->limit == 0 ? SIZE_MAX : (size_t)q->limit,
                              .sides = {work_make_input(&q->works[0]), work_make_input(&q->works[1])},
                              .arena = scratch};
    for (uint32_t s = 0; s < 2; s++) {
        TRY(find_version(q, s, &out.versions[s], e));
    }
    render_diff(&out, &q->job->answer->body);
    return PROFD_OK;
}

enum profd_status diff_show(struct job *job, struct profd_error *e)
{
    struct comparison *q = ARENA_NEW(job->arena, struct comparison);
    struct diff_request *r = &q->request;
    const struct params *p = job->params;
    const char *fdr = params_find(p, "fdr"), *confidence = params_find(p, "confidence");
    const char *metrics = params_find(p, "metric"), *fail_on = params_find(p, "fail_on");
    q->job = job;
    r->fdr = 0.05;
    q->limit = job->request->http ? LIMIT_HTTP_ROWS : 0;
    TRY(params_parse_number(p, "limit", 0, UINT32_MAX, &q->limit, e));
    TRY(params_parse_flag(p, "paired", &r->paired, e));
    FAIL_IF(fdr && !parse_real(fdr, '\0', 1, &r->fdr), e, PROFD_BAD_QUERY, "fdr=%s is not a number between 0 and 1",
            fdr);
    FAIL_IF(confidence && !parse_real(confidence, '\0', 1, &r->confidence), e, PROFD_BAD_QUERY,
            "confidence=%s is not a number between 0 and 1", confidence);
    for (unsigned i = 0; !metrics && i < DIFF_METRIC_COUNT; i++) {
        r->metrics[i] = true;
    }
    for (const char *at = metrics; at;) {
        enum diff_metric metric;
        FAIL_IF(!parse_metric(at, ",", &metric), e, PROFD_BAD_QUERY,
                "metric=%s: \"%.*s\" is none of: time-per-process, all-calls-per-process, self, total, time-per-call, "
                "calls-per-process, calls-per-parent",
                metrics, (int)strcspn(at, ","), at);
        r->metrics[metric] = true;
        at = strchr(at, ',');
        at += at != NULL;
    }
    r->threshold = PLANNED;
    if (fail_on) {
        const char *than = strchr(fail_on, '>');
        double percent;
        FAIL_IF(!than || !parse_metric(fail_on, ">", &r->judge_metric) || !parse_real(than + 1, '%', 1e6, &percent), e,
                PROFD_BAD_QUERY,
                "fail_on=%s: not a metric, '>' and a percentage above 0 and below 1000000, such as self>2%%", fail_on);
        r->judge = true;
        r->metrics[r->judge_metric] = true;
        r->threshold = percent / 100;
    }
    const char **watch = ARENA_ARRAY(job->arena, p->count + 1, const char *);
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].name, "watch") != 0) {
            continue;
        }
        FAIL_IF(p->items[i].value[0] == '\0', e, PROFD_BAD_QUERY, "watch= must name a function");
        watch[r->watch_count++] = p->items[i].value;
    }
    r->watch = watch;

    TRY(find_side(q, 0, e));
    TRY(find_side(q, 1, e));
    TRY(set_tag(q, e));
    r->paired = r->paired || strcmp(q->works[0].id.text, q->works[1].id.text) == 0;
    return compare(q, arena_new_child(job->arena, LIMIT_QUERY_MEMORY_OWN), e);
}
