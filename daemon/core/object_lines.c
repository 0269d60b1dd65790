#include "core/object_lines.h"

#include "proto/varint.h"

/* Reads one line behind *last. False if it breaks a rule. */
static bool get(const struct object *o, const uint8_t **at, struct object_line *last)
{
    const uint8_t *end = o->line_bytes + o->line_size;
    uint64_t step, size, file, line;
    if (!varint_get(at, end, &step) || !varint_get(at, end, &size) || !varint_get(at, end, &file) ||
        !varint_get(at, end, &line)) {
        return false;
    }
    file = last->file + varint_unzigzag(file);
    line = last->line + varint_unzigzag(line);
    if (__builtin_add_overflow(last->low, step, &last->low) || __builtin_add_overflow(last->low, size, &last->high) ||
        size == 0 || file >= o->name_bytes || line == 0 || line > UINT32_MAX) {
        return false;
    }
    last->file = (uint32_t)file;
    last->line = (uint32_t)line;
    return true;
}

enum profd_status object_lines_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                    struct object_line **out, uint32_t *count, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct object_line *rows = NULL, last = {0};
    const uint8_t *at = o->line_bytes;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; o->line_bytes != NULL && i < o->line_count; i++) {
        if (!get(o, &at, &last)) {
            return profd_error_set(e, PROFD_MALFORMED, "object: source line %u of %u breaks the format's rules", i,
                                   o->line_count);
        }
        if (last.high <= low || last.low >= high) {
            continue;
        }
        struct object_line *more = arena_extend(a, rows, n, &capacity, sizeof *rows);
        rows = more;
        rows[n++] = last;
    }
    if (o->line_bytes != NULL && at != o->line_bytes + o->line_size) {
        return profd_error_set(e, PROFD_MALFORMED, "object: surplus bytes behind %u source lines", o->line_count);
    }
    *out = rows;
    *count = n;
    return PROFD_OK;
}
