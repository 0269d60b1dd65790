/* The contents of a snapshot: modules, labels, counts. */
#include <string.h>

#include "proto/attach.h"

#define COUNT_MAX ((uint64_t)INT64_MAX)

/* The name of a row: in it, or in a NAME chunk of the same snapshot. */
static bool name_find(const struct attach_image *image, const struct attach_module_row *row, uint64_t row_at,
                      struct attach_module *out)
{
    struct attach_chunk c;
    uint64_t chunk_at = row->name_at - sizeof c;
    out->name_size = row->name_size;
    if (row->name_at == 0) {
        out->name = (const char *)image->bytes + row_at + offsetof(struct attach_module_row, name);
        return row->name_size <= sizeof row->name;
    }
    if (row->name_at < ATTACH_PAGE + sizeof c || chunk_at % ATTACH_PAGE || row->name_size > ATTACH_NAME_MAX ||
        row->name_at > image->size || row->name_size > image->size - row->name_at) {
        return false;
    }
    memcpy(&c, image->bytes + chunk_at, sizeof c);
    out->name = (const char *)image->bytes + row->name_at;
    return c.magic == ATTACH_CHUNK_MAGIC && c.kind == ATTACH_KIND_NAME && row->name_size <= c.primary;
}

/* Finds the row; false: it is not in the snapshot. */
static bool row_find(const struct attach_image *image, uint32_t id, uint64_t *at)
{
    if (id == 0 || id > image->module_count) {
        return false;
    }
    uint32_t index = id - 1;
    *at = (uint64_t)image->module_chunk[index / ATTACH_MODULES_PER_CHUNK] * ATTACH_PAGE + sizeof(struct attach_chunk) +
          (uint64_t)(index % ATTACH_MODULES_PER_CHUNK) * sizeof(struct attach_module_row);
    return true;
}

static bool row_read(const struct attach_image *image, uint32_t id, struct attach_module_row *row, uint64_t *at)
{
    if (!row_find(image, id, at)) {
        return false;
    }
    memcpy(row, image->bytes + *at, sizeof *row);
    return row->state == 1;
}

bool attach_module_get(const struct attach_image *image, uint32_t id, struct attach_module *out, bool *bad)
{
    struct attach_module m = {.has_id = false};
    struct attach_module_row row;
    uint64_t at;
    *bad = false;
    if (!row_read(image, id, &row, &at)) {
        return false;
    }
    m.has_id = row.id_size > 0;
    m.loaded = row.loaded != 0;
    m.low = row.low;
    m.high = row.high;
    m.bias = row.bias;
    if (row.low >= row.high || row.high - row.low > UINT32_MAX || !name_find(image, &row, at, &m) ||
        (m.has_id &&
         (row.id_size > sizeof row.id || buildid_from_note(row.id, row.id_size, &m.id, NULL) != PROFD_OK))) {
        *bad = true;
        return false;
    }
    *out = m;
    return true;
}

bool attach_label_next(const struct attach_image *image, size_t *at, const char **name, size_t *name_size,
                       const char **value, bool *bad)
{
    *bad = false;
    if (!image->labels || *at >= image->labels_size) {
        return false;
    }
    const char *text = image->labels + *at;
    const char *end = memchr(text, '\0', image->labels_size - *at);
    const char *equals = end ? memchr(text, '=', (size_t)(end - text)) : NULL;
    if (!equals) {
        *bad = true;
        return false;
    }
    *name = text;
    *name_size = (size_t)(equals - text);
    *value = equals + 1;
    *at += (size_t)(end - text) + 1;
    return true;
}

enum end { END_THERE, END_NOT_YET, END_BAD };

/* One end of an identity becomes a module's link-time address. */
static enum end end_read(const struct attach_image *image, uint16_t id, uint32_t offset, uint32_t *module,
                         uint64_t *address)
{
    struct { /* the beginning of a row: this is done for every slot */
        uint32_t state, loaded;
        uint64_t low, high;
    } span;
    uint64_t at;
    *module = id;
    *address = 0;
    if (id == ATTACH_MODULE_NONE) {
        return END_THERE;
    }
    if (!row_find(image, id, &at)) {
        return END_NOT_YET;
    }
    memcpy(&span, image->bytes + at, sizeof span);
    if (span.state != 1) {
        return END_NOT_YET;
    }
    if (span.low >= span.high || offset >= span.high - span.low) {
        return END_BAD;
    }
    *address = span.low + offset;
    return END_THERE;
}

/* What the slot counts, if it is published, above 0 and sane. */
static bool slot_read(const struct attach_image *image, const struct attach_chunk *c, struct attach_cursor *cursor,
                      struct attach_count *out)
{
    struct attach_slot slot;
    struct attach_identity id;
    uint64_t slots_at = cursor->at + sizeof *c, total = (uint64_t)c->primary + c->hash;
    memcpy(&slot, image->bytes + slots_at + (uint64_t)cursor->slot * sizeof slot, sizeof slot);
    if (slot.count == 0) {
        return false;
    }
    memcpy(&id, image->bytes + slots_at + total * sizeof slot + (uint64_t)cursor->slot * sizeof id, sizeof id);
    if (id.self_module == 0) {
        return false;
    }
    out->kind = c->kind;
    out->count = slot.count;
    out->table = (uint32_t)(cursor->at / ATTACH_PAGE);
    out->slot = cursor->slot;
    enum end self = end_read(image, id.self_module, id.self, &out->self_module, &out->self);
    enum end from = c->kind == ATTACH_KIND_SAMPLES
                        ? END_THERE
                        : end_read(image, id.from_module, id.from, &out->from_module, &out->from);
    if (c->kind == ATTACH_KIND_SAMPLES) {
        out->from_module = ATTACH_MODULE_NONE;
        out->from = 0;
    }
    if (slot.count > COUNT_MAX || self == END_BAD || from == END_BAD) {
        cursor->bad++;
        return false;
    }
    if (self == END_NOT_YET || from == END_NOT_YET) {
        cursor->not_yet++;
        return false;
    }
    return true;
}

bool attach_table_next(const struct attach_image *image, struct attach_cursor *cursor, uint64_t *size)
{
    struct attach_chunk c;
    uint64_t at = cursor->at;
    if (at == 0) {
        at = ATTACH_PAGE;
    } else if (at + ATTACH_PAGE <= image->size) { /* after the one that contains it */
        memcpy(&c, image->bytes + at, sizeof c);
        at += c.size;
    }
    cursor->slot = 0;
    while (at + ATTACH_PAGE <= image->size) {
        memcpy(&c, image->bytes + at, sizeof c);
        if (c.magic != ATTACH_CHUNK_MAGIC) {
            at += ATTACH_PAGE;
        } else if (c.size > image->size - at) {
            break;
        } else if (c.kind >= ATTACH_KIND_ARCS && c.kind <= ATTACH_KIND_PAIRS) {
            cursor->at = at;
            *size = c.size;
            return true;
        } else {
            at += c.size;
        }
    }
    cursor->at = image->size;
    return false;
}

bool attach_table_count(const struct attach_image *image, struct attach_cursor *cursor, struct attach_count *out)
{
    struct attach_chunk c;
    struct attach_count found;
    if (cursor->at == 0 || cursor->at + ATTACH_PAGE > image->size) {
        return false;
    }
    memcpy(&c, image->bytes + cursor->at, sizeof c);
    while (cursor->slot < (uint64_t)c.primary + c.hash) {
        bool there = slot_read(image, &c, cursor, &found);
        cursor->slot++;
        if (there) {
            *out = found;
            return true;
        }
    }
    return false;
}

bool attach_count_next(const struct attach_image *image, struct attach_cursor *cursor, struct attach_count *out)
{
    uint64_t size;
    while (!attach_table_count(image, cursor, out)) {
        if (!attach_table_next(image, cursor, &size)) {
            return false;
        }
    }
    return true;
}
