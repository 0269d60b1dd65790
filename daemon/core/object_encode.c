#include <string.h>

#include "core/buffer.h"
#include "core/object.h"
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
                     (o->has_etext ? OBJECT_FLAG_HAS_ETEXT : 0u) | (o->knows_returns ? OBJECT_FLAG_KNOWS_RETURNS : 0u);
    buffer_add(b, object_magic, sizeof object_magic);
    buffer_add_char(b, OBJECT_VERSION);
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
        object_put(b, (uint64_t)s->bind | (uint64_t)s->type << 2 | (uint64_t)s->flags << 5);
        last = *s;
    }
}

static void object_put_addresses(struct buffer *b, const uint64_t *addresses, uint32_t n)
{
    object_put(b, n);
    for (uint32_t i = 0; i < n; i++) {
        object_put(b, addresses[i] - (i > 0 ? addresses[i - 1] : 0));
    }
}

static void object_put_code(struct buffer *b, const struct object *o)
{
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        object_put(b, o->knows_returns ? o->symbols[i].code : 0);
    }
    object_put(b, o->knows_inlined);
    object_put(b, o->inlined_count);
    for (uint32_t i = 0; i < o->inlined_count; i++) {
        object_put_difference(b, o->inlined[i], i > 0 ? o->inlined[i - 1] : 0);
    }
}

static void object_put_lines(struct buffer *b, const struct object *o)
{
    struct buffer rows;
    struct object_line last = {0};
    buffer_init(&rows, SIZE_MAX);
    for (uint32_t i = 0; o->line_bytes == NULL && i < o->line_count; i++) {
        const struct object_line *l = &o->lines[i];
        object_put(&rows, l->low - last.low);
        object_put(&rows, l->high - l->low);
        object_put_difference(&rows, l->file, last.file);
        object_put_difference(&rows, l->line, last.line);
        last = *l;
    }
    object_put(b, o->line_count);
    object_put_text(b, o->line_bytes != NULL ? (const char *)o->line_bytes : rows.data,
                    o->line_bytes != NULL ? o->line_size : rows.size);
    b->failed |= rows.failed;
    buffer_done(&rows);
}

static void object_put_digests(struct buffer *b, const struct object *o)
{
    object_put(b, o->digest_count);
    for (uint32_t i = 0; i < o->digest_count; i++) {
        object_put_difference(b, o->digests[i].file, i > 0 ? o->digests[i - 1].file : 0);
        buffer_add(b, o->digests[i].md5, OBJECT_DIGEST_BYTES);
    }
}

static void object_put_instructions(struct buffer *b, const struct object *o)
{
    object_put_text(b, o->instruction_count > 0 ? o->instruction_texts : "",
                    o->instruction_count > 0 ? o->instruction_text_bytes : 1);
    object_put(b, o->instruction_count);
    object_put_text(b, (const char *)o->instruction_bytes, o->instruction_size);
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
    object_put_addresses(b, o->returns, o->knows_returns ? o->return_count : 0);
    object_put_addresses(b, o->signal_returns, o->knows_returns ? o->signal_return_count : 0);
}

enum profd_status object_encode(const struct object *o, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, SIZE_MAX);
    object_put_head(&b, o);
    object_put_symbols(&b, o);
    object_put_rest(&b, o);
    object_put_code(&b, o);
    object_put_lines(&b, o);
    object_put_digests(&b, o);
    object_put_instructions(&b, o);
    if (b.failed) {
        buffer_done(&b);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode the object %s", o->id.text);
    }
    *out = (uint8_t *)b.data;
    *out_size = b.size;
    return PROFD_OK;
}
