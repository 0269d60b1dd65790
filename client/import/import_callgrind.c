#include <inttypes.h>
#include <string.h>

#include "core/foreign_clock.h"
#include "proto/sum.h"
#include "import/import_any_internal.h"

enum callgrind_names { CALLGRIND_OBJECT, CALLGRIND_FILE, CALLGRIND_FUNCTION };
enum callgrind_pending { CALLGRIND_NOTHING, CALLGRIND_CALL, CALLGRIND_JUMP };

/* "(12) name": the meaning of a number in one kind of names. */
struct callgrind_id {
    uint64_t number, kind; /* kind: enum callgrind_names */
    const char *text;
};

struct import_callgrind {
    struct import_profile profile;
    struct set texts;
    struct callgrind_id *ids;
    struct table id_table;
    const char *wanted;       /* event, or NULL */
    const char *event;        /* the imported event; NULL before "events:" */
    uint32_t column;          /* of its cost */
    bool instructions, lines; /* subpositions at the beginning of lines */
    uint64_t instruction;     /* of the last cost line; "+n" and "*" refer to it */
    uint64_t line;
    const char *object, *file, *function; /* NULL before the first; file: source of the code, also of inlined code */
    const char *function_file;            /* where the function is */
    const char *called_object, *called_file, *called_function; /* NULL: as the caller's */
    enum callgrind_pending pending;                            /* to which the next cost line belongs */
    uint64_t calls, target;
    uint64_t pid, part, thread; /* of the current header; 0: not stated */
    uint64_t *pids;             /* processes with a first part, each once */
    struct table pid_table;
    bool part_seen;
    bool counted;            /* the file states how many processes it is of */
    bool waiting;            /* time is elapsed time */
    uint32_t tick_rate;      /* ticks a second that every part so far says its ns are made of; 0: not stated */
    uint32_t part_tick_rate; /* of the current header */
};

/* A function without an object: slots of .plt.got and .plt.sec look like this. */
struct slot {
    const char *name;
    uint64_t in, out; /* calls of it, and calls by it except those of the dynamic linker's resolver */
    uint32_t target;  /* frame that it calls, IMPORT_NONE if none */
    bool branches;    /* it calls several functions */
};

struct slots {
    const struct import_profile *profile;
    struct slot *list;
    struct table table;
};

static bool is_slot(const struct import_profile *p, const struct import_frame *f)
{
    return p->objects[f->object].outside && f->name && strncmp(f->name, "0x", 2) == 0;
}

/* Returns the slot of that name. */
static struct slot *take_slot(struct slots *s, const char *name)
{
    const struct slot fresh = {.name = name, .target = IMPORT_NONE};
    uint32_t at;
    (void)TABLE_TAKE(&s->table, s->profile->arena, s->list, fresh, name, &at);
    return &s->list[at];
}

static bool same_function(const struct import_frame *a, const struct import_frame *b)
{
    return a->object == b->object && a->name == b->name && a->file == b->file;
}

/* Records the callee of each slot and the number of calls. */
static void count_slots(struct slots *s)
{
    const struct import_profile *p = s->profile;
    bool saturated = false;
    for (uint32_t i = 0; i < p->pair_count; i++) {
        const struct import_frame *from = &p->frames[p->pairs[i].from], *to = &p->frames[p->pairs[i].to];
        if (is_slot(p, to)) {
            sum_add(&take_slot(s, to->name)->in, p->pairs[i].calls, &saturated);
        }
        if (is_slot(p, from) && !(to->name && strncmp(to->name, "_dl_runtime_resolve", 19) == 0)) {
            struct slot *slot = take_slot(s, from->name);
            slot->branches |= slot->target != IMPORT_NONE && !same_function(&p->frames[slot->target], to);
            slot->target = p->pairs[i].to;
            sum_add(&slot->out, p->pairs[i].calls, &saturated);
        }
    }
}

/* Returns the slot that a frame is, if it passes as many calls to one function as it gets; otherwise NULL. */
static const struct slot *joined_slot(struct slots *s, const struct import_frame *f)
{
    if (!is_slot(s->profile, f)) {
        return NULL;
    }
    const struct slot *slot = take_slot(s, f->name);
    return slot->target != IMPORT_NONE && !slot->branches && slot->in == slot->out ? slot : NULL;
}

#define SECOND UINT64_C(1000000000)

/* The number of ticks that ns are, if it is whole: ns were rounded by at most one. */
static bool find_ticks(uint64_t ns, uint32_t rate, uint64_t *ticks)
{
    const uint64_t part = ns % SECOND * rate, over = part % SECOND;
    *ticks = ns / SECOND * rate + (part + SECOND / 2) / SECOND;
    return (over < SECOND - over ? over : SECOND - over) <= rate;
}

enum profd_status import_callgrind_finish(struct import_callgrind *c, struct import_profile **out,
                                          struct profd_error *e)
{
    struct import_profile *p = &c->profile;
    ARENA_BOUNDARY(p->arena, import_profile_exhausted(p->arena, e));
    FAIL_IF(!c->event, e, PROFD_MALFORMED, "no \"events:\" line: not a callgrind.out");
    FAIL_IF(c->pending != CALLGRIND_NOTHING, e, PROFD_MALFORMED,
            "the file ends after \"calls=\"; a cost line must follow");
    if (p->object_count == 1 && p->objects[0].path[0] == '\0' &&
        p->program[0] != '\0') { /* no "ob=" at all: the program alone */
        p->objects[0].path = p->program;
        p->objects[0].outside = false;
        p->program_object = 0;
    }
    struct slots slots = {.profile = p};
    count_slots(&slots);
    for (uint32_t i = 0; i < p->pair_count && slots.table.used > 0; i++) {
        struct import_pair *pair = &p->pairs[i];
        const struct slot *from = joined_slot(&slots, &p->frames[pair->from]),
                          *to = joined_slot(&slots, &p->frames[pair->to]);
        if (from && same_function(&p->frames[pair->to], &p->frames[from->target])) {
            pair->calls = 0;
        } else if (to) {
            pair->to = to->target;
        }
    }

    /* An export of profd says what ticks its ns are made of. They are restored unless some are not whole, because ticks
     * were shared between functions: a sum must not claim a precision that nothing was measured with. */
    const uint32_t rate = c->tick_rate;
    uint64_t ticks;
    bool whole = rate > 0 && rate < SECOND / 4 && p->rate == SECOND;
    for (uint32_t i = 0; i < p->frame_count && whole; i++) {
        whole = find_ticks(p->frames[i].ticks, rate, &ticks);
    }
    for (uint32_t i = 0; i < p->frame_count && whole; i++) {
        (void)find_ticks(p->frames[i].ticks, rate, &p->frames[i].ticks);
    }
    p->rate = whole ? rate : p->rate;
    *out = p;
    return PROFD_OK;
}

enum profd_status import_callgrind_new(struct arena *a, const char *event, struct import_callgrind **out,
                                       struct profd_error *e)
{
    ARENA_BOUNDARY(a, import_profile_exhausted(a, e));
    struct import_callgrind *c = ARENA_NEW(a, struct import_callgrind);
    import_profile_init(&c->profile, a);
    set_init(&c->texts, a);
    c->wanted = event;
    c->lines = true; /* "positions: line" is the default */
    *out = c;
    return PROFD_OK;
}

/* Reads one subposition: absolute, or relative to that of the last cost line. Differences are modulo 2^64, so they may
 * lead below 0 and back. */
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

/* Reads the subpositions at the beginning of a line; *instruction is the first one, or 0. False if they are not what
 * "positions:" states. */
static bool take_place(const struct import_callgrind *c, struct import_scan *s, uint64_t *instruction, uint64_t *line)
{
    *instruction = 0;
    return (!c->instructions || take_subposition(s, c->instruction, instruction)) &&
           (!c->lines || take_subposition(s, c->line, line));
}

/* Returns the frame of a function, or of an instruction in it. */
static uint32_t take_frame(struct import_callgrind *c, const char *object, const char *file, const char *function,
                           uint64_t instruction)
{
    struct import_frame f = {.name = function, .file = file, .offset = IMPORT_NO_OFFSET};
    f.object = import_profile_take_object(&c->profile, object ? object : import_texts_take(&c->texts, "", 0));
    c->profile.objects[f.object].addressing = IMPORT_MOVED;
    f.has_address = c->instructions;
    f.address = c->instructions ? instruction : 0;
    return import_profile_take_frame(&c->profile, &f);
}

static enum profd_status take_cost_line(struct import_callgrind *c, struct import_scan *s, uint64_t number,
                                        struct profd_error *e)
{
    uint64_t instruction, line = c->line, cost = 0; /* missing costs are 0 */
    enum callgrind_pending pending = c->pending;
    FAIL_IF(!c->event || !c->function, e, PROFD_MALFORMED,
            "line %" PRIu64 ": a cost line must follow \"events:\" and \"fn=\"", number);
    struct import_scan whole = *s;
    bool good = take_place(c, s, &instruction, &line);
    import_scan_blanks(s);
    for (uint32_t i = 0; good && s->at < s->end; i++) {
        uint64_t value;
        good = import_scan_any_number(s, &value);
        cost = good && i == c->column ? value : cost;
        import_scan_blanks(s);
    }
    FAIL_IF(!good, e, PROFD_MALFORMED, "line %" PRIu64 ": \"%.*s\" is not a position and its costs, numbers up to 2^64",
            number, import_scan_shown(&whole), whole.at);
    c->instruction = instruction;
    c->line = line;
    c->pending = CALLGRIND_NOTHING;
    if (pending == CALLGRIND_CALL) {
        const char *object = c->called_object ? c->called_object : c->object,
                   *file = c->called_file ? c->called_file : c->file;
        const uint32_t from = take_frame(c, c->object, c->function_file, c->function, instruction);
        const uint32_t to = take_frame(c, object, file, c->called_function, c->target);
        if (c->calls > 0) {
            import_profile_add_pair(&c->profile, from, to, c->calls);
        }
        c->called_object = c->called_file = c->called_function = NULL;
        return PROFD_OK;
    }
    if (pending == CALLGRIND_NOTHING && cost > 0) {
        import_profile_add_ticks(&c->profile, take_frame(c, c->object, c->function_file, c->function, instruction),
                                 cost);
    }
    return PROFD_OK;
}

/* Returns the id of that number, created on first use with text NULL. */
static struct callgrind_id *take_id(struct import_callgrind *c, enum callgrind_names kind, uint64_t number)
{
    const struct callgrind_id fresh = {.kind = kind, .number = number};
    uint32_t at;
    (void)TABLE_TAKE(&c->id_table, c->profile.arena, c->ids, fresh, kind, &at);
    return &c->ids[at];
}

/* Reads "name", "(12) name", or "(12)" for a name that was defined before. */
static enum profd_status take_name(struct import_callgrind *c, enum callgrind_names kind, struct import_scan *value,
                                   uint64_t number, const char **out, struct profd_error *e)
{
    struct import_scan s = *value;
    struct callgrind_id *id = NULL;
    uint64_t which;
    if (s.at < s.end && *s.at == '(') {
        s.at++;
        if (import_scan_any_number(&s, &which) && s.at < s.end && *s.at == ')') { /* for example "(below main)" */
            s.at++;
            import_scan_trim(&s);
            id = take_id(c, kind, which);
            if (s.at == s.end) {
                FAIL_IF(!id->text, e, PROFD_MALFORMED, "line %" PRIu64 ": (%" PRIu64 ") was not defined before", number,
                        which);
                *out = id->text;
                return PROFD_OK;
            }
        }
    }
    if (!id) {
        s = *value;
    }
    *out = import_texts_take(&c->texts, s.at, import_scan_left(&s));
    if (id) {
        id->text = *out;
    }
    return PROFD_OK;
}

/* Of profd's own exports. */
#define CALLGRIND_PROCESSES "Processes: "
#define CALLGRIND_TICKS "Ticks a second: "

static enum profd_status take_events(struct import_callgrind *c, struct import_scan *value, uint64_t number,
                                     struct profd_error *e)
{
    struct import_scan all = *value, event = {NULL, NULL};
    uint32_t column = 0;
    for (;; column++) {
        event = import_scan_word(value);
        if (event.at == event.end || !c->wanted || import_scan_is(&event, c->wanted)) {
            break;
        }
    }
    FAIL_IF(event.at == event.end, e, PROFD_REFUSED, "line %" PRIu64 ": it has no event %s, only \"%.*s\"", number,
            c->wanted ? c->wanted : "at all", import_scan_shown(&all), all.at);
    FAIL_IF(c->event && !import_scan_is(&event, c->event), e, PROFD_REFUSED,
            "line %" PRIu64 ": parts with different events, \"%.30s\" and \"%.*s\", cannot be added up", number,
            c->event, import_scan_shown(&event), event.at);
    /* Ends a header. A process is counted at its first part only, not at later parts and other threads. If files of
     * several processes were joined, each process is counted. */
    if (!c->counted) {
        const uint32_t before = c->pid_table.used;
        uint32_t at;
        if (c->part <= 1 && c->thread <= 1) {
            (void)TABLE_TAKE_NUMBER(&c->pid_table, c->profile.arena, c->pids, c->pid, &at);
        }
        const uint64_t fresh = c->pid_table.used - before; /* 0 if an earlier part was of that process */
        import_profile_set_processes(&c->profile, (c->part_seen ? c->profile.processes : 0) + fresh);
    }
    c->tick_rate = !c->part_seen || c->tick_rate == c->part_tick_rate ? c->part_tick_rate : 0;
    c->part_tick_rate = 0;
    c->part_seen = true;
    c->part = c->thread = 0;
    c->column = column;
    c->event = import_texts_take(&c->texts, event.at, import_scan_left(&event));
    const uint64_t ns = foreign_unit_nanoseconds((struct foreign_text){event.at, import_scan_left(&event)});
    if (ns > 0) {
        import_profile_set_dimension(&c->profile, c->waiting ? "wall" : "seconds", (uint32_t)(SECOND / ns));
    } else if (import_scan_is(&event, "Ir")) {
        import_profile_set_dimension(&c->profile, "instructions", 1);
    } else {
        import_profile_set_event(&c->profile, event.at, import_scan_left(&event));
    }
    return PROFD_OK;
}

/* Takes a line "key: value". */
static enum profd_status take_header(struct import_callgrind *c, const struct import_scan *key,
                                     struct import_scan *value, uint64_t number, struct profd_error *e)
{
    if (import_scan_is(key, "version")) {
        if (import_scan_is(value, "1")) {
            return PROFD_OK;
        }
        return profd_error_set(e, PROFD_REFUSED,
                               "line %" PRIu64 ": callgrind format version \"%.*s\" is not supported, only version 1",
                               number, import_scan_shown(value), value->at);
    }
    if (import_scan_is(key, "events")) {
        return take_events(c, value, number, e);
    }
    if (import_scan_is(key, "positions")) {
        struct import_scan all = *value;
        c->instructions = c->lines = false;
        for (;;) {
            struct import_scan position = import_scan_word(value);
            if (position.at == position.end) {
                break;
            }
            bool *which = import_scan_is(&position, "instr")  ? &c->instructions
                          : import_scan_is(&position, "line") ? &c->lines
                                                              : NULL;
            FAIL_IF(!which || *which || (which == &c->instructions && c->lines), e, PROFD_MALFORMED,
                    "line %" PRIu64 ": positions are \"instr\", \"line\" or \"instr line\", not \"%.*s\"", number,
                    import_scan_shown(&all), all.at);
            *which = true;
        }
        FAIL_IF(!c->instructions && !c->lines, e, PROFD_MALFORMED, "line %" PRIu64 ": \"positions:\" is empty", number);
        return PROFD_OK;
    }
    const struct {
        const char *key;
        uint64_t *out;
    } numbers[] = {{"part", &c->part}, {"pid", &c->pid}, {"thread", &c->thread}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (import_scan_is(key, numbers[i].key)) {
            (void)import_scan_number(value, 10, numbers[i].out);
        }
    }
    if (import_scan_is(key, "cmd")) {
        struct import_scan word = import_scan_word(value);
        c->profile.program = import_texts_take(&c->texts, word.at, import_scan_left(&word));
    } else if (import_scan_is(key, "event")) { /* exports of profd state the dimension here */
        c->waiting |= memmem(value->at, import_scan_left(value), "elapsed time", 12) != NULL;
    } else if (!import_scan_is(key, "desc")) {
        return PROFD_OK;
    } else if (import_scan_begins(value, "Calls: sampled")) {
        c->profile.sampled = true;
    } else if (import_scan_skip(value, "Not exact: ")) {
        import_profile_set_reasons(&c->profile, value->at, import_scan_left(value));
    } else if (import_scan_skip(value, CALLGRIND_PROCESSES)) {
        uint64_t n;
        if (import_scan_number(value, 10, &n)) {
            import_profile_set_processes(&c->profile, n);
            c->counted = true;
        }
    } else if (import_scan_skip(value, CALLGRIND_TICKS)) {
        uint64_t rate;
        c->part_tick_rate = import_scan_number(value, 10, &rate) && rate <= UINT32_MAX ? (uint32_t)rate : 0;
    } else if (import_scan_skip(value, "Build:")) {
        struct import_scan word = import_scan_word(value);
        c->profile.program_id = import_texts_take(&c->texts, word.at, import_scan_left(&word));
    }
    return PROFD_OK;
}

enum profd_status import_callgrind_line(void *context, const char *line, size_t n, uint64_t number,
                                        struct profd_error *e)
{
    struct import_callgrind *c = context;
    ARENA_BOUNDARY(c->profile.arena, import_profile_exhausted(c->profile.arena, e));
    struct import_scan s = import_scan_of(line, n);
    import_scan_trim(&s);
    if (s.at == s.end || *s.at == '#') {
        return PROFD_OK;
    }
    FAIL_IF(memchr(line, '\0', n), e, PROFD_MALFORMED, "line %" PRIu64 " contains a NUL", number);
    if ((*s.at >= '0' && *s.at <= '9') || *s.at == '+' || *s.at == '-' || *s.at == '*') {
        return take_cost_line(c, &s, number, e);
    }
    struct import_scan key = {s.at, s.at};
    while (key.end < s.end && *key.end != ':' && *key.end != '=') {
        key.end++;
    }
    FAIL_IF(key.end == s.end, e, PROFD_MALFORMED,
            "line %" PRIu64 ": \"%.*s\" is neither a position, a cost nor \"key: value\"", number,
            import_scan_shown(&s), s.at);
    struct import_scan value = {key.end + 1, s.end};
    import_scan_trim(&value);
    if (*key.end == ':') {
        return take_header(c, &key, &value, number, e);
    }
    FAIL_IF(c->pending != CALLGRIND_NOTHING, e, PROFD_MALFORMED,
            "line %" PRIu64 ": a cost line must follow \"calls=\" and \"jump=\"", number);
    const char *ignored;
    const struct {
        const char *key;
        enum callgrind_names kind;
        const char **out;
    } names[] = {{"fn", CALLGRIND_FUNCTION, &c->function},
                 {"fl", CALLGRIND_FILE, &c->file},
                 {"fi", CALLGRIND_FILE, &c->file},
                 {"fe", CALLGRIND_FILE, &c->file},
                 {"ob", CALLGRIND_OBJECT, &c->object},
                 {"cob", CALLGRIND_OBJECT, &c->called_object},
                 {"cfi", CALLGRIND_FILE, &c->called_file},
                 {"cfl", CALLGRIND_FILE, &c->called_file},
                 {"cfn", CALLGRIND_FUNCTION, &c->called_function},
                 {"jfi", CALLGRIND_FILE, &ignored},
                 {"jfl", CALLGRIND_FILE, &ignored},
                 {"jfn", CALLGRIND_FUNCTION, &ignored}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (import_scan_is(&key, names[i].key)) {
            c->function_file = i == 0 ? c->file : c->function_file;
            return take_name(c, names[i].kind, &value, number, names[i].out, e);
        }
    }
    if (import_scan_is(&key, "calls")) {
        struct import_scan all = value;
        uint64_t target_line = c->line;
        FAIL_IF(!c->function || !c->called_function, e, PROFD_MALFORMED,
                "line %" PRIu64 ": \"calls=\" must follow \"fn=\" and \"cfn=\"", number);
        FAIL_IF(!import_scan_any_number(&value, &c->calls), e, PROFD_MALFORMED,
                "line %" PRIu64 ": \"%.*s\" is not a number of calls", number, import_scan_shown(&all), all.at);
        c->target = 0;
        FAIL_IF(!take_place(c, &value, &c->target, &target_line), e, PROFD_MALFORMED,
                "line %" PRIu64 ": \"%.*s\" does not state the called position", number, import_scan_shown(&all),
                all.at);
        c->pending = CALLGRIND_CALL;
        return PROFD_OK;
    }
    if (import_scan_is(&key, "jump") || import_scan_is(&key, "jcnd")) {
        c->pending = CALLGRIND_JUMP;
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": \"%.*s=\" is not a key of callgrind's format", number,
                           import_scan_shown(&key), key.at);
}
