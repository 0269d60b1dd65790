#include "import/import_any_internal.h"

#include <string.h>

#include "proto/sum.h"
#include "proto/limits.h"
#include "proto/message.h"

struct import_text {
    const char *text;
    size_t size;
};

static uint64_t text_mix(const char *text, size_t n)
{
    uint64_t hash = n, word = 0;
    for (size_t i = 0; i < n; i++) {
        word = word << 8 | (unsigned char)text[i];
        if (i % 8 == 7) {
            hash = table_mix(hash, word);
            word = 0;
        }
    }
    return table_mix(hash, word);
}

static uint64_t text_hash(const void *context, uint32_t index)
{
    const struct import_texts *t = context;
    return text_mix(t->list[index].text, t->list[index].size);
}

void import_profile_set_reasons(struct import_profile *p, const char *text, size_t n)
{
    uint32_t bits = message_inexact_parse(text, n);
    p->own = true;
    p->reasons = (bits & (uint32_t)INEXACT_SENT) |
                 (bits & INEXACT_NOT_READ ? (uint32_t)(INEXACT_CALLS_LOST | INEXACT_TICKS_LOST) : 0);
}

void import_profile_set_processes(struct import_profile *p, uint64_t n)
{
    p->processes = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

void import_texts_init(struct import_texts *t, struct arena *a)
{
    *t = (struct import_texts){.arena = a};
}

const char *import_texts_take(struct import_texts *t, const char *text, size_t n)
{
    if (!table_reserve(&t->table, t->arena, text_hash, t)) {
        return NULL;
    }
    uint32_t at = table_slot(&t->table, text_mix(text, n));
    for (; t->table.slots[at] != 0; at = (at + 1) & t->table.mask) {
        const struct import_text *known = &t->list[t->table.slots[at] - 1];
        if (known->size == n && memcmp(known->text, text, n) == 0) {
            return known->text;
        }
    }
    void *list = arena_extend(t->arena, t->list, t->count, &t->capacity, sizeof *t->list);
    if (!list) {
        return NULL;
    }
    t->list = list;
    char *copy = arena_copy(t->arena, text, n);
    if (!copy) {
        return NULL;
    }
    t->list[t->count] = (struct import_text){copy, n};
    t->table.slots[at] = ++t->count;
    t->table.used++;
    return copy;
}

void import_profile_init(struct import_profile *p, struct arena *a)
{
    *p = (struct import_profile){.arena = a,
                                 .process = "",
                                 .program = "",
                                 .program_object = IMPORT_NONE,
                                 .rate = 1,
                                 .processes = 1,
                                 .dimension = "seconds",
                                 .abbreviation = 's'};
}

void import_profile_set_dimension(struct import_profile *p, const char *name, size_t n, uint32_t rate)
{
    n = n < sizeof p->dimension ? n : sizeof p->dimension - 1;
    memset(p->dimension, 0, sizeof p->dimension);
    memcpy(p->dimension, name, n);
    p->abbreviation = strcmp(p->dimension, "instructions") == 0 ? 'I' : p->dimension[0];
    p->rate = rate;
}

struct import_object *import_profile_add_object(struct import_profile *p, const char *path)
{
    void *objects = arena_extend(p->arena, p->objects, p->object_count, &p->object_capacity, sizeof *p->objects);
    if (!objects) {
        return NULL;
    }
    p->objects = objects;
    struct import_object *o = &p->objects[p->object_count++];
    *o = (struct import_object){.path = path};
    o->outside = path[0] == '\0' || path[0] == '[' || strncmp(path, "//", 2) == 0 || strcmp(path, "???") == 0;
    return o;
}

static uint64_t object_hash(const void *context, uint32_t index)
{
    return table_mix((uintptr_t)((const struct import_profile *)context)->objects[index].path, 0);
}

bool import_profile_take_object(struct import_profile *p, const char *path, uint32_t *out)
{
    if (!table_reserve(&p->object_table, p->arena, object_hash, p)) {
        return false;
    }
    uint32_t at = table_slot(&p->object_table, table_mix((uintptr_t)path, 0));
    for (; p->object_table.slots[at] != 0; at = (at + 1) & p->object_table.mask) {
        if (p->objects[p->object_table.slots[at] - 1].path == path) {
            *out = p->object_table.slots[at] - 1;
            return true;
        }
    }
    if (!import_profile_add_object(p, path)) {
        return false;
    }
    *out = p->object_count - 1;
    p->object_table.slots[at] = p->object_count;
    p->object_table.used++;
    return true;
}

static uint64_t frame_mix(const struct import_frame *f)
{
    uint64_t hash = table_mix((uint64_t)f->object << 1 | f->has_address, f->address);
    return table_mix(table_mix(hash ^ f->offset, (uintptr_t)f->name), (uintptr_t)f->file);
}

static uint64_t frame_hash(const void *context, uint32_t index)
{
    return frame_mix(&((const struct import_profile *)context)->frames[index]);
}

bool import_profile_take_frame(struct import_profile *p, const struct import_frame *key, uint32_t *out)
{
    if (!table_reserve(&p->frame_table, p->arena, frame_hash, p)) {
        return false;
    }
    uint32_t at = table_slot(&p->frame_table, frame_mix(key));
    for (; p->frame_table.slots[at] != 0; at = (at + 1) & p->frame_table.mask) {
        const struct import_frame *f = &p->frames[p->frame_table.slots[at] - 1];
        if (f->object == key->object && f->address == key->address && f->name == key->name && f->file == key->file &&
            f->offset == key->offset && f->has_address == key->has_address) {
            *out = p->frame_table.slots[at] - 1;
            return true;
        }
    }
    void *frames = arena_extend(p->arena, p->frames, p->frame_count, &p->frame_capacity, sizeof *p->frames);
    if (!frames) {
        return false;
    }
    p->frames = frames;
    p->frames[p->frame_count] = *key;
    p->frames[p->frame_count].ticks = 0;
    *out = p->frame_count++;
    p->frame_table.slots[at] = p->frame_count;
    p->frame_table.used++;
    return true;
}

void import_profile_add_ticks(struct import_profile *p, uint32_t frame, uint64_t ticks)
{
    sum_add(&p->frames[frame].ticks, ticks, &p->saturated);
}

static uint64_t pair_hash(const void *context, uint32_t index)
{
    const struct import_pair *pair = &((const struct import_profile *)context)->pairs[index];
    return table_mix(pair->from, pair->to);
}

bool import_profile_add_pair(struct import_profile *p, uint32_t from, uint32_t to, uint64_t calls)
{
    if (!table_reserve(&p->pair_table, p->arena, pair_hash, p)) {
        return false;
    }
    uint32_t at = table_slot(&p->pair_table, table_mix(from, to));
    for (; p->pair_table.slots[at] != 0; at = (at + 1) & p->pair_table.mask) {
        struct import_pair *pair = &p->pairs[p->pair_table.slots[at] - 1];
        if (pair->from == from && pair->to == to) {
            sum_add(&pair->calls, calls, &p->saturated);
            return true;
        }
    }
    void *pairs = arena_extend(p->arena, p->pairs, p->pair_count, &p->pair_capacity, sizeof *p->pairs);
    if (!pairs) {
        return false;
    }
    p->pairs = pairs;
    struct import_pair *pair = &p->pairs[p->pair_count++];
    *pair = (struct import_pair){.from = from, .to = to};
    sum_add(&pair->calls, calls, &p->saturated);
    p->pair_table.slots[at] = p->pair_count;
    p->pair_table.used++;
    return true;
}

static uint64_t node_mix(const struct import_node *n)
{
    return table_mix(table_mix(n->parent, n->frame), n->leaf);
}

static uint64_t node_hash(const void *context, uint32_t index)
{
    return node_mix(&((const struct import_profile *)context)->nodes[index]);
}

/* Sets *out to the number of the node, created on first use. */
static bool take_node(struct import_profile *p, const struct import_node *key, uint32_t *out)
{
    if (!table_reserve(&p->node_table, p->arena, node_hash, p)) {
        return false;
    }
    uint32_t at = table_slot(&p->node_table, node_mix(key));
    for (; p->node_table.slots[at] != 0; at = (at + 1) & p->node_table.mask) {
        const struct import_node *known = &p->nodes[p->node_table.slots[at] - 1];
        if (known->parent == key->parent && known->frame == key->frame && known->leaf == key->leaf) {
            *out = p->node_table.slots[at] - 1;
            return true;
        }
    }
    void *list = arena_extend(p->arena, p->nodes, p->node_count, &p->node_capacity, sizeof *p->nodes);
    if (!list) {
        return false;
    }
    p->nodes = list;
    p->nodes[p->node_count] = *key;
    *out = p->node_count++;
    p->node_table.slots[at] = p->node_count;
    p->node_table.used++;
    return true;
}

bool import_profile_add_stack(struct import_profile *p, const uint32_t *frames, uint32_t n, uint64_t ticks)
{
    uint32_t parent = IMPORT_NONE;
    if (ticks == 0 || n == 0) {
        return true;
    }
    if (n > LIMIT_STACK_DEPTH) {
        n = LIMIT_STACK_DEPTH;
        if (!take_node(p, &(struct import_node){.parent = parent, .frame = IMPORT_CUT}, &parent)) {
            return false;
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        if (!take_node(p, &(struct import_node){.parent = parent, .frame = frames[i], .leaf = i == 0}, &parent)) {
            return false;
        }
    }
    sum_add(&p->nodes[parent].ticks, ticks, &p->saturated);
    return true;
}

enum profd_status import_profile_exhausted(const struct arena *a, struct profd_error *e)
{
    if (arena_hit_limit(a)) {
        return profd_error_set(e, PROFD_LIMIT,
                               "more than %zu MiB of names, locations and calls, the limit for one file",
                               arena_used(a) >> 20);
    }
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for what the file holds");
}
