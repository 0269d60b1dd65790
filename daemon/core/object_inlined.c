#include <string.h>

#include "core/object.h"

bool object_has_inlined(const struct object *o, const char *name, size_t n)
{
    uint32_t low = 0, high = o->inlined_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *at = object_name(o, o->inlined[middle]);
        int order = strncmp(at, name, n);
        if (order == 0 && at[n] == '\0') {
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}
