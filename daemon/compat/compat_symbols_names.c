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
        if (options->raw_names || options->traditional)
            s->name[i] = s->raw[i];
        if (!options->file_names || s->file[i][0] == '\0')
            continue;
        const char *file = options->full_paths ? s->file[i] : compat_symbols_file(s->file[i]);
        s->name[i] = arena_format(a, "%s (%s:%" PRIu32 ")", s->name[i], file, s->line[i]);
        if (s->name[i] == NULL)
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the names of %u symbols", s->count);
    }
    return PROFD_OK;
}

/* Is the path among the first n? */
static bool path_known(const char *const *paths, uint32_t n, const char *path)
{
    for (uint32_t i = n; i-- > 0;)
        if (paths[i] == path || strcmp(paths[i], path) == 0)
            return true;
    return false;
}

enum profd_status compat_symbols_source(const struct compat_symbols *s, const char *base, struct arena *a, const char **out)
{
    const char **paths = NULL;
    uint32_t count = 0, room = 0;
    for (uint32_t i = 0; i < s->met_count; i++) {
        const char *path = object_name(s->object, s->object->symbols[s->met[i]].file);
        if (path[0] == '\0' || strcmp(compat_symbols_file(path), base) != 0 || path_known(paths, count, path))
            continue;
        if (count == room) {
            const char **more = ARENA_ARRAY(a, (size_t)room * 2 + 4, const char *);
            if (more == NULL)
                return PROFD_NO_MEMORY;
            if (count > 0)
                memcpy(more, paths, count * sizeof *more);
            paths = more;
            room = room * 2 + 4;
        }
        paths[count++] = path;
    }
    if (count == 0)
        return PROFD_NOT_FOUND;
    *out = paths[count - 1];
    return PROFD_OK;
}
