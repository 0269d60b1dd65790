/* The objects of a process become builds. */
#include <stdlib.h>
#include <string.h>

#include "ingest/attach_internal.h"
#include "proto/utf8.h"

struct named {
    struct attach_module module;
    uint32_t number; /* of the module */
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = *(const struct named *const *)a, *y = *(const struct named *const *)b;
    int order = strcmp(x->module.id.text, y->module.id.text);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* Any bytes become text. */
static const char *name_copy(struct arena *a, const struct attach_module *m)
{
    char *name = arena_copy(a, m->name, m->name_size);
    for (size_t i = 0; name && i < m->name_size; i++) {
        if (name[i] == 0) {
            name[i] = '?';
        }
    }
    if (name) {
        utf8_scrub(name);
    }
    return name;
}

/* Every module that has a row and a build-id. */
static enum profd_status modules_read(const struct attach_image *image, struct named *named, uint32_t *count,
                                      uint64_t *nameless, struct profd_error *e)
{
    bool bad;
    for (uint32_t id = 1; id <= image->module_count; id++) {
        struct named *n = &named[*count];
        if (!attach_module_get(image, id, &n->module, &bad)) {
            if (bad) {
                return profd_error_set(e, PROFD_MALFORMED,
                                       "shared counts, module %u: its range, build-id or name is impossible", id);
            }
            continue;
        }
        n->number = id;
        if (n->module.has_id) {
            ++*count;
        } else {
            ++*nameless;
        }
        if (id == 1 && !n->module.has_id) {
            return profd_error_set(e, PROFD_REFUSED, "the program has no build-id: link it with -Wl,--build-id");
        }
    }
    return PROFD_OK;
}

/* first[i]: the module under which the build of module i is listed. */
static bool twins_find(struct named *named, uint32_t count, struct arena *a, uint32_t *first)
{
    struct named **sorted = ARENA_ARRAY(a, count + 1, struct named *);
    if (!sorted) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = &named[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_named);
    for (uint32_t i = 0; i < count; i++) {
        bool twin = i > 0 && strcmp(sorted[i]->module.id.text, sorted[i - 1]->module.id.text) == 0;
        first[sorted[i] - named] = twin ? first[sorted[i - 1] - named] : (uint32_t)(sorted[i] - named);
    }
    return true;
}

static enum profd_status builds_fill(const struct named *named, const uint32_t *first, uint32_t count, struct arena *a,
                                     struct attach_builds *b, struct profd_error *e)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct attach_module *m = &named[i].module;
        if (first[i] != i) {
            b->of_module[named[i].number] = b->of_module[named[first[i]].number];
        } else if (b->count == LIMIT_BUILDS) {
            b->unlisted++;
        } else {
            struct attach_build *build = &b->build[b->count];
            *build = (struct attach_build){.id = m->id, .name = name_copy(a, m), .low = m->low, .high = m->high};
            if (!build->name) {
                return profd_no_memory(e);
            }
            b->of_module[named[i].number] = b->count++;
        }
    }
    return PROFD_OK;
}

enum profd_status attach_builds_list(const struct attach_image *image, struct arena *a, struct attach_builds *out,
                                     struct profd_error *e)
{
    struct attach_builds b = {.module_count = image->module_count};
    size_t n = (size_t)image->module_count + 1;
    uint32_t count = 0;
    struct named *named = ARENA_ARRAY(a, n, struct named);
    uint32_t *first = ARENA_ARRAY(a, n, uint32_t);
    b.of_module = ARENA_ARRAY(a, n, uint32_t);
    b.build = ARENA_ARRAY(a, n < LIMIT_BUILDS ? n : LIMIT_BUILDS, struct attach_build);
    if (!named || !first || !b.of_module || !b.build) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        b.of_module[i] = COUNTS_NOWHERE;
    }
    TRY(modules_read(image, named, &count, &b.nameless, e));
    if (count > 0 && named[0].number == 1) { /* before the program has its row, there is nothing to call the others */
        if (!twins_find(named, count, a, first)) {
            return profd_no_memory(e);
        }
        TRY(builds_fill(named, first, count, a, &b, e));
    }
    *out = b;
    return PROFD_OK;
}
