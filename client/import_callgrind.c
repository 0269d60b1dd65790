#include "client/import_callgrind_state.h"

#include <inttypes.h>

enum profd_status import_callgrind_new(struct arena *a, const char *event, struct import_callgrind **out,
                                       struct profd_error *e)
{
    struct import_callgrind *c = ARENA_NEW(a, struct import_callgrind);
    if (!c) {
        return import_profile_exhausted(a, e);
    }
    import_profile_init(&c->profile, a);
    import_texts_init(&c->texts, a);
    c->wanted = event;
    c->lines = true; /* "positions: line" is the default */
    *out = c;
    return PROFD_OK;
}

static enum profd_status no_place(struct import_callgrind *c, struct profd_error *e)
{
    return import_profile_exhausted(c->profile.arena, e);
}

/* One subposition: absolute, or relative to the last cost line's. Differences may lead below 0 and back: modulo 2^64.
 */
static bool take_subposition(struct import_scan *s, uint64_t last, uint64_t *out)
{
    uint64_t difference;
    import_scan_blanks(s);
    char sign = s->at < s->end ? *s->at : '\0';
    if (sign == '*') {
        s->at++;
        *out = last;
        return true;
    }
    if (sign != '+' && sign != '-') {
        return import_scan_any_number(s, out);
    }
    s->at++;
    if (!import_scan_any_number(s, &difference)) {
        return false;
    }
    *out = sign == '+' ? last + difference : last - difference;
    return true;
}

bool callgrind_take_place(const struct import_callgrind *c, struct import_scan *s, uint64_t *instruction,
                          uint64_t *line)
{
    *instruction = 0;
    return (!c->instructions || take_subposition(s, c->instruction, instruction)) &&
           (!c->lines || take_subposition(s, c->line, line));
}

/* The frame of a function, or of an instruction in it. */
static bool take_frame(struct import_callgrind *c, const char *object, const char *file, const char *function,
                       uint64_t instruction, uint32_t *out)
{
    struct import_frame f = {.object = IMPORT_NONE, .name = function, .file = file, .offset = IMPORT_NO_OFFSET};
    if (!object) {
        object = import_texts_take(&c->texts, "", 0);
    }
    if (!object || !import_profile_take_object(&c->profile, object, &f.object)) {
        return false;
    }
    c->profile.objects[f.object].addressing = IMPORT_MOVED;
    f.has_address = c->instructions;
    f.address = c->instructions ? instruction : 0;
    return import_profile_take_frame(&c->profile, &f, out);
}

static enum profd_status take_call(struct import_callgrind *c, uint64_t instruction, struct profd_error *e)
{
    const char *object = c->called_object ? c->called_object : c->object,
               *file = c->called_file ? c->called_file : c->file;
    uint32_t from, to;
    if (!take_frame(c, c->object, c->function_file, c->function, instruction, &from) ||
        !take_frame(c, object, file, c->called_function, c->target, &to) ||
        (c->calls > 0 && !import_profile_add_pair(&c->profile, from, to, c->calls))) {
        return no_place(c, e);
    }
    c->called_object = c->called_file = c->called_function = NULL;
    return PROFD_OK;
}

/* Costs that are left out are 0. */
static bool take_cost(const struct import_callgrind *c, struct import_scan *s, uint64_t *cost)
{
    *cost = 0;
    for (uint32_t i = 0;; i++) {
        uint64_t value;
        import_scan_blanks(s);
        if (s->at == s->end) {
            return true;
        }
        if (!import_scan_any_number(s, &value)) {
            return false;
        }
        *cost = i == c->column ? value : *cost;
    }
}

static enum profd_status take_cost_line(struct import_callgrind *c, struct import_scan *s, uint64_t number,
                                        struct profd_error *e)
{
    uint64_t instruction, line = c->line, cost;
    enum callgrind_pending pending = c->pending;
    if (!c->event || !c->function) {
        return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": a cost must stand behind \"events:\" and \"fn=\"",
                               number);
    }
    struct import_scan whole = *s;
    if (!callgrind_take_place(c, s, &instruction, &line) || !take_cost(c, s, &cost)) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "line %" PRIu64 ": \"%.*s\" is not a position and its costs, numbers up to 2^64", number,
                               import_scan_shown(&whole), whole.at);
    }
    c->instruction = instruction;
    c->line = line;
    c->pending = CALLGRIND_NOTHING;
    if (pending == CALLGRIND_CALL) {
        return take_call(c, instruction, e);
    }
    uint32_t frame;
    if (pending == CALLGRIND_JUMP || cost == 0) {
        return PROFD_OK;
    }
    if (!take_frame(c, c->object, c->function_file, c->function, instruction, &frame)) {
        return no_place(c, e);
    }
    import_profile_add_ticks(&c->profile, frame, cost);
    return PROFD_OK;
}

enum profd_status import_callgrind_line(struct import_callgrind *c, const char *line, size_t n, uint64_t number,
                                        struct profd_error *e)
{
    struct import_scan s = import_scan_of(line, n);
    import_scan_trim(&s);
    if (s.at == s.end || *s.at == '#') {
        return PROFD_OK;
    }
    if (memchr(line, '\0', n)) {
        return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 " holds a NUL", number);
    }
    if ((*s.at >= '0' && *s.at <= '9') || *s.at == '+' || *s.at == '-' || *s.at == '*') {
        return take_cost_line(c, &s, number, e);
    }
    struct import_scan key = {s.at, s.at};
    while (key.end < s.end && *key.end != ':' && *key.end != '=') {
        key.end++;
    }
    if (key.end == s.end) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "line %" PRIu64 ": \"%.*s\" is neither a position, a cost nor \"key: value\"", number,
                               import_scan_shown(&s), s.at);
    }
    struct import_scan value = {key.end + 1, s.end};
    import_scan_trim(&value);
    if (*key.end == ':') {
        return callgrind_take_header(c, &key, &value, number, e);
    }
    if (c->pending != CALLGRIND_NOTHING) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "line %" PRIu64 ": behind \"calls=\" and \"jump=\" there must be a cost line", number);
    }
    return callgrind_take_position(c, &key, &value, number, e);
}
