/* Converts mappings to objects and locations to frames. */
#include <inttypes.h>
#include <string.h>

#include "import/import_pprof_internal.h"
#include "proto/buildid.h"

enum profd_status pprof_broken(const struct pprof *p, const uint8_t *at, const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "byte %zu: %s", (size_t)(at - p->file), what);
}

static uint64_t row_id(const struct pprof_ids *ids, uint32_t index)
{
    uint64_t id;
    memcpy(&id, (const char *)ids->rows + index * ids->size, sizeof id);
    return id;
}

static uint64_t id_hash(const void *context, uint32_t index)
{
    return table_mix(row_id(context, index), 2);
}

const void *pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
{
    if (!ids->table.slots) {
        return NULL;
    }
    for (uint32_t at = table_slot(&ids->table, table_mix(id, 2)); ids->table.slots[at] != 0;
         at = (at + 1) & ids->table.mask) {
        if (row_id(ids, ids->table.slots[at] - 1) == id) {
            return (const char *)ids->rows + (ids->table.slots[at] - 1) * ids->size;
        }
    }
    return NULL;
}

/* Records the id of the last row. False if memory is exhausted. */
static bool ids_add(struct pprof_ids *ids, struct arena *a, const void *rows, size_t size, uint64_t id)
{
    ids->rows = rows;
    ids->size = size;
    if (!table_reserve(&ids->table, a, id_hash, ids)) {
        return false;
    }
    uint32_t at = table_slot(&ids->table, table_mix(id, 2));
    while (ids->table.slots[at] != 0) {
        at = (at + 1) & ids->table.mask;
    }
    ids->table.slots[at] = ++ids->table.used;
    return true;
}

/* Reads a message of numbers: field i goes to *fields[i], other fields are skipped. what is the sentence for an invalid
 * field. */
static enum profd_status read_numbers(const struct pprof *p, struct pprof_cursor c, uint64_t *const *fields, size_t n,
                                      const char *what, struct profd_error *e)
{
    struct pprof_field f;
    bool broken = false;
    while (pprof_field_next(&c, &f, &broken)) {
        if (f.number > 0 && f.number < n) {
            *fields[f.number] = f.value;
        }
    }
    return broken ? pprof_broken(p, c.at, what, e) : PROFD_OK;
}

static enum profd_status read_type(const struct pprof *p, struct pprof_cursor c, struct pprof_type *out,
                                   struct profd_error *e)
{
    uint64_t *const fields[] = {NULL, &out->type, &out->unit};
    *out = (struct pprof_type){0, 0};
    return read_numbers(p, c, fields, sizeof fields / sizeof fields[0], "not a valid field of a ValueType", e);
}

static enum profd_status read_mapping(struct pprof *p, struct pprof_cursor c, struct profd_error *e)
{
    struct pprof_mapping m = {0};
    uint64_t *const fields[] = {NULL, &m.id, &m.start, &m.limit, &m.offset, &m.filename, &m.build_id};
    const uint8_t *begin = c.at;
    enum profd_status status =
        read_numbers(p, c, fields, sizeof fields / sizeof fields[0], "not a valid field of a Mapping", e);
    if (status != PROFD_OK) {
        return status;
    }
    if (m.id == 0 || pprof_ids_find(&p->mapping_ids, m.id)) {
        return pprof_broken(p, begin, m.id == 0 ? "a Mapping with id 0" : "two Mappings with the same id", e);
    }
    void *rows = arena_extend(p->arena, p->mappings, p->mapping_count, &p->mapping_capacity, sizeof m);
    if (!rows) {
        return import_profile_exhausted(p->arena, e);
    }
    p->mappings = rows;
    p->mappings[p->mapping_count++] = m;
    return ids_add(&p->mapping_ids, p->arena, p->mappings, sizeof m, m.id) ? PROFD_OK
                                                                           : import_profile_exhausted(p->arena, e);
}

static enum profd_status read_location(struct pprof *p, struct pprof_cursor c, struct profd_error *e)
{
    struct pprof_location l = {.frame = IMPORT_NONE};
    uint64_t *const fields[] = {NULL, &l.id, &l.mapping, &l.address};
    const uint8_t *begin = c.at;
    enum profd_status status =
        read_numbers(p, c, fields, sizeof fields / sizeof fields[0], "not a valid field of a Location", e);
    if (status != PROFD_OK) {
        return status;
    }
    if (l.id == 0 || pprof_ids_find(&p->location_ids, l.id)) {
        return pprof_broken(p, begin, l.id == 0 ? "a Location with id 0" : "two Locations with the same id", e);
    }
    void *rows = arena_extend(p->arena, p->locations, p->location_count, &p->location_capacity, sizeof l);
    if (!rows) {
        return import_profile_exhausted(p->arena, e);
    }
    p->locations = rows;
    p->locations[p->location_count++] = l;
    return ids_add(&p->location_ids, p->arena, p->locations, sizeof l, l.id) ? PROFD_OK
                                                                             : import_profile_exhausted(p->arena, e);
}

static enum profd_status add_string(struct pprof *p, const struct pprof_field *f, struct profd_error *e)
{
    void *rows = arena_extend(p->arena, p->strings, p->string_count, &p->string_capacity, sizeof *p->strings);
    if (!rows) {
        return import_profile_exhausted(p->arena, e);
    }
    p->strings = rows;
    p->strings[p->string_count++] =
        (struct pprof_string){(const char *)f->inside.at, (size_t)(f->inside.end - f->inside.at)};
    return PROFD_OK;
}

/* Comments are indices of strings, packed or not. */
static enum profd_status add_comments(struct pprof *p, const struct pprof_field *f, struct profd_error *e)
{
    struct pprof_cursor c = f->inside;
    bool packed = f->wire == PPROF_WIRE_BYTES;
    do {
        uint64_t value = f->value;
        if (packed && c.at < c.end && !varint_get(&c.at, c.end, &value)) {
            return pprof_broken(p, c.at, "no number of a comment", e);
        }
        void *rows = arena_extend(p->arena, p->comments, p->comment_count, &p->comment_capacity, sizeof *p->comments);
        if (!rows) {
            return import_profile_exhausted(p->arena, e);
        }
        p->comments = rows;
        p->comments[p->comment_count++] = value;
    } while (packed && c.at < c.end);
    return PROFD_OK;
}

static enum profd_status add_type(struct pprof *p, const struct pprof_field *f, struct profd_error *e)
{
    if (p->type_count == PPROF_TYPES) {
        return pprof_broken(p, f->inside.at, "more than 64 sample types", e);
    }
    return read_type(p, f->inside, &p->types[p->type_count++], e);
}

static enum profd_status take_message(struct pprof *p, const struct pprof_field *f, struct profd_error *e)
{
    switch (f->number) {
    case PPROF_SAMPLE_TYPE:
        return add_type(p, f, e);
    case PPROF_SAMPLE:
        p->sample_count += p->sample_count < UINT32_MAX;
        return PROFD_OK;
    case PPROF_MAPPING:
        return read_mapping(p, f->inside, e);
    case PPROF_LOCATION:
        return read_location(p, f->inside, e);
    case PPROF_STRING:
        return add_string(p, f, e);
    case PPROF_PERIOD_TYPE:
        return read_type(p, f->inside, &p->period_type, e);
    case PPROF_COMMENT:
        return add_comments(p, f, e);
    default:
        return PROFD_OK;
    }
}

static enum profd_status take_number(struct pprof *p, const struct pprof_field *f, struct profd_error *e)
{
    switch (f->number) {
    case PPROF_TIME_NANOS:
        p->time = f->value;
        return PROFD_OK;
    case PPROF_DURATION_NANOS:
        p->duration = f->value;
        return PROFD_OK;
    case PPROF_PERIOD:
        p->period = f->value;
        return PROFD_OK;
    case PPROF_DEFAULT_SAMPLE_TYPE:
        p->default_type = f->value;
        return PROFD_OK;
    case PPROF_COMMENT:
        return add_comments(p, f, e);
    default:
        return PROFD_OK;
    }
}

enum profd_status pprof_tables_read(struct pprof *p, const uint8_t *in, size_t n, struct profd_error *e)
{
    struct pprof_cursor c = {in, n == 0 ? in : in + n, in};
    struct pprof_field f;
    bool broken = false;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && pprof_field_next(&c, &f, &broken)) {
        bool is_message = (f.number >= PPROF_SAMPLE_TYPE && f.number <= PPROF_STRING) || f.number == PPROF_PERIOD_TYPE;
        bool is_number = f.number >= PPROF_TIME_NANOS && f.number <= PPROF_DEFAULT_SAMPLE_TYPE && !is_message;
        if ((is_message && f.wire != PPROF_WIRE_BYTES) ||
            (is_number && f.wire != PPROF_WIRE_NUMBER && f.number != PPROF_COMMENT)) {
            return pprof_broken(p, c.at, "a field of message Profile with the wrong wire type", e);
        }
        status = f.wire == PPROF_WIRE_BYTES ? take_message(p, &f, e) : take_number(p, &f, e);
    }
    return broken ? pprof_broken(p, c.at, "not a valid field of message Profile: not pprof", e) : status;
}

struct pprof_string pprof_string_at(const struct pprof *p, uint64_t index)
{
    return index < p->string_count ? p->strings[index] : (struct pprof_string){"", 0};
}

bool pprof_string_is(const struct pprof *p, uint64_t index, const char *text)
{
    struct pprof_string s = pprof_string_at(p, index);
    return s.size == strlen(text) && memcmp(s.text, text, s.size) == 0;
}

/* Addresses outside every mapping's memory are link-time addresses, as some collectors write them. So are all addresses
 * of a mapping that begins at 0, where nothing can be mapped. */
static enum import_addressing addressing_of(const struct pprof_mapping *m)
{
    return (m->start == 0 && m->offset == 0) || m->inside == 0 ? IMPORT_LINK_TIME : IMPORT_IN_FILE;
}

static enum profd_status add_object(struct pprof *p, const struct pprof_mapping *m, struct profd_error *e)
{
    struct pprof_string name = pprof_string_at(p, m->filename), id_text = pprof_string_at(p, m->build_id);
    struct buildid id;
    if (memchr(name.text, '\0', name.size)) {
        return profd_error_set(e, PROFD_MALFORMED, "the file name of mapping %" PRIu64 " contains a NUL", m->id);
    }
    const char *path = import_texts_take(&p->texts, name.text, name.size), *build_id = NULL;
    if (id_text.size > 0 && buildid_parse(id_text.text, id_text.size, &id, NULL) == PROFD_OK) {
        build_id = import_texts_take(&p->texts, id.text, strlen(id.text));
        if (!build_id) {
            return import_profile_exhausted(p->arena, e);
        }
    }
    struct import_object *o = path ? import_profile_add_object(&p->profile, path) : NULL;
    if (!o) {
        return import_profile_exhausted(p->arena, e);
    }
    o->build_id = build_id;
    o->outside = o->outside && !(build_id && path[0] == '\0');
    o->addressing = addressing_of(m);
    o->low = o->addressing == IMPORT_LINK_TIME ? 0 : m->offset;
    o->high = o->addressing == IMPORT_LINK_TIME ? m->limit - m->start : m->offset + (m->limit - m->start);
    if (o->addressing == IMPORT_LINK_TIME && m->limit > INT64_MAX) { /* it says nothing about the size of the code */
        o->low = m->lowest;
        o->high = m->highest + (m->highest < UINT64_MAX);
    }
    return PROFD_OK;
}

static enum profd_status add_frame(struct pprof *p, struct pprof_location *l, struct profd_error *e)
{
    struct import_frame f = {.object = IMPORT_NONE, .offset = IMPORT_NO_OFFSET};
    const struct pprof_mapping *m = l->mapping != 0 ? pprof_ids_find(&p->mapping_ids, l->mapping) : NULL;
    if (l->mapping != 0 && !m) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "location %" PRIu64 " is in mapping %" PRIu64 ", which does not exist", l->id,
                               l->mapping);
    }
    if (m && l->address != 0) {
        f.object = (uint32_t)(m - p->mappings);
        bool in_file = p->profile.objects[f.object].addressing == IMPORT_IN_FILE;
        f.has_address = !in_file || (l->address >= m->start && l->address < m->limit);
        f.address = !f.has_address ? 0 : in_file ? l->address - m->start + m->offset : l->address;
    }
    if (m && l->address == 0 && p->own) { /* code that no symbol owns is a function without an address there */
        f.object = (uint32_t)(m - p->mappings);
        f.name = "[gap]";
    }
    return import_profile_take_frame(&p->profile, &f, &l->frame) ? PROFD_OK : import_profile_exhausted(p->arena, e);
}

enum profd_status pprof_places_make(struct pprof *p, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint32_t addresses = 0, mapped = 0;
    for (uint32_t i = 0; i < p->location_count; i++) {
        const struct pprof_location *l = &p->locations[i];
        const struct pprof_mapping *found = l->mapping != 0 ? pprof_ids_find(&p->mapping_ids, l->mapping) : NULL;
        struct pprof_mapping *m = found ? &p->mappings[found - p->mappings] : NULL;
        if (m && l->address != 0) {
            *(l->address >= m->start && l->address < m->limit ? &m->inside : &m->outside) += 1;
            m->lowest = m->lowest == 0 || l->address < m->lowest ? l->address : m->lowest;
            m->highest = l->address > m->highest ? l->address : m->highest;
        }
    }
    for (uint32_t i = 0; i < p->mapping_count && status == PROFD_OK; i++) {
        status = add_object(p, &p->mappings[i], e);
    }
    for (uint32_t i = 0; i < p->location_count && status == PROFD_OK; i++) {
        addresses += p->locations[i].address != 0;
        mapped += p->locations[i].address != 0 && p->locations[i].mapping != 0;
        status = add_frame(p, &p->locations[i], e);
    }
    if (status == PROFD_OK && mapped == 0) {
        status =
            profd_error_set(e, PROFD_REFUSED,
                            "none of its %" PRIu32
                            " locations has an address%s: samples are stored by build and address, which cannot be "
                            "determined from names alone (generated or already symbolized code)",
                            p->location_count, addresses > 0 ? " in a mapping" : "");
    }
    /* By convention the first mapping is the program's, unless it is no file, or is a library while others are not. */
    struct import_profile *q = &p->profile;
    if (q->object_count > 0 && !q->objects[0].outside && !strstr(q->objects[0].path, ".so")) {
        q->program_object = 0;
    }
    return status;
}
