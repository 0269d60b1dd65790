#include "client/import_binary_names.h"

#include <string.h>

#include "core/sort.h"

static int names_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct binary_name *list = context;
    return strcmp(list[a].text, list[b].text);
}

enum profd_status binary_names_make(struct arena *a, const struct object *o, struct binary_names *out,
                                    struct profd_error *e)
{
    size_t most = 2 * (size_t)o->symbol_count + 1;
    struct binary_name *list = ARENA_ARRAY(a, most, struct binary_name);
    uint32_t *order = ARENA_ARRAY(a, most * 2, uint32_t), n = 0;
    if (!list || !order) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the names of %u symbols", o->symbol_count);
    }
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (!symtab_is_function(o, s)) {
            continue;
        }
        list[n++] = (struct binary_name){object_name(o, s->name), i};
        if (s->demangled != s->name) {
            list[n++] = (struct binary_name){object_name(o, s->demangled), i};
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    sort_merge(order, order + most, n, names_compare, list);
    *out = (struct binary_names){o, list, order, n};
    return PROFD_OK;
}

/* How many bytes two paths have in common at their ends, where at least the file's name is; 0 if they are of different
 * files. */
static size_t same_source(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), common = 0;
    const char *base = strrchr(a, '/'), *other = strrchr(b, '/');
    if (strcmp(base ? base + 1 : a, other ? other + 1 : b) != 0) {
        return 0;
    }
    while (common < n && common < m && a[n - common - 1] == b[m - common - 1]) {
        common++;
    }
    return common;
}

/* The first place in the order whose name is not below n bytes of name. */
static uint32_t names_begin(const struct binary_names *names, const char *name, size_t n)
{
    uint32_t low = 0, high = names->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strncmp(names->list[names->order[middle]].text, name, n) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Takes one more symbol into the choice of namesakes. */
static void choose(struct import_function *best, bool *found, const struct object_symbol *s)
{
    if (*found && s->address != best->address) {
        best->ambiguous = true;
    }
    if (!*found || s->address < best->address || (s->address == best->address && s->size > best->size)) {
        best->address = s->address;
        best->size = s->size > 0 ? s->size : 1;
    }
    *found = true;
}

bool binary_names_find(const struct binary_names *names, const char *name, size_t n, const char *file,
                       struct import_function *out)
{
    struct import_function all = {.address = 0}, of_file = {.address = 0};
    bool found = false, found_file = false;
    size_t nearest = 0;
    for (uint32_t i = names_begin(names, name, n); i < names->count; i++) {
        const struct binary_name *known = &names->list[names->order[i]];
        if (strncmp(known->text, name, n) != 0 || known->text[n] != '\0') {
            break;
        }
        const struct object_symbol *s = &names->object->symbols[known->symbol];
        choose(&all, &found, s);
        size_t common = file && s->file != 0 ? same_source(object_name(names->object, s->file), file) : 0;
        if (common > nearest) { /* what was found until now is of another folder */
            nearest = common;
            of_file = (struct import_function){.address = 0};
            found_file = false;
        }
        if (common > 0 && common == nearest) {
            choose(&of_file, &found_file, s);
        }
    }
    if (found) {
        *out = all.ambiguous && found_file ? of_file : all;
    }
    return found;
}
