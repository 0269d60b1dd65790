#include <math.h>
#include <string.h>

#include "core/report.h"
#include "proto/message.h"
#include "render/render_internal.h"

/* format=callgrind: the profile format of Valgrind's callgrind (manual, "Callgrind Format Specification"), for
 * KCachegrind and callgrind_annotate. Call counts are exact unless a line "desc: Calls:" says otherwise. Costs are
 * nanoseconds, or what else was sampled; if all ticks have one rate, a line "desc: Ticks a second:" states it. Arcs
 * inside a cycle carry calls and no time.
 *
 * Costs stand at addresses: at those of the bins that lie wholly in the function, and at its first one for the rest.
 * Lines are the first of each function; "desc: Build of (N):" says where a reader may look the others up. */

/* Names are written once and then by number. */
struct callgrind {
    const struct report *report;
    struct report_places places;
    const struct name_list *names;
    struct arena *arena;
    struct buffer *out;
    bool *named, *file_named, *build_named; /* functions, files and builds with their names already written */
};

/* Whole nanoseconds, or units of another dimension. */
static uint64_t cost(const struct report *r, double seconds)
{
    return seconds > 0 ? (uint64_t)floor(seconds * (r->in_seconds ? 1e9 : 1) + 0.5) : 0;
}

/* prefix: "" for the function a block is about, "c" for one that is called. Every function has a file of its own
 * number, since names alone would join functions of one name. A class of addresses has another one as a caller: readers
 * would find cycles through it. */
static void add_position(struct callgrind *c, const char *prefix, uint32_t position, bool apart)
{
    const struct report_function *f = &c->report->functions[position];
    const uint32_t number = position + (apart ? c->report->function_count : 0);
    buffer_add_format(c->out, "%sob=(%u)", prefix, f->build + 1);
    if (!c->build_named[f->build]) {
        const char *name = f->build < c->report->build_count ? c->report->build_names[f->build] : "[outside]";
        buffer_add_format(c->out, " %s", name_make_safe(c->arena, name && name[0] != '\0' ? name : "[unknown]"));
        c->build_named[f->build] = true;
    }
    const char *file = apart                           ? "(calls out of it)"
                       : f->file && f->file[0] != '\0' ? name_make_safe(c->arena, f->file)
                                                       : "???";
    buffer_add_format(c->out, "\n%s=(%u)", prefix[0] == 'c' ? "cfi" : "fl", number + 1);
    if (!c->file_named[number]) {
        buffer_add_format(c->out, " %s", file);
        c->file_named[number] = true;
    }
    buffer_add_format(c->out, "\n%sfn=(%u)", prefix, position + 1);
    if (!c->named[position]) {
        buffer_add_char(c->out, ' ');
        buffer_add_text(c->out, c->names->text[position]);
        c->named[position] = true;
    }
    buffer_add_char(c->out, '\n');
}

static void add_cost(struct callgrind *c, const struct report_function *f, uint64_t address, uint64_t units)
{
    buffer_add_format(c->out, "0x%llx %lu %llu\n", (unsigned long long)address, (unsigned long)f->line,
                      (unsigned long long)units);
}

/* A function's own costs, and its calls. The costs at addresses are rounded so that their sum is the rounded self time.
 * The rest stands first, also if it is 0: a reader finds there where the function begins. */
static void add_function(struct callgrind *c, uint32_t position)
{
    const struct report_function *f = &c->report->functions[position];
    const uint32_t begin = c->places.first[position], end = c->places.first[position + 1];
    double sum = 0;
    buffer_add_char(c->out, '\n');
    add_position(c, "", position, false);
    for (uint32_t i = begin; i < end; i++) {
        sum += c->places.list[i].seconds;
    }
    const uint64_t whole = cost(c->report, f->self);
    uint64_t said = cost(c->report, sum);
    add_cost(c, f, f->address, said < whole ? whole - said : 0);
    for (uint32_t i = begin; i < end; i++) {
        const double rest = sum - c->places.list[i].seconds;
        uint64_t left = cost(c->report, i + 1 < end ? rest : 0);
        said = said < whole ? said : whole;
        left = left < said ? left : said;
        add_cost(c, f, c->places.list[i].address, said - left);
        said = left;
        sum = rest;
    }

    if (report_kind_is_class(f->kind) && f->callee_count > 0) {
        add_position(c, "", position, true);
    }
    for (uint32_t i = 0; i < f->callee_count && !c->out->failed; i++) {
        const struct report_arc *arc = &f->callees[i];
        if (arc->calls == 0 && !(arc->self + arc->children > 0)) {
            continue;
        }
        add_position(c, "c", arc->other, false);
        const struct report_function *callee = &c->report->functions[arc->other];
        buffer_add_format(c->out, "calls=%llu 0x%llx %lu\n", (unsigned long long)arc->calls,
                          (unsigned long long)callee->address, (unsigned long)callee->line);
        add_cost(c, f, f->address, cost(c->report, arc->self + arc->children));
    }
}

enum profd_status callgrind_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                   struct profd_error *e)
{
    (void)e;
    const struct report *r = in->report;
    struct name_list names;
    struct callgrind c = {.report = r, .names = &names, .arena = a, .out = out};
    c.named = ARENA_ARRAY(a, (size_t)r->function_count + 1, bool);
    c.file_named = ARENA_ARRAY(a, 2 * (size_t)r->function_count + 1, bool);
    c.build_named = ARENA_ARRAY(a, (size_t)r->build_count + 1, bool);
    name_list_make(r, in->show.short_names, a, &names);
    report_places_make(a, r, in->profile, &c.places);
    uint64_t total = 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        total += cost(r, r->functions[i].self);
    }
    const char *command = name_make_safe(a, in->build_name ? in->build_name : "");
    buffer_add_format(out, "# callgrind format\nversion: 1\ncreator: profd " PROFD_VERSION "\ncmd: %s\n", command);
    const uint32_t inexact = in->provenance->inexact;
    const char *reasons = reasons_list(in, a);
    buffer_add_format(out, "desc: Build: %s\n%sdesc: Not exact: %s\ndesc: Processes: %llu\npositions: instr line\n",
                      in->build_id,
                      (inexact & INEXACT_SAMPLED) != 0 ? "desc: Calls: sampled, at least in part\n"
                      : (inexact & INEXACT_CALLS) != 0 ? "desc: Calls: counted, but not exact\n"
                                                       : "",
                      reasons, (unsigned long long)in->provenance->processes);
    if (r->in_seconds && r->rate_count == 1) {
        buffer_add_format(out, "desc: Ticks a second: %lu\n", (unsigned long)r->rates[0]);
    }
    if (r->time_measured) {
        buffer_add_text(out,
                        "desc: Inclusive times: measured, from stacks; calls=0: a call seen in stacks, not counted\n");
    }
    for (uint32_t i = 0; i < r->build_count; i++) {
        buffer_add_format(out, "desc: Build of (%u): %s\n", i + 1, r->builds[i]);
    }
    if (c.places.bin_bytes > 0) {
        buffer_add_format(out,
                          "desc: Addresses: beginnings of bins of up to %llu bytes; of calls, and of what shares bins: "
                          "of functions\ndesc: Lines: the first of each function\n",
                          (unsigned long long)c.places.bin_bytes);
    }
    /* The name of an event is of letters, digits and underscores. */
    char event[32] = "ns";
    for (size_t i = 0; !r->in_seconds && i + 1 < sizeof event && (i == 0 || r->dimension[i - 1] != '\0'); i++) {
        char x = r->dimension[i];
        bool plain = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (i > 0 && x >= '0' && x <= '9');
        event[i] = (char)(plain || x == '\0' ? x : '_');
        event[i + 1] = '\0';
    }
    if (r->in_seconds) {
        buffer_add_format(out, "event: ns : %s in nanoseconds\n",
                          strcmp(r->dimension, "wall") == 0 ? "elapsed time, waiting included," : "CPU time");
    }
    buffer_add_format(out, "events: %s\n", event);
    buffer_add_format(out, "summary: %llu\n", (unsigned long long)total);
    for (uint32_t i = 0; i < r->function_count && !out->failed; i++) {
        if (r->functions[i].index != 0) {
            add_function(&c, i);
        }
    }
    return PROFD_OK;
}
