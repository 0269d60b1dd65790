#include "query/options.h"

#include <inttypes.h>
#include <string.h>

#include "proto/words.h"
#include "query/when.h"

#define FUNCTIONS_MAX 4000000000ull

/* A word of a fixed list; its place in it. The list ends with NULL. */
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
            if (!options_name_valid(item->name + 6)) {
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
    unsigned scope = UINT32_MAX, sort = RENDER_SORT_INDEX, view = RENDER_VIEW_BOTH;
    unsigned long long number = http ? LIMIT_HTTP_ROWS : 0, flag = 0;
    enum profd_status status = parse_word(p, "scope", SCOPES, &scope, e);
    if (status == PROFD_OK) {
        status = parse_word(p, "sort", SORTS, &sort, e);
    }
    if (status == PROFD_OK) {
        status = parse_word(p, "view", VIEWS, &view, e);
    }
    if (status == PROFD_OK) {
        status = params_parse_number(p, "limit", 0, FUNCTIONS_MAX, &number, e);
    }
    if (status == PROFD_OK) {
        status = params_parse_number(p, "static", 0, 1, &flag, e);
    }
    o->scope = scope == UINT32_MAX ? OPTIONS_SCOPE_DEFAULT : (enum options_scope)(scope + 1);
    o->sort = (enum render_sort)sort;
    o->view = (enum render_view)view;
    o->limit = (uint32_t)number;
    o->static_arcs = flag == 1;
    o->focus = params_find(p, "focus");
    o->dimension = params_find(p, "dimension");
    if (status == PROFD_OK && o->focus != NULL && o->focus[0] == '\0') {
        status = profd_error_set(e, PROFD_BAD_QUERY, "focus= names no function");
    }
    if (status == PROFD_OK && o->dimension != NULL && o->dimension[0] == '\0') {
        status = profd_error_set(e, PROFD_BAD_QUERY, "dimension= names nothing: seconds, say");
    }
    if (status == PROFD_OK && o->dimension != NULL && words_are(o->dimension)) {
        status = profd_error_set(e, PROFD_BAD_QUERY, "dimension=%s: those are no samples; every report shows them",
                                 o->dimension);
    }
    return status;
}

/* Parameters that the other mode has no use for are refused: silence would look like an answer. */
static enum profd_status check_mode(const struct params *p, const struct options *o, struct profd_error *e)
{
    static const char *const TRUE_ONLY[] = {"static", "focus", "sort", "limit", "dimension"};
    for (size_t i = 0; !o->format->wants_report && i < sizeof TRUE_ONLY / sizeof *TRUE_ONLY; i++) {
        if (params_find(p, TRUE_ONLY[i]) != NULL) {
            return profd_error_set(e, PROFD_BAD_QUERY, "%s= has no meaning in compat mode (format=%s)", TRUE_ONLY[i],
                                   o->format->name);
        }
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
        o->limit = o->format->functions;
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
        return profd_error_set(e, PROFD_FORBIDDEN, "uid=%llu: you may see the uploads of uid %" PRIu32 " only", uid,
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

void options_add_canonical(const struct options *o, struct buffer *out)
{
    buffer_add_format(out, "since=%" PRId64 " until=%" PRId64 " scope=%d static=%d sort=%d view=%d limit=%" PRIu32,
                      o->since, o->until, (int)o->scope, o->static_arcs, (int)o->sort, (int)o->view, o->limit);
    buffer_add_format(out, " format=%s geometry=%" PRIu32 " all=%d uid=%" PRIu32 "\n", o->format->name, o->geometry,
                      o->visible.all, o->visible.uid);
    const char *texts[] = {o->focus != NULL ? o->focus : "", o->dimension != NULL ? o->dimension : ""};
    buffer_add_format(out, "%zu %s %zu %s\n", strlen(texts[0]), texts[0], strlen(texts[1]), texts[1]);
    for (size_t i = 0; i < o->matcher_count; i++) {
        const struct store_matcher *m = &o->matchers[i];
        buffer_add_format(out, "%zu %s %d %zu %s\n", strlen(m->name), m->name, (int)m->match, strlen(m->value),
                          m->value);
    }
}
