#include "compat/compat_names.h"

#include <stddef.h>
#include <string.h>

#include "proto/sort.h"

#define SMALL 24u /* up to this number, names are sorted by insertion */

/* The names at [begin, end) of the order are equal in their first depth bytes, and none ends there. */
struct stretch {
    uint32_t begin, end;
    size_t depth;
};

/* The next eight bytes as a big-endian number; after the end of the name, zeros. */
static uint64_t key_of(const char *name)
{
    uint64_t key = 0;
    unsigned i = 0;
    for (; i < 8 && name[i] != '\0'; i++) {
        key = key << 8 | (unsigned char)name[i];
    }
    return i == 0 ? 0 : key << 8 * (8 - i);
}

static void insert(const char *const *names, struct sort_item *items, size_t n, size_t depth)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_item item = items[i];
        const char *name = names[item.value] + depth;
        size_t j = i;
        for (; j > 0 && strcmp(names[items[j - 1].value] + depth, name) > 0; j--) {
            items[j] = items[j - 1];
        }
        items[j] = item;
    }
}

/* Sorts by the next eight bytes, and pushes the ranges that are equal in them; returns the new height of the stack. */
static uint32_t stretch_sort(const char *const *names, struct sort_item *items, struct sort_item *scratch,
                             struct stretch s, struct stretch *stack, uint32_t height)
{
    for (uint32_t i = s.begin; i < s.end; i++) {
        items[i].key = key_of(names[items[i].value] + s.depth);
    }
    sort_radix(items + s.begin, scratch, s.end - s.begin);
    for (uint32_t begin = s.begin, i = s.begin + 1; i <= s.end; i++) {
        if (i < s.end && items[i].key == items[begin].key) {
            continue;
        }
        /* If the key contains a zero, these names end here and are equal. */
        if (i - begin > 1 && (items[begin].key & 255) != 0) {
            if (i - begin <= SMALL) {
                insert(names, items + begin, i - begin, s.depth + 8);
            } else {
                stack[height++] = (struct stretch){begin, i, s.depth + 8};
            }
        }
        begin = i;
    }
    return height;
}

enum profd_status compat_names_order(const char *const *names, uint32_t n, struct arena *a, uint32_t **out)
{
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t);
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    struct stretch *stack =
        ARENA_ARRAY(a, (size_t)n / SMALL + 2, struct stretch); /* ranges on the stack do not overlap */
    if (order == NULL || items == NULL || scratch == NULL || stack == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i].value = i;
    }
    uint32_t height = 0;
    stack[height++] = (struct stretch){0, n, 0};
    while (height > 0) {
        struct stretch s = stack[--height];
        height = stretch_sort(names, items, scratch, s, stack, height);
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = items[i].value;
    }
    *out = order;
    return PROFD_OK;
}
