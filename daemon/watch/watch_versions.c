#include "watch/watch_versions.h"

#include <stdlib.h>
#include <string.h>

#include "watch/watch_ask.h"

#define SECOND 19 /* characters of a time up to its second: "2026-11-27T00:21:19.28Z" */

struct listed {
    struct watch_version version;
    const char *first;
    size_t index;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int compare_times(const char *a, const char *b)
{
    const int seconds = strncmp(a, b, SECOND);
    if (seconds != 0 || strlen(a) < SECOND || strlen(b) < SECOND) {
        return seconds;
    }
    const double x = strtod(a + SECOND, NULL), y = strtod(b + SECOND, NULL);
    return x != y ? x < y ? -1 : 1 : 0;
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    int order = strcmp(x->version.group, y->version.group);
    order = order != 0 ? order : compare_times(x->first, y->first);
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

/* Row i and those after it that are of the same program: their end, and their group. */
static size_t read_program(const json_t *rows, size_t i, const char **group)
{
    const char *program = watch_text(json_array_get(rows, i), "program");
    bool labelled = false;
    for (; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(watch_text(row, "program"), program) != 0) {
            break;
        }
        labelled = labelled || watch_text(row, "version")[0] != '\0';
    }
    *group = labelled ? base_name(program) : program;
    return i;
}

enum profd_status watch_versions_read(const json_t *rows, struct arena *arena, struct watch_version **out,
                                      size_t *count, struct profd_error *e)
{
    const size_t n = json_array_size(rows);
    struct listed *list = ARENA_ARRAY(arena, n + 1, struct listed);
    struct watch_version *versions = ARENA_ARRAY(arena, n + 1, struct watch_version);
    const char *group = "";
    if (list == NULL || versions == NULL) {
        return profd_no_memory(e);
    }
    for (size_t i = 0, end = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        end = i == end ? read_program(rows, i, &group) : end;
        const char *label = watch_text(row, "version"), *build_id = watch_text(row, "build_id");
        list[i] = (struct listed){.version = {.group = group,
                                              .name = label[0] != '\0' ? label : build_id,
                                              .label = label,
                                              .build_id = build_id,
                                              .program = watch_text(row, "program"),
                                              .uploads = watch_integer(row, "uploads")},
                                  .first = watch_text(row, "first"),
                                  .index = i};
    }
    qsort(list, n, sizeof *list, compare_listed);
    for (size_t i = 0; i < n; i++) {
        versions[i] = list[i].version;
    }
    *out = versions;
    *count = n;
    return PROFD_OK;
}

bool watch_versions_has(const char *group, const char *program, const char *name, const char *build_id)
{
    return strcmp(program, group) == 0 || (strcmp(base_name(program), group) == 0 && strcmp(name, build_id) != 0);
}
