/* Functions, cycles and their rows in JSON. Field by field: schema/report.schema.json. Internal to render. */
#ifndef PROFD_RENDER_JSON_FUNCTION_H
#define PROFD_RENDER_JSON_FUNCTION_H

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"
#include "proto/status.h"

/* Every name as a JSON string, encoded once because it occurs in many rows. A short name that differs follows as
 * short_name. */
struct json_names {
    struct buffer text;
    const size_t *start; /* function_count + 1 offsets into text */
    struct buffer other; /* likewise the begin of a row about each function: {"index":…,"name":…,"cycle":… */
    const size_t *other_start;
    const uint32_t *build; /* of each function */
    const double *calls;   /* of each, those by itself included */
    bool calls_exact;      /* json_names_make: false. True: rows get the seconds of a call */
    bool calls_sampled;    /* json_names_make: false. True: rows do not get the calls per call of the caller */
    struct arena *arena;
    struct arena_deferred deferred;
};
/* json_names_done frees. */
void json_names_make(const struct report *report, bool is_short, struct arena *a, struct json_names *names);
void json_names_done(struct json_names *names);

/* One object: the function with the heaviest `rows` of its callers and of its callees, 0: all. What a list leaves out
 * is said in KEY_left_out behind it: rows, and their calls and seconds. */
void json_add_function(struct buffer *out, const struct report *report, const struct json_names *names,
                       uint32_t position, uint32_t rows);
/* Likewise a cycle with its members, callers and callees. */
void json_add_cycle(struct buffer *out, const struct report *report, const struct json_names *names, uint32_t position,
                    uint32_t rows);
/* measured_self, measured_total and the others of m; nothing if it is NULL. */
void json_add_measured(struct buffer *out, const struct report_measured *m);
/* `,"stacks":{…}`: what measured times rest on, and which times sort; nothing where the report has no stacks. */
void json_add_stacks(struct buffer *out, const struct report *report);
/* Id of a build of the report, "" for what is outside all. */
const char *json_find_build(const struct report *report, uint32_t build);

#endif
