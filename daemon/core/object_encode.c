#include "core/object.h"

#include <string.h>

#include "core/buffer.h"
#include "core/object_format.h"
#include "proto/varint.h"

static void object_put(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    buffer_add(b, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

static void object_put_difference(struct buffer *b, uint64_t value, uint64_t base)
{
    object_put(b, varint_zigzag(value - base));
}

static void object_put_text(struct buffer *b, const char *text, size_t n)
{
    object_put(b, n);
    buffer_add(b, text, n);
}

static void object_put_head(struct buffer *b, const struct object *o)
{
    unsigned flags = (o->big_endian ? OBJECT_FLAG_BIG_ENDIAN : 0u) |
                     (o->position_independent ? OBJECT_FLAG_POSITION_INDEPENDENT : 0u) |
                     (o->has_names ? OBJECT_FLAG_HAS_NAMES : 0u) | (o->only_dynamic ? OBJECT_FLAG_ONLY_DYNAMIC : 0u) |
                     (o->has_executable_start ? OBJECT_FLAG_HAS_EXECUTABLE_START : 0u) |
                     (o->has_etext ? OBJECT_FLAG_HAS_ETEXT : 0u);
    buffer_add(b, object_magic, sizeof object_magic);
    buffer_add_char(b, o->by_name ? OBJECT_VERSION_BY_NAME : OBJECT_VERSION);
    object_put_text(b, o->id.text, strlen(o->id.text));
    object_put_text(b, o->variant, strlen(o->variant));
    object_put(b, o->machine);
    object_put(b, o->bits);
    object_put(b, flags);
    object_put(b, o->executable_start);
    object_put(b, o->etext);
    object_put_text(b, o->note == NULL ? "" : o->note, o->note == NULL ? 0 : strlen(o->note));
    object_put_text(b, o->names, o->name_bytes);
}

static void object_put_symbols(struct buffer *b, const struct object *o)
{
    object_put(b, o->symbol_count);
    struct object_symbol last = {0};
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        object_put_difference(b, s->address, last.address);
        object_put(b, s->size);
        object_put_difference(b, s->name, last.name);
        object_put_difference(b, s->demangled, s->name);
        object_put_difference(b, s->file, last.file);
        object_put(b, s->line);
        uint8_t flags = o->by_name ? (uint8_t)(s->flags & ~OBJECT_SYMBOL_UNLISTED) : s->flags;
        object_put(b, (uint64_t)s->bind | (uint64_t)s->type << 2 | (uint64_t)flags << 5);
        last = *s;
    }
}

static void object_put_rest(struct buffer *b, const struct object *o)
{
    object_put(b, o->range_count);
    for (uint32_t i = 0; i < o->range_count; i++) {
        object_put(b, o->ranges[i].kind);
        object_put(b, o->ranges[i].low);
        object_put(b, o->ranges[i].high - o->ranges[i].low);
    }
    object_put(b, o->plt_count);
    uint64_t last = 0;
    for (uint32_t i = 0; i < o->plt_count; i++) {
        object_put(b, o->plt[i].address - last);
        object_put(b, o->plt[i].size);
        object_put(b, o->plt[i].import);
        last = o->plt[i].address;
    }
    object_put(b, o->arc_count);
    last = 0;
    for (uint32_t i = 0; i < o->arc_count; i++) {
        const struct object_arc *arc = &o->arcs[i];
        object_put(b, arc->from - last);
        object_put(b, (uint64_t)arc->import << 1 | (arc->kind & 1u));
        if (arc->import == 0) {
            object_put_difference(b, arc->to, arc->from);
        } else {
            object_put(b, arc->to);
        }
        last = arc->from;
    }
}

enum profd_status object_encode(const struct object *o, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, SIZE_MAX);
    object_put_head(&b, o);
    object_put_symbols(&b, o);
    object_put_rest(&b, o);
    if (b.failed) {
        buffer_done(&b);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode the object %s", o->id.text);
    }
    *out = (uint8_t *)b.data;
    *out_size = b.size;
    return PROFD_OK;
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
