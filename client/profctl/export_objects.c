#include "profctl/export_objects.h"

#include <stdlib.h>
#include <string.h>

#include "profctl/profctl_find.h"

struct export_object *export_objects_take(struct export_objects *o, uint64_t number)
{
    if (number >= EXPORT_OBJECTS_MOST) {
        return NULL;
    }
    if (number >= o->count) {
        struct export_object *list = reallocarray(o->list, number + 1, sizeof *list);
        if (!list) {
            return NULL;
        }
        memset(list + o->count, 0, (number + 1 - o->count) * sizeof *list);
        o->list = list;
        o->count = number + 1;
    }
    return &o->list[number];
}

enum profd_status export_objects_find(struct export_objects *o, uint64_t number, struct code_lines **lines,
                                      struct profd_error *e)
{
    struct export_object *x = number < o->count ? &o->list[number] : NULL;
    *lines = NULL;
    if (!x || !x->build_id) {
        return PROFD_OK;
    }
    const char *candidates[] = {o->given, x->path};
    for (size_t i = 0; !x->sought && i < sizeof candidates / sizeof candidates[0]; i++) {
        if (candidates[i] && build_is_file(candidates[i], x->build_id)) {
            TRY(code_lines_open(candidates[i], x->build_id, &x->lines, e));
            break;
        }
    }
    x->sought = true;
    *lines = x->lines;
    return PROFD_OK;
}

void export_objects_done(struct export_objects *o)
{
    for (size_t i = 0; i < o->count; i++) {
        free(o->list[i].path);
        free(o->list[i].build_id);
        code_lines_close(o->list[i].lines);
    }
    free(o->list);
}
