/* Runs a query: params → route → handler → answer, or a problem document. */
#include <stdio.h>
#include <string.h>

#include "proto/hex.h"
#include "query/query_internal.h"

static const char *const NONE[] = {NULL};
static const char *const PAGE[] = {"limit", "cursor", NULL};
static const char *const LABELS[] = {"build_id", "since", "until", "match", "label.*", "uid", "limit", "cursor", NULL};
static const char *const COUNTS[] = {"since", "until", "match", "label.*", "scope", "uid", "geometry", "empty", NULL};
static const char *const FUNCTION[] = {"since",    "until",     "match", "label.*", "scope", "static", "uid",
                                       "build_id", "dimension", "time",  "limit",   "names", NULL};
static const char *const SERIES[] = {"step",   "since", "until",    "match",     "label.*", "scope",
                                     "static", "uid",   "build_id", "dimension", "time",    NULL};
static const char *const JOINED[] = {"name",  "since",  "until",     "match", "label.*", "static", "sort", "uid",
                                     "limit", "cursor", "dimension", "names", "watch",   "step",   NULL};
static const char *const VERSIONS[] = {"program", "match", "label.*", "uid", "limit", "cursor", NULL};
static const char *const SEARCH[] = {"name",   "since", "until", "match",  "label.*",   "scope",
                                     "static", "uid",   "limit", "cursor", "dimension", NULL};
static const char *const DIFF[] = {"a",       "b",          "since",   "until",   "match",     "label.*",   "a.since",
                                   "a.until", "a.match",    "b.since", "b.until", "b.match",   "a.label.*", "b.label.*",
                                   "scope",   "uid",        "metric",  "fdr",     "dimension", "watch",     "fail_on",
                                   "limit",   "confidence", "paired",  NULL};
static const char *const ADDRESSES[] = {"since", "until",    "match",     "label.*", "scope",
                                        "uid",   "build_id", "dimension", NULL};
static const char *const CALLERS[] = {"since",    "until",     "match",  "label.*", "scope", "uid",
                                      "build_id", "dimension", "method", "limit",   NULL};
static const char *const CYCLES[] = {"since", "until", "match", "label.*", "scope", "dimension", "uid", "limit", NULL};
static const char *const NEVER[] = {"since", "until", "match", "label.*", "scope", "uid", "limit", NULL};
static const char *const LOADS[] = {"by",  "step",  "since",  "until",     "match", "label.*",
                                    "uid", "limit", "cursor", "dimension", NULL};
static const char *const GROUPS[] = {"by",    "step", "since", "until",  "match",     "label.*",
                                     "scope", "uid",  "limit", "cursor", "dimension", NULL};

static const char *const CONNECT[] = {"body", NULL};
static const char *const RENDER[] = {"query",     "from",    "until",       "format", "maxNodes",
                                     "max-nodes", "groupBy", "aggregation", NULL};
static const char *const RENDER_DIFF[] = {"leftQuery",  "leftFrom", "leftUntil", "rightQuery", "rightFrom",
                                          "rightUntil", "maxNodes", "max-nodes", NULL};
static const char *const LABEL_VALUES[] = {"label", NULL};
static const char *const SCRAPE[] = {"seconds", "since", "until", "match", "label.*", "uid", NULL};
static const char *const OUTGOING[] = {"id", "host", NULL};
static const char *const PROCESSES[] = {"pid", "uid", "match", "label.*", "limit", "cursor", NULL};

/* Every path of the interface stands here once: dispatch, metrics and the test of openapi.json read this table. */
static const struct route ROUTES[] = {
    {"/openapi.json", QUERY_STORE, QUERY_OTHER, openapi_show, NONE, false},
    {"/api/v1/builds", QUERY_STORE, QUERY_BUILDS, builds_list, PAGE, false},
    {"/api/v1/builds/{}", QUERY_STORE, QUERY_BUILD, builds_show, NONE, false},
    {"/api/v1/builds/{}/report", QUERY_STORE, QUERY_REPORT, report_show, options_of_report, true},
    {"/api/v1/builds/{}/counts", QUERY_STORE, QUERY_COUNTS, counts_show, COUNTS, true},
    {"/api/v1/builds/{}/groups", QUERY_STORE, QUERY_GROUPS, groups_show, GROUPS, true},
    {"/api/v1/builds/{}/cycles", QUERY_STORE, QUERY_REPORT, cycles_list, CYCLES, true},
    {"/api/v1/builds/{}/never-called", QUERY_STORE, QUERY_FUNCTIONS, never_called_show, NEVER, true},
    {"/api/v1/builds/{}/functions", QUERY_STORE, QUERY_FUNCTIONS, function_search, SEARCH, true},
    {"/api/v1/builds/{}/functions/{}", QUERY_STORE, QUERY_FUNCTIONS, function_show, FUNCTION, true},
    {"/api/v1/builds/{}/functions/{}/addresses", QUERY_STORE, QUERY_FUNCTIONS, addresses_show, ADDRESSES, true},
    {"/api/v1/builds/{}/functions/{}/callers", QUERY_STORE, QUERY_FUNCTIONS, callers_show, CALLERS, true},
    {"/api/v1/builds/{}/functions/{}/series", QUERY_STORE, QUERY_FUNCTIONS, series_show, SERIES, true},
    {"/api/v1/diff", QUERY_STORE, QUERY_REPORT, diff_show, DIFF, true},
    {"/api/v1/load", QUERY_STORE, QUERY_GROUPS, loads_list, LOADS, true},
    {"/api/v1/functions", QUERY_STORE, QUERY_FUNCTIONS, joined_list, JOINED, true},
    {"/api/v1/versions", QUERY_STORE, QUERY_LABELS, versions_list, VERSIONS, true},
    {"/api/v1/labels", QUERY_STORE, QUERY_LABELS, labels_list, LABELS, false},
    {"/api/v1/labels/{}/values", QUERY_STORE, QUERY_LABELS, labels_list_values, LABELS, false},
    {"/api/v1/processes", QUERY_PROCESSES, QUERY_LIVE, processes_list, PROCESSES, false},
    {"/api/v1/hosts", QUERY_STORE, QUERY_OTHER, hosts_list, PAGE, false},
    {"/pyroscope/render", QUERY_STORE, QUERY_REPORT, flamebearer_show, RENDER, true},
    {"/pyroscope/render-diff", QUERY_STORE, QUERY_REPORT, flamebearer_compare, RENDER_DIFF, true},
    {"/pyroscope/label-values", QUERY_STORE, QUERY_LABELS, label_values_show, LABEL_VALUES, true},
    {"/api/v1/status", QUERY_STATUS, QUERY_OTHER, NULL, NONE, false},
    {"/debug/pprof/profile", QUERY_STORE, QUERY_REPORT, scrape_show, SCRAPE, false},
    {"/metrics", QUERY_METRICS, QUERY_OTHER, NULL, NONE, false},
    {"/healthz", QUERY_HEALTH, QUERY_OTHER, NULL, NONE, false},
    {"/readyz", QUERY_READY, QUERY_OTHER, NULL, NONE, false},
};

/* Services of Pyroscope's query API: the body is the question. */
static const struct route CONNECT_ROUTE = {NULL, QUERY_STORE, QUERY_REPORT, connect_show, CONNECT, true};
static const struct {
    const char *pattern, *methods;
} QUESTIONS[] = {
    {"/querier.v1.QuerierService/{}", "POST"},           {"/settings.v1.SettingsService/{}", "POST"},
    {"/settings.v1.RecordingRulesService/{}", "POST"},   {"/vcs.v1.VCSService/{}", "POST"},
    {"/capabilities.v1.FeatureFlagsService/{}", "POST"}, {"/adhocprofiles.v1.AdHocProfileService/{}", "POST"}};

/* What only the relay asks for, on the Unix socket. */
static const struct route OUTGOING_ROUTE = {QUERY_OUTGOING, QUERY_STORE, QUERY_OTHER, outgoing_show, OUTGOING, false};

/* And those that take a body. They are no queries. */
static const struct {
    const char *pattern, *methods;
} BODIES[] = {{"/api/v1/builds/{}/symbols", "PUT"},
              {"/api/v1/uploads", "POST"},
              {"/ingest", "POST"},
              {"/push.v1.PusherService/Push", "POST"},
              {"/v1development/profiles", "POST"}};

const char *query_kind_name(enum query_kind kind)
{
    static const char *const names[QUERY_KINDS] = {"builds",    "build",  "report", "counts", "groups",
                                                   "functions", "labels", "live",   "other"};

    return names[kind];
}

/* The path of a target, not decoded, against a pattern. */
static bool route_has_path(const char *pattern, const char *path, size_t n)
{
    const char *end = path + n;

    while (*pattern && path < end) {
        if (!strncmp(pattern, "{}", 2)) {
            const char *stop = memchr(path, '/', (size_t)(end - path));

            stop = stop ? stop : end;
            if (stop == path) {
                return false;
            }
            pattern += 2;
            path = stop;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && path == end;
}

bool query_reads_body(const char *path, size_t n)
{
    for (size_t i = 0; i < sizeof QUESTIONS / sizeof *QUESTIONS; i++) {
        if (route_has_path(QUESTIONS[i].pattern, path, n)) {
            return true;
        }
    }
    return false;
}

static const struct route *route_of(const char *target)
{
    const size_t n = strcspn(target, "?");

    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++) {
        if (route_has_path(ROUTES[i].pattern, target, n)) {
            return &ROUTES[i];
        }
    }
    return query_reads_body(target, n)                         ? &CONNECT_ROUTE
           : route_has_path(OUTGOING_ROUTE.pattern, target, n) ? &OUTGOING_ROUTE
                                                               : NULL;
}

enum query_source query_find_source(const char *target, enum query_kind *kind)
{
    const struct route *r = route_of(target);

    *kind = r ? r->kind : QUERY_OTHER;
    return r ? r->source : QUERY_NONE;
}

void query_name_body(const char *target, const char *type, const uint8_t *body, size_t size,
                     char out[LIMIT_QUERY_BYTES])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, strlen(type) + 1, (const uint8_t *)type);
    sha256_update(&sha, size, body);
    sha256_digest(&sha, sizeof digest, digest);
    const int n = snprintf(out, LIMIT_QUERY_BYTES, "%.*s?body=", (int)strcspn(target, "?"), target);
    hex_put(out + n, digest, sizeof digest);
}

const char *query_find_methods(const char *path, size_t n)
{
    if (query_reads_body(path, n)) {
        return "POST";
    }
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        if (route_has_path(BODIES[i].pattern, path, n)) {
            return BODIES[i].methods;
        }
    }
    return "GET, HEAD";
}

enum profd_status route_find(const char *target, const struct route **out, struct profd_error *e)
{
    *out = route_of(target);
    return *out && (*out)->handler ? PROFD_OK
                                   : profd_error_set(e, PROFD_NOT_FOUND, "not found: %.*s; see /openapi.json",
                                                     (int)strcspn(target, "?"), target);
}

void query_code_body(enum coding wanted, bool must, struct buffer *body, enum coding *coding)
{
    if ((must || body->size >= LIMIT_CODING_LEAST) && query_pack(wanted, false, must, body)) {
        *coding = wanted;
    }
}

/* Answers, or returns a status with a sentence. What the arena cannot allocate ends here. */
static enum profd_status handle(struct job *job, const struct params *params, struct profd_error *e)
{
    ARENA_BOUNDARY(job->arena, profd_error_set(e, PROFD_NO_MEMORY, "no memory for a query"));
    const struct route *route;
    bool of_now = false, partial;
    enum profd_status status = route_find(job->request->target, &route, e);
    /* The question means something else a moment later if one of its times is relative. */
    for (size_t i = 0; i < params->count; i++) {
        const struct param *item = &params->items[i];
        of_now |= when_is_relative(item->value);
    }
    if (!of_now) {
        job->answers = job->request->answers;
    }
    TRY(status);
    const bool takes_partial = route->report || route->handler == builds_list;
    TRY(params_check(params, route->allowed, takes_partial ? "partial" : NULL, e));
    TRY(params_parse_flag(params, "partial", &partial, e)); /* one database has all data: an answer is whole or fails */
    job->answer->cache_control = route->report ? "private, no-cache" : "no-store";
    status = route->handler(job, e);
    status = status == JOB_ANSWERED ? PROFD_OK : status;
    arena_continue(job->arena);
    FAIL_IF(!status && job->answer->body.failed, e, PROFD_LIMIT,
            "the answer is larger than %u bytes, or than memory; use limit=", LIMIT_REPORT_BYTES);
    return status;
}

void query_run(struct store *s, const struct query_request *request, struct query_answer *answer)
{
    struct params params;
    struct profd_error error = {""};
    *answer =
        (struct query_answer){.http_status = 200, .content_type = "application/json", .cache_control = "no-store"};
    buffer_init(&answer->body, LIMIT_REPORT_BYTES);
    struct job job = {.store = s, .request = request, .params = &params, .answer = answer};
    job.arena = arena_new(request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN);
    enum profd_status status = !job.arena ? profd_error_set(&error, PROFD_NO_MEMORY, "no memory for a query")
                                          : params_parse(request->target, &params, &error);
    if (!status) {
        status = handle(&job, &params, &error);
    }
    if (status == PROFD_NO_MEMORY && job.arena && arena_hit_limit(job.arena)) {
        status = profd_error_set(
            &error, PROFD_LIMIT,
            "the query exceeds the memory limit of %llu MiB; narrow it with since=, until= or match=",
            (unsigned long long)((request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN) >> 20));
    }
    arena_free(job.arena);
    if (status) {
        answer->status = status;
        profd_error_set(&answer->why, status, "%s", error.sentence);
        answer->http_status = profd_status_http(status);
        answer->content_type = request->body ? "application/json" : "application/problem+json";
        answer->cache_control = "no-store";
        answer->etag[0] = answer->exact[0] = '\0';
        buffer_done(&answer->body);
        buffer_init(&answer->body, LIMIT_REPORT_BYTES);
        if (request->body) {
            answer->http_status = render_connect_problem(status, error.sentence, &answer->body);
        } else {
            render_problem(status, answer->http_status, error.sentence, &answer->body);
        }
        return;
    }

    /* Codes what was made, gives it the tag of that coding, and keeps it. */
    answer->negotiated = coded_suits(answer->content_type);
    if (job.kept) {
        return;
    }
    if (answer->http_status == 200 && (answer->negotiated || request->coded_only)) {
        query_code_body(request->coding, request->coded_only, &answer->body, &answer->coding);
    }
    if (answer->http_status == 200 && answer->coding != CODING_IDENTITY) {
        query_code_etag(answer->etag, answer->coding, answer->etag);
    }
    if (job.tag[0] != '\0' && job.answers) {
        answers_put(job.answers, request, job.tag, answer);
    }
}

void query_answer_done(struct query_answer *answer)
{
    buffer_done(&answer->body);
}
