#include <inttypes.h>
#include <string.h>

#include "core/foreign_clock.h"
#include "core/pprof_codec.h"
#include "import/import_any_internal.h"
#include "proto/buildid.h"
#include "proto/counts.h"
#include "proto/sum.h"

/* What the locations of a mapping are. */
struct pprof_span {
    uint64_t lowest, highest; /* their addresses; 0: there are none */
    uint32_t inside, outside; /* locations with addresses inside and outside the mapping's memory */
};

struct pprof_parser {
    struct arena *arena;
    Profd__Pprof__Profile *from;
    struct import_profile profile;
    struct set texts;
    uint32_t *frames; /* by location */
    uint32_t *chain;  /* frames of the sample that is being read, the leaf first */
    size_t chain_size;
    /* Columns of a sample's values that are imported; PPROF_TYPES: none. */
    uint32_t ticks, calls;
    uint64_t scale; /* each value of ticks counts as this many */
    bool own;       /* an export of profd: calls are exact */
    bool derived;   /* its stacks were never observed */
};

static struct import_scan scan_text(const struct pprof_parser *p, int64_t number)
{
    const ProtobufCBinaryData s = pprof_text(p->from, number);
    return import_scan_of((const char *)s.data, s.len);
}

static bool comment_begins(const struct pprof_parser *p, const char *text)
{
    for (size_t i = 0; i < p->from->n_comment; i++) {
        const struct import_scan s = scan_text(p, p->from->comment[i]);
        if (import_scan_begins(&s, text)) {
            return true;
        }
    }
    return false;
}

static struct foreign_text foreign_text_at(const struct pprof_parser *p, int64_t number)
{
    const ProtobufCBinaryData s = pprof_text(p->from, number);
    return (struct foreign_text){(const char *)s.data, s.len};
}

/* Imports the values of a column. by_period: they are numbers of samples, each standing for a period. */
static void choose_column(struct pprof_parser *p, uint32_t column, bool by_period)
{
    const Profd__Pprof__ValueType *type = p->from->sample_type[column], *of = p->from->period_type;
    struct foreign_type t = {.type = foreign_text_at(p, type->type), .unit = foreign_text_at(p, type->unit)};
    struct foreign_clock clock;
    if (by_period) {
        t.period_type = foreign_text_at(p, of->type);
        t.period_unit = foreign_text_at(p, of->unit);
        t.period = p->from->period;
    }
    foreign_choose_clock(&t, &clock);
    p->ticks = column;
    p->scale = clock.scale;
    import_profile_set_dimension(&p->profile, clock.dimension, clock.rate);
}

/* Comments in exports of profd state what the counts are. */
static void read_comments(struct pprof_parser *p)
{
    p->calls = pprof_find_type(p->from, "calls", "count");
    p->own = p->calls != PPROF_TYPES && (comment_begins(p, PPROF_COMMENT_OWN) || comment_begins(p, PPROF_COMMENT_SEEN));
    p->derived = p->own && !comment_begins(p, PPROF_COMMENT_SEEN);
    p->profile.sampled = p->own && comment_begins(p, PPROF_COMMENT_SAMPLED);
    for (size_t i = 0; p->own && i < p->from->n_comment; i++) {
        struct import_scan rest = scan_text(p, p->from->comment[i]);
        uint64_t n;
        if (import_scan_skip(&rest, PPROF_COMMENT_REASONS)) {
            import_profile_set_reasons(&p->profile, rest.at, import_scan_left(&rest));
        } else if (import_scan_skip(&rest, PPROF_COMMENT_PROCESSES) && import_scan_number(&rest, 10, &n)) {
            import_profile_set_processes(&p->profile, n);
        }
    }
}

/* Determines which values of a sample are ticks and numbers of samples; sets dimension and rate. */
static enum profd_status types_choose(struct pprof_parser *p, const char *event, struct profd_error *e)
{
    const Profd__Pprof__Profile *from = p->from;
    const Profd__Pprof__ValueType *of = from->period_type;
    const bool waiting = of && pprof_text_is(from, of->type, "wall"), cpu = of && pprof_text_is(from, of->type, "cpu");
    const uint32_t samples = pprof_find_type(from, "samples", "count");
    uint32_t time = pprof_find_type(from, waiting ? "wall" : "cpu", NULL);
    time = time != PPROF_TYPES && pprof_unit_nanoseconds(from, from->sample_type[time]->unit) > 0 ? time : PPROF_TYPES;
    read_comments(p);
    if (event) {
        const uint32_t column = pprof_find_type(from, event, NULL);
        if (column == PPROF_TYPES) {
            const struct import_scan first = scan_text(p, from->sample_type[0]->type);
            return profd_error_set(
                e, PROFD_REFUSED, "it has no sample type \"%.60s\"; the first of its %zu is \"%.*s\"", event,
                from->n_sample_type, import_scan_shown(&first), import_scan_left(&first) > 0 ? first.at : "");
        }
        choose_column(p, column, false);
        return PROFD_OK;
    }
    const bool by_clock =
        samples != PPROF_TYPES && (waiting || cpu) && from->period > 0 && pprof_unit_nanoseconds(from, of->unit) > 0;
    if (by_clock && (time == PPROF_TYPES || p->own || pprof_is_product(from, samples, time))) {
        choose_column(p, samples, true);
    } else if (time != PPROF_TYPES) {
        choose_column(p, time, false);
    } else {
        const struct foreign_text wanted = foreign_text_at(p, from->default_sample_type);
        uint32_t column = 0;
        for (uint32_t i = 0; i < from->n_sample_type && wanted.size > 0; i++) {
            column = foreign_text_equal(foreign_text_at(p, from->sample_type[i]->type), wanted) ? i : column;
        }
        choose_column(p, column, false);
    }
    return PROFD_OK;
}

static void take_sample(struct pprof_parser *p, const Profd__Pprof__Sample *s)
{
    const uint64_t calls = p->own ? (uint64_t)s->value[p->calls] : 0;
    const size_t n = s->n_location_id;
    bool incomplete = false;
    uint64_t ticks;
    if (__builtin_mul_overflow((uint64_t)s->value[p->ticks], p->scale, &ticks) || ticks > SUM_MAX) {
        ticks = SUM_MAX;
        p->profile.saturated = true;
    }
    if (n > p->chain_size) {
        p->chain_size = 2 * n;
        p->chain = arena_take_array(p->arena, p->chain_size, sizeof *p->chain);
    }
    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const Profd__Pprof__Location *l = p->from->location[s->location_id[i]];
        p->chain[i] = p->frames[s->location_id[i]];
        incomplete = p->own && l->mapping_id == 0 && l->address == COUNTS_FRAME_INCOMPLETE;
    }
    import_profile_add_ticks(&p->profile, p->chain[0], ticks);
    if (calls > 0) { /* export of profd: only caller and callee, or a function that calls itself */
        import_profile_add_pair(&p->profile, p->chain[n > 1], p->chain[0], calls);
    }
    if (incomplete && n > 1) {
        p->chain[n - 1] = IMPORT_CUT;
    }
    if (!p->derived && (!incomplete || n > 1)) {
        import_profile_add_stack(&p->profile, p->chain, (uint32_t)n, ticks);
    }
}

static enum profd_status add_object(struct pprof_parser *p, const Profd__Pprof__Mapping *m, const struct pprof_span *s,
                                    struct profd_error *e)
{
    const struct import_scan name = scan_text(p, m->filename), id_text = scan_text(p, m->build_id);
    struct buildid id;
    FAIL_IF(import_scan_left(&name) > 0 && memchr(name.at, '\0', import_scan_left(&name)), e, PROFD_MALFORMED,
            "the file name of mapping %" PRIu64 " contains a NUL", m->id);
    const char *path = import_texts_take(&p->texts, name.at, import_scan_left(&name)), *build_id = NULL;
    if (import_scan_left(&id_text) > 0 &&
        buildid_parse(id_text.at, import_scan_left(&id_text), &id, NULL) == PROFD_OK) {
        build_id = import_texts_take(&p->texts, id.text, strlen(id.text));
    }
    struct import_object *o = import_profile_add_object(&p->profile, path);
    o->build_id = build_id;
    o->outside = o->outside && !(build_id && path[0] == '\0');
    /* Addresses outside every mapping's memory are link-time addresses, as some collectors write them. So are all
     * addresses of a mapping that begins at 0, where nothing can be mapped. */
    o->addressing = (m->memory_start == 0 && m->file_offset == 0) || s->inside == 0 ? IMPORT_LINK_TIME : IMPORT_IN_FILE;
    o->low = o->addressing == IMPORT_LINK_TIME ? 0 : m->file_offset;
    o->high = o->low + (m->memory_limit - m->memory_start);
    if (o->addressing == IMPORT_LINK_TIME && m->memory_limit > INT64_MAX) { /* nothing about the size of the code */
        o->low = s->lowest;
        o->high = s->highest + (s->highest < UINT64_MAX);
    }
    return PROFD_OK;
}

static bool is_inside(const Profd__Pprof__Mapping *m, uint64_t address)
{
    return address >= m->memory_start && address < m->memory_limit;
}

/* Converts mappings to objects and locations to frames. */
static enum profd_status places_make(struct pprof_parser *p, struct profd_error *e)
{
    const Profd__Pprof__Profile *from = p->from;
    uint32_t addresses = 0, mapped = 0;
    struct pprof_span *spans = ARENA_ARRAY(p->arena, from->n_mapping + 1, struct pprof_span);
    p->frames = ARENA_ARRAY(p->arena, from->n_location + 1, uint32_t);
    for (size_t i = 0; i < from->n_location; i++) {
        const Profd__Pprof__Location *l = from->location[i];
        addresses += l->address != 0;
        if (l->mapping_id != 0 && l->address != 0) {
            struct pprof_span *s = &spans[l->mapping_id - 1];
            mapped++;
            *(is_inside(from->mapping[l->mapping_id - 1], l->address) ? &s->inside : &s->outside) += 1;
            s->lowest = s->lowest == 0 || l->address < s->lowest ? l->address : s->lowest;
            s->highest = l->address > s->highest ? l->address : s->highest;
        }
    }
    for (size_t i = 0; i < from->n_mapping; i++) {
        TRY(add_object(p, from->mapping[i], &spans[i], e));
    }
    for (size_t i = 0; i < from->n_location; i++) {
        const Profd__Pprof__Location *l = from->location[i];
        const Profd__Pprof__Mapping *m = l->mapping_id != 0 ? from->mapping[l->mapping_id - 1] : NULL;
        struct import_frame f = {.object = IMPORT_NONE, .offset = IMPORT_NO_OFFSET};
        if (m && (l->address != 0 || p->own)) {
            f.object = (uint32_t)(l->mapping_id - 1);
        }
        if (m && l->address != 0) {
            const bool in_file = p->profile.objects[f.object].addressing == IMPORT_IN_FILE;
            f.has_address = !in_file || is_inside(m, l->address);
            f.address = !f.has_address ? 0 : in_file ? l->address - m->memory_start + m->file_offset : l->address;
        } else if (m && p->own) { /* code that no symbol owns is a function without an address there */
            f.name = "[gap]";
        }
        p->frames[i] = import_profile_take_frame(&p->profile, &f);
    }
    FAIL_IF(mapped == 0, e, PROFD_REFUSED,
            "none of its %zu locations has an address%s: samples are stored by build and address, "
            "which cannot be determined from names alone (generated or already symbolized code)",
            from->n_location, addresses > 0 ? " in a mapping" : "");
    /* By convention the first mapping is the program's, unless it is no file, or is a library while others are not. */
    struct import_profile *q = &p->profile;
    if (q->object_count > 0 && !q->objects[0].outside && !strstr(q->objects[0].path, ".so")) {
        q->program_object = 0;
    }
    return PROFD_OK;
}

enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e)
{
    ARENA_BOUNDARY(a, import_profile_exhausted(a, e));
    struct pprof_parser *p = ARENA_NEW(a, struct pprof_parser);
    p->arena = a;
    import_profile_init(&p->profile, a);
    set_init(&p->texts, a);
    TRY(pprof_read(a, in, n, &p->from, e));
    TRY(types_choose(p, event, e));
    TRY(places_make(p, e));
    for (size_t i = 0; i < p->from->n_sample; i++) {
        take_sample(p, p->from->sample[i]);
    }
    p->profile.whole_stacks = true; /* the format has no mark for others */
    if (p->from->time_nanos > 0) {
        p->profile.start = (uint64_t)p->from->time_nanos;
        p->profile.end = p->profile.start + (p->from->duration_nanos > 0 ? (uint64_t)p->from->duration_nanos : 0);
    }
    *out = &p->profile;
    return PROFD_OK;
}
