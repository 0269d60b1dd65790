#include "store/same_names.h"

#include <stdlib.h>

#include "core/object.h"
#include "core/object_compare.h"

#define OBJECTS_MEMORY ((size_t)2 << 30)

/* Is x to name functions, and not y, which has the same names? */
static bool is_better(const struct same_names *x, const struct same_names *y)
{
    return x->hosts != y->hosts       ? x->hosts > y->hosts
           : x->hosts >= STORE_QUORUM ? x->size > y->size
                                      : x->size < y->size;
}

enum profd_status same_names_find(struct same_names *list, size_t n, struct profd_error *e)
{
    struct object *objects[SAME_NAMES_MOST];
    struct arena *a = arena_new(OBJECTS_MEMORY);
    if (a == NULL) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        objects[i] = NULL;
        list[i].leader = i;
        if (object_decode(a, list[i].bytes, list[i].size, &objects[i], NULL) != PROFD_OK) {
            objects[i] = NULL;
        }
        for (size_t k = 0; objects[i] != NULL && k < i; k++) {
            if (objects[k] != NULL && object_compare_names(objects[k], objects[i])) {
                list[i].leader = list[k].leader;
                break;
            }
        }
        const size_t before = list[i].leader;
        for (size_t k = 0; before != i && is_better(&list[i], &list[before]) && k <= i; k++) {
            list[k].leader = list[k].leader == before ? i : list[k].leader;
        }
    }
    arena_free(a);
    return PROFD_OK;
}

static void count(const struct same_names *list, size_t n, size_t leader, uint64_t *hosts, uint64_t *asked)
{
    *hosts = *asked = 0;
    for (size_t i = 0; i < n; i++) {
        *hosts += list[i].leader == leader ? list[i].hosts : 0;
        *asked += list[i].leader == leader ? list[i].asked : 0;
    }
}

static bool is_quorum(uint64_t hosts, uint64_t attesting)
{
    return hosts >= STORE_QUORUM && 2 * hosts > attesting;
}

bool same_names_any_quorum(const struct same_names *list, size_t n, uint64_t attesting)
{
    uint64_t hosts, asked;
    bool any = false;
    for (size_t i = 0; i < n && !any; i++) {
        count(list, n, list[i].leader, &hosts, &asked);
        any = is_quorum(hosts, attesting);
    }
    return any;
}

bool same_names_judge(const struct same_names *list, size_t n, size_t leader, uint64_t attesting, uint64_t asked,
                      struct store_naming *naming)
{
    uint64_t hosts, mine;
    count(list, n, leader, &hosts, &mine);
    naming->hosts = hosts;
    naming->by = is_quorum(hosts, attesting) ? STORE_NAMED_BY_QUORUM : STORE_NAMED_BY_HOSTS;
    return naming->by == STORE_NAMED_BY_QUORUM || (mine == asked && !same_names_any_quorum(list, n, attesting));
}

void same_names_done(struct same_names *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].bytes);
    }
}
