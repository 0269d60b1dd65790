/* Functions joined by name over the programs of a service: flat rows, and what did not join. */
#include <string.h>

#include "render/json_write.h"
#include "render/name_short.h"
#include "render/render.h"

static void add_row(struct buffer *out, const struct joined_row *row, const char *short_name, double seconds)
{
    JSON_ADD(out, "{\"name\":");
    render_json_string(out, row->name);
    if (short_name != NULL && short_name != row->name) {
        json_add_text(out, "short_name", short_name);
    }
    json_add_text(out, "file", row->file);
    json_add_number(out, "self", row->self);
    json_add_number(out, "total", row->total);
    json_add_number(out, "percent", seconds > 0 ? 100 * row->self / seconds : 0);
    json_add_number(out, "total_percent", seconds > 0 ? 100 * row->total / seconds : 0);
    json_add_count(out, "calls", row->calls);
    json_add_count(out, "self_calls", row->self_calls);
    json_add_count(out, "programs", row->programs);
    json_add_count(out, "builds", row->builds);
    JSON_ADD(out, "}");
}

static void add_rest(struct buffer *out, const struct joined_rest *rest)
{
    JSON_ADD(out, ",\"not_joined\":{\"unnamed_builds\":");
    buffer_add_u64(out, rest->unnamed_builds, 0);
    json_add_count(out, "unnamed_functions", rest->unnamed_functions);
    json_add_number(out, "unnamed_seconds", rest->unnamed_seconds);
    json_add_count(out, "ambiguous_names", rest->ambiguous_names);
    json_add_count(out, "ambiguous_functions", rest->ambiguous_functions);
    json_add_number(out, "ambiguous_seconds", rest->ambiguous_seconds);
    json_add_number(out, "other_seconds", rest->other_seconds);
    JSON_ADD(out, "}");
}

/* Short names of the rows; a row has no symbol, so that :: and < tell a name of C++. NULL when exhausted. */
static const char **make_short(const struct render_joined *j)
{
    const char **whole = ARENA_ARRAY(j->arena, j->row_count + 1, const char *);
    bool *cplusplus = ARENA_ARRAY(j->arena, j->row_count + 1, bool);
    if (whole == NULL || cplusplus == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < j->row_count; i++) {
        whole[i] = j->rows[i].name;
        cplusplus[i] = strstr(whole[i], "::") != NULL || strchr(whole[i], '<') != NULL;
    }
    return name_short_list(whole, cplusplus, (uint32_t)j->row_count, j->arena);
}

void render_joined(const struct render_joined *j, struct buffer *out)
{
    const char *const *shorts = j->short_names ? make_short(j) : NULL;
    out->failed |= j->short_names && shorts == NULL;
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < j->row_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_row(out, &j->rows[i], shorts != NULL ? shorts[i] : NULL, j->rest->seconds);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", j->next);
    json_add_text(out, "sort", j->sort);
    json_add_text(out, "dimension", j->dimension);
    json_add_count(out, "names", j->names);
    json_add_count(out, "programs", j->rest->programs);
    json_add_count(out, "uploads", j->rest->uploads);
    json_add_count(out, "processes_started", j->rest->processes);
    json_add_number(out, "seconds", j->rest->seconds);
    json_add_count(out, "calls", j->rest->calls);
    json_add_exact(out, j->rest->inexact);
    add_rest(out, j->rest);
    json_add_window(out, j->since, j->until);
    JSON_ADD(out, "}\n");
}
