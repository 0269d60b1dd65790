#include <inttypes.h>
#include <string.h>

#include "import/import_any_internal.h"

#define COMM_MAX 15 /* bytes of a process's name that the kernel stores */

struct perf_process {
    uint64_t number;      /* pid; tid if the text has no pids */
    uint64_t first, last; /* time stamps, ns */
    struct import_profile profile;
};

struct import_perf {
    struct arena *arena;
    struct set texts;
    struct perf_process *processes;
    uint32_t process_count;
    struct table process_table;
    const char *wanted, *event; /* event: the imported one; NULL before the first sample */
    bool is_clock, has_period;
    uint64_t period; /* period of all samples so far; 0 if they differ */
    bool without_pids, timed;
    uint64_t last;         /* of all time stamps */
    uint64_t other_events; /* samples */
    /* The sample that is being read. */
    bool inside, taken;
    uint32_t process;
    uint64_t ticks;
    const char *comm_text;
    bool has_chain; /* the sample's locations stand below its heading */
    uint32_t depth, chain_capacity;
    uint32_t *chain; /* depth frames, the leaf first */
    const char *words;
};

enum profd_status import_perf_new(struct arena *a, const char *event, struct import_perf **out, struct profd_error *e)
{
    ARENA_BOUNDARY(a, import_profile_exhausted(a, e));
    struct import_perf *f = ARENA_NEW(a, struct import_perf);
    f->arena = a;
    f->wanted = event;
    f->words = "";
    set_init(&f->texts, a);
    *out = f;
    return PROFD_OK;
}

/* Returns the process of that number, created on first use. */
static uint32_t take_process(struct import_perf *f, uint64_t number)
{
    const struct perf_process fresh = {.number = number, .first = UINT64_MAX};
    uint32_t at;
    (void)TABLE_TAKE(&f->process_table, f->arena, f->processes, fresh, number, &at);
    if (at == f->process_count) {
        import_profile_init(&f->processes[f->process_count++].profile, f->arena);
    }
    return at;
}

/* Reads one frame of the current sample: first the leaf, then its callers. The address of a caller is its return
 * address. */
static enum profd_status take_place(struct import_perf *f, const struct perf_place *place, uint64_t number,
                                    struct profd_error *e)
{
    struct import_profile *p = &f->processes[f->process].profile;
    if (import_scan_is(&place->object, "inlined") ||
        place->address == 0) { /* a part of the next frame, or the end of a chain */
        return PROFD_OK;
    }
    FAIL_IF(place->object.at == place->object.end, e, PROFD_REFUSED,
            "line %" PRIu64 ": a location without a file; add the field dso (perf script -F +dso)", number);
    struct import_frame frame = {.has_address = true, .address = place->address, .offset = IMPORT_NO_OFFSET};
    if (place->has_offset) {
        frame.offset = place->offset;
    }
    if (f->depth > 0 && frame.offset != 0) {
        frame.address--;
        frame.offset -= frame.offset != IMPORT_NO_OFFSET;
    }
    const char *path = import_texts_take(&f->texts, place->object.at, import_scan_left(&place->object));
    if (place->name.at != place->name.end) {
        frame.name = import_texts_take(&f->texts, place->name.at, import_scan_left(&place->name));
    }
    frame.object = import_profile_take_object(p, path);
    struct import_object *o = &p->objects[frame.object];
    o->addressing = IMPORT_MOVED;
    o->outside |= import_scan_begins(&place->object, "/tmp/perf-") && import_scan_left(&place->object) > 4 &&
                  memcmp(place->object.end - 4, ".map", 4) == 0;
    if (o->outside) { /* neither the name nor the address is known */
        frame = (struct import_frame){.object = frame.object, .offset = IMPORT_NO_OFFSET};
    } else { /* comm is the file name of the program, if it is not longer */
        const size_t n = strlen(f->comm_text);
        if (n > 0 && (n < COMM_MAX ? strcmp(basename(path), f->comm_text) == 0
                                   : strncmp(basename(path), f->comm_text, n) == 0)) {
            p->program_object = frame.object;
        }
    }
    const uint32_t index = import_profile_take_frame(p, &frame);
    (void)ARENA_EXTEND(f->arena, f->chain, f->depth, f->chain_capacity);
    if (f->depth == 0) {
        import_profile_add_ticks(p, index, f->ticks);
    }
    f->chain[f->depth++] = index;
    return PROFD_OK;
}

/* Ends the sample that is being read. */
static void end_sample(struct import_perf *f)
{
    if (f->inside && f->taken && f->has_chain) {
        import_profile_add_stack(&f->processes[f->process].profile, f->chain, f->depth, f->ticks);
    }
    f->inside = false;
}

static enum profd_status take_heading(struct import_perf *f, const struct perf_heading *h, uint64_t number,
                                      struct profd_error *e)
{
    struct import_scan name = perf_event_name(h->event);
    struct perf_place place;
    f->inside = true;
    const char *wanted = f->event ? f->event : f->wanted;
    f->taken = !wanted || import_scan_is(&name, wanted);
    f->has_chain = false;
    f->depth = 0;
    f->other_events += !f->taken;
    if (!f->taken) {
        return PROFD_OK;
    }
    f->without_pids |= !h->has_pid;
    f->comm_text = import_texts_take(&f->texts, h->comm.at, import_scan_left(&h->comm));
    if (!f->event) { /* the first sample determines what ticks are */
        f->event = import_texts_take(&f->texts, name.at, import_scan_left(&name));
        f->is_clock = import_scan_is(&name, "cpu-clock") || import_scan_is(&name, "task-clock");
        f->has_period = h->has_period;
        f->period = h->period;
    }
    f->process = take_process(f, h->pid);
    struct perf_process *p = &f->processes[f->process];
    f->period = h->period == f->period ? f->period : 0;
    p->profile.program = f->comm_text;
    if (h->has_time) {
        f->timed = true;
        f->last = h->time > f->last ? h->time : f->last;
        p->first = h->time < p->first ? h->time : p->first;
        p->last = h->time > p->last ? h->time : p->last;
    }
    f->ticks = h->has_period && f->has_period ? h->period : 1;
    return perf_place_parse(h->place, &place) ? take_place(f, &place, number, e) : PROFD_OK;
}

enum profd_status import_perf_line(void *context, const char *line, size_t n, uint64_t number, struct profd_error *e)
{
    struct import_perf *f = context;
    ARENA_BOUNDARY(f->arena, import_profile_exhausted(f->arena, e));
    struct import_scan s = import_scan_of(line, n);
    struct perf_heading heading;
    struct perf_place place;
    bool indented = n > 0 && line[0] == '\t';
    import_scan_trim(&s);
    if (s.at == s.end) {
        end_sample(f);
        return PROFD_OK;
    }
    if (*s.at == '#' && !indented) {
        return PROFD_OK;
    }
    FAIL_IF(memchr(line, '\0', n), e, PROFD_MALFORMED, "line %" PRIu64 " contains a NUL", number);
    if (!indented && perf_heading_parse(s, &heading)) {
        end_sample(f);
        return take_heading(f, &heading, number, e);
    }
    if (f->inside && (indented || line[0] == ' ') && perf_place_parse(s, &place)) {
        f->has_chain = true;
        return f->taken ? take_place(f, &place, number, e) : PROFD_OK;
    }
    struct import_scan source = s; /* "file.c:12" of -F +srcline */
    while (source.end > source.at && source.end[-1] >= '0' && source.end[-1] <= '9') {
        source.end--;
    }
    if ((f->inside && line[0] == ' ' && source.end > source.at + 1 && source.end[-1] == ':') ||
        (memmem(s.at, import_scan_left(&s), "PERF_RECORD_", 12) && !indented)) {
        return PROFD_OK;
    }
    FAIL_IF(!f->event, e, PROFD_MALFORMED,
            "not a profile: neither gmon.out, pprof, callgrind.out nor text of perf script (line %" PRIu64
            " is \"%.*s\")",
            number, (int)(import_scan_left(&s) < 60 ? import_scan_left(&s) : 60), s.at);
    return profd_error_set(e, PROFD_MALFORMED,
                           "line %" PRIu64 ": \"%.*s\" is neither a sample nor a location as printed by perf script",
                           number, import_scan_shown(&s), s.at);
}

enum profd_status import_perf_finish(struct import_perf *f, uint64_t end, uint32_t *count, struct profd_error *e)
{
    ARENA_BOUNDARY(f->arena, import_profile_exhausted(f->arena, e));
    end_sample(f);
    if (f->process_count == 0) {
        return f->other_events > 0 ? profd_error_set(e, PROFD_REFUSED, "it has no samples of event %s", f->wanted)
                                   : profd_error_set(e, PROFD_MALFORMED, "it has no samples");
    }

    /* If all periods of a clock are equal, its ticks are counted, not their nanoseconds. */
    const uint64_t rate = f->period > 0 && f->period <= 1000000000u ? (1000000000u + f->period / 2) / f->period : 0;
    const bool whole = f->is_clock && f->has_period && rate > 0 && 1000000000u / rate == f->period;
    for (uint32_t i = 0; i < f->process_count; i++) {
        struct perf_process *p = &f->processes[i];
        const char *process = arena_format(f->arena, "%s (%" PRIu64 ")", p->profile.program, p->number);
        p->profile.process = f->process_count > 1 ? process : "";
        p->profile.end = end;
        struct import_profile *q = &p->profile;
        if (!f->has_period || (!f->is_clock && !f->event[0])) {
            import_profile_set_dimension(q, "samples", 1);
        } else if (!f->is_clock) {
            import_profile_set_event(q, f->event, strlen(f->event));
        } else {
            import_profile_set_dimension(q, "seconds", whole ? (uint32_t)rate : 1000000000u);
        }
        for (uint32_t k = 0; whole && k < q->frame_count; k++) {
            q->frames[k].ticks /= f->period;
        }
        for (uint32_t k = 0; whole && k < q->node_count; k++) {
            q->nodes[k].ticks /= f->period;
        }
        if (f->timed && p->first <= p->last && end > f->last - p->first) {
            p->profile.end = end - (f->last - p->last);
            p->profile.start = end - (f->last - p->first);
        }
    }
    const char *others = "", *threads = "";
    if (f->other_events > 0) {
        others = arena_format(
            f->arena, "%" PRIu64 " samples of events other than %s were left out; select another event with --event",
            f->other_events, f->event);
    }
    if (f->without_pids && f->process_count > 1) {
        threads = arena_format(
            f->arena, "%sno process ids: each of %u threads is stored as a process; add them with perf script -F +pid",
            f->other_events > 0 ? "; " : "", f->process_count);
    }
    f->words = arena_format(f->arena, "%s%s", others, threads);
    *count = f->process_count;
    return PROFD_OK;
}

const struct import_profile *import_perf_process(const struct import_perf *f, uint32_t index)
{
    return &f->processes[index].profile;
}

const char *import_perf_words(const struct import_perf *f)
{
    return f->words;
}

/* "123" or "123/124" */
static bool take_thread(struct import_scan word, struct perf_heading *h)
{
    uint64_t first, second;
    if (!import_scan_number(&word, 10, &first)) {
        return false;
    }
    h->has_pid = word.at < word.end && *word.at == '/';
    h->pid = h->tid = first;
    if (h->has_pid) {
        word.at++;
        if (!import_scan_number(&word, 10, &second)) {
            return false;
        }
        h->tid = second;
    }
    return word.at == word.end;
}

/* "12345.678901:" */
static bool take_time(struct import_scan word, uint64_t *ns)
{
    uint64_t seconds, fraction;
    if (!import_scan_number(&word, 10, &seconds) || word.at == word.end || *word.at != '.') {
        return false;
    }
    word.at++;
    const char *begin = word.at;
    if (!import_scan_number(&word, 10, &fraction) || word.end - word.at != 1 || *word.at != ':' ||
        word.at - begin > 9) {
        return false;
    }
    for (size_t digits = (size_t)(word.at - begin); digits < 9; digits++) {
        fraction *= 10;
    }
    return !__builtin_mul_overflow(seconds, UINT64_C(1000000000), &seconds) &&
           !__builtin_add_overflow(seconds, fraction, ns);
}

static struct import_scan next_word(const struct import_scan *rest)
{
    struct import_scan s = *rest;
    return import_scan_word(&s);
}

static void skip_word(struct import_scan *rest)
{
    (void)import_scan_word(rest);
}

/* Reads the part after the thread. */
static bool heading_finish(struct import_scan rest, struct perf_heading *h)
{
    struct import_scan word = next_word(&rest);
    if (word.at < word.end && *word.at == '[' && word.end[-1] == ']') { /* the CPU */
        skip_word(&rest);
        word = next_word(&rest);
    }
    h->has_time = take_time(word, &h->time);
    if (h->has_time) {
        skip_word(&rest);
        word = next_word(&rest);
    }
    struct import_scan behind = rest;
    skip_word(&behind);
    struct import_scan second = next_word(&behind);
    struct import_scan digits = word;
    if (import_scan_number(&digits, 10, &h->period) && digits.at == digits.end && import_scan_left(&second) > 1 &&
        second.end[-1] == ':') {
        h->has_period = true;
        skip_word(&rest);
        word = second;
    }
    if (import_scan_left(&word) > 1 && word.end[-1] == ':') {
        h->event = (struct import_scan){word.at, word.end - 1};
        skip_word(&rest);
    }
    import_scan_trim(&rest);
    h->place = rest;
    struct perf_place place;
    return rest.at == rest.end || h->event.at != h->event.end || perf_place_parse(rest, &place);
}

bool perf_heading_parse(struct import_scan line, struct perf_heading *out)
{
    import_scan_trim(&line);
    struct import_scan rest = line;
    skip_word(&rest);
    const char *comm_end = rest.at;
    while (rest.at < rest.end) {
        struct import_scan word = import_scan_word(&rest);
        struct perf_heading h = {
            .comm = {line.at, comm_end}, .event = {line.end, line.end}, .place = {line.end, line.end}};
        if (take_thread(word, &h) && heading_finish(rest, &h)) {
            *out = h;
            return true;
        }
        comm_end = word.end;
    }
    return false;
}

/* Takes the object, the text in the last matching pair of brackets. */
static bool take_object(struct import_scan *rest, struct import_scan *object)
{
    size_t depth = 0;
    if (rest->at == rest->end || rest->end[-1] != ')') {
        return false;
    }
    for (const char *p = rest->end; p-- > rest->at;) {
        depth += *p == ')';
        if (*p == '(' && --depth == 0) {
            *object = (struct import_scan){p + 1, rest->end - 1};
            rest->end = p;
            import_scan_trim(rest);
            return true;
        }
    }
    return false;
}

/* Removes "+0x1f" at the end. */
static bool take_offset(struct import_scan *name, uint64_t *offset)
{
    const char *plus = name->end;
    while (plus > name->at && plus[-1] != '+') {
        plus--;
    }
    struct import_scan s = {plus, name->end};
    if (plus == name->at || !import_scan_begins(&s, "0x") || !import_scan_any_number(&s, offset) || s.at != s.end) {
        return false;
    }
    name->end = plus - 1;
    return true;
}

bool perf_place_parse(struct import_scan line, struct perf_place *out)
{
    uint64_t ignored;
    import_scan_trim(&line);
    struct perf_place p = {.name = {line.end, line.end}, .object = {line.end, line.end}};
    struct import_scan word = import_scan_word(&line);
    if (!import_scan_number(&word, 16, &p.address) || word.at != word.end) {
        return false;
    }
    import_scan_trim(&line);
    if (!take_object(&line, &p.object) && line.at != line.end && import_scan_begins(&line, "(")) {
        return false;
    }
    (void)take_offset(&p.object, &ignored);
    p.name = line;
    p.has_offset = take_offset(&p.name, &p.offset);
    if (import_scan_is(&p.name, "[unknown]")) {
        p.name.end = p.name.at;
        p.has_offset = false;
    }
    *out = p;
    return true;
}

struct import_scan perf_event_name(struct import_scan event)
{
    if (event.at == event.end) {
        return event;
    }
    const char *slash = memchr(event.at, '/', import_scan_left(&event));
    if (slash) {
        const char *end = memchr(slash + 1, '/', (size_t)(event.end - slash - 1));
        return (struct import_scan){slash + 1, end ? end : event.end};
    }
    const char *colon = event.end;
    while (colon > event.at && colon[-1] != ':') {
        if (!memchr("ukhGHpPSDIWeb", colon[-1], 13)) {
            return event;
        }
        colon--;
    }
    if (colon > event.at + 1) {
        event.end = colon - 1;
    }
    return event;
}
