#include <string.h>

#include "proto/sort.h"
#include "proto/sum.h"
#include "core/row_table.h"
#include "import/import_any_internal.h"
#include "lib/profd_upload.h"
#include "proto/limits.h"

/* An object of the profile. */
struct place_object {
    const struct import_binary *binary; /* NULL: not available */
    uint32_t build;                     /* of the upload; PROFD_NOWHERE if outside */
    bool used;                          /* a frame is in it */
    bool has_bias;                      /* of IMPORT_MOVED: offset to subtract from addresses */
    uint64_t bias;
    bool in_file; /* of IMPORT_MOVED: addresses are offsets in the file */
    uint32_t frames, placed;
};

/* Place of a frame. entry: first address of its function. */
struct place_frame {
    uint32_t build;
    uint64_t at, entry;
};

struct place {
    const struct import_profile *profile;
    struct import_notes *notes;
    struct arena *arena;
    struct place_object *objects;
    struct place_frame *frames;
    struct profd_upload *upload;
    struct place_span *spans; /* of the upload's builds: range of their histograms */
    uint32_t build_count;
    bool saturated; /* a sum reached its end */
    bool ambiguous; /* a frame was placed at the first of several functions of its name */
    bool lost;      /* a frame of a build could not be placed */
    bool outside;   /* ticks in no build were left out */
};

/* Addresses of a build: [low, high). */
struct place_span {
    uint64_t low, high;
};

#define PAGE 4096u
#define VOTES 4096u     /* frames of an object that are used to determine how far it was moved */
#define CANDIDATES 256u /* answers that are tried */
#define WIDE 64u        /* pages; a frame that allows more offsets is not used */

/* One frame allows that the object was moved by [low, high] (modulo 2^64). */
struct vote {
    uint64_t low, high;
};

static bool vote_take(const struct import_binary *b, const struct import_frame *f, struct vote *out)
{
    struct import_function function;
    if (!f->has_address || !f->name || !import_binary_find(b, f->name, f->file, &function) || function.ambiguous) {
        return false;
    }
    if (f->offset != IMPORT_NO_OFFSET) {
        out->low = out->high = f->address - f->offset - function.address;
    } else {
        out->high = f->address - function.address;
        out->low = out->high - (function.size - 1);
    }
    return true;
}

static bool vote_allows(const struct vote *v, uint64_t bias)
{
    return bias - v->low <= v->high - v->low;
}

/* Returns the multiple of a page that most frames allow, if more than half of them do and no other is as frequent. */
static void find_bias(const struct vote *votes, uint32_t n, struct place_object *k)
{
    uint64_t tried[CANDIDATES];
    uint32_t tried_count = 0, best = 0;
    bool tie = false;
    for (uint32_t i = 0; i < n && tried_count < CANDIDATES; i++) {
        uint64_t first = (votes[i].low + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        for (uint64_t bias = first;
             vote_allows(&votes[i], bias) && (bias - first) / PAGE < WIDE && tried_count < CANDIDATES; bias += PAGE) {
            bool known = false;
            for (uint32_t t = 0; t < tried_count && !known; t++) {
                known = tried[t] == bias;
            }
            if (known) {
                continue;
            }
            uint32_t allowed = 0;
            for (uint32_t v = 0; v < n; v++) {
                allowed += vote_allows(&votes[v], bias);
            }
            tried[tried_count++] = bias;
            tie = allowed == best || (tie && allowed < best);
            if (allowed > best) {
                best = allowed;
                k->bias = bias;
            }
        }
    }
    k->has_bias = best > n / 2 && !tie;
}

static bool place_in_file(const struct import_binary *b, uint64_t address, uint64_t *at)
{
    return import_binary_load(b, address, at) && import_binary_holds(b, *at);
}

/* Determines how far each object was moved. */
static void find_biases(struct place *w)
{
    const struct import_profile *p = w->profile;
    struct vote *votes = ARENA_ARRAY(w->arena, VOTES, struct vote);
    uint32_t *next =
        ARENA_ARRAY(w->arena, (size_t)p->frame_count + 1, uint32_t); /* next frame of the same object, plus 1 */
    uint32_t *first = ARENA_ARRAY(w->arena, (size_t)p->object_count + 1, uint32_t);
    for (uint32_t i = p->frame_count; i-- > 0;) {
        if (p->frames[i].object != IMPORT_NONE && p->frames[i].has_address) {
            next[i] = first[p->frames[i].object];
            first[p->frames[i].object] = i + 1;
        }
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        uint32_t n = 0;
        if (p->objects[i].addressing != IMPORT_MOVED || !w->objects[i].binary) {
            continue;
        }
        for (uint32_t f = first[i]; f != 0 && n < VOTES; f = next[f - 1]) {
            n += vote_take(w->objects[i].binary, &p->frames[f - 1], &votes[n]);
        }
        if (n > 0) {
            find_bias(votes, n, &w->objects[i]);
        } else {
            /* Frames of a stripped object have no names to look up. Tools then write file offsets or, for objects that
             * cannot be relocated, addresses. They are accepted if nine in ten of them are in code (stack walks contain
             * errors). */
            uint64_t all = 0, in_file = 0, here = 0, at;
            for (uint32_t frame = first[i]; frame != 0; frame = next[frame - 1]) {
                const uint64_t address = p->frames[frame - 1].address;
                all++;
                in_file += place_in_file(w->objects[i].binary, address, &at);
                here += import_binary_holds(w->objects[i].binary, address);
            }
            w->objects[i].in_file = all > 0 && in_file * 10 >= all * 9;
            w->objects[i].has_bias = all > 0 && here * 10 >= all * 9 && !w->objects[i].in_file;
            w->objects[i].bias = 0;
        }
    }
}

/* Places a frame by its address. False if the address has no meaning, or is not code. */
static bool place_by_address(const struct import_object *o, const struct place_object *k, const struct import_frame *f,
                             uint64_t *at)
{
    if (!f->has_address) {
        return false;
    }
    switch (o->addressing) {
    case IMPORT_LINK_TIME:
        *at = f->address;
        break;
    case IMPORT_IN_FILE:
        *at = f->address;
        if (k->binary && !import_binary_load(k->binary, f->address, at)) {
            return false;
        }
        break;
    default:
        if (k->in_file) {
            return place_in_file(k->binary, f->address, at);
        }
        if (!k->has_bias) {
            return false;
        }
        *at = f->address - k->bias;
        break;
    }
    return !k->binary || import_binary_holds(k->binary, *at);
}

static bool place_by_name(struct place *w, const struct place_object *k, const struct import_frame *f, uint64_t *at)
{
    struct import_function function;
    if (!f->name || !k->binary || !import_binary_find(k->binary, f->name, f->file, &function)) {
        w->notes->nameless += f->name != NULL;
        return false;
    }
    w->notes->ambiguous += function.ambiguous;
    w->ambiguous |= function.ambiguous;
    *at = function.address + (f->offset != IMPORT_NO_OFFSET && f->offset < function.size ? f->offset : 0);
    return true;
}

/* Places all frames. */
static void place_frames(struct place *w)
{
    const struct import_profile *p = w->profile;
    find_biases(w);
    for (uint32_t i = 0; i < p->frame_count; i++) {
        const struct import_frame *f = &p->frames[i];
        struct place_frame *place = &w->frames[i];
        place->build = PROFD_NOWHERE;
        if (f->object == IMPORT_NONE || w->objects[f->object].build == PROFD_NOWHERE) {
            continue;
        }
        const struct import_object *o = &p->objects[f->object];
        struct place_object *k = &w->objects[f->object];
        k->frames++;
        bool by_name = o->addressing == IMPORT_MOVED || !f->has_address;
        if (place_by_address(o, k, f, &place->at) || (by_name && place_by_name(w, k, f, &place->at))) {
            place->build = k->build;
            place->entry = k->binary ? import_binary_entry(k->binary, place->at) : place->at;
            k->placed++;
        } else {
            w->lost = true;
        }
    }
}

uint32_t import_place_program(const struct import_profile *p)
{
    static const char *const first[] = {"main", "_start", "(below main)"};
    uint32_t best = IMPORT_NONE;
    int score = 0;
    if (p->program_object != IMPORT_NONE) {
        return p->program_object;
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        const struct import_object *o = &p->objects[i];
        bool library = strstr(basename(o->path), ".so") != NULL;
        const char *base = basename(o->path);
        int points = o->outside                                                           ? 0
                     : (p->program[0] != '\0' && strcmp(base, basename(p->program)) == 0) ? 100
                     : library                                                            ? 1
                                                                                          : 50;
        if (points > score) {
            best = i;
            score = points;
        }
    }
    for (uint32_t i = 0; i < p->frame_count && score <= 50; i++) { /* of several programs (plug-ins) the first one */
        const struct import_frame *f = &p->frames[i];
        if (f->object == IMPORT_NONE || !f->name || p->objects[f->object].outside ||
            strstr(basename(p->objects[f->object].path), ".so")) {
            continue;
        }
        for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) {
            if (strcmp(f->name, first[k]) == 0) {
                return f->object;
            }
        }
    }
    return best;
}

/* Finds or adds a build: several objects of a profile may be parts of one build. */
static enum profd_status add_build(struct place *w, const char *id, const char *name, const struct place_span *span,
                                   uint32_t *build, struct profd_error *e)
{
    for (uint32_t i = 0; i < w->build_count; i++) {
        if (strcmp(profd_upload_build_id(w->upload, i), id) == 0) {
            w->spans[i].low = span->low < w->spans[i].low ? span->low : w->spans[i].low;
            w->spans[i].high = span->high > w->spans[i].high ? span->high : w->spans[i].high;
            *build = i;
            return PROFD_OK;
        }
    }
    TRY(profd_upload_add_build(w->upload, id, name, build, e));
    w->spans[*build] = *span;
    w->build_count++;
    return PROFD_OK;
}

/* Assigns a build to an object; outside if there is none. */
static enum profd_status place_object(struct place *w, struct import_shelf *shelf, uint32_t index, bool is_program,
                                      bool strict, struct profd_error *e)
{
    const struct import_object *o = &w->profile->objects[index];
    struct import_object sought = *o;
    struct place_object *k = &w->objects[index];
    struct profd_error why = {""};
    if (is_program && !sought.build_id) {
        sought.build_id = w->profile->program_id;
    }
    k->build = PROFD_NOWHERE;
    if (o->outside) {
        return PROFD_OK;
    }
    enum profd_status status = import_shelf_find(shelf, w->profile, &sought, is_program, &k->binary, &why);
    FAIL_IF(status == PROFD_NO_MEMORY, e, status, "%s", why.sentence);
    if (status == PROFD_OK) {
        const struct profd_executable *x = import_binary_executable(k->binary);
        struct place_span span;
        import_binary_span(k->binary, &span.low, &span.high);
        return add_build(w, profd_executable_build_id(x), o->path[0] == '/' ? o->path : profd_executable_path(x), &span,
                         &k->build, e);
    }
    if (sought.build_id && o->addressing != IMPORT_MOVED) { /* names may come later */
        const struct place_span span = {o->low, o->high > o->low ? o->high : o->low + 1};
        return add_build(w, sought.build_id, o->path, &span, &k->build, e);
    }
    FAIL_IF(is_program || strict, e, status, "%s: %s",
            is_program ? "the file of the program is required; name it with -e EXE or --root DIR"
                       : "mapping without a build-id: its file is required; name its directory with --root DIR",
            why.sentence);
    struct profd_error said;
    (void)profd_error_set(&said, status, "%s: its counts are stored as outside", why.sentence);
    if (w->notes->say) {
        w->notes->say(w->notes->context, said.sentence);
    }
    return PROFD_OK;
}

/* An end outside has address 0: its address differs from process to process. A caller's address is behind the first
 * byte of its function, where reports see the last call of the function before. */
static enum profd_status place_calls(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    struct profd_arc *arcs = NULL; /* in order of arrival, each once */
    struct table table = {.used = 0};
    for (uint32_t i = 0; i < p->pair_count; i++) {
        const struct import_pair *pair = &p->pairs[i];
        const struct place_frame *from = &w->frames[pair->from], *to = &w->frames[pair->to];
        bool from_outside = from->build == PROFD_NOWHERE, to_outside = to->build == PROFD_NOWHERE;
        bool ignored = false;
        sum_add(&w->notes->calls, pair->calls, &ignored);
        sum_add(&w->notes->outside_calls, from_outside || to_outside ? pair->calls : 0, &ignored);
        if (pair->calls == 0 || (from_outside && to_outside)) {
            continue;
        }
        const struct import_binary *b = from_outside ? NULL : w->objects[p->frames[pair->from].object].binary;
        const bool inside = b && import_binary_entry(b, from->at + 1) == from->entry;
        const struct profd_arc fresh = {.from_build = from->build,
                                        .to_build = to->build,
                                        .from = from_outside ? 0 : from->at + inside,
                                        .to = to_outside ? 0 : to->entry};
        uint32_t at;
        (void)TABLE_TAKE(&table, w->arena, arcs, fresh, to, &at);
        sum_add(&arcs[at].calls, pair->calls, &w->saturated);
    }
    for (uint32_t i = 0; i < table.used; i++) {
        TRY(profd_upload_add_arc(w->upload, &arcs[i], e));
    }
    return PROFD_OK;
}

static int place_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct place_frame *x = &((const struct place_frame *)context)[a],
                             *y = &((const struct place_frame *)context)[b];
    return compare_pairs(x->build, y->build, x->at, y->at);
}

/* Bins of one build: order[first … end). */
static enum profd_status add_histogram(struct place *w, const uint32_t *order, uint32_t first, uint32_t end,
                                       struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    uint32_t build = w->frames[order[first]].build, used = 0;
    struct place_span span = w->spans[build];
    uint64_t last = w->frames[order[end - 1]].at;
    uint32_t *index = ARENA_ARRAY(w->arena, end - first, uint32_t);
    uint64_t *ticks = ARENA_ARRAY(w->arena, end - first, uint64_t);
    span.low = w->frames[order[first]].at < span.low ? w->frames[order[first]].at : span.low;
    span.high = last >= span.high ? last + 1 : span.high;
    FAIL_IF(span.high - span.low > UINT32_MAX || span.high < span.low, e, PROFD_REFUSED,
            "the code of build %.12s spans more than 4 GiB", profd_upload_build_id(w->upload, build));
    for (uint32_t i = first; i < end; i++) {
        uint32_t bin = (uint32_t)(w->frames[order[i]].at - span.low);
        if (used == 0 || index[used - 1] != bin) {
            index[used++] = bin;
        }
        sum_add(&ticks[used - 1], p->frames[order[i]].ticks, &w->saturated);
    }
    struct counts_histogram h = {.build = build,
                                 .bins = (uint32_t)(span.high - span.low),
                                 .low = span.low,
                                 .high = span.high,
                                 .rate = p->rate,
                                 .abbreviation = p->abbreviation,
                                 .first = 0,
                                 .used = used};
    memcpy(h.dimension, p->dimension, sizeof h.dimension);
    const struct counts c = {
        .histogram_count = 1, .bin_count = used, .histograms = &h, .bin_index = index, .bin_ticks = ticks};
    return upload_add_counts(w->upload, &c, e);
}

/* Adds the ticks, as one histogram for each build. */
static enum profd_status place_ticks(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    uint32_t *order = ARENA_ARRAY(w->arena, (size_t)p->frame_count * 2 + 1, uint32_t), n = 0;
    bool ignored = false;
    for (uint32_t i = 0; i < p->frame_count; i++) {
        sum_add(&w->notes->ticks, p->frames[i].ticks, &ignored);
        if (w->frames[i].build == PROFD_NOWHERE) {
            sum_add(&w->notes->outside_ticks, p->frames[i].ticks, &ignored);
            w->outside |= p->frames[i].ticks > 0;
        } else if (p->frames[i].ticks > 0) {
            order[n++] = i;
        }
    }
    sort_merge(order, order + p->frame_count, n, place_compare, w->frames);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && w->frames[order[end]].build == w->frames[order[first]].build; end++) {
        }
        TRY(add_histogram(w, order, first, end, e));
    }
    return PROFD_OK;
}

/* Functions that have no caller, and main, which only start-up code calls. */
static const char *const outermost[] = {"_start",       "main",  "__libc_start_main", "__libc_start_call_main",
                                        "start_thread", "clone", "__clone",           "clone3",
                                        "__clone3"};
#define OUTERMOST (sizeof outermost / sizeof outermost[0])
#define MAIN 1u

struct place_stacks {
    struct place *place;
    uint64_t (*entries)[OUTERMOST]; /* of each object: first address of each of them; 0: it has none */
    uint32_t builds[LIMIT_STACK_DEPTH + 1], frames[LIMIT_STACK_DEPTH + 1];
    uint64_t addresses[LIMIT_STACK_DEPTH + 1];
};

static bool is_function(const struct place_stacks *s, uint32_t frame, size_t which)
{
    const struct import_frame *f = &s->place->profile->frames[frame];
    if (f->object == IMPORT_NONE) {
        return false;
    }
    size_t n = strlen(outermost[which]);
    uint64_t entry = s->entries[f->object][which];
    return (f->name && strncmp(f->name, outermost[which], n) == 0 && (f->name[n] == '\0' || f->name[n] == '@')) ||
           (entry != 0 && s->place->frames[frame].build != PROFD_NOWHERE && s->place->frames[frame].entry == entry);
}

/* Return address of a caller. Its frame is at the last byte of the call, or, where the file names the function only, at
 * the function's first address. Both become the address behind, if the function has one: its first address would be
 * behind a call that does not return and is the last of the function before. An offset of 0 is the file's own return
 * address. */
static uint64_t return_address(const struct place *w, uint32_t frame)
{
    const struct place_frame *f = &w->frames[frame];
    const struct import_frame *given = &w->profile->frames[frame];
    const struct import_binary *b = given->object == IMPORT_NONE ? NULL : w->objects[given->object].binary;
    const bool of_file = f->build == PROFD_NOWHERE || (given->has_address && given->offset == 0);
    return f->at +
           (!of_file && (f->at != f->entry || !given->name || (b && import_binary_entry(b, f->at + 1) == f->entry)));
}

/* Adds the stacks that end at a node. */
static enum profd_status add_stack(struct place_stacks *s, const struct import_node *node, struct profd_error *e)
{
    const struct place *w = s->place;
    const struct import_profile *p = w->profile;
    uint32_t n = 0, at = (uint32_t)(node - p->nodes);
    for (; at != IMPORT_NONE && p->nodes[at].frame != IMPORT_CUT; at = p->nodes[at].parent) {
        s->frames[LIMIT_STACK_DEPTH - ++n] = p->nodes[at].frame;
    }
    const uint32_t *frames = &s->frames[LIMIT_STACK_DEPTH - n];
    for (uint32_t i = 0; i < n; i++) {
        s->builds[i] = w->frames[frames[i]].build;
        s->addresses[i] = i + 1 < n ? return_address(w, frames[i]) : w->frames[frames[i]].at;
    }

    /* A stack is whole if it begins where all stacks of a thread do. Tools that follow frame pointers see one frame or
     * none of the code that calls main. */
    bool whole = at == IMPORT_NONE && (p->whole_stacks || (n > 1 && is_function(s, frames[1], MAIN)));
    for (size_t k = 0; at == IMPORT_NONE && !whole && k < OUTERMOST; k++) {
        whole = is_function(s, frames[0], k);
    }
    const struct profd_stack stack = {.rate = p->rate,
                                      .frames = n,
                                      .pc = true,
                                      .incomplete = !whole,
                                      .build = s->builds,
                                      .address = s->addresses,
                                      .ticks = node->ticks};
    return upload_add_stack(w->upload, p->dimension, p->abbreviation, &stack, e);
}

/* Adds the stacks, except those that end in no build: their ticks are in no histogram. O(stacks · depth). */
static enum profd_status place_stacks(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    bool callers = false;
    for (uint32_t i = 0; i < p->node_count; i++) {
        callers |= p->nodes[i].parent != IMPORT_NONE;
    }
    if (!callers) { /* the file has no stacks */
        return PROFD_OK;
    }
    struct place_stacks *s = ARENA_NEW(w->arena, struct place_stacks);
    s->entries = arena_take_array(w->arena, (size_t)p->object_count + 1, sizeof *s->entries);
    s->place = w;
    for (uint32_t i = 0; i < p->object_count; i++) {
        for (size_t k = 0; k < OUTERMOST && w->objects[i].binary; k++) {
            struct import_function function;
            if (import_binary_find(w->objects[i].binary, outermost[k], NULL, &function) && !function.ambiguous) {
                s->entries[i][k] = function.address;
            }
        }
    }
    for (uint32_t i = 0; i < p->node_count; i++) {
        const struct import_node *node = &p->nodes[i];
        if (node->ticks > 0 && w->frames[node->frame].build != PROFD_NOWHERE) {
            TRY(add_stack(s, node, e));
        }
    }
    return PROFD_OK;
}

/* Places the objects and the frames, and adds their counts to the upload. */
static enum profd_status place_run(struct place *w, struct import_shelf *shelf, bool strict, struct profd_error *e)
{
    ARENA_BOUNDARY(w->arena, profd_no_memory(e));
    const struct import_profile *p = w->profile;
    const uint32_t program = import_place_program(p);
    w->objects = ARENA_ARRAY(w->arena, (size_t)p->object_count + 1, struct place_object);
    w->frames = ARENA_ARRAY(w->arena, (size_t)p->frame_count + 1, struct place_frame);
    w->spans = ARENA_ARRAY(w->arena, LIMIT_BUILDS, struct place_span);
    TRY(profd_upload_new(&w->upload, e));
    FAIL_IF(program == IMPORT_NONE, e, PROFD_REFUSED,
            "no tick or call is in a known build: all are in the kernel or in generated code");
    for (uint32_t i = 0; i < p->frame_count; i++) {
        if (p->frames[i].object != IMPORT_NONE) {
            w->objects[p->frames[i].object].used = true;
        }
    }
    TRY(place_object(w, shelf, program, true, strict, e));
    for (uint32_t i = 0; i < p->object_count; i++) {
        if (i != program && w->objects[i].used) {
            TRY(place_object(w, shelf, i, false, strict, e));
        }
    }
    place_frames(w);

    /* A file that has only names which every program has is not the file that ran. */
    const struct place_object *k = &w->objects[program];
    const bool certain = p->objects[program].build_id || p->program_id; /* the file has it, or there is none */
    FAIL_IF(k->frames > 0 && (certain ? k->placed == 0 : k->placed < k->frames - k->frames / 2), e, PROFD_WRONG_BUILD,
            "only %u of the %u functions and locations of %s are in %s, so it is not the file that ran", k->placed,
            k->frames, basename(p->objects[program].path),
            k->binary ? profd_executable_path(import_binary_executable(k->binary)) : "that file");
    TRY(place_ticks(w, e));
    TRY(place_calls(w, e));
    return place_stacks(w, e);
}

enum profd_status import_place_profile(struct import_shelf *shelf, const struct import_profile *p, bool strict,
                                       struct import_notes *notes, struct profd_upload **out, struct profd_error *e)
{
    struct place w = {.profile = p, .notes = notes, .arena = arena_new(0), .saturated = p->saturated};
    TRY(w.arena ? PROFD_OK : profd_no_memory(e));
    enum profd_status status = place_run(&w, shelf, strict, e);
    if (status == PROFD_OK) {
        profd_upload_set_inexact(w.upload,
                                 (p->sampled ? (uint32_t)PROFD_INEXACT_SAMPLED : 0) |
                                     (w.saturated ? (uint32_t)PROFD_INEXACT_SATURATED : 0) |
                                     (w.outside ? (uint32_t)PROFD_INEXACT_TICKS_OUTSIDE : 0) | p->reasons |
                                     (w.ambiguous ? (uint32_t)PROFD_INEXACT_AMBIGUOUS_NAMES : 0) |
                                     (w.lost ? (uint32_t)(PROFD_INEXACT_CALLS_LOST | PROFD_INEXACT_TICKS_LOST) : 0));
        profd_upload_set_window(w.upload, p->start, p->end);
        profd_upload_set_processes_started(w.upload, p->processes);
        *out = w.upload;
    } else {
        profd_upload_free(w.upload);
        if (p->process[0] != '\0') {
            (void)profd_error_wrap(e, status, "%s", p->process);
        }
    }
    arena_free(w.arena);
    return status;
}
