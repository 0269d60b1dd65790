#include <inttypes.h>
#include <string.h>

#include "compat/compat_symbols.h"

const char *compat_symbols_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

enum profd_status compat_symbols_name(struct compat_symbols *s, const struct compat_options *options, struct arena *a,
                                      struct profd_error *e)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (options->raw_names || options->traditional) {
            s->name[i] = s->raw[i];
        }
        if ((!options->file_names && !options->lines) || s->file[i][0] == '\0') {
            continue;
        }
        const char *file = options->full_paths ? s->file[i] : compat_symbols_file(s->file[i]);
        if (options->lines) {
            s->name[i] =
                arena_format(a, "%s (%s:%" PRIu32 " @ %" PRIx64 ")", s->name[i], file, s->line[i], s->address[i]);
        } else {
            s->name[i] = arena_format(a, "%s (%s:%" PRIu32 ")", s->name[i], file, s->line[i]);
        }
        if (s->name[i] == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the names of %u symbols", s->count);
        }
    }
    return PROFD_OK;
}

/* True if the path is among the first n. */
static bool path_known(const char *const *paths, uint32_t n, const char *path)
{
    for (uint32_t i = n; i-- > 0;) {
        if (paths[i] == path || strcmp(paths[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* Lists each path once, in the order in which gprof finds them. */
struct path_list {
    const char **paths;
    uint32_t count, capacity;
};

static bool path_meet(struct path_list *list, const char *path, const char *base, struct arena *a)
{
    if (path[0] == '\0' || strcmp(compat_symbols_file(path), base) != 0 || path_known(list->paths, list->count, path)) {
        return true;
    }
    const char **paths = arena_extend(a, list->paths, list->count, &list->capacity, sizeof *paths);
    if (paths == NULL) {
        return false;
    }
    list->paths = paths;
    list->paths[list->count++] = path;
    return true;
}

/* Symbols are searched first, then (with -l) lines by address. */
enum profd_status compat_symbols_source(const struct compat_symbols *s, const char *base, struct arena *a,
                                        const char **out)
{
    struct path_list list = {.paths = NULL};
    for (uint32_t i = 0; i < s->met_count; i++) {
        if (!path_meet(&list, object_name(s->object, s->object->symbols[s->met[i]].file), base, a)) {
            return PROFD_NO_MEMORY;
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (!path_meet(&list, s->file[i], base, a)) {
            return PROFD_NO_MEMORY;
        }
    }
    if (list.count == 0) {
        return PROFD_NOT_FOUND;
    }
    *out = list.paths[list.count - 1];
    return PROFD_OK;
}
