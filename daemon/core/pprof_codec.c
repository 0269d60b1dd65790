#include "core/pprof_codec.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "core/foreign_clock.h"
#include "core/row_table.h"

#define UNPACK_BLOCK ((size_t)32 << 10)
#define UNPACK_ALIGN ((size_t)16)

/* Memory of a message that is being unpacked: small blocks are cut off from the arena's, as they come. */
struct unpack {
    struct arena *arena;
    char *at;
    size_t left;
    bool exhausted;
};

static void *unpack_take(void *context, size_t size)
{
    struct unpack *u = context;
    size = (size + UNPACK_ALIGN - 1) & ~(UNPACK_ALIGN - 1);
    if (size > u->left) {
        /* A jump out of the arena must not cross the code of protobuf-c, so the boundary is here. */
        u->exhausted = true;
        ARENA_BOUNDARY(u->arena, NULL);
        const size_t taken = size > UNPACK_BLOCK / 4 ? size : UNPACK_BLOCK;
        char *block = arena_take(u->arena, taken);
        if (!block || taken == size) {
            u->exhausted = block == NULL;
            return block;
        }
        u->exhausted = false;
        u->at = block;
        u->left = taken;
    }
    char *cut = u->at;
    u->at += size;
    u->left -= size;
    return cut;
}

/* Blocks go with the arena. */
static void unpack_give(void *context, void *block)
{
    (void)context;
    (void)block;
}

static enum profd_status exhausted(struct arena *a, struct profd_error *e)
{
    arena_continue(a);
    return arena_hit_limit(a) ? profd_error_set(e, PROFD_LIMIT, "more than %zu MiB of samples, locations and names",
                                                arena_used(a) >> 20)
                              : profd_no_memory(e);
}

enum profd_status pprof_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t n,
                               void *out, struct profd_error *e)
{
    struct unpack u = {.arena = a};
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &(ProtobufCAllocator){unpack_take, unpack_give, &u}, n, in);
    if (u.exhausted) {
        return exhausted(a, e);
    }
    FAIL_IF(!message, e, PROFD_MALFORMED, "the %zu bytes are not a valid message %s", n, type->short_name);
    memcpy(out, &message, sizeof message);
    return PROFD_OK;
}

/* Rows of one list, each a message whose first field is its id, and their places by id. Ids may be any numbers. */
struct pprof_ids {
    struct arena *arena;
    struct table table;
    const void *rows; /* pointers to them */
};

static uint64_t row_id(const struct pprof_ids *ids, uint32_t index)
{
    const char *row;
    uint64_t id;
    memcpy(&row, (const char *)ids->rows + index * sizeof row, sizeof row);
    memcpy(&id, row + offsetof(Profd__Pprof__Mapping, id), sizeof id);
    return id;
}

static uint64_t id_hash(const void *context, uint32_t index)
{
    return table_mix(row_id(context, index), 2);
}

_Static_assert(offsetof(Profd__Pprof__Mapping, id) == offsetof(Profd__Pprof__Location, id) &&
                   offsetof(Profd__Pprof__Mapping, id) == offsetof(Profd__Pprof__Function, id),
               "rows begin with their ids");

/* Sets *index to that of the row with the id. */
static bool ids_find(const struct pprof_ids *ids, uint64_t id, uint64_t *index)
{
    if (!ids->table.slots) {
        return false;
    }
    for (uint32_t at = table_slot(&ids->table, table_mix(id, 2)); ids->table.slots[at] != 0;
         at = (at + 1) & ids->table.mask) {
        if (row_id(ids, ids->table.slots[at] - 1) == id) {
            *index = ids->table.slots[at] - 1;
            return true;
        }
    }
    return false;
}

static enum profd_status ids_read(struct pprof_ids *ids, const char *name, size_t n, struct profd_error *e)
{
    uint64_t index;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t id = row_id(ids, i);
        if (id == 0 || ids_find(ids, id, &index)) {
            return id == 0 ? profd_error_set(e, PROFD_MALFORMED, "a %s has the id 0", name)
                           : profd_error_set(e, PROFD_MALFORMED, "two %ss have the same id %" PRIu64, name, id);
        }
        if (!table_reserve(&ids->table, ids->arena, id_hash, ids)) {
            return exhausted(ids->arena, e);
        }
        table_add(&ids->table, ids->arena, id_hash, ids);
    }
    return PROFD_OK;
}

/* Checks a sample, and sets its locations to indices. */
static enum profd_status resolve_sample(const Profd__Pprof__Profile *p, Profd__Pprof__Sample *s,
                                        const struct pprof_ids *locations, struct profd_error *e)
{
    FAIL_IF(s->n_value != p->n_sample_type, e, PROFD_MALFORMED,
            "a sample has %s values than there are sample types: %zu, not %zu",
            s->n_value < p->n_sample_type ? "fewer" : "more", s->n_value, p->n_sample_type);
    for (size_t k = 0; k < s->n_value; k++) {
        FAIL_IF(s->value[k] < 0, e, PROFD_REFUSED,
                "a sample has the value %" PRId64 ": differences of two profiles cannot be stored", s->value[k]);
    }
    for (size_t k = 0; k < s->n_location_id; k++) {
        FAIL_IF(!ids_find(locations, s->location_id[k], &s->location_id[k]), e, PROFD_MALFORMED,
                "a sample is in location %" PRIu64 ", which does not exist", s->location_id[k]);
    }
    return PROFD_OK;
}

enum profd_status pprof_read(struct arena *a, const uint8_t *in, size_t n, Profd__Pprof__Profile **out,
                             struct profd_error *e)
{
    Profd__Pprof__Profile *p;
    FAIL_IF(n == 0, e, PROFD_MALFORMED, "it is empty");
    TRY(pprof_unpack(a, &profd__pprof__profile__descriptor, in, n, &p, e));
    struct pprof_ids mappings = {.arena = a, .rows = p->mapping}, locations = {.arena = a, .rows = p->location},
                     functions = {.arena = a, .rows = p->function};
    TRY(ids_read(&mappings, "Mapping", p->n_mapping, e));
    TRY(ids_read(&locations, "Location", p->n_location, e));
    TRY(ids_read(&functions, "Function", p->n_function, e));
    FAIL_IF(p->n_sample_type == 0 || p->n_sample == 0, e, PROFD_REFUSED,
            "it has %zu sample types and %zu samples: no data", p->n_sample_type, p->n_sample);
    FAIL_IF(p->n_sample_type > PPROF_TYPES, e, PROFD_REFUSED, "it has %zu sample types, the limit is %d",
            p->n_sample_type, PPROF_TYPES);
    for (size_t i = 0; i < p->n_sample; i++) {
        TRY(resolve_sample(p, p->sample[i], &locations, e));
    }
    for (size_t i = 0; i < p->n_location; i++) {
        Profd__Pprof__Location *l = p->location[i];
        uint64_t index = 0;
        FAIL_IF(l->mapping_id != 0 && !ids_find(&mappings, l->mapping_id, &index), e, PROFD_MALFORMED,
                "location %" PRIu64 " is in mapping %" PRIu64 ", which does not exist", l->id, l->mapping_id);
        l->mapping_id = l->mapping_id != 0 ? index + 1 : 0;
        for (size_t k = 0; k < l->n_line; k++) {
            FAIL_IF(!ids_find(&functions, l->line[k]->function_id, &l->line[k]->function_id), e, PROFD_MALFORMED,
                    "location %" PRIu64 " is in function %" PRIu64 ", which does not exist", l->id,
                    l->line[k]->function_id);
        }
    }
    *out = p;
    return PROFD_OK;
}

ProtobufCBinaryData pprof_text(const Profd__Pprof__Profile *p, int64_t number)
{
    /* protobuf-c has no bytes of an empty text, and NULL is no address to count from. */
    return number >= 0 && (uint64_t)number < p->n_string_table && p->string_table[number].len > 0
               ? p->string_table[number]
               : pprof_bytes("", 0);
}

bool pprof_text_is(const Profd__Pprof__Profile *p, int64_t number, const char *text)
{
    const ProtobufCBinaryData s = pprof_text(p, number);
    return s.len == strlen(text) && (s.len == 0 || memcmp(s.data, text, s.len) == 0);
}

uint64_t pprof_unit_nanoseconds(const Profd__Pprof__Profile *p, int64_t unit)
{
    const ProtobufCBinaryData s = pprof_text(p, unit);
    return foreign_unit_nanoseconds((struct foreign_text){(const char *)s.data, s.len});
}

uint32_t pprof_find_type(const Profd__Pprof__Profile *p, const char *type, const char *unit)
{
    for (uint32_t i = 0; i < p->n_sample_type; i++) {
        if (pprof_text_is(p, p->sample_type[i]->type, type) &&
            (!unit || pprof_text_is(p, p->sample_type[i]->unit, unit))) {
            return i;
        }
    }
    return PPROF_TYPES;
}

bool pprof_is_product(const Profd__Pprof__Profile *p, uint32_t samples, uint32_t product)
{
    bool same = p->period_type && pprof_unit_nanoseconds(p, p->sample_type[product]->unit) ==
                                      pprof_unit_nanoseconds(p, p->period_type->unit);
    for (size_t i = 0; same && i < p->n_sample; i++) {
        int64_t value;
        same = !__builtin_mul_overflow(p->sample[i]->value[samples], p->period, &value) &&
               value == p->sample[i]->value[product];
    }
    return same;
}

void pprof_write(struct buffer *out, const Profd__Pprof__Profile *part)
{
    const size_t n = profd__pprof__profile__get_packed_size(part);
    char *bytes = buffer_extend(out, n);
    if (bytes) {
        profd__pprof__profile__pack(part, (uint8_t *)bytes);
    }
}

/* Adds to a reference, which is 0 if there is none. */
static void move_text(int64_t *text, const struct pprof_parts *parts)
{
    *text += *text != 0 ? parts->next_text : 0;
}

/* Moves a number behind those in use. Returns the number behind it. */
static uint64_t move_id(uint64_t *id, uint64_t next, uint64_t behind)
{
    *id += *id != 0 ? next : 0;
    return *id > behind ? *id : behind;
}

enum profd_status pprof_append(struct buffer *out, struct arena *a, const uint8_t *in, size_t n,
                               struct pprof_parts *parts, struct profd_error *e)
{
    Profd__Pprof__Profile *p;
    struct pprof_parts next = *parts;
    TRY(pprof_unpack(a, &profd__pprof__profile__descriptor, in, n, &p, e));
    for (size_t i = 0; i < p->n_mapping; i++) {
        next.next_mapping = move_id(&p->mapping[i]->id, parts->next_mapping, next.next_mapping);
        move_text(&p->mapping[i]->filename, parts);
        move_text(&p->mapping[i]->build_id, parts);
    }
    for (size_t i = 0; i < p->n_function; i++) {
        next.next_function = move_id(&p->function[i]->id, parts->next_function, next.next_function);
        move_text(&p->function[i]->name, parts);
        move_text(&p->function[i]->system_name, parts);
        move_text(&p->function[i]->filename, parts);
    }
    for (size_t i = 0; i < p->n_location; i++) {
        Profd__Pprof__Location *l = p->location[i];
        next.next_location = move_id(&l->id, parts->next_location, next.next_location);
        (void)move_id(&l->mapping_id, parts->next_mapping, 0);
        for (size_t k = 0; k < l->n_line; k++) {
            (void)move_id(&l->line[k]->function_id, parts->next_function, 0);
        }
    }
    for (size_t i = 0; i < p->n_sample; i++) {
        for (size_t k = 0; k < p->sample[i]->n_location_id; k++) {
            (void)move_id(&p->sample[i]->location_id[k], parts->next_location, 0);
        }
    }
    for (size_t i = 0; i < p->n_comment; i++) {
        move_text(&p->comment[i], parts);
    }
    if (parts->any) {
        p->n_sample_type = 0;
        p->period_type = NULL;
        p->period = p->default_sample_type = p->time_nanos = p->duration_nanos = 0;
    }
    next.next_text += (int64_t)p->n_string_table;
    next.any = true;
    *parts = next;
    pprof_write(out, p);
    return PROFD_OK;
}

ProtobufCBinaryData pprof_bytes(const char *text, size_t n)
{
    /* Generated structures have no const; packing only reads. */
    union {
        const char *from;
        uint8_t *to;
    } cast = {.from = text};
    return (ProtobufCBinaryData){n, cast.to};
}
