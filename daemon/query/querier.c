/* Answers Pyroscope's query API, for Grafana: the services of querier.v1 by the Connect protocol, and the paths below
 * /pyroscope. The numbers are those of profd's own reports. This file selects them and writes them in the form that
 * Grafana reads. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pprof_codec.h"
#include "core/report.h"
#include "core/rollup.h"
#include "proto/collector.h"
#include "proto/json_message.h"
#include "proto/label.h"
#include "proto/pyroscope.pb-c.h"
#include "query/query_internal.h"
#include "store/labels.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define NODES_USUAL 8192
#define NODES_MOST (1 << 20)
#define POINTS_MOST 11000       /* of a series, as in Prometheus */
#define JSON_VALUES_MOST 65536u /* of a request */
#define PB(type) Profd__Pyroscope__##type

/* Generated structs have no const, because unpacking fills them in. Packing only reads. */
static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Room for a repeated field: n messages and the pointers to them. */
#define MESSAGES(job, n, type, made, list)                                                                             \
    type *made = ARENA_ARRAY((job)->arena, (n) + 1, type);                                                             \
    type **list = ARENA_ARRAY((job)->arena, (n) + 1, type *);

static void *message_make(struct job *job, const ProtobufCMessageDescriptor *d)
{
    void *m = ARENA_ARRAY(job->arena, d->sizeof_message, char);
    protobuf_c_message_init(d, m);
    return m;
}

/* --- Types of profiles: a dimension of samples, or the calls --- */

enum { TYPE_NAME, TYPE_SAMPLE, TYPE_UNIT, TYPE_PERIOD, TYPE_PERIOD_UNIT, TYPE_PARTS };

#define CALLS "calls"
#define PROCESS_CPU "process_cpu"
#define DIMENSION "dimension_"
#define TYPE_BYTES 256u

struct profile_type {
    const char *dimension; /* NULL: calls */
    bool is_time;          /* values are nanoseconds */
    const char *id, *parts[TYPE_PARTS];
};

static struct profile_type type_make(struct arena *a, const char *dimension)
{
    struct profile_type t = {.dimension = dimension, .is_time = dimension && report_dimension_is_time(dimension)};
    const bool cpu = dimension && strcmp(dimension, REPORT_DIMENSION_USUAL) == 0;
    const char *name = !dimension ? CALLS : cpu ? "cpu" : dimension, *unit = t.is_time ? "nanoseconds" : "count";
    /* A dimension may have the name that calls, CPU time or another dimension have here. */
    const bool taken = dimension && (strcmp(name, CALLS) == 0 || strcmp(name, PROCESS_CPU) == 0 ||
                                     strncmp(name, DIMENSION, strlen(DIMENSION)) == 0);
    const char *const parts[TYPE_PARTS] = {cpu     ? PROCESS_CPU
                                           : taken ? arena_format(a, DIMENSION "%s", name)
                                                   : name,
                                           name, unit, name, unit};
    memcpy(t.parts, parts, sizeof parts);
    t.id = arena_format(a, "%s:%s:%s:%s:%s", parts[0], parts[1], parts[2], parts[3], parts[4]);
    return t;
}

/* Finds the type of an id. BAD_QUERY unless the id has five parts, or a sixth one that is "delta". *known says whether
 * type_make makes this id. */
static enum profd_status type_parse(struct arena *a, const char *id, struct profile_type *out, bool *known,
                                    struct profd_error *e)
{
    unsigned parts = 1;
    FAIL_IF(strlen(id) > TYPE_BYTES, e, PROFD_BAD_QUERY, "a type of profiles has at most %u bytes, not %zu: %.100s…",
            TYPE_BYTES, strlen(id), id);
    for (const char *c = id; *c; c++) {
        parts += *c == ':';
    }
    const size_t first = strcspn(id, ":"), n = strlen(id);
    const bool delta =
        parts == TYPE_PARTS + 1 && n >= strlen(":delta") && strcmp(id + n - strlen(":delta"), ":delta") == 0;
    FAIL_IF(first == 0 || (parts != TYPE_PARTS && !delta), e, PROFD_BAD_QUERY,
            "%.100s is not a type of profiles: types have the form NAME:TYPE:UNIT:PERIOD:UNIT, as in "
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            id);
    const char *name = arena_copy(a, id, first), *whole = arena_copy(a, id, n - (delta ? strlen(":delta") : 0));
    name = strcmp(name, CALLS) == 0                           ? NULL
           : strcmp(name, PROCESS_CPU) == 0                   ? REPORT_DIMENSION_USUAL
           : strncmp(name, DIMENSION, strlen(DIMENSION)) == 0 ? name + strlen(DIMENSION)
                                                              : name;
    *out = type_make(a, name);
    *known = strcmp(out->id, whole) == 0;
    return PROFD_OK;
}

static PB(ProfileType) type_show(const struct profile_type *t)
{
    PB(ProfileType) m = PROFD__PYROSCOPE__PROFILE_TYPE__INIT;
    m.id = borrow(t->id);
    m.name = borrow(t->parts[TYPE_NAME]);
    m.sample_type = borrow(t->parts[TYPE_SAMPLE]);
    m.sample_unit = borrow(t->parts[TYPE_UNIT]);
    m.period_type = borrow(t->parts[TYPE_PERIOD]);
    m.period_unit = borrow(t->parts[TYPE_PERIOD_UNIT]);
    return m;
}

/* --- Labels: those that are stored, and those that follow from program and type --- */

/* The labels that follow from a type. All others are stored, or follow from the program. */
static const struct {
    const char *name;
    int part; /* −1: the whole id */
} TYPE_LABELS[] = {{"__profile_type__", -1}, {"__name__", TYPE_NAME},          {"__type__", TYPE_SAMPLE},
                   {"__unit__", TYPE_UNIT},  {"__period_type__", TYPE_PERIOD}, {"__period_unit__", TYPE_PERIOD_UNIT}};
#define TYPE_LABEL_COUNT (sizeof TYPE_LABELS / sizeof *TYPE_LABELS)
static const char *const PROGRAM_LABELS[] = {"service_name", "__service_name__", "program", "build_id"};
#define PROGRAM_LABEL_COUNT (sizeof PROGRAM_LABELS / sizeof *PROGRAM_LABELS)

static size_t find_type_label(const char *name)
{
    size_t i = 0;
    while (i < TYPE_LABEL_COUNT && strcmp(TYPE_LABELS[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool is_service(const char *name)
{
    return strcmp(name, "service_name") == 0 || strcmp(name, "__service_name__") == 0;
}

static const char *type_label(const struct profile_type *t, size_t label)
{
    return TYPE_LABELS[label].part < 0 ? t->id : t->parts[TYPE_LABELS[label].part];
}

/* The stored value of a label in a row, or "". */
typedef const char *(*stored_label)(const void *row, const char *name);

static const char *row_label(const void *row, const char *name)
{
    return row_find_label(row, name);
}

/* The value of a label, "" if it has none. type NULL: none of its labels has a value. */
static const char *label_find(const char *name, const struct program *program, const struct profile_type *type,
                              stored_label stored, const void *row)
{
    const size_t of_type = find_type_label(name);
    if (of_type < TYPE_LABEL_COUNT) {
        return type ? type_label(type, of_type) : "";
    }
    const bool service = is_service(name);
    const char *value = stored(row, service ? "service_name" : name);
    if (*value == '\0' && service) {
        value = stored(row, "service");
    }
    if (*value == '\0' && (service || strcmp(name, "program") == 0)) {
        value = program->base;
    }
    return *value == '\0' && strcmp(name, "build_id") == 0 ? program->id.text : value;
}

/* A selector: what the store judges, and what the type decides. */
struct label_selector {
    struct store_matcher stored[LIMIT_MATCHERS], of_type[LIMIT_MATCHERS];
    size_t stored_count, type_count;
};

static enum profd_status selector_parse(struct arena *a, const char *text, struct label_selector *out,
                                        struct profd_error *e)
{
    struct store_matcher all[LIMIT_MATCHERS];
    size_t count = 0;
    *out = (struct label_selector){.stored_count = 0};
    TRY(options_parse_selector(text ? text : "", a, all, &count, e));
    for (size_t i = 0; i < count; i++) {
        struct store_matcher *m = &all[i];
        if (find_type_label(m->name) < TYPE_LABEL_COUNT) {
            out->of_type[out->type_count++] = *m;
            continue;
        }
        if (is_service(m->name)) {
            m->name = "service_name";
            m->instead = "service";
        }
        for (size_t k = 0; k < PROGRAM_LABEL_COUNT; k++) {
            m->absent = strcmp(m->name, PROGRAM_LABELS[k]) == 0 ? "" : m->absent; /* programs_work sets it */
        }
        out->stored[out->stored_count++] = *m;
    }
    return PROFD_OK;
}

/* Returns whether a selector admits a type. */
static bool selector_has_type(const struct label_selector *s, struct arena *a, const struct profile_type *t)
{
    struct buffer text;
    struct store_label labels[TYPE_LABEL_COUNT];
    if (s->type_count == 0) {
        return true;
    }
    buffer_init_arena(&text, a);
    for (size_t i = 0; i < TYPE_LABEL_COUNT; i++) {
        labels[i] = (struct store_label){TYPE_LABELS[i].name, type_label(t, i)};
    }
    labels_encode(labels, TYPE_LABEL_COUNT, &text);
    return labels_match(text.data, text.size, s->of_type, s->type_count);
}

/* --- One request --- */

struct connect {
    struct job *job;
    struct programs_tag *tag; /* NULL: the answer has none, because it has values over time */
    uint32_t inexact;
    uint32_t programs_left; /* the most programs of a window that were not read, as in struct programs */
};

/* The window of a request in milliseconds, both ends within it; 0: open. */
static enum profd_status window_parse(int64_t start, int64_t end, struct options *o, struct profd_error *e)
{
    FAIL_IF(start < 0 || end < 0 || start > INT64_MAX / MS - 1 || end > INT64_MAX / MS - 1 || (end > 0 && start > end),
            e, PROFD_BAD_QUERY, "start=%" PRId64 " and end=%" PRId64 " must be times in milliseconds, in this order",
            start, end);
    o->since = start * MS;
    o->until = end > 0 ? end * MS + 1 : 0;
    return PROFD_OK;
}

/* Finds the programs of a window whose uploads a selector may select. */
static enum profd_status find_programs(struct connect *c, const struct label_selector *s, int64_t start, int64_t end,
                                       struct programs *out, struct profd_error *e)
{
    *out = (struct programs){.job = c->job, .tag = c->tag};
    out->options.visible = c->job->request->scope;
    TRY(window_parse(start, end, &out->options, e));
    memcpy(out->options.matchers, s->stored, sizeof s->stored);
    out->options.matcher_count = s->stored_count;
    TRY(programs_find(out, e));
    c->programs_left = out->left > c->programs_left ? out->left : c->programs_left;
    return PROFD_OK;
}

/* Sets the header Profd-Exact, because Pyroscope's answers have no field that says whether they are exact. */
static void tell_exact(struct job *job, const struct connect *c)
{
    struct buffer b;
    buffer_init_arena(&b, job->arena);
    const uint32_t inexact = c->inexact;
    buffer_add_text(&b, inexact == 0 && c->programs_left == 0 ? "yes" : "no");
    if (c->programs_left > 0) {
        buffer_add_format(&b, "; programs-left=%" PRIu32, c->programs_left);
    }
    for (uint32_t bit = 1; bit != 0 && bit <= inexact; bit <<= 1) {
        if (inexact & bit) {
            buffer_add_text(&b, (inexact & (bit - 1)) == 0 ? "; reasons=" : ",");
            buffer_add_text(&b, message_inexact_name(bit));
        }
    }
    const size_t n = b.size < sizeof job->answer->exact ? b.size : sizeof job->answer->exact - 1;
    memcpy(job->answer->exact, b.data, n);
    job->answer->exact[n] = '\0';
}

/* --- What is stored: types, names of labels, their values, series --- */

struct looking {
    struct connect *connect;
    const struct label_selector *selection;
    const struct program *program;
    bool with_types;   /* counts must be read */
    struct set series; /* of the program: (number, dimension), which were seen */
    struct set found;  /* what the answer has */
    struct buffer key;
    const char *name;         /* of whose values the list is; NULL: the names of all labels */
    const char *const *names; /* of the labels of series; NULL: no series are listed */
    size_t name_count;
    bool all_names; /* of stored labels, too */
    struct arena *scratch;
};

static void add_found(struct looking *l, const char *text)
{
    bool added;
    if (*text) {
        set_add(&l->found, text, strlen(text) + 1, &added);
    }
}

/* name NUL value NUL */
static void add_pair(struct buffer *key, const char *name, const char *value)
{
    if (*value) {
        buffer_add(key, name, strlen(name) + 1);
        buffer_add(key, value, strlen(value) + 1);
    }
}

/* Takes a series with a type (NULL: not looked at), for the first time. */
static void take_series(struct looking *l, const struct store_row *row, const struct profile_type *type)
{
    bool added;
    l->key.size = 0;
    if (l->name) {
        add_found(l, label_find(l->name, l->program, type, row_label, row));
    } else if (!l->names && l->name_count == 0) {
        for (size_t i = 0; i < row->label_count; i++) {
            add_found(l, row->labels[i].name);
        }
    } else {
        for (size_t i = 0; i < l->name_count; i++) {
            add_pair(&l->key, l->names[i], label_find(l->names[i], l->program, type, row_label, row));
        }
        for (size_t i = 0; l->all_names && i < row->label_count; i++) {
            add_pair(&l->key, row->labels[i].name, row->labels[i].value);
        }
        set_add(&l->found, l->key.data, l->key.size, &added);
    }
}

/* Takes the type of a row's dimension (NULL: calls), if the selector admits it. A dimension with a colon has no type:
 * an id of five parts could not name it. */
static void take_type(struct looking *l, const struct store_row *row, const char *dimension)
{
    struct buffer key;
    bool added;
    if (dimension && (*dimension == '\0' || strchr(dimension, ':'))) {
        return;
    }
    buffer_init_arena(&key, l->scratch);
    buffer_add(&key, &row->series, sizeof row->series);
    buffer_add_text(&key, dimension ? dimension : "");
    set_add(&l->series, key.data, key.size, &added);
    if (added) {
        struct arena *a = l->connect->job->arena;
        const struct profile_type t = type_make(a, dimension ? arena_copy(a, dimension, strlen(dimension)) : NULL);
        if (selector_has_type(l->selection, a, &t)) {
            take_series(l, row, &t);
        }
    }
}

static void take_types(struct looking *l, const struct store_row *row, const struct counts *c)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (c->histograms[i].used > 0 && !collector_is_dimension(c->histograms[i].dimension)) {
            take_type(l, row, c->histograms[i].dimension);
        }
    }
    if (c->arc_count > 0) {
        take_type(l, row, NULL);
    }
}

static enum profd_status look_at_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct looking *l = context;
    struct counts counts;
    bool added;
    ARENA_BOUNDARY(l->connect->job->arena, profd_no_memory(e));
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    if (!l->with_types) {
        set_add(&l->series, &row->series, sizeof row->series, &added);
        if (added) {
            take_series(l, row, NULL);
        }
        return PROFD_OK;
    }
    TRY(row_decode_counts(row, l->scratch, &counts, e));
    take_types(l, row, &counts);
    return PROFD_OK;
}

/* Looks at all uploads in the window that at least one selector admits. Without selectors, all uploads are admitted. */
static enum profd_status look(struct looking *l, char *const *selectors, size_t count, int64_t start, int64_t end,
                              struct profd_error *e)
{
    struct connect *c = l->connect;
    struct arena *a = c->job->arena;
    const size_t n = count > 0 ? count : 1;
    struct label_selector *selections = ARENA_ARRAY(a, n, struct label_selector);
    struct programs *programs = ARENA_ARRAY(a, n, struct programs);
    set_init(&l->found, a);
    buffer_init_arena(&l->key, a);
    for (size_t i = 0; i < n; i++) {
        TRY(selector_parse(a, count > 0 ? selectors[i] : NULL, &selections[i], e));
        TRY(find_programs(c, &selections[i], start, end, &programs[i], e));
        l->with_types |= selections[i].type_count > 0;
    }
    TRY(programs_set_tag(c->job, c->tag));
    l->scratch = arena_new_child(a, LIMIT_QUERY_MEMORY);
    for (size_t i = 0; i < n; i++) {
        l->selection = &selections[i];
        for (uint32_t k = 0; k < programs[i].count; k++) {
            const struct report_work w = programs_work(&programs[i], k);
            struct store_filter filter = work_make_filter(&w);
            filter.metadata = !l->with_types;
            l->program = &programs[i].list[k];
            set_init(&l->series, a);
            TRY(store_each_upload(c->job->store, &w.options.visible, &filter, look_at_row, l, e));
            TRY(store_pattern_judge(&filter, e));
        }
    }
    arena_continue(a);
    return PROFD_OK;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* What was found, sorted. */
static char **sort_found(const struct looking *l)
{
    char **out = ARENA_ARRAY(l->connect->job->arena, (size_t)l->found.count + 1, char *);
    for (uint32_t i = 0; i < l->found.count; i++) {
        out[i] = borrow(l->found.keys[i].bytes);
    }
    qsort(out, l->found.count, sizeof *out, compare_texts);
    return out;
}

static enum profd_status profile_types(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                       struct profd_error *e)
{
    const PB(ProfileTypesRequest) *q = (const void *)m;
    struct looking l = {.connect = c, .with_types = true, .name = "__profile_type__"};
    TRY(look(&l, NULL, 0, q->start, q->end, e));
    char **ids = sort_found(&l);
    PB(ProfileTypesResponse) *r = message_make(c->job, &profd__pyroscope__profile_types_response__descriptor);
    MESSAGES(c->job, l.found.count, PB(ProfileType), types, list);
    for (uint32_t i = 0; i < l.found.count; i++) {
        struct profile_type t;
        bool known;
        TRY(type_parse(c->job->arena, ids[i], &t, &known, e));
        types[i] = type_show(&t);
        list[i] = &types[i];
    }
    r->profile_types = list;
    r->n_profile_types = l.found.count;
    *out = &r->base;
    return PROFD_OK;
}

static void show_names(const struct looking *l, ProtobufCMessage **out)
{
    PB(NamesResponse) *r = message_make(l->connect->job, &profd__pyroscope__names_response__descriptor);
    r->names = sort_found(l);
    r->n_names = l->found.count;
    *out = &r->base;
}

static enum profd_status label_names(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                     struct profd_error *e)
{
    const PB(LabelNamesRequest) *q = (const void *)m;
    struct looking l = {.connect = c};
    TRY(look(&l, q->matchers, q->n_matchers, q->start, q->end, e));
    for (size_t i = 0; l.found.count > 0 && i < PROGRAM_LABEL_COUNT; i++) {
        add_found(&l, PROGRAM_LABELS[i]);
    }
    for (size_t i = 0; l.found.count > 0 && i < TYPE_LABEL_COUNT; i++) {
        add_found(&l, TYPE_LABELS[i].name);
    }
    show_names(&l, out);
    return PROFD_OK;
}

static enum profd_status list_values(struct looking *l, const char *name, char *const *matchers, size_t count,
                                     int64_t start, int64_t end, struct profd_error *e)
{
    FAIL_IF(!name || *name == '\0', e, PROFD_BAD_QUERY, "the name of the label is missing");
    l->name = name;
    l->with_types = find_type_label(name) < TYPE_LABEL_COUNT;
    return look(l, matchers, count, start, end, e);
}

static enum profd_status label_values(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                      struct profd_error *e)
{
    const PB(LabelValuesRequest) *q = (const void *)m;
    struct looking l = {.connect = c};
    TRY(list_values(&l, q->name, q->matchers, q->n_matchers, q->start, q->end, e));
    show_names(&l, out);
    return PROFD_OK;
}

/* The pairs of a key, name NUL value NUL … */
static void show_pairs(struct job *job, const char *key, size_t size, PB(LabelPair) * **out, size_t *count)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        n += key[i] == '\0';
    }
    MESSAGES(job, n / 2, PB(LabelPair), pairs, list);
    for (size_t i = 0; i < n / 2; i++) {
        profd__pyroscope__label_pair__init(&pairs[i]);
        pairs[i].name = borrow(key);
        key += strlen(key) + 1;
        pairs[i].value = borrow(key);
        key += strlen(key) + 1;
        list[i] = &pairs[i];
    }
    *out = list;
    *count = n / 2;
}

static enum profd_status series(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                struct profd_error *e)
{
    const PB(SeriesRequest) *q = (const void *)m;
    const bool all = q->n_label_names == 0;
    const char **names =
        ARENA_ARRAY(c->job->arena, q->n_label_names + TYPE_LABEL_COUNT + PROGRAM_LABEL_COUNT, const char *);
    struct looking l = {.connect = c, .names = names, .all_names = all, .with_types = all};
    for (size_t i = 0; i < q->n_label_names; i++) {
        names[l.name_count++] = q->label_names[i];
        l.with_types |= find_type_label(q->label_names[i]) < TYPE_LABEL_COUNT;
    }
    for (size_t i = 0; all && i < TYPE_LABEL_COUNT; i++) {
        names[l.name_count++] = TYPE_LABELS[i].name;
    }
    for (size_t i = 0; all && i < PROGRAM_LABEL_COUNT; i++) {
        names[l.name_count++] = PROGRAM_LABELS[i];
    }
    TRY(look(&l, q->matchers, q->n_matchers, q->start, q->end, e));
    PB(SeriesResponse) *r = message_make(c->job, &profd__pyroscope__series_response__descriptor);
    MESSAGES(c->job, l.found.count, PB(Labels), sets, list);
    for (uint32_t i = 0; i < l.found.count; i++) {
        profd__pyroscope__labels__init(&sets[i]);
        show_pairs(c->job, l.found.keys[i].bytes, l.found.keys[i].size, &sets[i].labels, &sets[i].n_labels);
        list[i] = &sets[i];
    }
    r->labels_set = list;
    r->n_labels_set = l.found.count;
    *out = &r->base;
    return PROFD_OK;
}

static bool take_times(void *context, const struct build_row *row)
{
    PB(GetProfileStatsResponse) *r = context;
    if (row->is_program) {
        const int64_t first = row->first_seen / MS, last = row->last_seen / MS;
        r->oldest_profile_time = !r->data_ingested || first < r->oldest_profile_time ? first : r->oldest_profile_time;
        r->newest_profile_time = last > r->newest_profile_time ? last : r->newest_profile_time;
        r->has_data_ingested = r->data_ingested = r->has_oldest_profile_time = r->has_newest_profile_time = true;
    }
    return true;
}

static enum profd_status get_profile_stats(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                           struct profd_error *e)
{
    (void)m;
    PB(GetProfileStatsResponse) *r = message_make(c->job, &profd__pyroscope__get_profile_stats_response__descriptor);
    TRY(job_set_list_etag(c->job, e));
    *out = &r->base;
    return store_each_build(c->job->store, &c->job->request->scope, "", SIZE_MAX / 2, take_times, r, e);
}

/* Drilldown asks for settings, recording rules and features. profd has none, so the answer is empty. */
static enum profd_status answer_empty(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                      struct profd_error *e)
{
    (void)m;
    (void)e;
    PB(Empty) *r = message_make(c->job, &profd__pyroscope__empty__descriptor);
    *out = &r->base;
    return PROFD_OK;
}

/* --- Values over time --- */

struct course_request {
    const char *type, *selector;
    int64_t start, end, step; /* start and end: ms; step: ns */
    const char *const *group_by;
    size_t group_count;
    bool average;
    int64_t limit; /* of series; 0: none */
};

struct course {
    const char *key; /* its labels: name NUL value NUL … */
    size_t key_size;
    double *sums, *uploads; /* of each point; where no upload has such a value, there is no point */
    double total;
};

struct courses {
    struct course *list;
    size_t count, points;
};

struct group_labels {
    const struct groups_request *request;
    const struct group_row *row;
};

static const char *group_label(const void *context, const char *name)
{
    const struct group_labels *g = context;
    for (size_t i = 0; i < g->request->label_count; i++) {
        if (strcmp(g->request->labels[i], name) == 0) {
            return g->row->values[i];
        }
    }
    return "";
}

/* Adds a stored label to those that uploads are grouped by. */
static enum profd_status add_group_label(struct groups_request *r, const char *name, struct profd_error *e)
{
    for (size_t i = 0; i < r->label_count; i++) {
        if (strcmp(r->labels[i], name) == 0) {
            return PROFD_OK;
        }
    }
    FAIL_IF(r->label_count == GROUPS_LABELS_MOST, e, PROFD_BAD_QUERY, "series are grouped by more than %d labels",
            GROUPS_LABELS_MOST);
    r->labels[r->label_count++] = name;
    return PROFD_OK;
}

static enum profd_status add_group_labels(const struct course_request *q, struct groups_request *r,
                                          struct profd_error *e)
{
    for (size_t i = 0; i < q->group_count; i++) {
        const char *name = q->group_by[i];
        const bool service = is_service(name);
        if (service) {
            TRY(add_group_label(r, "service", e));
        }
        if (service || label_judge_name(name, strlen(name)) == LABEL_GOOD) {
            TRY(add_group_label(r, service ? "service_name" : name, e));
        }
    }
    return PROFD_OK;
}

/* Spreads the value of a row evenly over the steps that its time overlaps, so that a value per second stays true where
 * steps are shorter than what is stored. */
static void course_add(struct course *to, const struct course_request *q, size_t points, const struct group_row *row,
                       double value)
{
    const int64_t grid = q->start * MS - q->step; /* point 0 is of (grid, grid + step] */
    for (int64_t k = row->time > grid ? (row->time - grid) / q->step : 0; k < (int64_t)points; k++) {
        const int64_t begin = grid + k * q->step, end = begin + q->step;
        const int64_t from = row->time > begin ? row->time : begin;
        const int64_t behind = row->time + row->width < end ? row->time + row->width : end;
        if (row->time + row->width <= begin) {
            break;
        }
        const double share = (double)(behind - from) / (double)row->width;
        to->sums[k] += share * value;
        to->uploads[k] += share * (double)row->uploads;
        to->total += share * value;
    }
}

static int by_total(const void *left, const void *right)
{
    const double a = ((const struct course *)left)->total, b = ((const struct course *)right)->total;
    return (a < b) - (a > b);
}

static int by_key(const void *left, const void *right)
{
    const struct course *a = left, *b = right;
    const size_t n = a->key_size < b->key_size ? a->key_size : b->key_size;
    const int order = n > 0 ? memcmp(a->key, b->key, n) : 0;
    return order != 0 ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

struct course_list {
    struct set keys;
    struct course *list;
    uint32_t capacity;
    size_t points;
};

/* The course of a row's labels. */
static struct course *course_find(struct connect *c, struct course_list *all, const struct course_request *q,
                                  const struct program *program, const struct profile_type *type,
                                  const struct group_labels *labels)
{
    struct arena *a = c->job->arena;
    struct buffer key;
    bool added;
    buffer_init_arena(&key, a);
    for (size_t i = 0; i < q->group_count; i++) {
        add_pair(&key, q->group_by[i], label_find(q->group_by[i], program, type, group_label, labels));
    }
    const uint32_t number = set_add(&all->keys, key.size > 0 ? key.data : "", key.size, &added);
    if (added) {
        all->list = arena_extend(a, all->list, number, &all->capacity, sizeof *all->list);
        all->list[number] = (struct course){.key = all->keys.keys[number].bytes,
                                            .key_size = key.size,
                                            .sums = ARENA_ARRAY(a, all->points, double),
                                            .uploads = ARENA_ARRAY(a, all->points, double)};
    }
    return &all->list[number];
}

/* Adds up the uploads of one program. scratch: what only this call needs. */
static enum profd_status course_add_program(struct connect *c, struct course_list *all, const struct course_request *q,
                                            const struct programs *programs, uint32_t i,
                                            const struct profile_type *type, struct arena *scratch,
                                            struct profd_error *e)
{
    struct report_work w = programs_work(programs, i);
    const char *dimension;
    struct group_row *rows;
    size_t n;
    for (size_t k = 0; k < w.options.matcher_count; k++) {
        w.by_host |= strcmp(w.options.matchers[k].name, "host") == 0;
    }
    for (size_t k = 0; k < q->group_count; k++) {
        w.by_host |= strcmp(q->group_by[k], "host") == 0;
    }
    struct groups_request r = {.store = c->job->store,
                               .scope = w.options.visible,
                               .filter = work_make_filter(&w),
                               .dimension = type->dimension,
                               .may_lack = true,
                               .step = q->step,
                               .grid = q->start * MS,
                               .begin = w.options.since,
                               .end = w.options.until};
    TRY(add_group_labels(q, &r, e));
    TRY(groups_add_up(&r, scratch, &rows, &n, &dimension, e));
    for (size_t k = 0; k < n; k++) {
        const struct group_labels labels = {&r, &rows[k]};
        const double value = !type->dimension ? (double)rows[k].calls : rows[k].seconds * (type->is_time ? 1e9 : 1);
        const int64_t last = rows[k].time + rows[k].width;
        if (value > 0 && last > q->start * MS - q->step && rows[k].time < q->end * MS) {
            course_add(course_find(c, all, q, &programs->list[i], type, &labels), q, all->points, &rows[k], value);
            c->inexact |= rows[k].inexact;
        }
    }
    return PROFD_OK;
}

/* The series of a request, by their labels. */
static enum profd_status courses_make(struct connect *c, const struct course_request *q, struct courses *out,
                                      struct profd_error *e)
{
    struct arena *a = c->job->arena;
    struct programs programs;
    struct profile_type type;
    struct label_selector selection;
    struct course_list all = {.list = NULL};
    bool known;
    TRY(type_parse(a, q->type ? q->type : "", &type, &known, e));
    TRY(selector_parse(a, q->selector, &selection, e));
    FAIL_IF(q->step < MS || q->start <= 0 || q->end < q->start || (q->end - q->start) / (q->step / MS) >= POINTS_MOST,
            e, PROFD_BAD_QUERY, "start=%" PRId64 ", end=%" PRId64 " and a step of %.3f s do not give 1 to %d points",
            q->start, q->end, (double)q->step / 1e9, POINTS_MOST);
    all.points = (size_t)((q->end - q->start) * MS / q->step) + 1;
    set_init(&all.keys, a);
    /* The first point is of the step that ends at start. */
    const int64_t before = (q->step + MS - 1) / MS;
    TRY(find_programs(c, &selection, q->start > before ? q->start - before : 1, q->end, &programs, e));
    c->job->unsettled = true; /* a roll-up leaves only the sum of an hour */
    if (known && selector_has_type(&selection, a, &type)) {
        struct arena *scratch = arena_new_child(a, LIMIT_QUERY_MEMORY);
        for (uint32_t i = 0; i < programs.count; i++) {
            arena_reset(scratch);
            TRY(course_add_program(c, &all, q, &programs, i, &type, scratch, e));
        }
    }
    size_t n = all.keys.count;
    if (q->limit > 0 && (uint64_t)q->limit < n) {
        qsort(all.list, n, sizeof *all.list, by_total);
        n = (size_t)q->limit;
    }
    if (n > 0) {
        qsort(all.list, n, sizeof *all.list, by_key);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; q->average && k < all.points; k++) {
            all.list[i].sums[k] /= all.list[i].uploads[k] > 0 ? all.list[i].uploads[k] : 1;
        }
    }
    *out = (struct courses){all.list, n, all.points};
    return PROFD_OK;
}

static enum profd_status refuse_selectors(bool site, size_t profiles, size_t traces, size_t spans,
                                          struct profd_error *e)
{
    return !site && profiles == 0 && traces == 0 && spans == 0
               ? PROFD_OK
               : profd_error_set(e, PROFD_UNKNOWN_TYPE,
                                 "profd stores sums: this request cannot select single profiles, traces, spans or "
                                 "call sites");
}

static enum profd_status select_series(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                       struct profd_error *e)
{
    const PB(SelectSeriesRequest) *q = (const void *)m;
    const double step = q->step * 1e9;
    const struct course_request request = {.type = q->profile_typeid,
                                           .selector = q->label_selector,
                                           .start = q->start,
                                           .end = q->end,
                                           .step = step >= 1 && step < 0x1p62 ? (int64_t)step : 0,
                                           .group_by = (const char *const *)q->group_by,
                                           .group_count = q->n_group_by,
                                           .average = q->aggregation != 0,
                                           .limit = q->limit};
    struct courses all;
    c->tag = NULL;
    TRY(refuse_selectors(q->stack_trace_selector && q->stack_trace_selector->n_call_site > 0, 0, 0, 0, e));
    TRY(window_parse(q->start, q->end, &(struct options){.since = 0}, e));
    TRY(courses_make(c, &request, &all, e));
    PB(SelectSeriesResponse) *r = message_make(c->job, &profd__pyroscope__select_series_response__descriptor);
    MESSAGES(c->job, all.count, PB(Series), list, places);
    for (size_t i = 0; i < all.count; i++) {
        const struct course *from = &all.list[i];
        MESSAGES(c->job, all.points, PB(Point), points, points_places);
        profd__pyroscope__series__init(&list[i]);
        show_pairs(c->job, from->key, from->key_size, &list[i].labels, &list[i].n_labels);
        for (size_t k = 0; k < all.points; k++) {
            PB(Point) *p = &points[list[i].n_points];
            if (from->uploads[k] > 0) {
                profd__pyroscope__point__init(p);
                p->value = from->sums[k];
                p->timestamp = q->start + (int64_t)k * request.step / MS;
                p->has_timestamp = true;
                p->has_value = p->value > 0;
                points_places[list[i].n_points++] = p;
            }
        }
        list[i].points = points_places;
        places[i] = &list[i];
    }
    r->series = places;
    r->n_series = all.count;
    *out = &r->base;
    return PROFD_OK;
}

/* --- Flame graphs --- */

/* One side of a flame graph. */
struct flame_side {
    struct programs programs;
    struct profile_type type;
    bool known; /* there are such profiles, and they have stacks */
};

static enum profd_status side_find(struct connect *c, const char *type, const char *selector, int64_t start,
                                   int64_t end, struct flame_side *out, struct profd_error *e)
{
    struct label_selector selection;
    TRY(type_parse(c->job->arena, type ? type : "", &out->type, &out->known, e));
    TRY(selector_parse(c->job->arena, selector, &selection, e));
    TRY(find_programs(c, &selection, start, end, &out->programs, e));
    out->known = out->known && out->type.dimension && selector_has_type(&selection, c->job->arena, &out->type);
    out->programs.options.dimension = out->type.dimension;
    return PROFD_OK;
}

/* Adds the stacks of all programs of a side. */
static enum profd_status side_add(struct connect *c, struct flame_side *s, struct flame *f, unsigned number,
                                  struct profd_error *e)
{
    struct subreport subreport;
    if (!s->known) {
        return PROFD_OK;
    }
    subreport_init(&subreport, c->job);
    for (uint32_t i = 0; i < s->programs.count; i++) {
        struct report_work w = programs_work(&s->programs, i);
        w.stacks_only = w.without_errors = true;
        TRY(subreport_load(&subreport, &w, e));
        if (w.load.provenance.uploads == 0) {
            continue;
        }
        TRY(subreport_make(&subreport, &w, e));
        c->inexact |= w.load.provenance.inexact;
        flame_add(f, w.report, number, subreport.job.arena);
    }
    arena_free(subreport.job.arena);
    arena_free(subreport.kept);
    return PROFD_OK;
}

/* Draws the flame graph of one or two sides. site: names of the frames that stacks begin with. most: of nodes; 0: as
 * usual. False: there is nothing to draw. */
static enum profd_status sides_draw(struct connect *c, struct flame_side *sides, unsigned n, const char *const *site,
                                    size_t depth, int64_t most, struct flame_picture *out, bool *any,
                                    struct profd_error *e)
{
    struct flame *f = flame_new(c->job->arena, site, depth);
    TRY(c->tag ? programs_set_tag(c->job, c->tag) : PROFD_OK);
    for (unsigned i = 0; i < n; i++) {
        TRY(side_add(c, &sides[i], f, i, e));
    }
    *any = flame_draw(f, most <= 0 ? NODES_USUAL : most > NODES_MOST ? NODES_MOST : (uint32_t)most, n, out);
    return PROFD_OK;
}

/* The levels of a picture as messages. */
static PB(FlameGraph__Level) * *show_levels(struct job *job, const struct flame_picture *p)
{
    MESSAGES(job, p->level_count, PB(FlameGraph__Level), levels, list);
    for (uint32_t i = 0; i < p->level_count; i++) {
        profd__pyroscope__flame_graph__level__init(&levels[i]);
        levels[i].values = (int64_t *)(uintptr_t)p->levels[i].values;
        levels[i].n_values = p->levels[i].count;
        list[i] = &levels[i];
    }
    return list;
}

/* Joins the profiles of all programs in format=pprof. */
static enum profd_status merge_profile(struct connect *c, const struct flame_side *side, ProtobufCMessage **out,
                                       struct profd_error *e)
{
    struct pprof_parts parts = {.next_mapping = 0};
    struct subreport subreport;
    struct buffer all;
    buffer_init_arena(&all, c->job->arena);
    subreport_init(&subreport, c->job);
    for (uint32_t i = 0; side->known && i < side->programs.count; i++) {
        struct report_work w = programs_work(&side->programs, i);
        TRY(subreport_load(&subreport, &w, e));
        if (w.load.provenance.uploads == 0) {
            continue;
        }
        TRY(subreport_append(&subreport, &w, &all, &parts, e));
        c->inexact |= w.load.provenance.inexact;
    }
    return pprof_unpack(c->job->arena, &profd__pyroscope__profile__descriptor,
                        (const uint8_t *)(all.data ? all.data : ""), all.size, out, e);
}

static enum profd_status select_merge_stacktraces(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                                  struct profd_error *e)
{
    const PB(SelectMergeStacktracesRequest) *q = (const void *)m;
    const size_t depth = q->stack_trace_selector ? q->stack_trace_selector->n_call_site : 0;
    const char **call_site = ARENA_ARRAY(c->job->arena, depth + 1, const char *);
    struct flame_side side;
    struct flame_picture p;
    bool any;
    TRY(refuse_selectors(false, q->n_profile_id_selector, q->n_trace_id_selector, q->n_span_selector, e));
    for (size_t i = 0; i < depth; i++) {
        const char *name = q->stack_trace_selector->call_site[i]->name;
        call_site[i] = name ? name : "";
    }
    const bool pprof = q->format == PROFD__PYROSCOPE__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
    FAIL_IF(q->format > PROFD__PYROSCOPE__PROFILE_FORMAT__PROFILE_FORMAT_FLAMEGRAPH && !pprof, e, PROFD_UNKNOWN_TYPE,
            "SelectMergeStacktraces answers in PROFILE_FORMAT_FLAMEGRAPH and PROFILE_FORMAT_PPROF, not in format %d",
            (int)q->format);
    TRY(refuse_selectors(pprof && depth > 0, 0, 0, 0, e));
    TRY(side_find(c, q->profile_typeid, q->label_selector, q->start, q->end, &side, e));
    PB(SelectMergeStacktracesResponse) *r =
        message_make(c->job, &profd__pyroscope__select_merge_stacktraces_response__descriptor);
    *out = &r->base;
    if (pprof) {
        ProtobufCMessage *profile;
        TRY(programs_set_tag(c->job, c->tag));
        TRY(merge_profile(c, &side, &profile, e));
        r->pprof = message_make(c->job, &profd__pyroscope__pprof_profile__descriptor);
        r->pprof->profile = (PB(Profile) *)(void *)profile;
        return PROFD_OK;
    }
    TRY(sides_draw(c, &side, 1, call_site, depth, q->max_nodes, &p, &any, e));
    if (any) {
        r->flamegraph = message_make(c->job, &profd__pyroscope__flame_graph__descriptor);
        r->flamegraph->names = (char **)(uintptr_t)p.names;
        r->flamegraph->n_names = p.name_count;
        r->flamegraph->levels = show_levels(c->job, &p);
        r->flamegraph->n_levels = p.level_count;
        r->flamegraph->has_total = r->flamegraph->has_max_self = true;
        r->flamegraph->total = p.total;
        r->flamegraph->max_self = p.max_self;
    }
    return PROFD_OK;
}

/* The profile is whole: max_nodes is a limit of flame graphs. */
static enum profd_status select_merge_profile(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                              struct profd_error *e)
{
    const PB(SelectMergeProfileRequest) *q = (const void *)m;
    struct flame_side side;
    const bool site = q->stack_trace_selector && q->stack_trace_selector->n_call_site > 0;
    TRY(refuse_selectors(site, q->n_profile_id_selector, q->n_trace_id_selector, 0, e));
    TRY(side_find(c, q->profile_typeid, q->label_selector, q->start, q->end, &side, e));
    TRY(programs_set_tag(c->job, c->tag));
    return merge_profile(c, &side, out, e);
}

static enum profd_status compare(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                                 struct profd_error *e)
{
    const PB(DiffRequest) *q = (const void *)m;
    struct flame_side sides[FLAME_SIDES];
    struct flame_picture p;
    bool any;
    FAIL_IF(!q->left || !q->right, e, PROFD_BAD_QUERY, "a comparison needs left and right");
    for (int i = 0; i < FLAME_SIDES; i++) {
        const PB(SelectMergeStacktracesRequest) *s = i == 0 ? q->left : q->right;
        const bool site = s->stack_trace_selector && s->stack_trace_selector->n_call_site > 0;
        TRY(refuse_selectors(site, s->n_profile_id_selector, s->n_trace_id_selector, s->n_span_selector, e));
        TRY(side_find(c, s->profile_typeid, s->label_selector, s->start, s->end, &sides[i], e));
    }
    TRY(sides_draw(c, sides, FLAME_SIDES, NULL, 0, q->left->max_nodes, &p, &any, e));
    PB(DiffResponse) *r = message_make(c->job, &profd__pyroscope__diff_response__descriptor);
    if (any) {
        PB(FlameGraphDiff) *g = r->flamegraph = message_make(c->job, &profd__pyroscope__flame_graph_diff__descriptor);
        g->names = (char **)(uintptr_t)p.names;
        g->n_names = p.name_count;
        g->levels = show_levels(c->job, &p);
        g->n_levels = p.level_count;
        g->has_total = g->has_max_self = g->has_leftticks = g->has_rightticks = true;
        g->total = p.total;
        g->max_self = p.max_self;
        g->leftticks = p.ticks[0];
        g->rightticks = p.ticks[1];
    }
    *out = &r->base;
    return PROFD_OK;
}

/* --- The Connect protocol --- */

#define QUERIER "/querier.v1.QuerierService/"
#define EMPTY &profd__pyroscope__empty__descriptor

static const struct method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    enum profd_status (*run)(struct connect *c, const ProtobufCMessage *m, ProtobufCMessage **out,
                             struct profd_error *e);
} METHODS[] = {
    {QUERIER "ProfileTypes", &profd__pyroscope__profile_types_request__descriptor, profile_types},
    {QUERIER "LabelNames", &profd__pyroscope__label_names_request__descriptor, label_names},
    {QUERIER "LabelValues", &profd__pyroscope__label_values_request__descriptor, label_values},
    {QUERIER "Series", &profd__pyroscope__series_request__descriptor, series},
    {QUERIER "SelectSeries", &profd__pyroscope__select_series_request__descriptor, select_series},
    {QUERIER "SelectMergeStacktraces", &profd__pyroscope__select_merge_stacktraces_request__descriptor,
     select_merge_stacktraces},
    {QUERIER "SelectMergeProfile", &profd__pyroscope__select_merge_profile_request__descriptor, select_merge_profile},
    {QUERIER "Diff", &profd__pyroscope__diff_request__descriptor, compare},
    {QUERIER "GetProfileStats", EMPTY, get_profile_stats},
    {QUERIER "AnalyzeQuery", EMPTY, answer_empty},
    {"/settings.v1.SettingsService/Get", EMPTY, answer_empty},
    {"/settings.v1.RecordingRulesService/ListRecordingRules", EMPTY, answer_empty},
    {"/capabilities.v1.FeatureFlagsService/GetFeatureFlags", EMPTY, answer_empty},
};

static void free_request(void *m)
{
    protobuf_c_message_free_unpacked(m, NULL);
}

/* Appends the message in the form of the request. */
static enum profd_status add_message(struct buffer *out, const ProtobufCMessage *m, bool json, struct profd_error *e)
{
    char *text;
    size_t n = json ? 0 : protobuf_c_message_get_packed_size(m);
    if (json) {
        TRY(json_message_encode(m, &text, &n, e));
        buffer_add(out, text, n);
        free(text);
    } else if (n > 0) {
        char *to = buffer_extend(out, n);
        if (to) {
            protobuf_c_message_pack(m, (uint8_t *)to);
        }
    }
    return PROFD_OK;
}

enum profd_status connect_show(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct programs_tag tag = {.begun = false};
    struct connect c = {.job = job, .tag = &tag};
    const struct method *method = METHODS;
    const size_t path = strcspn(r->target, "?");
    ProtobufCMessage *m = NULL, *answer = NULL;
    struct arena_deferred deferred;
    FAIL_IF(!r->body, e, PROFD_METHOD, "%.*s accepts only POST requests over HTTP", (int)path, r->target);
    while (method < METHODS + sizeof METHODS / sizeof *METHODS &&
           (strlen(method->path) != path || memcmp(method->path, r->target, path) != 0)) {
        method++;
    }
    FAIL_IF(method == METHODS + sizeof METHODS / sizeof *METHODS, e, PROFD_UNKNOWN_TYPE,
            "profd does not implement %.*s", (int)path, r->target);
    const bool json = strncmp(r->content_type, "application/json", strlen("application/json")) == 0;
    if (json) {
        TRY(json_message_decode(method->request, (const char *)r->body, r->body_size, JSON_VALUES_MOST, &m, e));
    } else {
        m = protobuf_c_message_unpack(method->request, NULL, r->body_size, r->body);
        FAIL_IF(!m, e, PROFD_MALFORMED, "the body of %zu bytes is not a request of %.*s", r->body_size, (int)path,
                r->target);
    }
    arena_defer(job->arena, &deferred, free_request, m);
    job->answer->content_type = json ? "application/json" : "application/proto";
    enum profd_status status = method->run(&c, m, &answer, e);
    if (!status) {
        tell_exact(job, &c);
        status = add_message(&job->answer->body, answer, json, e);
    }
    arena_undefer(job->arena, &deferred);
    return status;
}

/* --- /pyroscope/render, /pyroscope/render-diff, /pyroscope/label-values --- */

/* Finds a time of Pyroscope's query strings, in milliseconds. It is YYYYMMDD, or a number since the epoch, which is in
 * seconds, ms, µs or ns by its number of digits, or what when_parse accepts. */
static enum profd_status time_find(const struct job *job, const char *name, const char *usual, int64_t *out,
                                   struct profd_error *e)
{
    const char *text = params_find(job->params, name);
    text = text ? text : usual;
    const size_t n = strlen(text);
    int64_t ns = 0;
    char copy[32];
    if (strspn(text, "0123456789") == n && (n == 8 || n == 16 || n == 19)) {
        (void)snprintf(copy, sizeof copy, n == 8 ? "%.4s-%.2s-%.2s" : "%.13s", text, text + 4, text + 6);
        text = copy;
    }
    TRY(when_parse(name, text, job->request->now, &ns, e));
    *out = ns / MS;
    return PROFD_OK;
}

/* TYPE{LABELS} of a parameter, in two texts. */
static enum profd_status query_find(const struct job *job, const char *name, const char **type, const char **selector,
                                    struct profd_error *e)
{
    const char *text = params_find(job->params, name);
    FAIL_IF(!text, e, PROFD_BAD_QUERY, "%s= is missing; give a type of profiles and a selector", name);
    const size_t n = strcspn(text, "{");
    *type = arena_copy(job->arena, text, n);
    *selector = text + n;
    return PROFD_OK;
}

static enum profd_status nodes_find(const struct job *job, int64_t *most, struct profd_error *e)
{
    unsigned long long nodes = 0;
    TRY(params_parse_number(job->params, "maxNodes", 0, UINT32_MAX, &nodes, e));
    TRY(params_parse_number(job->params, "max-nodes", 0, UINT32_MAX, &nodes, e));
    *most = (int64_t)nodes;
    return PROFD_OK;
}

#define RENDER_POINTS 300
#define RENDER_STEP_LEAST 15 /* s */

enum profd_status flamebearer_show(struct job *job, struct profd_error *e)
{
    const struct params *params = job->params;
    const char *format = params_find(params, "format"), *group = params_find(params, "groupBy");
    const char *aggregation = params_find(params, "aggregation"), *type, *selector;
    struct connect c = {.job = job};
    struct flame_picture p;
    struct courses all, one;
    struct flame_side side;
    int64_t start = 0, end = 0, most;
    bool any;
    FAIL_IF(format && strcmp(format, "json") != 0, e, PROFD_BAD_QUERY,
            "format=%s is not json, the only format of this path", format);
    FAIL_IF(aggregation && strcmp(aggregation, "sum") != 0 && strcmp(aggregation, "avg") != 0, e, PROFD_BAD_QUERY,
            "aggregation=%s is neither sum nor avg", aggregation);
    TRY(query_find(job, "query", &type, &selector, e));
    TRY(nodes_find(job, &most, e));
    TRY(time_find(job, "from", "now-1h", &start, e));
    TRY(time_find(job, "until", "now", &end, e));
    TRY(side_find(&c, type, selector, start, end, &side, e));
    const int64_t least = (end - start) / 1000 / RENDER_POINTS + 1;
    const int64_t step = least > RENDER_STEP_LEAST ? least : RENDER_STEP_LEAST, first = start / 1000 + step;
    struct course_request request = {.type = type,
                                     .selector = selector,
                                     .start = first * 1000,
                                     .end = (first + (end - start) / 1000 / step * step) * 1000,
                                     .step = step * SECOND,
                                     .average = aggregation && *aggregation == 'a'};
    TRY(courses_make(&c, &request, &one, e));
    request.group_by = &group;
    request.group_count = group != NULL;
    TRY(group ? courses_make(&c, &request, &all, e) : PROFD_OK);
    TRY(sides_draw(&c, &side, 1, NULL, 0, most, &p, &any, e));
    struct render_flamebearer out = {.picture = &p,
                                     .sides = 1,
                                     .is_time = side.type.is_time,
                                     .name = side.type.parts[TYPE_SAMPLE],
                                     .start = first,
                                     .step = step,
                                     .samples = one.count > 0 ? one.list[0].sums : NULL,
                                     .step_count = one.points,
                                     .group_count = group ? all.count : 0};
    const char **names = ARENA_ARRAY(job->arena, out.group_count + 1, const char *);
    const double **samples = ARENA_ARRAY(job->arena, out.group_count + 1, const double *);
    for (size_t i = 0; i < out.group_count; i++) { /* a group is named by the value of its one label */
        names[i] = all.list[i].key_size > 0 ? all.list[i].key + strlen(all.list[i].key) + 1 : "";
        samples[i] = all.list[i].sums;
    }
    out.groups = names;
    out.group_samples = samples;
    tell_exact(job, &c);
    render_flamebearer(&out, &job->answer->body);
    return PROFD_OK;
}

enum profd_status flamebearer_compare(struct job *job, struct profd_error *e)
{
    static const char *const NAMES[FLAME_SIDES][3] = {{"leftQuery", "leftFrom", "leftUntil"},
                                                      {"rightQuery", "rightFrom", "rightUntil"}};
    struct programs_tag tag = {.begun = false};
    struct connect c = {.job = job, .tag = &tag};
    struct flame_side sides[FLAME_SIDES];
    struct flame_picture p;
    int64_t most;
    bool any;
    TRY(nodes_find(job, &most, e));
    for (unsigned i = 0; i < FLAME_SIDES; i++) {
        const char *type, *selector;
        int64_t start = 0, end = 0;
        TRY(query_find(job, NAMES[i][0], &type, &selector, e));
        TRY(time_find(job, NAMES[i][1], "now-1h", &start, e));
        TRY(time_find(job, NAMES[i][2], "now", &end, e));
        TRY(side_find(&c, type, selector, start, end, &sides[i], e));
    }
    TRY(sides_draw(&c, sides, FLAME_SIDES, NULL, 0, most, &p, &any, e));
    const struct render_flamebearer out = {.picture = &p,
                                           .sides = FLAME_SIDES,
                                           .is_time = sides[0].type.is_time,
                                           .name = sides[0].type.parts[TYPE_SAMPLE]};
    tell_exact(job, &c);
    render_flamebearer(&out, &job->answer->body);
    return PROFD_OK;
}

enum profd_status label_values_show(struct job *job, struct profd_error *e)
{
    struct programs_tag tag = {.begun = false};
    struct connect c = {.job = job, .tag = &tag};
    struct looking l = {.connect = &c};
    struct buffer *out = &job->answer->body;
    TRY(list_values(&l, params_find(job->params, "label"), NULL, 0, 0, 0, e));
    char **values = sort_found(&l);
    for (uint32_t i = 0; i < l.found.count; i++) {
        buffer_add_char(out, i == 0 ? '[' : ',');
        render_json_string(out, values[i]);
    }
    buffer_add_text(out, l.found.count > 0 ? "]\n" : "[]\n");
    return PROFD_OK;
}
