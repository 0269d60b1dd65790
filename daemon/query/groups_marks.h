/* Which groups have hours in which something of a host is missing. */
#ifndef PROFD_QUERY_GROUPS_MARKS_H
#define PROFD_QUERY_GROUPS_MARKS_H

#include "core/arena.h"
#include "query/set.h"
#include "store/store.h"

/* A mark of the hosts of one name, or of all hosts. */
struct groups_mark {
    uint32_t host; /* 1 + the number of its name in the set; 0: of every group */
    uint32_t reasons;
    int64_t hour; /* since the epoch */
};

struct groups_marks {
    struct arena *arena;
    size_t label; /* which of the labels is the host */
    bool by_host; /* one is */
    struct set names;
    struct groups_mark *list; /* ascending by host and hour */
    uint32_t count, capacity;
};

/* Loads the marks that the filter selects, in one pass over them. labels: by which groups are made. Everything lives in
 * the arena. */
enum profd_status groups_marks_load(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    const char *const *labels, size_t label_count, struct arena *a,
                                    struct groups_marks *out, struct profd_error *e);
/* The reasons of a group with these values of the labels, in a window as in store_filter.
 * O(log n + hours of the window that are marked). */
uint32_t groups_marks_find(const struct groups_marks *m, const char *const *values, int64_t since, int64_t until);

#endif
