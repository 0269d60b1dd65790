#include <inttypes.h>
#include <string.h>

#include "import/import_any_internal.h"
#include "proto/buildid.h"
#include "proto/counts.h"
#include "proto/pprof_format.h"

#define PPROF_TYPES 64 /* limit of sample types of one profile */

struct pprof_string {
    const char *text;
    size_t size;
};

struct pprof_type {
    uint64_t type, unit; /* strings */
};

struct pprof_mapping {
    uint64_t id, start, limit, offset, filename, build_id;
    uint64_t lowest, highest; /* addresses of its locations; 0: there are none */
    uint32_t inside, outside; /* locations with addresses inside and outside [start, limit) */
};

struct pprof_location {
    uint64_t id, mapping, address;
    uint32_t frame; /* of the profile */
};

/* Rows by id; ids may be any numbers. */
struct pprof_ids {
    struct table table;
    const void *rows; /* each begins with its id */
    size_t size;      /* of a row */
};

struct pprof_parser {
    struct arena *arena;
    const uint8_t *file, *profile_end;
    struct import_profile profile;
    struct import_texts texts;
    struct pprof_string *strings;
    struct pprof_mapping *mappings;
    struct pprof_location *locations;
    uint64_t *comments; /* strings */
    uint32_t string_count, string_capacity, mapping_count, mapping_capacity, location_count, location_capacity,
        comment_count, comment_capacity;
    struct pprof_ids mapping_ids, location_ids;
    struct pprof_type types[PPROF_TYPES], period_type;
    uint32_t type_count;
    uint64_t period, time, duration, default_type;
    uint32_t sample_count;
    uint32_t *chain, chain_capacity; /* frames of the sample that is being read, the leaf first */
    /* Columns of a sample's values that are imported; PPROF_TYPES: none. */
    uint32_t ticks, calls;
    bool own;     /* an export of profd: calls are exact */
    bool derived; /* its stacks were never observed */
};

static struct pprof_string pprof_string_at(const struct pprof_parser *p, uint64_t index)
{
    return index < p->string_count ? p->strings[index] : (struct pprof_string){"", 0};
}

static bool pprof_string_is(const struct pprof_parser *p, uint64_t index, const char *text)
{
    struct pprof_string s = pprof_string_at(p, index);
    return s.size == strlen(text) && memcmp(s.text, text, s.size) == 0;
}

static uint64_t row_id(const struct pprof_ids *ids, uint32_t index)
{
    uint64_t id;
    memcpy(&id, (const char *)ids->rows + index * ids->size, sizeof id);
    return id;
}

static const void *pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
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

static uint64_t id_hash(const void *context, uint32_t index)
{
    return table_mix(row_id(context, index), 2);
}

static enum profd_status pprof_broken(const struct pprof_parser *p, const uint8_t *at, const char *what,
                                      struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "byte %zu: %s", (size_t)(at - p->file), what);
}

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };

/* Reads the numbers of a repeated field, packed or not: one of them, and whether it was present. */
static bool next_number(const struct pprof_field *f, struct pprof_cursor *c, bool *first, uint64_t *out, bool *broken)
{
    if (f->wire == PPROF_WIRE_NUMBER) {
        *out = f->value;
        bool there = *first;
        *first = false;
        return there;
    }
    if (f->wire != PPROF_WIRE_BYTES) {
        *broken = true;
        return false;
    }
    if (c->at >= c->end) {
        return false;
    }
    *broken = !varint_get(&c->at, c->end, out);
    return !*broken;
}

/* Reads one sample's values, one for each type. */
static enum profd_status sample_read(struct pprof_parser *p, struct pprof_cursor message, uint64_t values[PPROF_TYPES],
                                     struct profd_error *e)
{
    struct pprof_field f;
    bool broken = false;
    uint32_t count = 0;
    const uint8_t *begin = message.at;
    memset(values, 0, PPROF_TYPES * sizeof *values);
    while (pprof_field_next(&message, &f, &broken)) {
        bool first = true, bad = false;
        uint64_t value;
        if (f.number != SAMPLE_VALUE) {
            continue;
        }
        while (next_number(&f, &f.inside, &first, &value, &bad)) {
            if (count == p->type_count) {
                return pprof_broken(p, begin, "a Sample with more values than there are sample types", e);
            }
            if (value > INT64_MAX) {
                return profd_error_set(
                    e, PROFD_REFUSED, "byte %zu: a sample of %" PRId64 ": differences of two profiles cannot be stored",
                    (size_t)(begin - p->file), (int64_t)value);
            }
            values[count++] = value;
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "a value of a Sample is not a number", e);
        }
    }
    if (broken) {
        return pprof_broken(p, message.at, "not a valid field of a Sample", e);
    }
    if (count != p->type_count) {
        return pprof_broken(p, begin, "a Sample with fewer values than there are sample types", e);
    }
    return PROFD_OK;
}

static uint32_t find_type(const struct pprof_parser *p, const char *type, const char *unit)
{
    for (uint32_t i = 0; i < p->type_count; i++) {
        if (pprof_string_is(p, p->types[i].type, type) && (!unit || pprof_string_is(p, p->types[i].unit, unit))) {
            return i;
        }
    }
    return PPROF_TYPES;
}

/* Number of this unit in a second; 0 if it is not a time. */
static uint32_t unit_rate(const struct pprof_parser *p, uint64_t unit)
{
    return pprof_string_is(p, unit, "nanoseconds")    ? 1000000000u
           : pprof_string_is(p, unit, "microseconds") ? 1000000u
           : pprof_string_is(p, unit, "milliseconds") ? 1000u
           : pprof_string_is(p, unit, "seconds")      ? 1u
                                                      : 0;
}

/* Samples per second, if the period is that of a clock with a whole number of samples per second; otherwise 0. */
static uint32_t sample_rate(const struct pprof_parser *p)
{
    uint32_t unit = unit_rate(p, p->period_type.unit);
    if (unit == 0 || p->period == 0 || p->period > unit) {
        return 0;
    }
    uint64_t rate = ((uint64_t)unit + p->period / 2) / p->period;
    return (uint64_t)unit / rate == p->period ? (uint32_t)rate : 0;
}

static bool comment_begins(const struct pprof_parser *p, const char *text)
{
    for (uint32_t i = 0; i < p->comment_count; i++) {
        struct pprof_string s = pprof_string_at(p, p->comments[i]);
        if (s.size >= strlen(text) && memcmp(s.text, text, strlen(text)) == 0) {
            return true;
        }
    }
    return false;
}

/* True if the time of each sample is its number of samples times the period. */
static bool samples_say_all(struct pprof_parser *p, uint32_t samples, uint32_t time, const uint8_t *in, size_t n)
{
    struct pprof_cursor c = {in, in + n, in};
    struct pprof_field f;
    bool broken = false;
    uint32_t unit = unit_rate(p, p->types[time].unit), period_unit = unit_rate(p, p->period_type.unit);
    while (unit == period_unit && pprof_field_next(&c, &f, &broken)) {
        uint64_t values[PPROF_TYPES], product;
        if (f.number == PPROF_SAMPLE &&
            (sample_read(p, f.inside, values, NULL) != PROFD_OK ||
             __builtin_mul_overflow(values[samples], p->period, &product) || product != values[time])) {
            return false;
        }
    }
    return unit == period_unit;
}

/* The dimension of a type that is neither time nor samples: its name. */
static void choose_other(struct pprof_parser *p, uint32_t column)
{
    struct pprof_string name = pprof_string_at(p, p->types[column].type);
    uint32_t unit = unit_rate(p, p->types[column].unit);
    bool is_time = unit > 0 && name.size == 3 && memcmp(name.text, "cpu", 3) == 0;
    p->ticks = column;
    if (is_time) {
        import_profile_set_dimension(&p->profile, "seconds", 7, unit);
    } else if (name.size > 0) {
        import_profile_set_dimension(&p->profile, name.text, name.size, unit > 0 ? unit : 1);
    } else {
        import_profile_set_dimension(&p->profile, "samples", 7, 1);
    }
}

/* Determines which values of a sample are ticks and numbers of samples; sets dimension and rate. */
static enum profd_status types_choose(struct pprof_parser *p, const char *event, struct profd_error *e)
{
    bool waiting = pprof_string_is(p, p->period_type.type, "wall");
    uint32_t samples = find_type(p, "samples", "count"), time = find_type(p, waiting ? "wall" : "cpu", NULL),
             rate = sample_rate(p);
    if (p->type_count == 0 || p->sample_count == 0) {
        return profd_error_set(e, PROFD_REFUSED, "%" PRIu32 " sample types and %" PRIu32 " samples: no data",
                               p->type_count, p->sample_count);
    }
    time = time != PPROF_TYPES && unit_rate(p, p->types[time].unit) > 0 ? time : PPROF_TYPES;
    /* Comments in exports of profd state what the counts are. */
    p->calls = find_type(p, "calls", "count");
    p->own = p->calls != PPROF_TYPES && (comment_begins(p, PPROF_COMMENT_OWN) || comment_begins(p, PPROF_COMMENT_SEEN));
    p->derived = p->own && !comment_begins(p, PPROF_COMMENT_SEEN);
    p->profile.sampled = p->own && comment_begins(p, PPROF_COMMENT_SAMPLED);
    for (uint32_t i = 0; p->own && i < p->comment_count; i++) {
        struct pprof_string comment = pprof_string_at(p, p->comments[i]);
        struct import_scan rest = {comment.text, comment.text + comment.size};
        uint64_t n;
        if (import_scan_skip(&rest, PPROF_COMMENT_REASONS)) {
            import_profile_set_reasons(&p->profile, rest.at, import_scan_left(&rest));
        } else if (import_scan_skip(&rest, PPROF_COMMENT_PROCESSES) && import_scan_number(&rest, 10, &n)) {
            import_profile_set_processes(&p->profile, n);
        }
    }
    if (event) {
        uint32_t column = find_type(p, event, NULL);
        if (column == PPROF_TYPES) {
            struct pprof_string first = pprof_string_at(p, p->types[0].type);
            return profd_error_set(e, PROFD_REFUSED,
                                   "it has no sample type \"%.60s\"; its first of %" PRIu32 " is \"%.*s\"", event,
                                   p->type_count, (int)(first.size < 60 ? first.size : 60), first.text);
        }
        choose_other(p, column);
        return PROFD_OK;
    }
    size_t n = (size_t)(p->profile_end - p->file);
    bool by_clock = samples != PPROF_TYPES && rate > 0 && (waiting || pprof_string_is(p, p->period_type.type, "cpu"));
    if (by_clock && (time == PPROF_TYPES || p->own || samples_say_all(p, samples, time, p->file, n))) {
        p->ticks = samples;
        import_profile_set_dimension(&p->profile, waiting ? "wall" : "seconds", waiting ? 4 : 7, rate);
    } else if (time != PPROF_TYPES) {
        choose_other(p, time);
    } else {
        struct pprof_string wanted = pprof_string_at(p, p->default_type);
        uint32_t column = 0;
        for (uint32_t i = 0; i < p->type_count && wanted.size > 0; i++) {
            struct pprof_string name = pprof_string_at(p, p->types[i].type);
            column = name.size == wanted.size && memcmp(name.text, wanted.text, name.size) == 0 ? i : column;
        }
        choose_other(p, column);
    }
    return PROFD_OK;
}

/* The sample that is being added. */
struct pprof_stack {
    uint64_t ticks, calls;
    uint32_t callee; /* previous frame of the stack; IMPORT_NONE at the leaf */
    uint32_t depth;
    bool incomplete; /* its outermost frame stands for callers that are not known, in an export of profd */
};

/* Adds one more frame of a stack, from the leaf up. */
static bool stack_add(struct pprof_parser *p, struct pprof_stack *s, uint32_t frame)
{
    bool good = true;
    if (s->depth == 0 && s->ticks > 0) {
        import_profile_add_ticks(&p->profile, frame, s->ticks);
    }
    if (s->depth == 1 && s->calls > 0) { /* export of profd: only caller and callee */
        good = import_profile_add_pair(&p->profile, frame, s->callee, s->calls);
    }
    uint32_t *chain = arena_extend(p->arena, p->chain, s->depth, &p->chain_capacity, sizeof *chain);
    if (!chain) {
        return false;
    }
    p->chain = chain;
    p->chain[s->depth++] = frame;
    s->callee = frame;
    return good;
}

static enum profd_status take_sample(struct pprof_parser *p, struct pprof_cursor message, struct profd_error *e)
{
    uint64_t values[PPROF_TYPES];
    TRY(sample_read(p, message, values, e));
    struct pprof_stack s = {.ticks = values[p->ticks], .calls = p->own ? values[p->calls] : 0, .callee = IMPORT_NONE};
    struct pprof_field f;
    bool broken = false;
    while (pprof_field_next(&message, &f, &broken)) {
        bool first = true, bad = false;
        uint64_t id;
        while (f.number == SAMPLE_LOCATION && next_number(&f, &f.inside, &first, &id, &bad)) {
            const struct pprof_location *l = pprof_ids_find(&p->location_ids, id);
            if (!l) {
                return profd_error_set(e, PROFD_MALFORMED,
                                       "byte %zu: a sample in location %" PRIu64 ", which does not exist",
                                       (size_t)(f.inside.at - p->file), id);
            }
            if (!stack_add(p, &s, l->frame)) {
                return import_profile_exhausted(p->arena, e);
            }
            s.incomplete = p->own && l->mapping == 0 && l->address == COUNTS_FRAME_INCOMPLETE;
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "a location of a Sample is not a number", e);
        }
    }
    if (s.depth == 1 && s.calls > 0 && !import_profile_add_pair(&p->profile, s.callee, s.callee, s.calls)) {
        return import_profile_exhausted(p->arena, e);
    }
    if (p->derived || (s.incomplete && s.depth == 1)) {
        return PROFD_OK;
    }
    if (s.incomplete) {
        p->chain[s.depth - 1] = IMPORT_CUT;
    }
    return import_profile_add_stack(&p->profile, p->chain, s.depth, s.ticks) ? PROFD_OK
                                                                             : import_profile_exhausted(p->arena, e);
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
static enum profd_status read_numbers(const struct pprof_parser *p, struct pprof_cursor c, uint64_t *const *fields,
                                      size_t n, const char *what, struct profd_error *e)
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

static enum profd_status read_type(const struct pprof_parser *p, struct pprof_cursor c, struct pprof_type *out,
                                   struct profd_error *e)
{
    uint64_t *const fields[] = {NULL, &out->type, &out->unit};
    *out = (struct pprof_type){0, 0};
    return read_numbers(p, c, fields, sizeof fields / sizeof fields[0], "not a valid field of a ValueType", e);
}

static enum profd_status read_mapping(struct pprof_parser *p, struct pprof_cursor c, struct profd_error *e)
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

static enum profd_status read_location(struct pprof_parser *p, struct pprof_cursor c, struct profd_error *e)
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

/* Comments are indices of strings, packed or not. */
static enum profd_status add_comments(struct pprof_parser *p, const struct pprof_field *f, struct profd_error *e)
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

/* Reads the rows of every kind but samples. */
static enum profd_status tables_read(struct pprof_parser *p, const uint8_t *in, size_t n, struct profd_error *e)
{
    struct pprof_cursor c = {in, n == 0 ? in : in + n, in};
    struct pprof_field f;
    bool broken = false;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && pprof_field_next(&c, &f, &broken)) {
        bool is_message = (f.number >= PPROF_SAMPLE_TYPE && f.number <= PPROF_STRING) || f.number == PPROF_PERIOD_TYPE;
        bool is_number = f.number >= PPROF_TIME_NANOS && f.number <= PPROF_DEFAULT_SAMPLE_TYPE && !is_message;
        void *rows;
        if ((is_message && f.wire != PPROF_WIRE_BYTES) ||
            (is_number && f.wire != PPROF_WIRE_NUMBER && f.number != PPROF_COMMENT)) {
            return pprof_broken(p, c.at, "a field of message Profile with the wrong wire type", e);
        }
        switch (f.number) {
        case PPROF_SAMPLE_TYPE:
            status = p->type_count == PPROF_TYPES ? pprof_broken(p, f.inside.at, "more than 64 sample types", e)
                                                  : read_type(p, f.inside, &p->types[p->type_count++], e);
            break;
        case PPROF_SAMPLE:
            p->sample_count += p->sample_count < UINT32_MAX;
            break;
        case PPROF_MAPPING:
            status = read_mapping(p, f.inside, e);
            break;
        case PPROF_LOCATION:
            status = read_location(p, f.inside, e);
            break;
        case PPROF_STRING:
            rows = arena_extend(p->arena, p->strings, p->string_count, &p->string_capacity, sizeof *p->strings);
            if (!rows) {
                return import_profile_exhausted(p->arena, e);
            }
            p->strings = rows;
            p->strings[p->string_count++] =
                (struct pprof_string){(const char *)f.inside.at, (size_t)(f.inside.end - f.inside.at)};
            break;
        case PPROF_PERIOD_TYPE:
            status = read_type(p, f.inside, &p->period_type, e);
            break;
        case PPROF_COMMENT:
            status = add_comments(p, &f, e);
            break;
        case PPROF_TIME_NANOS:
            p->time = f.value;
            break;
        case PPROF_DURATION_NANOS:
            p->duration = f.value;
            break;
        case PPROF_PERIOD:
            p->period = f.value;
            break;
        case PPROF_DEFAULT_SAMPLE_TYPE:
            p->default_type = f.value;
            break;
        default:
            break;
        }
    }
    return broken ? pprof_broken(p, c.at, "not a valid field of message Profile: not pprof", e) : status;
}

static enum profd_status add_object(struct pprof_parser *p, const struct pprof_mapping *m, struct profd_error *e)
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
    /* Addresses outside every mapping's memory are link-time addresses, as some collectors write them. So are all
     * addresses of a mapping that begins at 0, where nothing can be mapped. */
    o->addressing = (m->start == 0 && m->offset == 0) || m->inside == 0 ? IMPORT_LINK_TIME : IMPORT_IN_FILE;
    o->low = o->addressing == IMPORT_LINK_TIME ? 0 : m->offset;
    o->high = o->addressing == IMPORT_LINK_TIME ? m->limit - m->start : m->offset + (m->limit - m->start);
    if (o->addressing == IMPORT_LINK_TIME && m->limit > INT64_MAX) { /* it says nothing about the size of the code */
        o->low = m->lowest;
        o->high = m->highest + (m->highest < UINT64_MAX);
    }
    return PROFD_OK;
}

static enum profd_status add_frame(struct pprof_parser *p, struct pprof_location *l, struct profd_error *e)
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

/* Converts mappings to objects and locations to frames. */
static enum profd_status places_make(struct pprof_parser *p, struct profd_error *e)
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

enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e)
{
    struct pprof_parser *p = ARENA_NEW(a, struct pprof_parser);
    if (!p) {
        return import_profile_exhausted(a, e);
    }
    p->arena = a;
    p->file = in;
    p->profile_end = in + n;
    import_profile_init(&p->profile, a);
    import_texts_init(&p->texts, a);
    if (n == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "it is empty");
    }
    enum profd_status status = tables_read(p, in, n, e);
    status = status ? status : types_choose(p, event, e);
    status = status ? status : places_make(p, e);
    struct pprof_cursor c = {in, in + n, in};
    struct pprof_field f;
    bool broken = false;
    while (status == PROFD_OK && pprof_field_next(&c, &f, &broken)) {
        status = f.number == PPROF_SAMPLE ? take_sample(p, f.inside, e) : PROFD_OK;
    }
    if (status != PROFD_OK) {
        return status;
    }
    p->profile.whole_stacks = true; /* the format has no mark for others */
    bool timed = p->time > 0 && p->time <= INT64_MAX;
    p->profile.start = timed ? p->time : 0;
    p->profile.end = timed ? p->time + (p->duration <= INT64_MAX ? p->duration : 0) : 0;
    *out = &p->profile;
    return PROFD_OK;
}
