/* Functions, cycles and their rows in JSON. Field by field: schema/report.schema.json. Internal to render. */
#ifndef PROFD_RENDER_JSON_FUNCTION_H
#define PROFD_RENDER_JSON_FUNCTION_H

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"
#include "proto/status.h"

/* Every name as a JSON string, encoded once: it stands in many rows. */
struct json_names {
    struct buffer text;
    const size_t *start; /* function_count + 1 offsets into text */
    struct buffer other; /* likewise the begin of a row about each function: {"index":…,"name":…,"cycle":… */
    const size_t *other_start;
    const uint32_t *build; /* of each function */
};
/* json_names_done frees, after failure too. */
enum profd_status json_names_make(const struct report *report, struct arena *a, struct json_names *names,
                                  struct profd_error *e);
void json_names_done(struct json_names *names);

/* The name of one function, in quotes. */
void json_add_name(struct buffer *out, const struct json_names *names, uint32_t position);

/* One object: the function with its rows; rows false leaves these out. */
void json_add_function(struct buffer *out, const struct report *report, const struct json_names *names,
                       uint32_t position, bool rows);
void json_add_cycle(struct buffer *out, const struct report *report, const struct json_names *names, uint32_t position);
/* Id of a build of the report, "" for what is outside all. */
const char *json_find_build(const struct report *report, uint32_t build);

#endif
