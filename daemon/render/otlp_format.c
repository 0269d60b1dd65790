#include <nettle/sha2.h>
#include <string.h>

#include "core/hashmap.h"
#include "core/pprof_codec.h"
#include "proto/message.h"
#include "proto/otlp.pb-c.h"
#include "proto/varint.h"
#include "render/render_internal.h"

/* Writes format=otlp, an ExportProfilesServiceRequest of OpenTelemetry. It is made from format=pprof, so that both have
 * the same sums. A profile of each dimension has the values of stacks. If calls are exact, another one has the calls of
 * each pair of callee and caller, and an attribute says that pairs were counted. A row of the dictionary is written
 * when it is first referred to, so that no two rows are equal and none is unused. */

enum { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES }; /* fields of the dictionary */
enum { TIMES, CALLS, SUMS };
#define ID_SIZE 16 /* of a profile */

struct otlp_writer {
    const struct render_input *in;
    const struct report *report; /* of one dimension, and its form as pprof */
    const Profd__Pprof__Profile *from;
    struct arena *arena;
    struct buffer dictionary;
    struct hashmap rows; /* the number of a table, then a row → its index */
    int32_t count[TABLES];
};

static void put_field(struct buffer *out, unsigned field, const void *bytes, size_t n)
{
    uint8_t head[16], *end = varint_put(varint_put(head, field << 3 | 2), n);
    buffer_add(out, head, (size_t)(end - head));
    buffer_add(out, bytes, n);
}

/* The index of a row, which is added if it is new. */
static int32_t take_row(struct otlp_writer *w, unsigned table, const void *bytes, size_t n)
{
    char *key = ARENA_ARRAY(w->arena, n + 1, char);
    key[0] = (char)table;
    memcpy(key + 1, bytes, n);
    const int32_t *known = hashmap_find(&w->rows, key, n + 1);
    if (known) {
        return *known;
    }
    if (!hashmap_put(&w->rows, key, n + 1, &w->count[table], sizeof w->count[table])) {
        arena_fail(w->arena);
    }
    put_field(&w->dictionary, table, bytes, n);
    return w->count[table]++;
}

static uint8_t *pack(struct arena *a, const ProtobufCMessage *m, size_t *n)
{
    *n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = ARENA_ARRAY(a, *n + 1, uint8_t);
    protobuf_c_message_pack(m, bytes);
    return bytes;
}

static int32_t take_message(struct otlp_writer *w, unsigned table, const ProtobufCMessage *m)
{
    size_t n;
    const uint8_t *bytes = pack(w->arena, m, &n);
    return take_row(w, table, bytes, n);
}

static int32_t take_text(struct otlp_writer *w, const char *text)
{
    return take_row(w, STRINGS, text, strlen(text));
}

static int32_t take_pprof_text(struct otlp_writer *w, int64_t number)
{
    const ProtobufCBinaryData text = pprof_text(w->from, number);
    return take_row(w, STRINGS, text.data, text.len);
}

/* protobuf-c has no const. */
static char *copy(struct otlp_writer *w, const char *text)
{
    return arena_copy(w->arena, text, strlen(text));
}

static Profd__Otlp__Value *make_value(struct otlp_writer *w, const char *text)
{
    Profd__Otlp__Value *value = ARENA_ARRAY(w->arena, 1, Profd__Otlp__Value);
    profd__otlp__value__init(value);
    value->value_case = PROFD__OTLP__VALUE__VALUE_STRING_VALUE;
    value->string_value = copy(w, text);
    return value;
}

static int32_t take_attribute(struct otlp_writer *w, const char *key, const char *text)
{
    Profd__Otlp__TableAttribute row = PROFD__OTLP__TABLE_ATTRIBUTE__INIT;
    row.key_strindex = take_text(w, key);
    row.value = make_value(w, text);
    return take_message(w, ATTRIBUTES, &row.base);
}

/* The kind of code in the name of a build that consists of names, such as "cpython" of "shop[cpython]"; NULL: it is a
 * file. */
static const char *code_kind(struct otlp_writer *w, const char *build_name)
{
    const size_t n = strlen(build_name);
    const char *open = strrchr(build_name, '[');
    return open && n > 0 && build_name[n - 1] == ']'
               ? arena_copy(w->arena, open + 1, (size_t)(build_name + n - 1 - (open + 1)))
               : NULL;
}

/* Addresses are those in the file, which memory_start = memory_limit = 0 says. */
static int32_t take_mapping(struct otlp_writer *w, const char *build_name, const char *id)
{
    Profd__Otlp__Mapping row = PROFD__OTLP__MAPPING__INIT;
    /* profd's own ids are of files without a note. */
    int32_t attribute = take_attribute(
        w, strncmp(id, "sha256-", 7) == 0 ? "process.executable.build_id.profd" : "process.executable.build_id.gnu",
        id);
    row.filename_strindex = take_text(w, name_make_safe(w->arena, build_name));
    row.n_attribute_indices = 1;
    row.attribute_indices = &attribute;
    return take_message(w, MAPPINGS, &row.base);
}

static int32_t take_location(struct otlp_writer *w, const Profd__Pprof__Location *l)
{
    const struct report *r = w->report;
    const Profd__Pprof__Function *named = w->from->function[l->line[0]->function_id];
    const struct report_function *f = named->id <= r->function_count ? &r->functions[named->id - 1] : NULL;
    const char *name = f && f->build < r->build_count ? r->build_names[f->build] : NULL, *kind = NULL;
    Profd__Otlp__Function function = PROFD__OTLP__FUNCTION__INIT;
    Profd__Otlp__Line line = PROFD__OTLP__LINE__INIT, *lines = &line;
    Profd__Otlp__Location row = PROFD__OTLP__LOCATION__INIT;
    if (f && f->build < r->build_count) {
        kind = code_kind(w, name ? name : "");
        if (!kind && (l->address != 0 || !report_kind_is_class(f->kind))) {
            row.mapping_index = take_mapping(w, name ? name : "", r->builds[f->build]);
            row.address = l->address;
        }
    }
    if (row.mapping_index == 0 || f->kind != REPORT_ADDRESS) { /* else the receiver looks for a name */
        function.name_strindex = take_pprof_text(w, named->name);
        function.system_name_strindex = take_pprof_text(w, named->system_name);
        function.filename_strindex = take_pprof_text(w, named->filename);
        function.start_line = named->start_line;
        line.function_index = take_message(w, FUNCTIONS, &function.base);
        row.n_lines = 1;
        row.lines = &lines;
    }
    int32_t attribute = take_attribute(w, "profile.frame.type", kind ? kind : "native");
    row.n_attribute_indices = 1;
    row.attribute_indices = &attribute;
    return take_message(w, LOCATIONS, &row.base);
}

/* ids: indices of pprof's locations. */
static int32_t take_stack(struct otlp_writer *w, const int32_t *locations, const uint64_t *ids, size_t n)
{
    Profd__Otlp__Stack row = PROFD__OTLP__STACK__INIT;
    row.n_location_indices = n;
    row.location_indices = ARENA_ARRAY(w->arena, n, int32_t);
    for (size_t i = 0; i < n; i++) {
        row.location_indices[i] = locations[ids[i]];
    }
    return take_message(w, STACKS, &row.base);
}

/* sums: by stack. */
static Profd__Otlp__Profile *make_profile(struct otlp_writer *w, const char *type, const char *unit,
                                          const int64_t *sums, const char *stacks)
{
    Profd__Otlp__ValueType *types = ARENA_ARRAY(w->arena, 2, Profd__Otlp__ValueType);
    Profd__Otlp__Profile *p = ARENA_ARRAY(w->arena, 1, Profd__Otlp__Profile);
    profd__otlp__profile__init(p);
    profd__otlp__value_type__init(&types[0]);
    types[0].type_strindex = take_text(w, type);
    types[0].unit_strindex = take_text(w, unit);
    p->sample_type = &types[0];
    p->time_unix_nano = (uint64_t)w->from->time_nanos;
    p->duration_nano = (uint64_t)w->from->duration_nanos;
    p->attribute_indices = ARENA_ARRAY(w->arena, 2, int32_t);
    p->attribute_indices[p->n_attribute_indices++] = take_attribute(w, "profd.stacks", stacks);
    const char *reasons = reasons_list(w->in, w->arena);
    if (strcmp(reasons, "none") != 0) {
        p->attribute_indices[p->n_attribute_indices++] = take_attribute(w, "profd.not_exact", reasons);
    }
    p->samples = ARENA_ARRAY(w->arena, (size_t)w->count[STACKS], Profd__Otlp__Sample *);
    for (int32_t i = 0; i < w->count[STACKS]; i++) {
        if (sums[i] > 0) {
            Profd__Otlp__Sample *s = p->samples[p->n_samples++] = ARENA_ARRAY(w->arena, 1, Profd__Otlp__Sample);
            profd__otlp__sample__init(s);
            s->stack_index = i;
            s->n_values = 1;
            s->values = ARENA_ARRAY(w->arena, 1, int64_t);
            s->values[0] = sums[i];
        }
    }
    return p;
}

/* The value of a label that all uploads have; NULL: there is none. Of a report, it is in render_input's match. */
static char *find_label(struct otlp_writer *w, const char *name)
{
    const struct render_upload *u = w->in->upload;
    const size_t n = strlen(name);
    for (size_t i = 0; u && i < u->label_count; i++) {
        if (strcmp(u->labels[i].name, name) == 0) {
            return copy(w, u->labels[i].value);
        }
    }
    for (const char *at = u ? NULL : w->in->match; at; at = strstr(at, ", "), at = at ? at + 2 : NULL) {
        if (strncmp(at, name, n) == 0 && at[n] == '=' && at[n + 1] == '"') {
            const size_t size = strcspn(at + n + 2, "\"\\");
            return at[n + 2 + size] == '"' && size > 0 ? arena_copy(w->arena, at + n + 2, size) : NULL;
        }
    }
    return NULL;
}

static void add_attribute(struct otlp_writer *w, Profd__Otlp__Resource *r, const char *key, const char *text)
{
    if (text && *text) {
        Profd__Otlp__Attribute *a = r->attributes[r->n_attributes++] = ARENA_NEW(w->arena, Profd__Otlp__Attribute);
        profd__otlp__attribute__init(a);
        a->key = copy(w, key);
        a->value = make_value(w, text);
    }
}

/* A sum of many hosts has no host.name. The labels of an upload that OpenTelemetry has no name for keep theirs. */
static void fill_resource(struct otlp_writer *w, Profd__Otlp__Resource *r)
{
    static const char *const named[] = {"service", "service_name", "host", "version", "service_version"};
    const struct render_upload *u = w->in->upload;
    const char *base = name_make_safe(w->arena, name_find_base(w->in->build_name ? w->in->build_name : ""));
    const char *kind = code_kind(w, base), *value[5];
    const size_t n = kind ? (size_t)(strrchr(base, '[') - base) : strlen(base);
    r->attributes = ARENA_ARRAY(w->arena, 4 + (u ? u->label_count : 0), Profd__Otlp__Attribute *);
    for (size_t i = 0; i < 5; i++) {
        value[i] = find_label(w, named[i]);
    }
    add_attribute(w, r, "service.name", value[0] ? value[0] : value[1] ? value[1] : arena_copy(w->arena, base, n));
    add_attribute(w, r, "service.version", value[4] ? value[4] : value[3]);
    add_attribute(w, r, "host.name", value[2] || !u ? value[2] : u->host);
    add_attribute(w, r, "process.executable.name", kind ? NULL : base);
    for (size_t i = 0; u && i < u->label_count; i++) {
        size_t k = 0;
        while (k < 5 && strcmp(u->labels[i].name, named[k]) != 0) {
            k++;
        }
        add_attribute(w, r, u->labels[i].name, k == 5 ? u->labels[i].value : NULL);
    }
}

/* Adds the profiles of one dimension to list, and returns its new length. */
static size_t add_profiles(struct otlp_writer *w, bool with_calls, Profd__Otlp__Profile **list, size_t n)
{
    const Profd__Pprof__Profile *from = w->from;
    const struct report *r = w->report;
    int64_t *sums[SUMS];
    int32_t *locations = ARENA_ARRAY(w->arena, from->n_location, int32_t);
    bool any[SUMS] = {false};
    for (unsigned i = 0; i < SUMS; i++) {
        sums[i] = ARENA_ARRAY(w->arena, (size_t)w->count[STACKS] + from->n_sample, int64_t);
    }
    for (size_t i = 0; i < from->n_sample; i++) {
        const Profd__Pprof__Sample *s = from->sample[i];
        const uint64_t self[2] = {s->location_id[0], s->location_id[0]};
        const bool calls = s->value[2] > 0, own = calls && s->n_location_id == 1;
        if (calls ? !with_calls : s->value[1] <= 0) {
            continue;
        }
        for (size_t k = 0; k < s->n_location_id; k++) {
            const uint64_t at = s->location_id[k];
            locations[at] = locations[at] ? locations[at] : take_location(w, from->location[at]);
        }
        const int32_t stack = take_stack(w, locations, own ? self : s->location_id, own ? 2 : s->n_location_id);
        sums[calls ? CALLS : TIMES][stack] += s->value[calls ? 2 : 1];
        any[calls ? CALLS : TIMES] = true;
    }
    if (any[TIMES]) {
        const bool derived = strncmp((const char *)pprof_text(from, from->comment[0]).data, PPROF_COMMENT_OWN,
                                     strlen(PPROF_COMMENT_OWN)) == 0;
        Profd__Otlp__Profile *p =
            make_profile(w, strcmp(r->dimension, "seconds") == 0 ? "cpu" : name_make_safe(w->arena, r->dimension),
                         r->in_seconds ? "nanoseconds" : "count", sums[TIMES],
                         derived ? "derived from call counts, never observed" : "observed");
        if (r->rate_count == 1 && from->period > 0) {
            p->period_type = p->sample_type;
            p->period = from->period;
        }
        list[n++] = p;
    }
    if (any[CALLS]) {
        list[n++] = make_profile(w, "calls", "count", sums[CALLS],
                                 "each is a pair of callee and caller whose calls were counted; "
                                 "no stack was observed");
    }
    return n;
}

/* As add_profiles, of a report. The calls are those of the first one. */
static enum profd_status add_report(struct otlp_writer *w, const struct report *report, Profd__Otlp__Profile **list,
                                    size_t *n, struct profd_error *e)
{
    struct render_input in = *w->in;
    Profd__Pprof__Profile *from;
    struct buffer pprof;
    in.report = report;
    buffer_init_arena(&pprof, w->arena);
    TRY(pprof_render(&in, w->arena, &pprof, e));
    const enum profd_status status = pprof_read(w->arena, (const uint8_t *)pprof.data, pprof.size, &from, e);
    if (status) {
        return status == PROFD_REFUSED ? PROFD_OK : status; /* refused: there are no samples */
    }
    w->report = report;
    w->from = from;
    *n = add_profiles(w, report == w->in->report && (in.provenance->inexact & INEXACT_CALLS) == 0, list, *n);
    return PROFD_OK;
}

/* The id of a profile: equal for equal contents, or for the same key and number. */
static void set_id(struct otlp_writer *w, const struct sha256_ctx *contents, size_t i, Profd__Otlp__Profile *p)
{
    uint8_t *digest = ARENA_ARRAY(w->arena, SHA256_DIGEST_SIZE, uint8_t);
    struct sha256_ctx hash = *contents;
    sha256_update(&hash, sizeof i, (const uint8_t *)&i);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, digest);
    p->profile_id = (ProtobufCBinaryData){ID_SIZE, digest};
}

static void clear_rows(void *rows)
{
    hashmap_clear(rows);
}

enum profd_status otlp_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    static const uint8_t link[] = {1 << 3 | 2, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* trace */
                                   2 << 3 | 2, 8,  0, 0, 0, 0, 0, 0, 0, 0};                        /* span */
    struct otlp_writer w = {.in = in, .arena = a};
    Profd__Otlp__Profile **profiles = ARENA_ARRAY(a, SUMS + in->other_count, Profd__Otlp__Profile *);
    Profd__Otlp__Scope scope;
    Profd__Otlp__ScopeProfiles inner = PROFD__OTLP__SCOPE_PROFILES__INIT, *inners = &inner;
    Profd__Otlp__Resource resource = PROFD__OTLP__RESOURCE__INIT;
    Profd__Otlp__ResourceProfiles outer = PROFD__OTLP__RESOURCE_PROFILES__INIT;
    struct sha256_ctx hash;
    struct arena_deferred deferred;
    size_t n;
    buffer_init_arena(&w.dictionary, a);
    hashmap_init(&w.rows, 0);
    arena_defer(a, &deferred, clear_rows, &w.rows);
    for (unsigned table = MAPPINGS; table < TABLES; table++) {
        (void)take_row(&w, table, link, table == LINKS ? sizeof link : 0);
    }
    TRY(add_report(&w, in->report, profiles, &inner.n_profiles, e));
    for (size_t i = 0; i < in->other_count; i++) {
        TRY(add_report(&w, in->others[i]->shown, profiles, &inner.n_profiles, e));
    }
    if (inner.n_profiles > 0) {
        profd__otlp__scope__init(&scope);
        scope.name = copy(&w, "profd");
        scope.version = copy(&w, PROFD_VERSION);
        inner.scope = &scope;
        inner.profiles = profiles;
        outer.resource = &resource;
        outer.n_scope_profiles = 1;
        outer.scope_profiles = &inners;
        fill_resource(&w, &resource);
        const uint8_t *bytes = pack(a, &outer.base, &n);
        sha256_init(&hash);
        if (in->upload) { /* the names of its functions may come between two attempts to send it */
            sha256_update(&hash, UPLOAD_SENDER_SIZE, in->upload->epoch);
            sha256_update(&hash, sizeof in->upload->sequence, (const uint8_t *)&in->upload->sequence);
        } else {
            sha256_update(&hash, n, bytes);
            sha256_update(&hash, w.dictionary.size, (const uint8_t *)w.dictionary.data);
        }
        for (size_t i = 0; i < inner.n_profiles; i++) {
            set_id(&w, &hash, i, profiles[i]);
        }
        bytes = pack(a, &outer.base, &n);
        put_field(out, 1, bytes, n);
    }
    put_field(out, 2, w.dictionary.data, w.dictionary.size);
    out->failed |= w.dictionary.failed;
    arena_undefer(a, &deferred);
    return PROFD_OK;
}
