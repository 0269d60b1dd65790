#include "query/route.h"

#include <stddef.h>
#include <string.h>

#include "query/handlers.h"

static const char *const NONE[] = {NULL};
static const char *const PAGE[] = {"limit", "cursor", NULL};
static const char *const LABELS[] = {"build_id", "since", "until", "match", "label.*", "uid", NULL};
static const char *const VALUES[] = {"build_id", "since", "until", "match", "label.*", "uid", "limit", "cursor", NULL};
static const char *const REPORT[] = {"since", "until", "match", "label.*", "scope",  "mode",     "static",    "focus",
                                     "sort",  "limit", "view",  "uid",     "format", "geometry", "dimension", NULL};
static const char *const COUNTS[] = {"since", "until", "match", "label.*", "scope", "uid", "geometry", NULL};
static const char *const FUNCTION[] = {"since",  "until", "match",    "label.*",   "scope",
                                       "static", "uid",   "build_id", "dimension", NULL};
static const char *const SERIES[] = {"step",   "since", "until",    "match",     "label.*", "scope",
                                     "static", "uid",   "build_id", "dimension", NULL};
static const char *const JOINED[] = {"name", "since", "until", "match",  "label.*",   "static",
                                     "sort", "uid",   "limit", "cursor", "dimension", NULL};
static const char *const SEARCH[] = {"name",   "since", "until", "match",  "label.*",   "scope",
                                     "static", "uid",   "limit", "cursor", "dimension", NULL};
static const char *const GROUPS[] = {"by",    "step", "since", "until",  "match",     "label.*",
                                     "scope", "uid",  "limit", "cursor", "dimension", NULL};

static const struct route ROUTES[] = {
    {"/openapi.json", openapi_show, NONE, false},
    {"/api/v1/builds", builds_list, PAGE, false},
    {"/api/v1/builds/{}", builds_show, NONE, false},
    {"/api/v1/builds/{}/report", report_show, REPORT, true},
    {"/api/v1/builds/{}/counts", counts_show, COUNTS, true},
    {"/api/v1/builds/{}/groups", groups_show, GROUPS, true},
    {"/api/v1/builds/{}/functions", function_search, SEARCH, true},
    {"/api/v1/builds/{}/functions/{}", function_show, FUNCTION, true},
    {"/api/v1/builds/{}/functions/{}/series", series_show, SERIES, true},
    {"/api/v1/functions", joined_list, JOINED, true},
    {"/api/v1/labels", labels_list, LABELS, false},
    {"/api/v1/labels/{}/values", labels_list_values, VALUES, false},
};

static bool route_match(const char *pattern, const struct params *p)
{
    for (size_t i = 0; i < p->segment_count; i++) {
        if (*pattern++ != '/') {
            return false;
        }
        size_t n = strcspn(pattern, "/");
        bool any = n == 2 && strncmp(pattern, "{}", 2) == 0;
        if (any ? p->segments[i][0] == '\0' : strlen(p->segments[i]) != n || strncmp(pattern, p->segments[i], n) != 0) {
            return false;
        }
        pattern += n;
    }
    return *pattern == '\0';
}

enum profd_status route_find(const struct params *p, const struct route **out, struct profd_error *e)
{
    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++) {
        if (route_match(ROUTES[i].pattern, p)) {
            *out = &ROUTES[i];
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND, "there is nothing at /%s%s%s", p->segments[0],
                           p->segment_count > 1 ? "/" : "", p->segment_count > 1 ? p->segments[1] : "");
}
