#include "core/object_instructions.h"

#include "proto/varint.h"

static void put(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    buffer_add(b, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

void object_instructions_add(struct buffer *rows, struct object_instruction *last, const struct object_instruction *i)
{
    put(rows, i->address - last->address);
    put(rows, i->size);
    put(rows, varint_zigzag((uint64_t)i->text - last->text) << 1 | (i->targeted ? 1u : 0u));
    if (i->targeted) {
        put(rows, varint_zigzag(i->target - i->address));
    }
    *last = *i;
}

/* Reads one instruction behind *last. False if it breaks a rule. */
static bool get(const struct object *o, const uint8_t **at, bool first, struct object_instruction *last)
{
    const uint8_t *end = o->instruction_bytes + o->instruction_size;
    const uint64_t least = first ? 0 : last->size; /* instructions do not overlap */
    uint64_t step, size, text, target = 0;
    if (!varint_get(at, end, &step) || !varint_get(at, end, &size) || !varint_get(at, end, &text)) {
        return false;
    }
    last->targeted = (text & 1) != 0;
    text = last->text + varint_unzigzag(text >> 1);
    if (step < least || size == 0 || size > UINT32_MAX || __builtin_add_overflow(last->address, step, &last->address) ||
        last->address > UINT64_MAX - size || text >= o->instruction_text_bytes ||
        (last->targeted && !varint_get(at, end, &target))) {
        return false;
    }
    last->size = (uint32_t)size;
    last->text = (uint32_t)text;
    last->target = last->targeted ? last->address + varint_unzigzag(target) : 0;
    return true;
}

enum profd_status object_instructions_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                           struct object_instruction **out, uint32_t *count, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct object_instruction *rows = NULL, last = {0};
    const uint8_t *at = o->instruction_bytes;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; i < o->instruction_count; i++) {
        if (!get(o, &at, i == 0, &last)) {
            return profd_error_set(e, PROFD_MALFORMED, "object: instruction %u of %u breaks the format's rules", i,
                                   o->instruction_count);
        }
        if (last.address < low || last.address >= high) {
            continue;
        }
        struct object_instruction *more = arena_extend(a, rows, n, &capacity, sizeof *rows);
        rows = more;
        rows[n++] = last;
    }
    if (o->instruction_count > 0 && at != o->instruction_bytes + o->instruction_size) {
        return profd_error_set(e, PROFD_MALFORMED, "object: surplus bytes behind %u instructions",
                               o->instruction_count);
    }
    *out = rows;
    *count = n;
    return PROFD_OK;
}

enum profd_status object_instructions_remove(const uint8_t *in, size_t n, uint8_t **out, size_t *out_size,
                                             struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct object *o;
    enum profd_status status = a == NULL ? profd_no_memory(e) : object_decode(a, in, n, &o, e);
    if (status == PROFD_OK) {
        o->instruction_count = 0;
        status = object_encode(o, out, out_size, e);
    }
    arena_free(a);
    return status;
}
