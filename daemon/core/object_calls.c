#include "core/compare.h"
#include "core/object.h"

/* e_machine */
#define MACHINE_X86_64 62
#define MACHINE_AARCH64 183

#define THROUGH_WORD_BYTES 6u /* call *word(%rip), which arcs have, too */

uint32_t object_call_bytes(const struct object *o)
{
    return o->machine == MACHINE_AARCH64 ? 4 : 5;
}

static bool object_has_address(const uint64_t *addresses, uint32_t n, uint64_t address)
{
    uint32_t at = compare_find_first(addresses, n, sizeof *addresses, address);
    return at < n && addresses[at] == address;
}

/* The call instruction at the address, NULL if arcs have none. */
static const struct object_arc *object_arc_at(const struct object *o, uint64_t address)
{
    uint32_t i = compare_find_first(o->arcs, o->arc_count, sizeof *o->arcs, address);
    for (; i < o->arc_count && o->arcs[i].from == address; i++) {
        if (o->arcs[i].kind == OBJECT_ARC_CALL) {
            return &o->arcs[i];
        }
    }
    return NULL;
}

enum object_call object_find_call(const struct object *o, uint64_t return_address, const struct object_arc **arc)
{
    const struct object_arc *found = object_arc_at(o, return_address - object_call_bytes(o));
    if (found == NULL && object_has_address(o->returns, o->return_count, return_address)) {
        found = o->machine == MACHINE_X86_64 ? object_arc_at(o, return_address - THROUGH_WORD_BYTES) : NULL;
        if (found == NULL) {
            return OBJECT_CALL_POSSIBLE;
        }
    }
    if (found != NULL) {
        *arc = found;
        return OBJECT_CALL_DIRECT;
    }
    if (object_has_address(o->signal_returns, o->signal_return_count, return_address)) {
        return OBJECT_CALL_SIGNAL;
    }
    return o->knows_returns ? OBJECT_CALL_NONE : OBJECT_CALL_POSSIBLE;
}

bool object_holds(const struct object *o, uint64_t address)
{
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].low <= address && address < o->ranges[i].high) {
            return true;
        }
    }
    return false;
}
