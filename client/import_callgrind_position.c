/* Lines "key=value" of callgrind.out: where costs belong, and what is called. */
#include "client/import_callgrind_state.h"

#include <inttypes.h>

static uint64_t id_mix(enum callgrind_names kind, uint64_t number)
{
    return table_mix(number, (uint64_t)kind);
}

static uint64_t id_hash(const void *context, uint32_t index)
{
    const struct callgrind_id *id = &((const struct import_callgrind *)context)->ids[index];
    return id_mix(id->kind, id->number);
}

/* The id of that number, made on first use with text NULL; NULL when memory is exhausted. */
static struct callgrind_id *take_id(struct import_callgrind *c, enum callgrind_names kind, uint64_t number)
{
    struct arena *a = c->profile.arena;
    if (!table_reserve(&c->id_table, a, id_hash, c)) {
        return NULL;
    }
    uint32_t at = table_slot(&c->id_table, id_mix(kind, number));
    for (; c->id_table.slots[at] != 0; at = (at + 1) & c->id_table.mask) {
        struct callgrind_id *id = &c->ids[c->id_table.slots[at] - 1];
        if (id->kind == kind && id->number == number) {
            return id;
        }
    }
    void *ids = arena_extend(a, c->ids, c->id_count, &c->id_room, sizeof *c->ids);
    if (!ids) {
        return NULL;
    }
    c->ids = ids;
    c->ids[c->id_count] = (struct callgrind_id){.kind = kind, .number = number};
    c->id_table.slots[at] = ++c->id_count;
    c->id_table.used++;
    return &c->ids[c->id_count - 1];
}

/* "name", "(12) name", or "(12)" for one that was named before. */
static enum profd_status take_name(struct import_callgrind *c, enum callgrind_names kind, struct import_scan *value,
                                   uint64_t number, const char **out, struct profd_error *e)
{
    struct import_scan s = *value;
    struct callgrind_id *id = NULL;
    uint64_t which;
    if (s.at < s.end && *s.at == '(') {
        s.at++;
        if (import_scan_any_number(&s, &which) && s.at < s.end &&
            *s.at == ')') { /* otherwise "(below main)" and the like */
            s.at++;
            import_scan_trim(&s);
            id = take_id(c, kind, which);
            if (!id) {
                return import_profile_exhausted(c->profile.arena, e);
            }
            if (s.at == s.end) {
                if (!id->text) {
                    return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": (%" PRIu64 ") was not named before",
                                           number, which);
                }
                *out = id->text;
                return PROFD_OK;
            }
        }
    }
    if (!id) {
        s = *value;
    }
    const char *text = import_texts_take(&c->texts, s.at, import_scan_left(&s));
    if (!text) {
        return import_profile_exhausted(c->profile.arena, e);
    }
    if (id) {
        id->text = text;
    }
    *out = text;
    return PROFD_OK;
}

static enum profd_status take_calls(struct import_callgrind *c, struct import_scan *value, uint64_t number,
                                    struct profd_error *e)
{
    struct import_scan all = *value;
    uint64_t target_line = c->line;
    if (!c->function || !c->called_function) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "line %" PRIu64 ": \"calls=\" must stand behind \"fn=\" and \"cfn=\"", number);
    }
    if (!import_scan_any_number(value, &c->calls)) {
        return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": \"%.*s\" is not a number of calls", number,
                               import_scan_shown(&all), all.at);
    }
    c->target = 0;
    if (!callgrind_take_place(c, value, &c->target, &target_line)) {
        return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": \"%.*s\" does not say which place is called",
                               number, import_scan_shown(&all), all.at);
    }
    c->pending = CALLGRIND_CALL;
    return PROFD_OK;
}

enum profd_status callgrind_take_position(struct import_callgrind *c, const struct import_scan *key,
                                          struct import_scan *value, uint64_t number, struct profd_error *e)
{
    const char *ignored;
    if (import_scan_is(key, "fn")) {
        c->function_file = c->file;
        return take_name(c, CALLGRIND_FUNCTION, value, number, &c->function, e);
    }
    if (import_scan_is(key, "fl") || import_scan_is(key, "fi") || import_scan_is(key, "fe")) {
        enum profd_status status = take_name(c, CALLGRIND_FILE, value, number, &ignored, e);
        if (status == PROFD_OK) {
            c->file = ignored;
        }
        return status;
    }
    if (import_scan_is(key, "ob")) {
        return take_name(c, CALLGRIND_OBJECT, value, number, &c->object, e);
    }
    if (import_scan_is(key, "cob")) {
        return take_name(c, CALLGRIND_OBJECT, value, number, &c->called_object, e);
    }
    if (import_scan_is(key, "cfi") || import_scan_is(key, "cfl")) {
        return take_name(c, CALLGRIND_FILE, value, number, &c->called_file, e);
    }
    if (import_scan_is(key, "cfn")) {
        return take_name(c, CALLGRIND_FUNCTION, value, number, &c->called_function, e);
    }
    if (import_scan_is(key, "calls")) {
        return take_calls(c, value, number, e);
    }
    if (import_scan_is(key, "jump") || import_scan_is(key, "jcnd")) {
        c->pending = CALLGRIND_JUMP;
        return PROFD_OK;
    }
    if (import_scan_is(key, "jfi") || import_scan_is(key, "jfl")) {
        return take_name(c, CALLGRIND_FILE, value, number, &ignored, e);
    }
    if (import_scan_is(key, "jfn")) {
        return take_name(c, CALLGRIND_FUNCTION, value, number, &ignored, e);
    }
    return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": \"%.*s=\" is no key of callgrind's format", number,
                           import_scan_shown(key), key->at);
}
