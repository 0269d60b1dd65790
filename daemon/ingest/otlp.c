#include "ingest/otlp.h"

#include <nettle/sha2.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/pprof_codec.h"
#include "proto/http_text.h"
#include "proto/json_message.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/otlp.pb-c.h"

/* --- The request --- */

/* A location of a profile: its frames are frames[first … first + count). */
struct otlp_location {
    uint32_t profile; /* number of the profile that the frames are of; 0: none yet */
    uint32_t first, count;
};

struct otlp {
    const struct foreign_request *request;
    struct arena *arena;
    const Profd__Otlp__Request *message;
    const Profd__Otlp__Dictionary *d; /* not NULL */
    bool old_layout;                  /* of samples: that before v1.10.0 */
    uint64_t frames_left, resource_bytes_left;
    struct otlp_rejected *rejected;

    /* Of the resource and of the profile that is being read. */
    const Profd__Otlp__Resource *resource;
    struct sha256_ctx resource_hash;
    enum profd_status resource_status; /* of resource_hash */
    struct profd_error resource_why;
    struct foreign_text service, executable; /* executable: the name of its file */
    uint32_t profile;                        /* its number */
    struct foreign *f;
    struct otlp_location *locations; /* by index of location_table */
    struct foreign_frame *frames;
    uint32_t frame_count, frame_capacity;
    int program_score;
};

/* Finds an index of a table with n entries. Index 0 is valid even if the table is empty. */
static enum profd_status check_index(const char *table, int64_t index, size_t n, struct profd_error *e)
{
    return index == 0 || (index > 0 && (uint64_t)index < n)
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED, "index %lld of %s_table, which has %zu entries", (long long)index,
                                 table, n);
}

static enum profd_status string_at(const struct otlp *o, int32_t index, struct foreign_text *out, struct profd_error *e)
{
    TRY(check_index("string", index, o->d->n_string_table, e));
    *out = foreign_text_of(index ? o->d->string_table[index] : "");
    return PROFD_OK;
}

/* The value of an attribute as text, in memory of the arena if it is a number. */
static enum profd_status value_text(const struct otlp *o, const Profd__Otlp__Value *v, struct foreign_text *out,
                                    struct profd_error *e)
{
    const char *text = "";
    switch (v ? v->value_case : PROFD__OTLP__VALUE__VALUE__NOT_SET) {
    case PROFD__OTLP__VALUE__VALUE_STRING_VALUE:
        text = v->string_value;
        break;
    case PROFD__OTLP__VALUE__VALUE_STRING_VALUE_STRINDEX:
        return string_at(o, v->string_value_strindex, out, e);
    case PROFD__OTLP__VALUE__VALUE_BOOL_VALUE:
        text = v->bool_value ? "true" : "false";
        break;
    case PROFD__OTLP__VALUE__VALUE_INT_VALUE:
        text = arena_format(o->arena, "%lld", (long long)v->int_value);
        break;
    case PROFD__OTLP__VALUE__VALUE_DOUBLE_VALUE:
        text = arena_format(o->arena, "%g", v->double_value);
        break;
    default:
        break;
    }
    *out = foreign_text_of(text);
    return PROFD_OK;
}

/* Each profile searches the attributes many times, so their number is limited. */
static enum profd_status check_attributes(const char *of, size_t n, struct profd_error *e)
{
    return n <= OTLP_ATTRIBUTES_MOST ? PROFD_OK
                                     : profd_error_set(e, PROFD_TOO_LARGE, "a %s has %zu attributes, at most %u", of, n,
                                                       OTLP_ATTRIBUTES_MOST);
}

/* Finds an attribute of a location or mapping. *out is empty if there is none. */
static enum profd_status find_attribute(const struct otlp *o, const int32_t *indices, size_t n, const char *key,
                                        struct foreign_text *out, struct profd_error *e)
{
    *out = FOREIGN_TEXT("");
    TRY(check_attributes("location or mapping", n, e));
    for (size_t i = 0; i < n && out->size == 0; i++) {
        struct foreign_text name;
        TRY(check_index("attribute", indices[i], o->d->n_attribute_table, e));
        if (indices[i] != 0) {
            const Profd__Otlp__TableAttribute *a = o->d->attribute_table[indices[i]];
            TRY(string_at(o, a->key_strindex, &name, e));
            TRY(foreign_text_is(name, key) ? value_text(o, a->value, out, e) : PROFD_OK);
        }
    }
    return PROFD_OK;
}

static enum profd_status resource_find(const struct otlp *o, const char *key, struct foreign_text *out,
                                       struct profd_error *e)
{
    *out = FOREIGN_TEXT("");
    for (size_t i = 0; o->resource && i < o->resource->n_attributes && out->size == 0; i++) {
        const Profd__Otlp__Attribute *a = o->resource->attributes[i];
        struct foreign_text name = foreign_text_of(a->key);
        TRY(a->key_strindex ? string_at(o, a->key_strindex, &name, e) : PROFD_OK);
        TRY(foreign_text_is(name, key) ? value_text(o, a->value, out, e) : PROFD_OK);
    }
    return PROFD_OK;
}

/* --- The layout of samples --- */

static bool indices_within(const int64_t *list, size_t n, size_t most)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] < 0 || (list[i] > 0 && (uint64_t)list[i] >= most)) {
            return false;
        }
    }
    return true;
}

/* Returns whether a sample fits a layout: its attributes and link are in their tables, and it has values, timestamps,
 * or equal numbers of both. */
static bool sample_fits(const struct otlp *o, const int64_t *attributes, size_t attribute_count, const int64_t *links,
                        size_t link_count, size_t values, size_t timestamps)
{
    return indices_within(attributes, attribute_count, o->d->n_attribute_table) && link_count <= 1 &&
           indices_within(links, link_count, o->d->n_link_table) && values + timestamps > 0 &&
           (values == 0 || timestamps == 0 || values == timestamps);
}

static enum profd_status find_layout(struct otlp *o, struct profd_error *e)
{
    bool is_new = true, is_old = true; /* the layouts that are possible for all samples so far */
    for (size_t r = 0; r < o->message->n_resource_profiles; r++) {
        const Profd__Otlp__ResourceProfiles *resource = o->message->resource_profiles[r];
        for (size_t s = 0; s < resource->n_scope_profiles; s++) {
            for (size_t p = 0; p < resource->scope_profiles[s]->n_profiles; p++) {
                const Profd__Otlp__Profile *profile = resource->scope_profiles[s]->profiles[p];
                o->profile++;
                for (size_t i = 0; i < profile->n_samples; i++) {
                    const Profd__Otlp__Sample *x = profile->samples[i];
                    const size_t stamps = x->n_timestamps_unix_nano;
                    is_new = is_new && sample_fits(o, x->attribute_indices, x->n_attribute_indices, x->third,
                                                   x->n_third, x->n_values, stamps);
                    is_old = is_old && sample_fits(o, x->third, x->n_third, x->values, x->n_values,
                                                   x->n_attribute_indices, stamps);
                }
            }
        }
    }
    FAIL_IF(o->profile > OTLP_PROFILES_MOST, e, PROFD_TOO_LARGE, "the request has %u profiles, at most %u are taken",
            o->profile, OTLP_PROFILES_MOST);
    o->profile = 0;
    o->old_layout = !is_new;
    return is_new || is_old
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED,
                                 "the samples have neither the layout of OTLP v1.10.0 and later nor that before it: "
                                 "an attribute or link is not in its table, or a sample has no value and no timestamp");
}

/* --- Frames --- */

/* Scores of builds as the program of a profile. Interpreted code says best what a process is, then its executable. */
enum { SCORE_LIBRARY = 1, SCORE_NATIVE, SCORE_EXECUTABLE, SCORE_INTERPRETED };

static void offer_program(struct otlp *o, uint32_t build, int score)
{
    if (score > o->program_score) {
        o->program_score = score;
        foreign_set_program(o->f, build);
    }
}

static struct foreign_text base_name(struct foreign_text path)
{
    for (size_t i = path.size; i > 0; i--) {
        if (path.text[i - 1] == '/') {
            return (struct foreign_text){path.text + i, path.size - i};
        }
    }
    return path;
}

static void push_frame(struct otlp *o, const struct foreign_frame *frame)
{
    o->frames = arena_extend(o->arena, o->frames, o->frame_count, &o->frame_capacity, sizeof *o->frames);
    o->frames[o->frame_count++] = *frame;
}

static enum profd_status push_name(struct otlp *o, struct foreign_text type, struct foreign_text name,
                                   struct foreign_text file, struct profd_error *e)
{
    struct foreign_frame frame;
    TRY(foreign_take_name(o->f, type, name, file, &frame, e));
    const bool native =
        foreign_text_is(type, "native") || foreign_text_is(type, "kernel") || foreign_text_is(type, "abort-marker");
    offer_program(o, frame.build, native ? SCORE_LIBRARY : SCORE_INTERPRETED);
    push_frame(o, &frame);
    return PROFD_OK;
}

/* Sets *build to that of a mapping; *found is false if the mapping has no build-id. */
static enum profd_status take_mapping(struct otlp *o, const Profd__Otlp__Mapping *m, uint32_t *build, bool *found,
                                      struct profd_error *e)
{
    static const char *const keys[] = {"process.executable.build_id.gnu", "process.executable.build_id.htlhash"};
    struct foreign_text id = FOREIGN_TEXT(""), path;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && id.size == 0; i++) {
        TRY(find_attribute(o, m->attribute_indices, m->n_attribute_indices, keys[i], &id, e));
    }
    *found = id.size > 0;
    if (!*found) {
        return PROFD_OK;
    }
    TRY(string_at(o, m->filename_strindex, &path, e));
    const struct foreign_text name = base_name(path);
    FAIL_IF(m->memory_start >= UINT64_C(1) << 40 && m->memory_start < UINT64_C(1) << 63, e, PROFD_REFUSED,
            "mapping %.100s has run-time addresses (memory_start 0x%llx); addresses must be those in the file, as the "
            "eBPF profiler sends them",
            name.text, (unsigned long long)m->memory_start);
    TRY(foreign_take_build(o->f, id, path, build, e));
    const bool library = name.size > 3 && memmem(name.text, name.size, ".so", 3);
    offer_program(o, *build,
                  o->executable.size > 0 && foreign_text_equal(name, o->executable) ? SCORE_EXECUTABLE
                  : library                                                         ? SCORE_LIBRARY
                                                                                    : SCORE_NATIVE);
    return PROFD_OK;
}

/* Makes the frames of a location: by address, if it is native code of a build, otherwise by name. */
static enum profd_status make_location(struct otlp *o, const Profd__Otlp__Location *l, struct profd_error *e)
{
    struct foreign_text type, name, file = FOREIGN_TEXT("");
    const Profd__Otlp__Mapping *m = NULL;
    uint32_t build = 0;
    bool found = false;
    TRY(find_attribute(o, l->attribute_indices, l->n_attribute_indices, "profile.frame.type", &type, e));
    TRY(check_index("mapping", l->mapping_index, o->d->n_mapping_table, e));
    if (l->mapping_index != 0) {
        m = o->d->mapping_table[l->mapping_index];
    }
    if (m && (l->n_lines == 0 || foreign_text_is(type, "native"))) {
        TRY(take_mapping(o, m, &build, &found, e));
    }
    if (found) {
        push_frame(o, &(struct foreign_frame){build, l->address});
        return PROFD_OK;
    }
    if (type.size == 0) {
        type = foreign_text_of(l->n_lines > 0 ? "code" : "native");
    }
    for (size_t i = 0; i < l->n_lines && i <= LIMIT_STACK_DEPTH; i++) {
        const int32_t index = l->lines[i]->function_index;
        name = FOREIGN_TEXT("");
        TRY(check_index("function", index, o->d->n_function_table, e));
        if (index != 0) {
            const Profd__Otlp__Function *function = o->d->function_table[index];
            TRY(string_at(o, function->name_strindex, &name, e));
            TRY(name.size > 0 ? PROFD_OK : string_at(o, function->system_name_strindex, &name, e));
            TRY(string_at(o, function->filename_strindex, &file, e));
        }
        TRY(push_name(o, type, name, file, e));
    }
    if (l->n_lines > 0) {
        return PROFD_OK;
    }
    /* Neither a name nor a build: the frame is named by what it is in. */
    TRY(m ? string_at(o, m->filename_strindex, &name, e) : PROFD_OK);
    const struct foreign_text file_name = m ? base_name(name) : FOREIGN_TEXT(""),
                              in = file_name.size > 0 ? file_name : type;
    const char *called =
        arena_format(o->arena, "[%.*s]", (int)(in.size < FOREIGN_NAME_BYTES ? in.size : FOREIGN_NAME_BYTES), in.text);
    return push_name(o, type, foreign_text_of(called), file, e);
}

/* --- Profiles --- */

static const char *const attributes[] = {LABEL_ATTRIBUTES};

static enum profd_status add_labels(struct otlp *o, struct profd_error *e)
{
    struct foreign_text value;
    char host[256] = "";
    const char *service =
        o->service.size > 0 ? arena_copy(o->arena, o->service.text, o->service.size)
        : o->executable.size > 0
            ? arena_format(o->arena, "unknown_service:%s", arena_copy(o->arena, o->executable.text, o->executable.size))
            : "unknown_service";
    TRY(foreign_add_label(o->f, FOREIGN_TEXT("service_name"), foreign_text_of(service), e));
    TRY(foreign_add_label(o->f, FOREIGN_TEXT("service"), o->service, e));
    TRY(resource_find(o, "deployment.environment.name", &value, e));
    TRY(foreign_add_label(o->f, FOREIGN_TEXT("deployment_environment"), value, e));
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        TRY(resource_find(o, attributes[i], &value, e));
        TRY(foreign_add_label(o->f, foreign_text_of(attributes[i]), value, e));
    }
    TRY(resource_find(o, "host.name", &value, e));
    if (o->request->find_host) {
        const char *stated = arena_copy(o->arena, value.text, value.size);
        TRY(o->request->find_host(o->request->context, stated, host, e));
        TRY(foreign_add_label(o->f, FOREIGN_TEXT("host"), foreign_text_of(host), e));
        return strcmp(host, stated) != 0 ? foreign_add_label(o->f, FOREIGN_TEXT("host_name"), value, e) : PROFD_OK;
    }
    return foreign_add_label(o->f, FOREIGN_TEXT("host"), value, e);
}

/* Sets *out to what a sample counts: its values, or one for each timestamp. */
static enum profd_status sample_sum(const struct otlp *o, const Profd__Otlp__Sample *s, uint64_t *out,
                                    struct profd_error *e)
{
    const int64_t *values = o->old_layout ? s->attribute_indices : s->values;
    const size_t n = o->old_layout ? s->n_attribute_indices : s->n_values;
    *out = n == 0 ? s->n_timestamps_unix_nano : 0;
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(values[i] < 0 || __builtin_add_overflow(*out, (uint64_t)values[i], out), e, PROFD_MALFORMED,
                "a sample has the value %lld; values are 0 or more, and their sum is less than 2^64",
                (long long)values[i]);
    }
    return PROFD_OK;
}

static enum profd_status add_sample(struct otlp *o, const Profd__Otlp__Sample *s, const struct foreign_clock *clock,
                                    struct profd_error *e)
{
    static const Profd__Otlp__Location nowhere = PROFD__OTLP__LOCATION__INIT;
    struct foreign_frame path[LIMIT_STACK_DEPTH + 1];
    size_t n = 0;
    uint64_t value;
    TRY(sample_sum(o, s, &value, e));
    TRY(check_index("stack", s->stack_index, o->d->n_stack_table, e));
    const Profd__Otlp__Stack *stack = s->stack_index ? o->d->stack_table[s->stack_index] : NULL;
    const size_t locations = stack ? stack->n_location_indices : 0;
    for (size_t i = 0; i < (locations ? locations : 1) && n <= LIMIT_STACK_DEPTH; i++) {
        const int32_t index = locations ? stack->location_indices[i] : 0;
        TRY(check_index("location", index, o->d->n_location_table, e));
        struct otlp_location *l = &o->locations[index];
        if (l->profile != o->profile) {
            const uint32_t first = o->frame_count;
            TRY(make_location(o, index ? o->d->location_table[index] : &nowhere, e));
            *l = (struct otlp_location){o->profile, first, o->frame_count - first};
        }
        for (uint32_t k = 0; k < l->count && n <= LIMIT_STACK_DEPTH; k++) {
            path[n++] = o->frames[l->first + k];
        }
    }
    FAIL_IF(n > o->frames_left, e, PROFD_TOO_LARGE, "the samples of the request have over %u frames", OTLP_FRAMES_MOST);
    o->frames_left -= n;
    return foreign_add(o->f, clock, path, n, value, e);
}

/* A digest of the resource: all its attributes. The profiles of a process have the same one. */
static enum profd_status hash_resource(struct otlp *o, struct sha256_ctx *c, struct profd_error *e)
{
    TRY(check_attributes("resource", o->resource ? o->resource->n_attributes : 0, e));
    sha256_init(c);
    for (size_t i = 0; o->resource && i < o->resource->n_attributes; i++) {
        const Profd__Otlp__Attribute *a = o->resource->attributes[i];
        struct foreign_text name = foreign_text_of(a->key), value;
        TRY(a->key_strindex ? string_at(o, a->key_strindex, &name, e) : PROFD_OK);
        TRY(value_text(o, a->value, &value, e));
        /* Many resources may refer to one long text of the dictionary. */
        FAIL_IF(name.size + value.size > o->resource_bytes_left, e, PROFD_TOO_LARGE,
                "the attributes of all resources have over %u bytes", OTLP_RESOURCE_BYTES);
        o->resource_bytes_left -= name.size + value.size;
        foreign_hash(c, name);
        foreign_hash(c, value);
    }
    return PROFD_OK;
}

/* Reads a profile into o->f. If it breaks a rule, only this profile is rejected. */
static enum profd_status read_profile(struct otlp *o, const Profd__Otlp__Profile *p, struct profd_error *e)
{
    struct foreign_text texts[4] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
    const Profd__Otlp__ValueType *const types[] = {p->sample_type, p->period_type};
    uint8_t process[SHA256_DIGEST_SIZE], seed[SHA256_DIGEST_SIZE];
    struct sha256_ctx resource = o->resource_hash, whole = resource;
    struct foreign_clock clock;
    bool has_id = false;
    if (o->resource_status) {
        *e = o->resource_why;
        return o->resource_status;
    }
    TRY(resource_find(o, "service.name", &o->service, e));
    TRY(resource_find(o, "process.executable.name", &o->executable, e));
    if (o->executable.size == 0) {
        TRY(resource_find(o, "process.executable.path", &o->executable, e));
        o->executable = base_name(o->executable);
    }
    for (unsigned i = 0; i < 2; i++) {
        TRY(types[i] ? string_at(o, types[i]->type_strindex, &texts[2 * i], e) : PROFD_OK);
        TRY(types[i] ? string_at(o, types[i]->unit_strindex, &texts[2 * i + 1], e) : PROFD_OK);
    }
    const struct foreign_type type = {texts[0], texts[1], texts[2], texts[3], p->period};
    foreign_choose_clock(&type, &clock);

    sha256_digest(&resource, sizeof process, process);
    for (size_t i = 0; i < p->profile_id.len; i++) {
        has_id |= p->profile_id.data[i] != 0;
    }
    if (has_id) {
        sha256_init(&whole);
        foreign_hash(&whole, (struct foreign_text){(const char *)p->profile_id.data, p->profile_id.len});
    } else {
        for (unsigned i = 0; i < 4; i++) {
            foreign_hash(&whole, texts[i]);
        }
        sha256_update(&whole, sizeof p->time_unix_nano, (const uint8_t *)&p->time_unix_nano);
        for (size_t i = 0; i < p->n_samples; i++) {
            const Profd__Otlp__Sample *s = p->samples[i];
            sha256_update(&whole, s->n_timestamps_unix_nano * sizeof *s->timestamps_unix_nano,
                          (const uint8_t *)s->timestamps_unix_nano);
        }
    }
    sha256_digest(&whole, sizeof seed, seed);
    const uint64_t end =
        p->duration_nano <= INT64_MAX && p->time_unix_nano <= INT64_MAX ? p->time_unix_nano + p->duration_nano : 0;
    const struct foreign_head head = {.uid = o->request->uid,
                                      .received = o->request->received,
                                      .start = p->time_unix_nano,
                                      .end = end,
                                      .service = o->service.size > 0 ? o->service : o->executable,
                                      .id = has_id ? seed : NULL,
                                      .seed = has_id ? NULL : seed,
                                      .process = process};
    TRY(foreign_new(o->request->names, &head, &o->f, e));
    TRY(add_labels(o, e));
    o->frame_count = 0;
    o->program_score = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        TRY(add_sample(o, p->samples[i], &clock, e));
    }
    return PROFD_OK;
}

static enum profd_status read_profiles(struct otlp *o, struct foreign_list *out, struct profd_error *e)
{
    for (size_t r = 0; r < o->message->n_resource_profiles; r++) {
        const Profd__Otlp__ResourceProfiles *resource = o->message->resource_profiles[r];
        o->resource = resource->resource;
        o->resource_status = hash_resource(o, &o->resource_hash, &o->resource_why);
        for (size_t s = 0; s < resource->n_scope_profiles; s++) {
            for (size_t p = 0; p < resource->scope_profiles[s]->n_profiles; p++) {
                const Profd__Otlp__Profile *profile = resource->scope_profiles[s]->profiles[p];
                struct profd_error why;
                o->profile++;
                o->f = NULL;
                if (profile->n_samples == 0) { /* it says nothing, so nothing is lost */
                    continue;
                }
                const enum profd_status status = read_profile(o, profile, &why);
                if (!status) {
                    TAILQ_INSERT_TAIL(out, o->f, next);
                    continue;
                }
                foreign_free(o->f);
                FAIL_IF(status == PROFD_NO_MEMORY, e, status, "%s", why.sentence);
                if (o->rejected->count++ == 0) {
                    o->rejected->why = why;
                }
            }
        }
    }
    return PROFD_OK;
}

/* --- Reading and answering --- */

static enum profd_status run(struct otlp *o, struct foreign_list *out, struct profd_error *e)
{
    static const Profd__Otlp__Dictionary nothing = PROFD__OTLP__DICTIONARY__INIT;
    ARENA_BOUNDARY(o->arena, profd_no_memory(e));
    o->d = o->message->dictionary ? o->message->dictionary : &nothing;
    o->locations = ARENA_ARRAY(o->arena, o->d->n_location_table + 1, struct otlp_location);
    TRY(find_layout(o, e));
    return read_profiles(o, out, e);
}

enum profd_status otlp_read(const struct foreign_request *r, struct foreign_list *out, struct otlp_rejected *rejected,
                            struct profd_error *e)
{
    const bool json = http_type_is(r->content_type, strlen(r->content_type), "application/json");
    struct otlp o = {.request = r,
                     .frames_left = OTLP_FRAMES_MOST,
                     .resource_bytes_left = OTLP_RESOURCE_BYTES,
                     .rejected = rejected};
    ProtobufCMessage *message = NULL;
    enum profd_status status = PROFD_OK;
    FAIL_IF(json && r->size > OTLP_JSON_BYTES, e, PROFD_TOO_LARGE,
            "the request has %zu bytes of JSON, at most %u are taken; send application/x-protobuf", r->size,
            OTLP_JSON_BYTES);
    o.arena = arena_new(OTLP_MEMORY);
    if (!o.arena) {
        return profd_no_memory(e);
    }
    if (json) {
        status = json_message_decode(&profd__otlp__request__descriptor, (const char *)r->body, r->size,
                                     OTLP_VALUES_MOST, &message, e);
        o.message = (const Profd__Otlp__Request *)(const void *)message;
    } else {
        status = pprof_unpack(o.arena, &profd__otlp__request__descriptor, r->body, r->size, &o.message, e);
        if (status == PROFD_MALFORMED) {
            profd_error_set(e, status, "the body of %zu bytes is not an ExportProfilesServiceRequest", r->size);
        }
    }
    status = status ? status : run(&o, out, e);
    if (status && arena_hit_limit(o.arena)) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "the request of %zu bytes takes over %zu MiB when it is read",
                                 r->size, OTLP_MEMORY >> 20);
    }
    if (message) {
        protobuf_c_message_free_unpacked(message, NULL);
    }
    arena_free(o.arena);
    return status;
}

void otlp_answer(bool json, enum profd_status status, const char *sentence, const struct otlp_rejected *rejected,
                 struct buffer *out)
{
    Profd__Otlp__Response response = PROFD__OTLP__RESPONSE__INIT;
    Profd__Otlp__PartialSuccess partial;
    Profd__Otlp__Failure failure;
    const ProtobufCMessage *m = status ? &failure.base : &response.base;
    union {
        const char *from;
        char *text; /* protobuf-c has no const; it only reads */
    } said = {.from = status ? sentence : rejected->why.sentence};
    profd__otlp__partial_success__init(&partial);
    profd__otlp__failure__init(&failure);
    failure.code = 3; /* INVALID_ARGUMENT; what may be sent again has its HTTP status */
    failure.message = said.text;
    if (!status && rejected->count > 0) {
        partial.rejected_profiles = (int64_t)rejected->count;
        partial.error_message = said.text;
        response.partial_success = &partial;
    }
    if (json) {
        char *text;
        size_t n;
        if (json_message_encode(m, &text, &n, NULL)) {
            out->failed = true;
            return;
        }
        buffer_add(out, text, n);
        free(text);
    } else {
        const size_t n = protobuf_c_message_get_packed_size(m);
        char *at = buffer_extend(out, n);
        if (at && n > 0) {
            protobuf_c_message_pack(m, (uint8_t *)at);
        }
    }
}
