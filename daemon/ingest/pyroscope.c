#include "ingest/pyroscope.h"

#include <jansson.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/pprof_codec.h"
#include "proto/deflate.h"
#include "proto/http_text.h"
#include "proto/json_message.h"
#include "proto/push.pb-c.h"

#define LABELS_MOST 256u /* of a series, before those are left out that an upload cannot have */

struct pyroscope_label {
    struct foreign_text name, value;
};

/* What the profiles of one series, or the profile of a form, have in common. */
struct push_series {
    const struct foreign_request *request;
    struct arena *arena;
    struct foreign_list *out;
    struct pyroscope_label labels[LABELS_MOST];
    size_t label_count;
    struct foreign_text service, name, spy; /* name: of the kind of profile, as "mutex" */
    uint64_t from, until;                   /* ns; 0: unknown */
    uint64_t rate;                          /* samples a second of text */
    struct foreign_text units;              /* of text */
    json_t *types;                          /* of a form: the sample types to take; NULL: all */
    struct foreign_text id;                 /* the client's; size 0: none */
    bool has_ids;                           /* a request that is sent again counts once */
    uint64_t frames_left;
};

static struct foreign_text text_of(const char *text, size_t n)
{
    return (struct foreign_text){text, n};
}

static int shown(struct foreign_text t)
{
    return t.size < 60 ? (int)t.size : 60;
}

/* Reads a whole number of 1 to 19 digits. */
static bool read_number(struct foreign_text t, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < t.size; i++) {
        if (t.text[i] < '0' || t.text[i] > '9' || t.size > 19) {
            return false;
        }
        *out = *out * 10 + (uint64_t)(t.text[i] - '0');
    }
    return t.size > 0;
}

static void add_label(struct push_series *s, struct foreign_text name, struct foreign_text value)
{
    if (foreign_text_is(name, "service_name") || (foreign_text_is(name, "service") && s->service.size == 0)) {
        s->service = value;
    } else if (foreign_text_is(name, "__name__")) {
        s->name = value;
    } else if (foreign_text_is(name, "pyroscope_spy")) {
        s->spy = value;
    } else if ((name.size < 2 || memcmp(name.text, "__", 2) != 0) && s->label_count < LABELS_MOST) {
        s->labels[s->label_count++] = (struct pyroscope_label){name, value};
    }
}

/* The type of code that a client profiles, as OTLP names it. */
static struct foreign_text frame_type(const struct push_series *s)
{
    static const char *const types[][2] = {{"nodespy", "v8js"}, {"gospy", "go"},    {"pyspy", "cpython"},
                                           {"rbspy", "ruby"},   {"javaspy", "jvm"}, {"dotnetspy", "dotnet"},
                                           {"phpspy", "php"},   {"rust", "rust"},   {"pyroscope-rs", "rust"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (foreign_text_is(s->spy, types[i][0])) {
            return foreign_text_of(types[i][1]);
        }
    }
    return FOREIGN_TEXT("native");
}

/* An empty profile with the labels of the series. */
static enum profd_status series_begin(const struct push_series *s, const struct foreign_head *of, struct foreign **out,
                                      struct profd_error *e)
{
    const struct foreign_request *r = s->request;
    struct foreign_head head = *of;
    struct foreign *f;
    char stated[256] = "", host[256];
    FAIL_IF(s->service.size == 0, e, PROFD_REFUSED,
            "the profile has no service: name=APP{label=value} of /ingest, or the label service_name of a pushed "
            "series, must name it");
    head.uid = r->uid;
    head.received = r->received;
    head.service = s->service;
    head.start = head.start ? head.start : s->from;
    head.end = head.end ? head.end : s->until;
    head.inexact = head.id ? 0 : INEXACT_NO_IDS;
    for (size_t i = 0; i < s->label_count; i++) {
        const struct pyroscope_label *l = &s->labels[i];
        if (foreign_text_is(l->name, "host") && l->value.size < sizeof stated) {
            memcpy(stated, l->value.text, l->value.size);
            stated[l->value.size] = '\0';
        }
    }
    if (r->find_host) {
        TRY(r->find_host(r->context, stated, host, e));
    }
    TRY(foreign_new(r->names, &head, &f, e));
    TAILQ_INSERT_TAIL(s->out, f, next);
    TRY(r->find_host ? foreign_add_label(f, FOREIGN_TEXT("host"), foreign_text_of(host), e) : PROFD_OK);
    TRY(foreign_add_label(f, FOREIGN_TEXT("service_name"), s->service, e));
    TRY(foreign_add_label(f, FOREIGN_TEXT("service"), s->service, e));
    for (size_t i = 0; i < s->label_count; i++) {
        TRY(foreign_add_label(f, s->labels[i].name, s->labels[i].value, e));
    }
    *out = f;
    return PROFD_OK;
}

/* --- Profiles in the format of pprof --- */

struct pprof_column {
    struct foreign_clock clock;
    uint32_t index;
    int64_t divisor; /* of the values */
};

static struct foreign_text pprof_foreign(const Profd__Pprof__Profile *p, int64_t number)
{
    const ProtobufCBinaryData s = pprof_text(p, number);
    return text_of((const char *)s.data, s.len);
}

/* Chooses the sample types to take. The number of samples is left out if their time is there. */
static enum profd_status choose_columns(const struct push_series *s, const Profd__Pprof__Profile *p,
                                        struct pprof_column columns[PPROF_TYPES], size_t *count, struct profd_error *e)
{
    const Profd__Pprof__ValueType *of = p->period_type;
    uint32_t samples = pprof_find_type(p, "samples", "count"), time = PPROF_TYPES;
    samples = samples != PPROF_TYPES ? samples : pprof_find_type(p, "sample", "count");
    for (uint32_t i = 0; of && i < p->n_sample_type; i++) {
        const Profd__Pprof__ValueType *t = p->sample_type[i];
        const struct foreign_text type = pprof_foreign(p, t->type), period = pprof_foreign(p, of->type);
        time = foreign_text_equal(type, period) && pprof_unit_nanoseconds(p, t->unit) > 0 &&
                       pprof_unit_nanoseconds(p, t->unit) == pprof_unit_nanoseconds(p, of->unit)
                   ? i
                   : time;
    }
    bool whole = time != PPROF_TYPES && p->period > 0;
    for (size_t i = 0; whole && i < p->n_sample; i++) {
        whole = p->sample[i]->value[time] % p->period == 0;
    }
    *count = 0;
    for (uint32_t i = 0; i < p->n_sample_type; i++) {
        const Profd__Pprof__ValueType *t = p->sample_type[i];
        struct foreign_type type = {.type = pprof_foreign(p, t->type), .unit = pprof_foreign(p, t->unit)};
        struct pprof_column *c = &columns[*count];
        char name[32], joined[64];
        const int n = snprintf(name, sizeof name, "%.*s", shown(type.type) < 31 ? shown(type.type) : 31,
                               type.type.size > 0 ? type.type.text : "");
        json_t *wanted = json_object_get(s->types, name), *sampled = json_object_get(s->types, "samples");
        *c = (struct pprof_column){.index = i, .divisor = 1};
        if ((i == samples && time != PPROF_TYPES) || (s->types && !wanted && !(i == time && sampled))) {
            continue;
        }
        FAIL_IF(json_is_true(json_object_get(wanted, "cumulative")), e, PROFD_REFUSED,
                "the sample type %s is cumulative: profd takes what was counted since the last profile, as newer "
                "clients send it",
                name);
        if (of && (i == samples || (i == time && whole))) {
            type = (struct foreign_type){FOREIGN_TEXT("samples"), FOREIGN_TEXT("count"), pprof_foreign(p, of->type),
                                         pprof_foreign(p, of->unit), p->period};
            c->divisor = i == time ? p->period : 1;
        } else if (foreign_text_is(type.type, "contentions") || foreign_text_is(type.type, "delay")) {
            /* Profiles of mutexes and of blocking have the same types. */
            const char *display = json_string_value(json_object_get(wanted, "display-name"));
            const int size =
                display ? snprintf(joined, sizeof joined, "%s", display)
                        : snprintf(joined, sizeof joined, "%.*s%s%.*s", shown(s->name) < 20 ? shown(s->name) : 20,
                                   s->name.size > 0 ? s->name.text : "", s->name.size > 0 ? "_" : "", n, name);
            type.type = text_of(joined, (size_t)size < sizeof joined ? (size_t)size : sizeof joined - 1);
        }
        foreign_choose_clock(&type, &c->clock);
        ++*count;
    }
    return *count > 0 ? PROFD_OK
                      : profd_error_set(e, PROFD_REFUSED, "none of its %zu sample types is in sample_type_config",
                                        p->n_sample_type);
}

/* Adds the frames of a location, the innermost first. A location with names is stored by them. One without names is
 * stored by its address if this is a link-time address of a build, otherwise under the name of its file. */
static enum profd_status add_location(const struct push_series *s, const Profd__Pprof__Profile *p,
                                      const Profd__Pprof__Location *l, struct foreign *f, struct foreign_frame *frames,
                                      size_t *n, struct profd_error *e)
{
    const Profd__Pprof__Mapping *m = l->mapping_id > 0 ? p->mapping[l->mapping_id - 1] : NULL;
    const struct foreign_text file = m ? pprof_foreign(p, m->filename) : FOREIGN_TEXT(""),
                              id = m ? pprof_foreign(p, m->build_id) : FOREIGN_TEXT("");
    for (size_t i = 0; i < l->n_line && *n < LIMIT_STACK_DEPTH + 1; i++) {
        const Profd__Pprof__Function *g = p->function[l->line[i]->function_id];
        TRY(foreign_take_name(f, frame_type(s), pprof_foreign(p, g->name), pprof_foreign(p, g->filename),
                              &frames[(*n)++], e));
    }
    if (l->n_line > 0) {
        return PROFD_OK;
    }
    struct foreign_frame *frame = &frames[(*n)++];
    const bool link_time = m && ((m->memory_start == 0 && m->file_offset == 0) || l->address < m->memory_start ||
                                 l->address >= m->memory_limit);
    if (link_time && id.size > 0 && l->address != 0 &&
        foreign_take_build(f, id, file, &frame->build, NULL) == PROFD_OK) {
        frame->address = l->address;
        return PROFD_OK;
    }
    const char *name = file.size > 0 ? arena_format(s->arena, "[%.*s]", shown(file), file.text) : "[unknown]";
    return name ? foreign_take_name(f, frame_type(s), foreign_text_of(name), FOREIGN_TEXT(""), frame, e)
                : profd_no_memory(e);
}

/* Makes the id of a profile from the client's id, otherwise from its bytes and labels. A profile without a time may be
 * equal to a later one, so it gets no id. Returns whether there is one. */
static bool make_id(const struct push_series *s, const Profd__Pprof__Profile *p, const uint8_t *bytes, size_t n,
                    uint8_t id[UPLOAD_SENDER_SIZE])
{
    struct sha256_ctx c;
    sha256_init(&c);
    if (!s->has_ids || (s->id.size == 0 && p->time_nanos <= 0)) {
        return false;
    }
    foreign_hash(&c, s->id);
    if (s->id.size == 0) {
        for (size_t i = 0; i < s->label_count; i++) {
            foreign_hash(&c, s->labels[i].name);
            foreign_hash(&c, s->labels[i].value);
        }
        foreign_hash(&c, s->service);
        foreign_hash(&c, s->name);
        sha256_update(&c, n, bytes);
    }
    sha256_digest(&c, UPLOAD_SENDER_SIZE, id);
    return true;
}

static enum profd_status add_pprof(struct push_series *s, const uint8_t *bytes, size_t n, struct profd_error *e)
{
    Profd__Pprof__Profile *p;
    struct pprof_column columns[PPROF_TYPES];
    struct foreign_frame frames[LIMIT_STACK_DEPTH + 1];
    uint8_t id[UPLOAD_SENDER_SIZE];
    struct foreign_head head = {.start = 0};
    struct foreign *f;
    size_t count;
    TRY(pprof_read(s->arena, bytes, n, &p, e));
    TRY(choose_columns(s, p, columns, &count, e));
    head.id = make_id(s, p, bytes, n, id) ? id : NULL;
    if (p->time_nanos > 0) {
        head.start = (uint64_t)p->time_nanos;
        head.end = head.start + (p->duration_nanos > 0 ? (uint64_t)p->duration_nanos : 0);
    }
    TRY(series_begin(s, &head, &f, e));
    for (size_t i = 0; i < p->n_sample; i++) {
        const Profd__Pprof__Sample *x = p->sample[i];
        size_t depth = 0;
        for (size_t k = 0; k < x->n_location_id && depth < LIMIT_STACK_DEPTH + 1; k++) {
            TRY(add_location(s, p, p->location[x->location_id[k]], f, frames, &depth, e));
        }
        /* a few bytes of a compressed sample can be hundreds of frames */
        FAIL_IF(depth * count > s->frames_left, e, PROFD_TOO_LARGE, "the samples of the request have over %u frames",
                PYROSCOPE_FRAMES_MOST);
        s->frames_left -= depth * count;
        for (size_t k = 0; k < count; k++) {
            const uint64_t value = (uint64_t)(x->value[columns[k].index] / columns[k].divisor);
            TRY(foreign_add(f, &columns[k].clock, frames, depth, value, e));
        }
    }
    return PROFD_OK;
}

/* Adds a profile in the format of pprof, which may be gzip. */
static enum profd_status read_pprof(struct push_series *s, const uint8_t *bytes, size_t n, struct profd_error *e)
{
    uint8_t *inflated = NULL;
    if (n > 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        TRY(deflate_gunzip(bytes, n, PYROSCOPE_PROFILE_MOST, &inflated, &n, e));
    }
    const enum profd_status status = add_pprof(s, inflated ? inflated : bytes, n, e);
    free(inflated);
    return status;
}

/* --- Folded text --- */

/* Adds a line: frames from the outermost to the innermost, separated by semicolons, and a number unless each line is
 * one sample. */
static enum profd_status add_line(const struct push_series *s, struct foreign *f, const struct foreign_clock *clock,
                                  struct foreign_text line, bool counted, size_t number, struct profd_error *e)
{
    struct foreign_frame frames[LIMIT_STACK_DEPTH + 1];
    uint64_t value = 1;
    size_t n = 0;
    if (counted) {
        const char *space = memrchr(line.text, ' ', line.size);
        FAIL_IF(!space || !read_number(text_of(space + 1, (size_t)(line.text + line.size - space) - 1), &value), e,
                PROFD_MALFORMED, "line %zu of the folded text is not 'FRAME;FRAME NUMBER': '%.*s'", number, shown(line),
                line.text);
        line.size = (size_t)(space - line.text);
    }
    for (const char *end = line.text + line.size; n < LIMIT_STACK_DEPTH + 1 && end > line.text;) {
        const char *semicolon = memrchr(line.text, ';', (size_t)(end - line.text));
        const char *begin = semicolon ? semicolon + 1 : line.text;
        TRY(foreign_take_name(f, frame_type(s), text_of(begin, (size_t)(end - begin)), FOREIGN_TEXT(""), &frames[n++],
                              e));
        end = semicolon ? semicolon : line.text;
    }
    return foreign_add(f, clock, frames, n, value, e);
}

static enum profd_status read_folded(const struct push_series *s, const uint8_t *bytes, size_t n, bool counted,
                                     struct profd_error *e)
{
    const bool samples = s->units.size == 0 || foreign_text_is(s->units, "samples");
    const struct foreign_type type = {.type = samples ? FOREIGN_TEXT("samples") : s->units,
                                      .unit = FOREIGN_TEXT("count"),
                                      .period_type = samples ? FOREIGN_TEXT("cpu") : FOREIGN_TEXT(""),
                                      .period_unit = FOREIGN_TEXT("nanoseconds"),
                                      .period = (int64_t)(1000000000 / s->rate)};
    const char *at = (const char *)bytes, *end = at + n;
    struct foreign_head head = {.start = 0};
    struct foreign_clock clock;
    struct foreign *f;
    foreign_choose_clock(&type, &clock);
    if (samples) { /* a short period would be rounded */
        clock.rate = (uint32_t)s->rate;
        clock.scale = 1;
    }
    TRY(series_begin(s, &head, &f, e));
    for (size_t number = 1; at < end; number++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        struct foreign_text line = text_of(at, (size_t)((line_end ? line_end : end) - at));
        at += line.size + 1;
        line.size -= line.size > 0 && line.text[line.size - 1] == '\r';
        if (line.size > 0) {
            TRY(add_line(s, f, &clock, line, counted, number, e));
        }
    }
    return PROFD_OK;
}

/* --- POST /ingest --- */

/* Part of a form. */
struct form_part {
    struct foreign_text name;
    const uint8_t *bytes;
    size_t size;
};

/* Finds a parameter of a field value: boundary in 'multipart/form-data; boundary="x"'. */
static struct foreign_text find_parameter(const char *field, size_t n, const char *name)
{
    const size_t k = strlen(name);
    for (const char *at = field, *end = field + n; (at = memchr(at, ';', (size_t)(end - at)));) {
        for (at++; at < end && (*at == ' ' || *at == '\t'); at++) {
        }
        if ((size_t)(end - at) > k && strncasecmp(at, name, k) == 0 && at[k] == '=') {
            at += k + 1;
            const bool quoted = at < end && *at == '"';
            const char *stop = memchr(at + quoted, quoted ? '"' : ';', (size_t)(end - at) - quoted);
            return text_of(at + quoted, (size_t)((stop ? stop : end) - at) - quoted);
        }
    }
    return FOREIGN_TEXT("");
}

/* Splits a form into parts (RFC 7578). */
static enum profd_status form_read(const struct foreign_request *r, struct form_part parts[PYROSCOPE_PARTS],
                                   size_t *count, struct profd_error *e)
{
    const struct foreign_text boundary = find_parameter(r->content_type, strlen(r->content_type), "boundary");
    static const char FIELD[] = "content-disposition:";
    char mark[80];
    *count = 0;
    FAIL_IF(boundary.size == 0 || boundary.size > 70, e, PROFD_MALFORMED,
            "multipart/form-data needs a boundary of 1 to 70 bytes, not %zu", boundary.size);
    const size_t n = (size_t)snprintf(mark, sizeof mark, "\r\n--%.*s", (int)boundary.size, boundary.text);
    const char *at = (const char *)r->body, *end = at + r->size;
    /* Nothing comes before the first boundary in the requests of clients. */
    FAIL_IF(r->size < n - 2 || memcmp(at, mark + 2, n - 2) != 0, e, PROFD_MALFORMED,
            "the form does not begin with its boundary '%.*s'", (int)boundary.size, boundary.text);
    for (at += n - 2; end - at >= 2 && memcmp(at, "--", 2) != 0;) {
        const char *head = at, *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
        at = body ? memmem(body + 2, (size_t)(end - body) - 2, mark, n) : NULL;
        FAIL_IF(!at || memcmp(head, "\r\n", 2) != 0, e, PROFD_MALFORMED, "part %zu of the form is cut, or has no head",
                *count + 1);
        FAIL_IF(*count == PYROSCOPE_PARTS, e, PROFD_TOO_LARGE, "the form has more than %u parts", PYROSCOPE_PARTS);
        body = body + 4 < at ? body + 4 : at;
        struct form_part *part = &parts[(*count)++];
        *part = (struct form_part){FOREIGN_TEXT(""), (const uint8_t *)body, (size_t)(at - body)};
        for (const char *line = head + 2, *stop; line < body && part->name.size == 0; line = stop + 2) {
            stop = memmem(line, (size_t)(body - line), "\r\n", 2);
            stop = stop ? stop : body;
            if ((size_t)(stop - line) >= strlen(FIELD) && strncasecmp(line, FIELD, strlen(FIELD)) == 0) {
                part->name = find_parameter(line, (size_t)(stop - line), "name");
            }
        }
        at += n;
    }
    return end - at >= 2 ? PROFD_OK : profd_error_set(e, PROFD_MALFORMED, "the form does not end with its boundary");
}

/* A time in seconds, milliseconds, microseconds or nanoseconds, by its number of digits; *out is in nanoseconds. */
static bool read_time(struct foreign_text t, uint64_t *out)
{
    if (!read_number(t, out)) {
        return false;
    }
    *out *= t.size <= 10 ? 1000000000u : t.size <= 13 ? 1000000u : t.size <= 16 ? 1000u : 1u;
    return *out <= INT64_MAX;
}

/* Reads APP{name=value,name=value}. */
static enum profd_status read_name(struct push_series *s, struct foreign_text t, struct profd_error *e)
{
    const char *brace = memchr(t.text, '{', t.size), *at = brace ? brace + 1 : NULL, *end = t.text + t.size;
    s->service = text_of(t.text, (size_t)((brace ? brace : end) - t.text));
    FAIL_IF(brace && end[-1] != '}', e, PROFD_MALFORMED, "name is not APP{label=value,…}: '%.*s'", shown(t), t.text);
    while (at && at < end - 1) {
        const char *comma = memchr(at, ',', (size_t)(end - 1 - at)), *stop = comma ? comma : end - 1;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        FAIL_IF(!equals, e, PROFD_MALFORMED, "name is not APP{label=value,…}: '%.*s'", shown(t), t.text);
        const struct foreign_text value = text_of(equals + 1, (size_t)(stop - equals) - 1);
        const bool quoted = value.size > 1 && value.text[0] == '"' && value.text[value.size - 1] == '"';
        add_label(s, text_of(at, (size_t)(equals - at)), text_of(value.text + quoted, value.size - 2 * quoted));
        at = stop + 1;
    }
    return PROFD_OK;
}

/* Decodes a piece of the target's query to *to, and moves *to behind it. */
static enum profd_status decode_piece(const char *at, const char *end, char **to, struct foreign_text *out,
                                      struct profd_error *e)
{
    const char *begin = *to;
    for (; at < end; at++) {
        const int byte = *at == '%' ? http_percent_value(at, (size_t)(end - at)) : *at == '+' ? ' ' : *at;
        FAIL_IF(byte <= 0, e, PROFD_MALFORMED, "the target has an invalid character at '%.3s'", at);
        at += *at == '%' ? 2 : 0;
        *(*to)++ = (char)byte;
    }
    *out = text_of(begin, (size_t)(*to - begin));
    return PROFD_OK;
}

/* Reads the parameters of the target. Other parameters are ignored. */
static enum profd_status read_query(struct push_series *s, struct foreign_text *format, struct profd_error *e)
{
    const char *query = strchr(s->request->target, '?'), *at = query ? query + 1 : "";
    char *decoded = arena_take(s->arena, strlen(at) + 1), *to = decoded;
    struct foreign_text rate = FOREIGN_TEXT("");
    if (!decoded) {
        return profd_no_memory(e);
    }
    for (size_t n; *at; at += n + (at[n] == '&')) {
        struct foreign_text key, value;
        n = strcspn(at, "&");
        const char *equals = memchr(at, '=', n), *end = at + n;
        TRY(decode_piece(at, equals ? equals : end, &to, &key, e));
        TRY(decode_piece(equals ? equals + 1 : end, end, &to, &value, e));
        if ((foreign_text_is(key, "from") && !read_time(value, &s->from)) ||
            (foreign_text_is(key, "until") && !read_time(value, &s->until))) {
            return profd_error_set(e, PROFD_MALFORMED, "%.*s is not a time in seconds since 1970: '%.*s'",
                                   (int)key.size, key.text, shown(value), value.text);
        }
        if (foreign_text_is(key, "name")) {
            TRY(read_name(s, value, e));
        }
        *format = foreign_text_is(key, "format") ? value : *format;
        s->spy = foreign_text_is(key, "spyName") ? value : s->spy;
        s->units = foreign_text_is(key, "units") ? value : s->units;
        rate = foreign_text_is(key, "sampleRate") ? value : rate;
    }
    s->rate = 100;
    if (rate.size > 0) {
        FAIL_IF(rate.size > 9 || !read_number(rate, &s->rate) || s->rate == 0, e, PROFD_MALFORMED,
                "sampleRate is not a number of samples per second: '%.*s'", shown(rate), rate.text);
    }
    return PROFD_OK;
}

static enum profd_status read_form(struct push_series *s, struct profd_error *e)
{
    struct form_part parts[PYROSCOPE_PARTS], *profile = NULL;
    size_t count;
    enum profd_status status = PROFD_OK;
    TRY(form_read(s->request, parts, &count, e));
    for (size_t i = 0; i < count; i++) {
        if (foreign_text_is(parts[i].name, "profile")) {
            profile = &parts[i];
        } else if (foreign_text_is(parts[i].name, "prev_profile") && parts[i].size > 0) {
            return profd_error_set(e, PROFD_REFUSED,
                                   "the form has a prev_profile: profd takes what was counted since the last profile, "
                                   "as newer clients send it");
        } else if (foreign_text_is(parts[i].name, "sample_type_config") && !s->types) {
            json_error_t why;
            s->types = json_loadb((const char *)parts[i].bytes, parts[i].size, JSON_REJECT_DUPLICATES, &why);
            if (!json_is_object(s->types)) {
                status = profd_error_set(e, PROFD_MALFORMED, "the part sample_type_config is not a JSON object: %s",
                                         s->types ? "it has another type" : why.text);
            }
        }
    }
    if (!status && !profile) {
        status = profd_error_set(e, PROFD_MALFORMED, "the form has no part named profile");
    }
    status = status ? status : read_pprof(s, profile->bytes, profile->size, e);
    json_decref(s->types);
    s->types = NULL;
    return status;
}

static enum profd_status read_ingest(struct push_series *s, struct profd_error *e)
{
    const struct foreign_request *r = s->request;
    struct foreign_text format = FOREIGN_TEXT("");
    TRY(read_query(s, &format, e));
    const bool pprof = foreign_text_is(format, "pprof"), lines = foreign_text_is(format, "lines"),
               folded = format.size == 0 || foreign_text_is(format, "folded") || foreign_text_is(format, "groups");
    if (strncasecmp(r->content_type, "multipart/form-data", 19) == 0 && (pprof || format.size == 0)) {
        return read_form(s, e);
    }
    FAIL_IF(!pprof && !lines && !folded, e, PROFD_REFUSED,
            "the format '%.*s' is not accepted: send pprof, folded text (folded, groups or none) or lines",
            shown(format), format.text);
    return pprof ? read_pprof(s, r->body, r->size, e) : read_folded(s, r->body, r->size, folded, e);
}

/* --- PusherService/Push --- */

static bool is_uuid(const char *id)
{
    for (size_t i = 0; i < 36; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? id[i] != '-' : http_hex_value(id[i]) < 0) {
            return false;
        }
    }
    return id[36] == '\0';
}

static enum profd_status add_series(struct push_series *s, const Profd__Push__PushRequest *push, struct profd_error *e)
{
    size_t profiles = 0;
    for (size_t i = 0; i < push->n_series; i++) {
        const Profd__Push__RawProfileSeries *x = push->series[i];
        s->service = s->name = s->spy = FOREIGN_TEXT("");
        s->label_count = 0;
        for (size_t k = 0; k < x->n_labels; k++) {
            const Profd__Push__LabelPair *l = x->labels[k];
            add_label(s, foreign_text_of(l->name), foreign_text_of(l->value));
        }
        for (size_t k = 0; k < x->n_samples; k++) {
            const Profd__Push__RawSample *sample = x->samples[k];
            if (++profiles > PYROSCOPE_PROFILES) {
                return profd_error_set(e, PROFD_TOO_LARGE, "a request has at most %u profiles", PYROSCOPE_PROFILES);
            }
            s->id = text_of(sample->id, is_uuid(sample->id) ? 36 : 0);
            TRY(read_pprof(s, sample->raw_profile.data, sample->raw_profile.len, e));
        }
    }
    return profiles > 0 ? PROFD_OK : profd_error_set(e, PROFD_REFUSED, "the request has no profiles");
}

static enum profd_status read_push(struct push_series *s, struct profd_error *e)
{
    const struct foreign_request *r = s->request;
    const ProtobufCMessageDescriptor *type = &profd__push__push_request__descriptor;
    Profd__Push__PushRequest *push;
    s->has_ids = true;
    if (!http_type_is(r->content_type, strlen(r->content_type), "application/json")) {
        TRY(pprof_unpack(s->arena, type, r->body, r->size, &push, e));
        return add_series(s, push, e);
    }
    ProtobufCMessage *message;
    TRY(json_message_decode(type, (const char *)r->body, r->size, 100 * PYROSCOPE_PROFILES, &message, e));
    memcpy(&push, &message, sizeof push);
    const enum profd_status status = add_series(s, push, e);
    protobuf_c_message_free_unpacked(message, NULL);
    return status;
}

enum profd_status pyroscope_read(const struct foreign_request *r, struct foreign_list *out, struct profd_error *e)
{
    struct arena *a = arena_new(PYROSCOPE_MEMORY);
    struct push_series *s = a ? ARENA_NEW(a, struct push_series) : NULL;
    enum profd_status status = s ? PROFD_OK : profd_no_memory(e);
    if (s) {
        s->request = r;
        s->arena = a;
        s->out = out;
        s->frames_left = PYROSCOPE_FRAMES_MOST;
        status = strncmp(r->target, PYROSCOPE_PUSH, strlen(PYROSCOPE_PUSH)) == 0 ? read_push(s, e) : read_ingest(s, e);
    }
    arena_free(a);
    return status;
}
