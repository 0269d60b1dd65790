/* view=flat: one array a column, because a table of a million rows should not repeat its keys a million times. */
#include "render/json_columns.h"

#include "render/json_write.h"
#include "render/render.h"

static void begin(struct buffer *out, const char *key, uint32_t *rest, uint32_t count)
{
    buffer_add_text(out, key);
    *rest = count;
}

/* After each value: a comma, or the end of the column. */
static void next(struct buffer *out, uint32_t *rest)
{
    if (--*rest > 0) {
        buffer_add_char(out, ',');
    }
}

static void add_names(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    uint32_t rest;
    begin(out, ",\"name\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        render_json_string(out, r->functions[list[i]].name);
        next(out, &rest);
    }
    begin(out, "],\"build\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t build = r->functions[list[i]].build;
        if (build < r->build_count) {
            buffer_add_u64(out, build, 0);
        } else {
            JSON_ADD(out, "null");
        }
        next(out, &rest);
    }
    begin(out, "],\"address\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_format(out, "\"0x%llx\"", (unsigned long long)r->functions[list[i]].address);
        next(out, &rest);
    }
    JSON_ADD(out, "]");
}

enum seconds { SELF, CHILDREN, TOTAL, PERCENT };

static double seconds_of(const struct report_function *f, enum seconds which)
{
    switch (which) {
    case SELF:
        return f->self;
    case CHILDREN:
        return f->children;
    case TOTAL:
        return f->self + f->children;
    case PERCENT:
        break;
    }
    return f->percent;
}

static void add_seconds(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    static const char *const KEYS[] = {",\"self\":[", ",\"children\":[", ",\"total\":[", ",\"percent\":["};
    for (enum seconds which = SELF; which <= PERCENT; which++) {
        uint32_t rest;
        begin(out, KEYS[which], &rest, n);
        for (uint32_t i = 0; i < n; i++) {
            buffer_add_shortest(out, seconds_of(&r->functions[list[i]], which));
            next(out, &rest);
        }
        JSON_ADD(out, "]");
    }
}

/* Of estimated self times; null for the others. */
static void add_bounds(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    static const char *const KEYS[] = {",\"self_least\":[", ",\"self_most\":["};
    for (unsigned which = 0; which < 2; which++) {
        uint32_t rest;
        begin(out, KEYS[which], &rest, n);
        for (uint32_t i = 0; i < n; i++) {
            const struct report_function *f = &r->functions[list[i]];
            if (f->self_estimated) {
                buffer_add_shortest(out, which == 0 ? f->self_least : f->self_most);
            } else {
                JSON_ADD(out, "null");
            }
            next(out, &rest);
        }
        JSON_ADD(out, "]");
    }
}

/* Counts beyond 2^53 are strings here: a column has one value for each row. */
static void add_count(struct buffer *out, uint64_t value)
{
    bool text = value > UINT64_C(1) << 53;
    buffer_add_text(out, text ? "\"" : "");
    buffer_add_u64(out, value, 0);
    buffer_add_text(out, text ? "\"" : "");
}

static void add_short_names(struct buffer *out, const struct report *r, const char *const *shorts, const uint32_t *list,
                            uint32_t n)
{
    uint32_t rest;
    begin(out, ",\"short_name\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        if (shorts[list[i]] != r->functions[list[i]].name) {
            render_json_string(out, shorts[list[i]]);
        } else {
            JSON_ADD(out, "null");
        }
        next(out, &rest);
    }
    JSON_ADD(out, "]");
}

void json_add_columns(struct buffer *out, const struct report *r, const char *const *shorts, const uint32_t *list,
                      uint32_t n)
{
    uint32_t rest;
    begin(out, "{\"index\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_u64(out, r->functions[list[i]].index, 0);
        next(out, &rest);
    }
    JSON_ADD(out, "]");
    add_names(out, r, list, n);
    if (shorts != NULL) {
        add_short_names(out, r, shorts, list, n);
    }
    add_seconds(out, r, list, n);
    if (r->estimated) {
        add_bounds(out, r, list, n);
    }
    begin(out, ",\"calls\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, r->functions[list[i]].calls);
        next(out, &rest);
    }
    begin(out, "],\"self_calls\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, r->functions[list[i]].self_calls);
        next(out, &rest);
    }
    begin(out, "],\"cycle\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_u64(out, r->functions[list[i]].cycle, 0);
        next(out, &rest);
    }
    JSON_ADD(out, "]}");
}
