#include <string.h>

#include "core/object.h"

/* As strncmp, with another character at this place of the name; place ≥ n: with none. */
static int compare_replaced(const char *at, const char *name, size_t n, size_t place, char replacement)
{
    if (place >= n) {
        return strncmp(at, name, n);
    }
    int order = strncmp(at, name, place);
    if (order == 0) {
        order = (unsigned char)at[place] - replacement;
    }
    return order != 0 ? order : strncmp(at + place + 1, name + place + 1, n - place - 1);
}

static bool find_name(const struct object *o, const char *name, size_t n, size_t place)
{
    uint32_t low = 0, high = o->inlined_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *at = object_name(o, o->inlined[middle]);
        int order = compare_replaced(at, name, n, place, '4');
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

/* A constructor or destructor has a symbol for each kind (C1, C2, D0, D1, D2), and debug information has one name for
 * all of them (C4, D4). */
bool object_has_inlined(const struct object *o, const char *name, size_t n)
{
    bool found = find_name(o, name, n, n);
    for (size_t i = 3; !found && i + 1 < n && strncmp(name, "_Z", 2) == 0; i++) {
        const bool kind = (name[i - 1] == 'C' || name[i - 1] == 'D') && name[i] >= '0' && name[i] <= '2';
        found = kind && (name[i + 1] == 'E' || name[i + 1] == 'I') && find_name(o, name, n, i);
    }
    return found;
}
