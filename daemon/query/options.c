#include "query/options.h"

#include <inttypes.h>
#include <string.h>

#include "proto/label.h"
#include "proto/words.h"
#include "query/when.h"

#define FUNCTIONS_MAX 4000000000ull

/* The position of a value in a fixed list, which ends with NULL. */
const char *const options_of_report[] = {"since",  "until",    "match",     "label.*", "scope", "mode", "static",
                                         "focus",  "sort",     "limit",     "rows",    "names", "view", "uid",
                                         "format", "geometry", "dimension", "empty",   NULL};

static enum profd_status parse_word(const struct params *p, const char *name, const char *const *words, unsigned *out,
                                    struct profd_error *e)
{
    const char *text = params_find(p, name);
    struct buffer b;
    if (text == NULL) {
        return PROFD_OK;
    }
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return PROFD_OK;
        }
    }
    buffer_init(&b, 256);
    for (unsigned i = 0; words[i] != NULL; i++) {
        buffer_add_format(&b, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    enum profd_status status = profd_error_set(e, PROFD_BAD_QUERY, "%s=%s is none of: %.*s", name, text, (int)b.size,
                                               b.size > 0 ? b.data : "");
    buffer_done(&b);
    return status;
}

static enum profd_status parse_window(const struct params *p, int64_t now, struct options *o, struct profd_error *e)
{
    const char *since = params_find(p, "since"), *until = params_find(p, "until");
    enum profd_status status = since != NULL ? when_parse("since", since, now, &o->since, e) : PROFD_OK;
    if (status == PROFD_OK && until != NULL) {
        status = when_parse("until", until, now, &o->until, e);
    }
    if (status == PROFD_OK && since != NULL && until != NULL && o->since >= o->until) {
        status = profd_error_set(e, PROFD_BAD_QUERY, "since=%s is not before until=%s", since, until);
    }
    return status;
}

static enum profd_status parse_matchers(const struct params *p, struct arena *a, struct options *o,
                                        struct profd_error *e)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct param *item = &p->items[i];
        bool sugar = strncmp(item->name, "label.", 6) == 0;
        if (!sugar && strcmp(item->name, "match") != 0) {
            continue;
        }
        if (o->matcher_count == LIMIT_MATCHERS) {
            return profd_error_set(e, PROFD_BAD_QUERY, "more than %u label matchers", LIMIT_MATCHERS);
        }
        struct store_matcher *m = &o->matchers[o->matcher_count++];
        if (sugar) {
            if (label_judge_name(item->name + 6, strlen(item->name + 6)) != LABEL_GOOD) {
                return profd_error_set(e, PROFD_BAD_QUERY, "%s does not name a label", item->name);
            }
            *m = (struct store_matcher){.name = item->name + 6, .value = item->value, .match = STORE_MATCH_EQUAL};
            continue;
        }
        enum profd_status status = options_parse_match(item->value, a, m, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    return PROFD_OK;
}

static enum profd_status parse_shape(const struct params *p, bool http, struct options *o, struct profd_error *e)
{
    static const char *const SCOPES[] = {"program", "build", "everywhere", NULL};
    static const char *const SORTS[] = {"index", "self", "total", "calls", NULL};
    static const char *const VIEWS[] = {"both", "flat", "graph", NULL};
    static const char *const NAMES[] = {"full", "short", NULL};
    static const char *const EMPTY[] = {"report", "error", NULL};
    unsigned empty = 0;
    unsigned scope = UINT32_MAX, sort = RENDER_SORT_INDEX, view = RENDER_VIEW_BOTH, names = 0;
    unsigned long long number = http ? LIMIT_HTTP_ROWS : 0, rows = 0, flag = 0;
    enum profd_status status = parse_word(p, "scope", SCOPES, &scope, e);
    if (status == PROFD_OK) {
        status = parse_word(p, "sort", SORTS, &sort, e);
    }
    if (status == PROFD_OK) {
        status = parse_word(p, "view", VIEWS, &view, e);
    }
    if (status == PROFD_OK) {
        status = parse_word(p, "names", NAMES, &names, e);
    }
    if (status == PROFD_OK) {
        status = params_parse_number(p, "limit", 0, FUNCTIONS_MAX, &number, e);
    }
    if (status == PROFD_OK) {
        rows = number != 0 ? LIMIT_REPORT_ROWS : 0;
        status = params_parse_number(p, "rows", 0, FUNCTIONS_MAX, &rows, e);
    }
    if (status == PROFD_OK) {
        status = params_parse_number(p, "static", 0, 1, &flag, e);
    }
    if (status == PROFD_OK) {
        status = parse_word(p, "empty", EMPTY, &empty, e);
    }
    o->empty_is_error = empty == 1;
    o->scope = scope == UINT32_MAX ? OPTIONS_SCOPE_DEFAULT : (enum options_scope)(scope + 1);
    /* The flat profile has an order of its own, by which limit cuts. */
    const bool own_order = view == RENDER_VIEW_FLAT && params_find(p, "sort") == NULL;
    o->show.sort = own_order ? RENDER_SORT_SELF : (enum render_sort)sort;
    o->show.view = (enum render_view)view;
    o->show.limit = (uint32_t)number;
    o->show.rows = (uint32_t)rows;
    o->static_arcs = flag == 1;
    o->show.short_names = names == 1;
    o->show.focus = params_find(p, "focus");
    o->dimension = params_find(p, "dimension");
    if (status == PROFD_OK && o->show.focus != NULL && o->show.focus[0] == '\0') {
        status = profd_error_set(e, PROFD_BAD_QUERY, "focus= names no function");
    }
    if (status == PROFD_OK && o->dimension != NULL && o->dimension[0] == '\0') {
        status = profd_error_set(e, PROFD_BAD_QUERY, "dimension= is empty; use seconds, for example");
    }
    if (status == PROFD_OK && o->dimension != NULL && words_are(o->dimension)) {
        status = profd_error_set(e, PROFD_BAD_QUERY, "dimension=%s: not a dimension of samples; every report shows it",
                                 o->dimension);
    }
    return status;
}

/* Parameters that the other mode has no use for are refused: silence would look like an answer. */
static enum profd_status check_mode(const struct params *p, const struct options *o, struct profd_error *e)
{
    static const char *const TRUE_ONLY[] = {"static", "focus", "sort", "limit", "rows", "names", "dimension"};
    for (size_t i = 0; !o->format->wants_report && i < sizeof TRUE_ONLY / sizeof *TRUE_ONLY; i++) {
        if (params_find(p, TRUE_ONLY[i]) != NULL) {
            return profd_error_set(e, PROFD_BAD_QUERY, "%s= has no meaning in compat mode (format=%s)", TRUE_ONLY[i],
                                   o->format->name);
        }
    }
    if (!o->format->lists_rows && params_find(p, "rows") != NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "rows= has no meaning for format=%s: it is for json and text",
                               o->format->name);
    }
    if (o->format->wants_report && o->geometry != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "geometry= has no meaning in true mode (format=%s)",
                               o->format->name);
    }
    return PROFD_OK;
}

static enum profd_status parse_format(const struct params *p, bool usual, struct options *o, struct profd_error *e)
{
    static const char *const MODES[] = {"true", "compat", NULL};
    const char *format = params_find(p, "format"), *mode = params_find(p, "mode");
    unsigned compat = usual;
    unsigned long long geometry = 0;
    enum profd_status status = parse_word(p, "mode", MODES, &compat, e);
    if (status == PROFD_OK) {
        status = params_parse_number(p, "geometry", 1, LIMIT_HISTOGRAMS, &geometry, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    o->geometry = (uint32_t)geometry;
    o->format = render_find(format != NULL ? format : compat ? "gprof" : "json");
    if (o->format == NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "format=%s is none of: %s", format, render_names());
    }
    if (mode != NULL && o->format->wants_report == (compat == 1)) {
        return profd_error_set(e, PROFD_BAD_QUERY, "mode=%s has no format=%s: %s", mode, o->format->name,
                               compat ? "compat mode is format=gprof" : "format=gprof is compat mode");
    }
    if (o->format->functions != 0 && params_find(p, "limit") == NULL) {
        o->show.limit = o->format->functions;
    }
    return check_mode(p, o, e);
}

static enum profd_status parse_uid(const struct params *p, struct options *o, struct profd_error *e)
{
    unsigned long long uid = 0;
    enum profd_status status = params_parse_number(p, "uid", 0, UINT32_MAX, &uid, e);
    if (status != PROFD_OK || params_find(p, "uid") == NULL) {
        return status;
    }
    if (!o->visible.all && o->visible.uid != uid) {
        return profd_error_set(e, PROFD_FORBIDDEN, "uid=%llu: you may read only the uploads of uid %" PRIu32, uid,
                               o->visible.uid);
    }
    o->visible = (struct store_scope){false, (uint32_t)uid};
    return PROFD_OK;
}

enum profd_status options_parse(const struct params *p, const struct store_scope *scope, bool http, int64_t now,
                                bool compat, struct arena *a, struct options *out, struct profd_error *e)
{
    struct options o = {.visible = *scope};
    enum profd_status status = parse_window(p, now, &o, e);
    if (status == PROFD_OK) {
        status = parse_matchers(p, a, &o, e);
    }
    if (status == PROFD_OK) {
        status = parse_shape(p, http, &o, e);
    }
    if (status == PROFD_OK) {
        status = parse_format(p, compat, &o, e);
    }
    if (status == PROFD_OK) {
        status = parse_uid(p, &o, e);
    }
    if (status == PROFD_OK && o.matcher_count > 0) {
        o.match = options_format_matchers(o.matchers, o.matcher_count, a);
        status = o.match != NULL ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a query");
    }
    if (status == PROFD_OK) {
        *out = o;
    }
    return status;
}
