/* The end of a callgrind.out: PLT slots that callgrind did not recognize are merged with their callers. */
#include "import/import_callgrind_internal.h"

#include "core/sum.h"

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
    uint32_t count, capacity;
    struct table table;
};

static bool is_slot(const struct import_profile *p, const struct import_frame *f)
{
    return p->objects[f->object].outside && f->name && strncmp(f->name, "0x", 2) == 0;
}

static uint64_t slot_hash(const void *context, uint32_t index)
{
    return table_mix((uintptr_t)((const struct slots *)context)->list[index].name, 1);
}

/* Returns the slot of that name; NULL if memory is exhausted. */
static struct slot *take_slot(struct slots *s, const char *name)
{
    struct arena *a = s->profile->arena;
    if (!table_reserve(&s->table, a, slot_hash, s)) {
        return NULL;
    }
    uint32_t at = table_slot(&s->table, table_mix((uintptr_t)name, 1));
    for (; s->table.slots[at] != 0; at = (at + 1) & s->table.mask) {
        if (s->list[s->table.slots[at] - 1].name == name) {
            return &s->list[s->table.slots[at] - 1];
        }
    }
    void *list = arena_extend(a, s->list, s->count, &s->capacity, sizeof *s->list);
    if (!list) {
        return NULL;
    }
    s->list = list;
    s->list[s->count] = (struct slot){.name = name, .target = IMPORT_NONE};
    s->table.slots[at] = ++s->count;
    s->table.used++;
    return &s->list[s->count - 1];
}

static bool same_function(const struct import_frame *a, const struct import_frame *b)
{
    return a->object == b->object && a->name == b->name && a->file == b->file;
}

/* Records the callee of each slot and the number of calls. False if memory is exhausted. */
static bool count_slots(struct slots *s)
{
    const struct import_profile *p = s->profile;
    bool saturated = false;
    for (uint32_t i = 0; i < p->pair_count; i++) {
        const struct import_frame *from = &p->frames[p->pairs[i].from], *to = &p->frames[p->pairs[i].to];
        if (is_slot(p, to)) {
            struct slot *slot = take_slot(s, to->name);
            if (!slot) {
                return false;
            }
            sum_add(&slot->in, p->pairs[i].calls, &saturated);
        }
        if (is_slot(p, from) && !(to->name && strncmp(to->name, "_dl_runtime_resolve", 19) == 0)) {
            struct slot *slot = take_slot(s, from->name);
            if (!slot) {
                return false;
            }
            slot->branches |= slot->target != IMPORT_NONE && !same_function(&p->frames[slot->target], to);
            slot->target = p->pairs[i].to;
            sum_add(&slot->out, p->pairs[i].calls, &saturated);
        }
    }
    return true;
}

/* Returns the slot that a frame is, if it passes as many calls to one function as it gets; otherwise NULL. */
static const struct slot *joined_slot(struct slots *s, const struct import_frame *f)
{
    if (!is_slot(s->profile, f)) {
        return NULL;
    }
    const struct slot *slot = take_slot(s, f->name);
    return slot && slot->target != IMPORT_NONE && !slot->branches && slot->in == slot->out ? slot : NULL;
}

enum profd_status import_callgrind_finish(struct import_callgrind *c, struct import_profile **out,
                                          struct profd_error *e)
{
    struct import_profile *p = &c->profile;
    if (!c->event) {
        return profd_error_set(e, PROFD_MALFORMED, "no \"events:\" line: not a callgrind.out");
    }
    if (c->pending != CALLGRIND_NOTHING) {
        return profd_error_set(e, PROFD_MALFORMED, "the file ends after \"calls=\"; a cost line must follow");
    }
    if (p->object_count == 1 && p->objects[0].path[0] == '\0' &&
        p->program[0] != '\0') { /* no "ob=" at all: the program alone */
        p->objects[0].path = p->program;
        p->objects[0].outside = false;
        p->program_object = 0;
    }
    struct slots slots = {.profile = p};
    if (!count_slots(&slots)) {
        return import_profile_exhausted(p->arena, e);
    }
    for (uint32_t i = 0; i < p->pair_count && slots.count > 0; i++) {
        struct import_pair *pair = &p->pairs[i];
        const struct slot *from = joined_slot(&slots, &p->frames[pair->from]),
                          *to = joined_slot(&slots, &p->frames[pair->to]);
        if (from && same_function(&p->frames[pair->to], &p->frames[from->target])) {
            pair->calls = 0;
        } else if (to) {
            pair->to = to->target;
        }
    }
    *out = p;
    return PROFD_OK;
}
