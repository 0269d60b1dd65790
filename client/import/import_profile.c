#include "import/import_any_internal.h"

#include <string.h>

#include "core/foreign_clock.h"
#include "proto/sum.h"
#include "proto/limits.h"
#include "proto/message.h"

void import_profile_set_reasons(struct import_profile *p, const char *text, size_t n)
{
    uint32_t bits = message_inexact_parse(text, n);
    p->reasons = (bits & (uint32_t)INEXACT_SENT) |
                 (bits & INEXACT_NOT_READ ? (uint32_t)(INEXACT_CALLS_LOST | INEXACT_TICKS_LOST) : 0);
}

void import_profile_set_processes(struct import_profile *p, uint64_t n)
{
    p->processes = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

const char *import_texts_take(struct set *t, const char *text, size_t n)
{
    bool added;
    const uint32_t number = set_add(t, text, n, &added);
    return t->keys[number].bytes;
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

void import_profile_set_dimension(struct import_profile *p, const char *name, uint32_t rate)
{
    memset(p->dimension, 0, sizeof p->dimension);
    memcpy(p->dimension, name, strlen(name));
    p->abbreviation = strcmp(name, "instructions") == 0 ? 'I' : name[0];
    p->rate = rate;
}

void import_profile_set_event(struct import_profile *p, const char *name, size_t n)
{
    char dimension[FOREIGN_DIMENSION_SIZE];
    foreign_name_dimension((struct foreign_text){name, n}, false, dimension);
    import_profile_set_dimension(p, dimension, 1);
}

struct import_object *import_profile_add_object(struct import_profile *p, const char *path)
{
    (void)ARENA_EXTEND(p->arena, p->objects, p->object_count, p->object_capacity);
    struct import_object *o = &p->objects[p->object_count++];
    *o = (struct import_object){.path = path};
    o->outside = path[0] == '\0' || path[0] == '[' || strncmp(path, "//", 2) == 0 || strcmp(path, "???") == 0;
    return o;
}

uint32_t import_profile_take_object(struct import_profile *p, const char *path)
{
    uint32_t at;
    (void)TABLE_TAKE_NUMBER(&p->path_table, p->arena, p->paths, path, &at);
    if (at == p->object_count) {
        (void)import_profile_add_object(p, path);
    }
    return at;
}

uint32_t import_profile_take_frame(struct import_profile *p, const struct import_frame *key)
{
    struct import_frame fresh = *key;
    uint32_t at;
    fresh.ticks = 0;
    (void)TABLE_TAKE(&p->frame_table, p->arena, p->frames, fresh, has_address, &at);
    p->frame_count = p->frame_table.used;
    return at;
}

void import_profile_add_ticks(struct import_profile *p, uint32_t frame, uint64_t ticks)
{
    sum_add(&p->frames[frame].ticks, ticks, &p->saturated);
}

void import_profile_add_pair(struct import_profile *p, uint32_t from, uint32_t to, uint64_t calls)
{
    const struct import_pair fresh = {.from = from, .to = to};
    uint32_t at;
    (void)TABLE_TAKE(&p->pair_table, p->arena, p->pairs, fresh, to, &at);
    p->pair_count = p->pair_table.used;
    sum_add(&p->pairs[at].calls, calls, &p->saturated);
}

void import_profile_add_stack(struct import_profile *p, const uint32_t *frames, uint32_t n, uint64_t ticks)
{
    uint32_t parent = IMPORT_NONE;
    if (ticks == 0) {
        return;
    }
    const bool cut = n > LIMIT_STACK_DEPTH;
    n = cut ? LIMIT_STACK_DEPTH : n;
    for (uint32_t i = n + cut; i-- > 0;) {
        const struct import_node key = {.parent = parent, .frame = i == n ? IMPORT_CUT : frames[i], .leaf = i == 0};
        (void)TABLE_TAKE(&p->node_table, p->arena, p->nodes, key, leaf, &parent);
    }
    p->node_count = p->node_table.used;
    if (n > 0) {
        sum_add(&p->nodes[parent].ticks, ticks, &p->saturated);
    }
}

enum profd_status import_profile_exhausted(const struct arena *a, struct profd_error *e)
{
    FAIL_IF(arena_hit_limit(a), e, PROFD_LIMIT,
            "more than %zu MiB of names, locations and calls, the limit for one file", arena_used(a) >> 20);
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for what the file holds");
}
