/* Reads the lines "key: value" of callgrind.out. */
#include "import/import_callgrind_internal.h"

#include <inttypes.h>
#include <string.h>

/* Of profd's own exports. */
#define CALLGRIND_PROCESSES "Processes: "
#define CALLGRIND_TICKS "Ticks a second: "

/* Events that are time, and their ticks per second. */
static uint32_t time_rate(const struct import_scan *event)
{
    static const struct {
        const char *name;
        uint32_t rate;
    } times[] = {{"ns", 1000000000}, {"nsec", 1000000000}, {"nanoseconds", 1000000000},
                 {"us", 1000000},    {"usec", 1000000},    {"microseconds", 1000000},
                 {"ms", 1000},       {"msec", 1000},       {"milliseconds", 1000},
                 {"s", 1},           {"seconds", 1}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (import_scan_is(event, times[i].name)) {
            return times[i].rate;
        }
    }
    return 0;
}

static uint64_t pid_hash(const void *context, uint32_t index)
{
    return table_mix(((const struct import_callgrind *)context)->pids[index], 1);
}

/* True if no earlier part was of that process, or if memory is exhausted. */
static bool pid_is_new(struct import_callgrind *c, uint64_t pid)
{
    struct arena *a = c->profile.arena;
    void *list = arena_extend(a, c->pids, c->pid_count, &c->pid_capacity, sizeof *c->pids);
    if (!list || !table_reserve(&c->pid_table, a, pid_hash, c)) {
        return true;
    }
    c->pids = list;
    uint32_t at = table_slot(&c->pid_table, table_mix(pid, 1));
    for (; c->pid_table.slots[at] != 0; at = (at + 1) & c->pid_table.mask) {
        if (c->pids[c->pid_table.slots[at] - 1] == pid) {
            return false;
        }
    }
    c->pids[c->pid_count] = pid;
    c->pid_table.slots[at] = ++c->pid_count;
    c->pid_table.used++;
    return true;
}

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
    if (event.at == event.end) {
        return profd_error_set(e, PROFD_REFUSED, "line %" PRIu64 ": it has no event %s, only \"%.*s\"", number,
                               c->wanted ? c->wanted : "at all", import_scan_shown(&all), all.at);
    }
    if (c->event && !import_scan_is(&event, c->event)) {
        return profd_error_set(e, PROFD_REFUSED,
                               "line %" PRIu64
                               ": parts with different events, \"%.30s\" and \"%.*s\", cannot be added up",
                               number, c->event, import_scan_shown(&event), event.at);
    }
    /* Ends a header. A process is counted at its first part only, not at later parts and other threads. If files of
     * several processes were joined, each process is counted. */
    if (!c->counted) {
        bool first = c->part <= 1 && c->thread <= 1 && pid_is_new(c, c->pid);
        import_profile_set_processes(&c->profile, (c->part_seen ? c->profile.processes : 0) + (uint64_t)first);
    }
    c->tick_rate = !c->part_seen || c->tick_rate == c->part_tick_rate ? c->part_tick_rate : 0;
    c->part_tick_rate = 0;
    c->part_seen = true;
    c->part = c->thread = 0;
    c->column = column;
    c->event = import_texts_take(&c->texts, event.at, import_scan_left(&event));
    if (!c->event) {
        return import_profile_exhausted(c->profile.arena, e);
    }
    uint32_t rate = time_rate(&event);
    if (rate > 0) {
        import_profile_set_dimension(&c->profile, c->waiting ? "wall" : "seconds", c->waiting ? 4 : 7, rate);
    } else if (import_scan_is(&event, "Ir")) {
        import_profile_set_dimension(&c->profile, "instructions", 12, 1);
    } else {
        import_profile_set_dimension(&c->profile, event.at, import_scan_left(&event), 1);
    }
    return PROFD_OK;
}

static enum profd_status take_positions(struct import_callgrind *c, struct import_scan *value, uint64_t number,
                                        struct profd_error *e)
{
    struct import_scan all = *value;
    c->instructions = c->lines = false;
    for (;;) {
        struct import_scan word = import_scan_word(value);
        if (word.at == word.end) {
            break;
        }
        bool *which = import_scan_is(&word, "instr")  ? &c->instructions
                      : import_scan_is(&word, "line") ? &c->lines
                                                      : NULL;
        if (!which || *which || (which == &c->instructions && c->lines)) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "line %" PRIu64
                                   ": positions are \"instr\", \"line\" or \"instr line\", not \"%.*s\"",
                                   number, import_scan_shown(&all), all.at);
        }
        *which = true;
    }
    if (!c->instructions && !c->lines) {
        return profd_error_set(e, PROFD_MALFORMED, "line %" PRIu64 ": \"positions:\" is empty", number);
    }
    return PROFD_OK;
}

enum profd_status callgrind_take_header(struct import_callgrind *c, const struct import_scan *key,
                                        struct import_scan *value, uint64_t number, struct profd_error *e)
{
    const char *text = "";
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
        return take_positions(c, value, number, e);
    }
    if (import_scan_is(key, "part")) {
        (void)import_scan_number(value, 10, &c->part);
    } else if (import_scan_is(key, "pid")) {
        (void)import_scan_number(value, 10, &c->pid);
    } else if (import_scan_is(key, "thread")) {
        (void)import_scan_number(value, 10, &c->thread);
    } else if (import_scan_is(key, "cmd")) {
        struct import_scan word = import_scan_word(value);
        text = c->profile.program = import_texts_take(&c->texts, word.at, import_scan_left(&word));
    } else if (import_scan_is(key, "event")) { /* exports of profd state the dimension here */
        c->waiting |= memmem(value->at, import_scan_left(value), "elapsed time", 12) != NULL;
    } else if (import_scan_is(key, "desc") && import_scan_begins(value, "Calls: sampled")) {
        c->profile.sampled = true;
    } else if (import_scan_is(key, "desc") && import_scan_begins(value, "Calls: counted, but not exact")) {
        c->profile.lossy = true;
    } else if (import_scan_is(key, "desc") && import_scan_skip(value, "Not exact: ")) {
        import_profile_set_reasons(&c->profile, value->at, import_scan_left(value));
    } else if (import_scan_is(key, "desc") && import_scan_skip(value, CALLGRIND_PROCESSES)) {
        uint64_t n;
        if (import_scan_number(value, 10, &n)) {
            import_profile_set_processes(&c->profile, n);
            c->counted = true;
        }
    } else if (import_scan_is(key, "desc") && import_scan_skip(value, CALLGRIND_TICKS)) {
        uint64_t rate;
        c->part_tick_rate = import_scan_number(value, 10, &rate) && rate <= UINT32_MAX ? (uint32_t)rate : 0;
    } else if (import_scan_is(key, "desc") && import_scan_skip(value, "Build:")) {
        struct import_scan word = import_scan_word(value);
        text = c->profile.program_id = import_texts_take(&c->texts, word.at, import_scan_left(&word));
    }
    return text ? PROFD_OK : import_profile_exhausted(c->profile.arena, e);
}
