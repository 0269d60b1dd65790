#include <string.h>

#include "import/import_place_internal.h"
#include "lib/upload.h"
#include "proto/limits.h"

/* Functions that have no caller, and main, which only start-up code calls. */
static const char *const outermost[] = {"_start",       "main",  "__libc_start_main", "__libc_start_call_main",
                                        "start_thread", "clone", "__clone",           "clone3",
                                        "__clone3"};
#define OUTERMOST (sizeof outermost / sizeof outermost[0])
#define MAIN 1u

struct stacks {
    struct place *place;
    uint64_t (*entries)[OUTERMOST]; /* of each object: first address of each of them; 0: it has none */
    uint32_t builds[LIMIT_STACK_DEPTH + 1], frames[LIMIT_STACK_DEPTH + 1];
    uint64_t addresses[LIMIT_STACK_DEPTH + 1];
};

static bool is_function(const struct stacks *s, uint32_t frame, size_t which)
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

/* Says whether a stack begins where all stacks of a thread do. Tools that follow frame pointers see of the code that
 * calls main one frame or none. */
static bool is_whole(const struct stacks *s, const uint32_t *frames, uint32_t n)
{
    for (size_t k = 0; k < OUTERMOST; k++) {
        if (is_function(s, frames[0], k)) {
            return true;
        }
    }
    return n > 1 && is_function(s, frames[1], MAIN);
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
static enum profd_status add_stack(struct stacks *s, const struct import_node *node, struct profd_error *e)
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
    const struct profd_stack stack = {.rate = p->rate,
                                      .frames = n,
                                      .pc = true,
                                      .incomplete = at != IMPORT_NONE || (!p->whole_stacks && !is_whole(s, frames, n)),
                                      .build = s->builds,
                                      .address = s->addresses,
                                      .ticks = node->ticks};
    return upload_add_stack(w->upload, p->dimension, p->abbreviation, &stack, e);
}

enum profd_status place_stacks_add(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    enum profd_status status = PROFD_OK;
    bool callers = false;
    for (uint32_t i = 0; i < p->node_count; i++) {
        callers |= p->nodes[i].parent != IMPORT_NONE;
    }
    if (!callers) { /* such a file says nothing about stacks */
        return PROFD_OK;
    }
    struct stacks *s = ARENA_NEW(w->arena, struct stacks);
    if (!s || !(s->entries = arena_take_array(w->arena, (size_t)p->object_count + 1, sizeof *s->entries))) {
        return profd_no_memory(e);
    }
    s->place = w;
    for (uint32_t i = 0; i < p->object_count; i++) {
        for (size_t k = 0; k < OUTERMOST && w->objects[i].binary; k++) {
            struct import_function function;
            if (import_binary_find(w->objects[i].binary, outermost[k], NULL, &function) && !function.ambiguous) {
                s->entries[i][k] = function.address;
            }
        }
    }
    for (uint32_t i = 0; i < p->node_count && status == PROFD_OK; i++) {
        const struct import_node *node = &p->nodes[i];
        if (node->ticks > 0 && w->frames[node->frame].build != PROFD_NOWHERE) {
            status = add_stack(s, node, e);
        }
    }
    return status;
}
