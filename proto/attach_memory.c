#include "proto/attach_memory.h"

#include <string.h>

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

bool attach_module_get(const struct attach_image *image, uint32_t id, struct attach_module *out, bool *bad)
{
    struct attach_module m = {.has_id = false};
    struct attach_module_row row;
    uint64_t at;
    *bad = false;
    if (!row_find(image, id, &at)) {
        return false;
    }
    memcpy(&row, image->bytes + at, sizeof row);
    if (row.state != 1) {
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

/* One end of an identity becomes a module's link-time address. */
static enum attach_there end_read(const struct attach_image *image, uint16_t id, uint32_t offset, uint32_t *module,
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
        return ATTACH_THERE;
    }
    if (!row_find(image, id, &at)) {
        return ATTACH_NOT_YET;
    }
    memcpy(&span, image->bytes + at, sizeof span);
    if (span.state != 1) {
        return ATTACH_NOT_YET;
    }
    if (span.low >= span.high || offset >= span.high - span.low) {
        return ATTACH_BAD;
    }
    *address = span.low + offset;
    return ATTACH_THERE;
}

/* Returns whether a count is sane and what it names is there; otherwise the cursor counts it. */
static bool count_judge(struct attach_cursor *cursor, uint64_t count, enum attach_there there)
{
    const bool bad = there == ATTACH_BAD || count > COUNT_MAX;
    cursor->bad += bad;
    cursor->not_yet += !bad && there == ATTACH_NOT_YET;
    return !bad && there == ATTACH_THERE;
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
    *out = (struct attach_count){.kind = c->kind,
                                 .from_module = ATTACH_MODULE_NONE,
                                 .count = slot.count,
                                 .table = (uint32_t)(cursor->at / ATTACH_PAGE),
                                 .slot = cursor->slot};
    enum attach_there self = end_read(image, id.self_module, id.self, &out->self_module, &out->self);
    enum attach_there from = c->kind == ATTACH_KIND_SAMPLES
                                 ? ATTACH_THERE
                                 : end_read(image, id.from_module, id.from, &out->from_module, &out->from);
    return count_judge(cursor, slot.count, self > from ? self : from);
}

static void node_read(const struct attach_image *image, uint64_t chunk_at, uint32_t slot, struct attach_node *out)
{
    memcpy(out, image->bytes + chunk_at + sizeof(struct attach_chunk) + (uint64_t)slot * sizeof *out, sizeof *out);
}

static enum attach_there node_end(const struct attach_image *image, const struct attach_node *n,
                                  struct attach_frame *out)
{
    uint64_t begin = 0, address = 0;
    uint32_t module;
    if (n->module == 0) {
        return ATTACH_NOT_YET;
    }
    enum attach_there there = end_read(image, n->module, n->self, &module, &address);
    bool has_begin = n->begin != ATTACH_BEGIN_UNKNOWN && n->module != ATTACH_MODULE_NONE;
    if (there == ATTACH_THERE && has_begin) {
        there = end_read(image, n->module, n->begin, &module, &begin);
    }
    *out = (struct attach_frame){.parent = n->parent,
                                 .kind = n->kind == ATTACH_NODE_PC ? ATTACH_NODE_PC : ATTACH_NODE_RETURN,
                                 .incomplete = n->module == ATTACH_MODULE_NONE && n->self == ATTACH_INCOMPLETE,
                                 .module = n->module,
                                 .address = address,
                                 .has_begin = has_begin,
                                 .begin = begin};
    bool good = n->kind <= ATTACH_NODE_PC && n->parent <= ATTACH_NODES_MAX && begin <= address &&
                (!out->incomplete || (n->parent == 0 && n->kind == ATTACH_NODE_RETURN));
    return good ? there : ATTACH_BAD;
}

enum attach_there attach_node_get(const struct attach_image *image, const struct attach_cursor *c, uint32_t slot,
                                  uint32_t *number, struct attach_frame *out)
{
    struct attach_chunk chunk;
    struct attach_node n;
    memcpy(&chunk, image->bytes + c->at, sizeof chunk);
    node_read(image, c->at, slot, &n);
    *number = chunk.hash + slot;
    return node_end(image, &n, out);
}

enum attach_kind attach_table_kind(const struct attach_image *image, const struct attach_cursor *c, uint32_t *slots)
{
    struct attach_chunk chunk;
    memcpy(&chunk, image->bytes + c->at, sizeof chunk);
    *slots = chunk.kind == ATTACH_KIND_STACKS ? chunk.primary : chunk.primary + chunk.hash;
    return (enum attach_kind)chunk.kind;
}

/* A node's count, as slot_read. */
static bool node_count(const struct attach_image *image, struct attach_cursor *cursor, uint32_t number,
                       struct attach_count *out)
{
    struct attach_node n;
    struct attach_frame f;
    node_read(image, cursor->at, cursor->slot, &n);
    if (n.count == 0) {
        return false;
    }
    if (!count_judge(cursor, n.count, node_end(image, &n, &f))) {
        return false;
    }
    *out = (struct attach_count){.kind = ATTACH_KIND_STACKS,
                                 .from_module = ATTACH_MODULE_NONE,
                                 .from = number,
                                 .self_module = f.module,
                                 .self = f.address,
                                 .count = n.count,
                                 .table = (uint32_t)(cursor->at / ATTACH_PAGE),
                                 .slot = cursor->slot};
    return true;
}

static bool is_chunk(const struct attach_chunk *c)
{
    return c->magic == ATTACH_CHUNK_MAGIC || (c->magic == ATTACH_STACKS_MAGIC && c->kind == ATTACH_KIND_STACKS);
}

static bool is_table(uint32_t kind)
{
    return kind == ATTACH_KIND_ARCS || kind == ATTACH_KIND_SAMPLES || kind == ATTACH_KIND_STACKS;
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
        if (!is_chunk(&c)) {
            at += ATTACH_PAGE;
        } else if (c.size > image->size - at) {
            break;
        } else if (is_table(c.kind)) {
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
    bool nodes = c.kind == ATTACH_KIND_STACKS;
    while (cursor->slot < (nodes ? c.primary : (uint64_t)c.primary + c.hash)) {
        bool there =
            nodes ? node_count(image, cursor, c.hash + cursor->slot, &found) : slot_read(image, &c, cursor, &found);
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

#define LEAST_FILE (2u * ATTACH_PAGE)

static enum profd_status header_check(const struct attach_header *h, uint64_t file_size, struct profd_error *e)
{
    FAIL_IF(h->magic != ATTACH_MAGIC, e, PROFD_MALFORMED, "not shared counts: the file begins with %#llx",
            (unsigned long long)h->magic);
    FAIL_IF(h->layout != ATTACH_LAYOUT, e, PROFD_UNKNOWN_VERSION, "shared counts of layout %u; known is %d", h->layout,
            ATTACH_LAYOUT);
    FAIL_IF(h->size != file_size || h->size < ATTACH_SIZE_MIN || h->size > ATTACH_SIZE_MAX || h->size % ATTACH_PAGE, e,
            PROFD_MALFORMED, "shared counts say they have %llu bytes, their file has %llu", (unsigned long long)h->size,
            (unsigned long long)file_size);
    FAIL_IF(h->used < ATTACH_PAGE || h->used > h->size || h->used % ATTACH_PAGE, e, PROFD_MALFORMED,
            "shared counts use %llu of %llu bytes", (unsigned long long)h->used, (unsigned long long)h->size);
    FAIL_IF(h->machine != 62 && h->machine != 183, e, PROFD_MALFORMED,
            "shared counts of machine %u: known are 62 and 183", h->machine);
    FAIL_IF(h->mode > ATTACH_MODE_CPU || h->rate > 1000000000u || (h->mode != ATTACH_MODE_OFF && h->rate == 0), e,
            PROFD_MALFORMED, "shared counts of mode %u at %u ticks per second", h->mode, h->rate);
    FAIL_IF(h->modules > ATTACH_MODULES_MAX, e, PROFD_MALFORMED, "shared counts of %u modules; at most %u are possible",
            h->modules, ATTACH_MODULES_MAX);
    return PROFD_OK;
}

enum profd_status attach_measure(const uint8_t *page, size_t n, uint64_t file_size, uint64_t *used,
                                 struct profd_error *e)
{
    struct attach_header h;
    FAIL_IF(n < ATTACH_PAGE || file_size < LEAST_FILE, e, PROFD_MALFORMED,
            "shared counts of %llu bytes: too short for their header", (unsigned long long)file_size);
    memcpy(&h, page, sizeof h);
    TRY(header_check(&h, file_size, e));
    *used = h.used;
    return PROFD_OK;
}

static enum profd_status chunk_refuse(uint64_t at, const struct attach_chunk *c, const char *what,
                                      struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "shared counts, chunk at %llu (kind %u, %llu bytes, %u and %u): %s",
                           (unsigned long long)at, c->kind, (unsigned long long)c->size, c->primary, c->hash, what);
}

static enum profd_status chunk_take(struct attach_image *image, uint64_t at, const struct attach_chunk *c,
                                    struct profd_error *e)
{
    if (c->kind == ATTACH_KIND_STACKS) {
        if (c->magic != ATTACH_STACKS_MAGIC || c->primary == 0 || c->hash <= image->nodes ||
            (uint64_t)c->hash + c->primary > ATTACH_NODES_MAX + 1u) {
            return chunk_refuse(at, c, "not a chunk of stacks", e);
        }
        if (sizeof *c + (uint64_t)c->primary * sizeof(struct attach_node) > c->size) {
            return chunk_refuse(at, c, "its nodes do not fit", e);
        }
        image->nodes = c->hash + c->primary - 1;
        image->slots += c->primary;
        return PROFD_OK;
    }
    if (is_table(c->kind)) {
        uint64_t slots = (uint64_t)c->primary + c->hash;
        if (sizeof *c + slots * (sizeof(struct attach_slot) + sizeof(struct attach_identity)) > c->size) {
            return chunk_refuse(at, c, "its slots do not fit", e);
        }
        image->slots += slots;
        return PROFD_OK;
    }
    if (c->kind == ATTACH_KIND_MODULES) {
        uint32_t which = (c->primary - 1) / ATTACH_MODULES_PER_CHUNK;
        if (c->primary == 0 || (c->primary - 1) % ATTACH_MODULES_PER_CHUNK || which >= ATTACH_MODULE_CHUNKS ||
            c->size < sizeof *c + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row)) {
            return chunk_refuse(at, c, "not a chunk of modules", e);
        }
        if (image->module_chunk[which]) {
            return chunk_refuse(at, c, "these modules were there before", e);
        }
        image->module_chunk[which] = (uint32_t)(at / ATTACH_PAGE);
        return PROFD_OK;
    }
    if (c->kind != ATTACH_KIND_NAME && c->kind != ATTACH_KIND_LABELS) {
        return chunk_refuse(at, c, "no known kind", e);
    }
    if (c->primary > c->size - sizeof *c || c->primary > ATTACH_LABEL_BYTES) {
        return chunk_refuse(at, c, "its text does not fit", e);
    }
    if (c->kind == ATTACH_KIND_LABELS) {
        if (image->labels) {
            return chunk_refuse(at, c, "a second set of labels", e);
        }
        image->labels = (const char *)image->bytes + at + sizeof *c;
        image->labels_size = c->primary;
    }
    return PROFD_OK;
}

enum profd_status attach_parse(const uint8_t *bytes, size_t n, struct attach_image *out, struct profd_error *e)
{
    struct attach_image image = {.bytes = bytes, .size = n};
    FAIL_IF(n < ATTACH_PAGE, e, PROFD_MALFORMED, "shared counts of %zu bytes: too short for their header", n);
    memcpy(&image.header, bytes, sizeof image.header);
    TRY(header_check(&image.header, image.header.size, e));
    for (uint64_t at = ATTACH_PAGE; at + ATTACH_PAGE <= n;) {
        struct attach_chunk c;
        memcpy(&c, bytes + at, sizeof c);
        if (!is_chunk(&c)) {
            image.skipped += ATTACH_PAGE;
            at += ATTACH_PAGE;
            continue;
        }
        if (c.size < ATTACH_PAGE || c.size % ATTACH_PAGE || c.size > image.header.size - at) {
            return chunk_refuse(at, &c, "it leaves the file", e);
        }
        if (c.size > n - at) { /* the file grew while it was read: the next snapshot has it */
            image.skipped += n - at;
            break;
        }
        TRY(chunk_take(&image, at, &c, e));
        at += c.size;
    }
    while (image.module_count < ATTACH_MODULE_CHUNKS && image.module_chunk[image.module_count]) {
        image.module_count++;
    }
    image.module_count *= ATTACH_MODULES_PER_CHUNK;
    if (image.module_count > image.header.modules) {
        image.module_count = image.header.modules;
    }
    *out = image;
    return PROFD_OK;
}

static const char *const counter_names[] = {
#define X(name, text) #name,
    ATTACH_COUNTER_LIST(X)
#undef X
};

const char *attach_counter_name(unsigned counter)
{
    return counter < ATTACH_COUNTER_COUNT ? counter_names[counter] : NULL;
}

static bool counters_are_zero(const struct attach_image *image, const enum attach_counter *counters, size_t n,
                              enum attach_counter *why)
{
    for (size_t i = 0; i < n; i++) {
        if (image->header.counters[counters[i]]) {
            if (why) {
                *why = counters[i];
            }
            return false;
        }
    }
    return true;
}

bool attach_calls_exact(const struct attach_image *image, enum attach_counter *why)
{
    static const enum attach_counter counters[] = {
        ATTACH_COUNTER_CALLS_LOST, ATTACH_COUNTER_CALLS_JUNK, ATTACH_COUNTER_MODULES_LOST, ATTACH_COUNTER_FORKS_UNSEEN,
        ATTACH_COUNTER_PAUSES,     ATTACH_COUNTER_OVERLAPS,   ATTACH_COUNTER_LEFT_OUT};
    return counters_are_zero(image, counters, sizeof counters / sizeof counters[0], why);
}

bool attach_undelivered_matter(uint64_t undelivered, uint64_t ticks, uint32_t rate)
{
    const double n = (double)undelivered;
    return n * n > (double)ticks + n && n * 20 >= rate;
}

bool attach_ticks_exact(const struct attach_image *image, enum attach_counter *why)
{
    static const enum attach_counter counters[] = {ATTACH_COUNTER_TICKS_DROPPED,   ATTACH_COUNTER_TICKS_BLOCKED,
                                                   ATTACH_COUNTER_THREADS_UNTIMED, ATTACH_COUNTER_FOREIGN_SIGPROF,
                                                   ATTACH_COUNTER_MODULES_LOST,    ATTACH_COUNTER_PAUSES};
    const uint64_t *n = image->header.counters;
    if (!counters_are_zero(image, counters, sizeof counters / sizeof counters[0], why)) {
        return false;
    }
    if (attach_undelivered_matter(n[ATTACH_COUNTER_TICKS_UNDELIVERED], n[ATTACH_COUNTER_TICKS], image->header.rate)) {
        if (why) {
            *why = ATTACH_COUNTER_TICKS_UNDELIVERED;
        }
        return false;
    }
    return true;
}
