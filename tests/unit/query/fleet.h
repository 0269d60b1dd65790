/* A small fleet in a database: the cycle example of gprof's manual as uploads, its executable, and a library. */
#ifndef PROFD_TESTS_QUERY_FLEET_H
#define PROFD_TESTS_QUERY_FLEET_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "proto/counts.h"
#include "query/answer.h"
#include "store/store.h"
#include "tests/scratch_store.h"

#define PROGRAM "4f2a91c0d3e8b7a65f4e3d2c1b0a998877665544"
#define LIBRARY "0b9d33f1aa"
#define FLEET_NOW (INT64_C(1795276800) * 1000000000)
#define MINUTE INT64_C(60000000000)
enum {
    F_START = 0x401000,
    F_MAIN = 0x401010,
    F_A = 0x401020,
    F_B = 0x401030,
    F_C = 0x401040,
    F_END = 0x401060,
    L_F = 0x1000
};

struct fleet_arc {
    uint32_t from_build;
    uint64_t from;
    uint32_t to_build;
    uint64_t to, calls;
};
struct fleet_bin {
    uint64_t address, ticks;
};

static const struct fleet_arc FLEET_ARCS[] = {
    {0, F_START + 4, 0, F_MAIN, 1}, {0, F_MAIN + 4, 0, F_A, 1}, {0, F_A + 4, 0, F_B, 3},
    {0, F_B + 4, 0, F_A, 2},        {0, F_A + 8, 0, F_C, 3},    {0, F_B + 8, 0, F_C, 3},
};
static const struct fleet_bin FLEET_BINS[] = {{F_MAIN, 16}, {F_A, 75}, {F_B, 102}};

struct fleet_upload {
    uint32_t uid, sequence, rate, builds; /* builds: 1, or 2 with the library */
    int64_t end;
    const char *host;
    const struct fleet_arc *arcs;
    size_t arc_count;
    const struct fleet_bin *bins;
    size_t bin_count;
    uint32_t program;
    uint64_t low, high; /* of the histogram; 0: those of the program */
    uint32_t bin_size;  /* 0: 4, which gprof divides without a remainder */
};

static inline struct fleet_upload fleet_cycle(uint32_t sequence)
{
    return (struct fleet_upload){.uid = 1000,
                                 .sequence = sequence,
                                 .rate = 100,
                                 .builds = 1,
                                 .end = FLEET_NOW - MINUTE,
                                 .host = "db1",
                                 .arcs = FLEET_ARCS,
                                 .arc_count = 6,
                                 .bins = FLEET_BINS,
                                 .bin_count = 3};
}

static inline void fleet_encode(const struct fleet_upload *u, uint8_t **bytes, size_t *size)
{
    struct counts c;
    struct profd_error e;
    uint64_t low = u->low > 0 ? u->low : F_START, high = u->high > 0 ? u->high : F_END;
    uint32_t bin_size = u->bin_size > 0 ? u->bin_size : 4;
    cr_assert_eq(counts_init(&c, u->bin_count > 0, (uint32_t)u->bin_count, (uint32_t)u->arc_count, &e), PROFD_OK);
    if (u->bin_count > 0) {
        c.histograms[0] = (struct counts_histogram){.bins = (uint32_t)(high - low) / bin_size,
                                                    .low = low,
                                                    .high = high,
                                                    .rate = u->rate,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .used = (uint32_t)u->bin_count};
    }
    for (size_t i = 0; i < u->bin_count; i++) {
        c.bin_index[i] = (uint32_t)(u->bins[i].address - low) / bin_size;
        c.bin_ticks[i] = u->bins[i].ticks;
    }
    for (size_t i = 0; i < u->arc_count; i++) {
        c.from_build[i] = u->arcs[i].from_build;
        c.from[i] = u->arcs[i].from;
        c.to_build[i] = u->arcs[i].to_build;
        c.to[i] = u->arcs[i].to;
        c.calls[i] = u->arcs[i].calls;
    }
    cr_assert_eq(counts_encode(&c, bytes, size, &e), PROFD_OK, "%s", e.sentence);
    counts_done(&c);
}

static inline void fleet_put(struct store *s, const struct fleet_upload *u)
{
    struct store_label labels[] = {{"host", u->host}, {"service", "api"}};
    struct store_build builds[] = {{.id = {PROGRAM}, .name = "/srv/bin/cycle", .nanoseconds = 1930000000, .calls = 16},
                                   {.id = {LIBRARY}, .name = "/lib/libwords.so", .calls = 5}};
    uint8_t *bytes;
    size_t size;
    enum store_outcome outcome;
    struct profd_error e;
    fleet_encode(u, &bytes, &size);
    struct store_upload upload = {.uid = u->uid,
                                  .sender = "abcdefghijk",
                                  .sequence = u->sequence,
                                  .received = u->end,
                                  .start = u->end - MINUTE,
                                  .end = u->end,
                                  .processes_started = 1,
                                  .program = u->program,
                                  .build_count = u->builds,
                                  .builds = builds,
                                  .label_count = 2,
                                  .labels = labels,
                                  .counts = bytes,
                                  .counts_size = size,
                                  .ticks = 193,
                                  .calls = 16};
    memset(upload.host, u->host[2], 32);
    cr_assert_eq(store_put_uploads(s, &upload, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

/* The executable: start, main, a, b, c; the library: f. */
static inline void fleet_put_layout(struct store *s, const char *id, uint32_t uid, uint8_t bits, bool big_endian)
{
    static const char NAMES[] = "\0start\0main\0a\0b\0c";
    static const uint32_t OFFSETS[] = {1, 7, 12, 14, 16};
    bool library = strcmp(id, LIBRARY) == 0;
    struct object_symbol symbols[5] = {0};
    struct object_range ranges[] = {{library ? L_F : F_START, library ? L_F + 64 : F_END, OBJECT_RANGE_TEXT},
                                    {library ? L_F : F_START, library ? L_F + 64 : F_END, OBJECT_RANGE_SEGMENT}};
    struct object o = {.machine = 62,
                       .bits = bits,
                       .big_endian = big_endian,
                       .has_names = true,
                       .symbols = symbols,
                       .ranges = ranges,
                       .range_count = 2,
                       .symbol_count = library ? 1 : 5,
                       .names = library ? "\0f" : NAMES,
                       .name_bytes = library ? 3 : sizeof NAMES,
                       .note = ""};
    uint8_t *bytes;
    size_t size;
    struct profd_error e;
    for (uint32_t i = 0; i < o.symbol_count; i++) {
        uint32_t name = library ? 1 : OFFSETS[i];
        symbols[i] = (struct object_symbol){.address = library ? L_F : F_START + 16 * (uint64_t)i,
                                            .size = 16,
                                            .name = name,
                                            .demangled = name,
                                            .bind = OBJECT_BIND_GLOBAL,
                                            .type = OBJECT_TYPE_FUNCTION,
                                            .flags = OBJECT_SYMBOL_EXECUTABLE};
    }
    strcpy(o.id.text, id);
    memset(o.variant, 'a', 64);
    cr_assert_eq(object_encode(&o, &bytes, &size, &e), PROFD_OK, "%s", e.sentence);
    struct store_object object = {.uid = uid,
                                  .has_names = true,
                                  .encoded = bytes,
                                  .encoded_size = size,
                                  .name = id,
                                  .note = "",
                                  .received = FLEET_NOW};
    strcpy(object.id.text, id);
    memset(object.variant, 'a', 64);
    cr_assert_eq(store_put_object(s, &object, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

static inline void fleet_put_object(struct store *s, const char *id, uint32_t uid)
{
    fleet_put_layout(s, id, uid, 64, false);
}

static inline struct store *fleet_open(void)
{
    struct store *s = NULL;
    struct profd_error e;
    cr_assert_eq(scratch_store_open(&s, &e), PROFD_OK);
    return s;
}

struct fleet_answer {
    int http;
    char etag[80], type[64], exact[256];
    char *body; /* NUL-terminated */
    size_t size;
};

static inline struct fleet_answer fleet_ask_as(struct store *s, const char *target, const char *etag,
                                               struct store_scope scope)
{
    struct query_request request = {
        .target = target, .if_none_match = etag, .scope = scope, .http = true, .now = FLEET_NOW};
    struct query_answer answer;
    struct fleet_answer out;
    query_run(s, &request, &answer);
    out.http = answer.http_status;
    strcpy(out.etag, answer.etag);
    snprintf(out.type, sizeof out.type, "%s", answer.content_type);
    snprintf(out.exact, sizeof out.exact, "%s", answer.exact);
    cr_assert(!answer.body.failed);
    out.size = answer.body.size;
    out.body = calloc(1, answer.body.size + 1);
    if (out.size > 0) {
        memcpy(out.body, answer.body.data, out.size);
    }
    cr_assert_eq(out.http == 200 || out.http == 304, answer.status == PROFD_OK);
    cr_assert(out.http != 304 || out.size == 0);
    if (out.http >= 400) {
        cr_assert_str_eq(answer.content_type, "application/problem+json");
        cr_assert_str_eq(answer.cache_control, "no-store");
        cr_assert_str_eq(answer.etag, "");
    }
    query_answer_done(&answer);
    return out;
}

/* Only the HTTP status of it. */
static inline int fleet_status(struct store *s, const char *target, const char *etag, struct store_scope scope)
{
    struct fleet_answer answer = fleet_ask_as(s, target, etag, scope);
    free(answer.body);
    return answer.http;
}

static inline struct fleet_answer fleet_ask(struct store *s, const char *target)
{
    return fleet_ask_as(s, target, "", (struct store_scope){.all = true});
}

static inline json_t *fleet_parse(const struct fleet_answer *answer)
{
    json_error_t error;
    json_t *root = json_loadb(answer->body, answer->size, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(root, "%s: %s", error.text, answer->body);
    return root;
}

/* The answer to a request that must succeed. */
static inline json_t *fleet_get(struct store *s, const char *target)
{
    struct fleet_answer answer = fleet_ask(s, target);
    cr_assert_eq(answer.http, 200, "%s: %s", target, answer.body);
    json_t *root = fleet_parse(&answer);
    free(answer.body);
    return root;
}

/* Number at a path of keys and indexes: "provenance/uploads", "functions/0/self". NAN where there is none. */
static inline const json_t *fleet_at(const json_t *root, const char *path)
{
    char copy[200], *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, "/", &save); key != NULL && root != NULL; key = strtok_r(NULL, "/", &save)) {
        root = json_is_array(root) ? json_array_get(root, strtoul(key, NULL, 10)) : json_object_get(root, key);
    }
    return root;
}
static inline double fleet_number(const json_t *root, const char *path)
{
    const json_t *v = fleet_at(root, path);
    cr_assert(json_is_number(v), "no number at %s of %s", path, json_dumps(root, JSON_COMPACT));
    return json_number_value(v);
}
static inline const char *fleet_text(const json_t *root, const char *path)
{
    const json_t *v = fleet_at(root, path);
    cr_assert(json_is_string(v), "no text at %s of %s", path, json_dumps(root, JSON_COMPACT));
    return json_string_value(v);
}
/* The object of a list whose name is that; NULL if there is none. */
static inline const json_t *fleet_named(const json_t *root, const char *list, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(fleet_at(root, list), i, v)
    {
        if (strcmp(fleet_text(v, "name"), name) == 0) {
            return v;
        }
    }
    return NULL;
}

#endif
