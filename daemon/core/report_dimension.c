#include "core/report_dimension.h"

#include <string.h>

#include "core/buffer.h"
#include "proto/sort.h"
#include "core/sum.h"
#include "proto/collector.h"

bool report_dimension_is_time(const char *dimension)
{
    return strcmp(dimension, REPORT_DIMENSION_USUAL) == 0 || strcmp(dimension, "wall") == 0;
}

static int dimension_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct profile *p = context;
    return strcmp(p->histograms[x].dimension, p->histograms[y].dimension);
}

/* Every dimension of the samples with its ticks, in byte order. list has capacity for all histograms, order for twice
 * as many. */
static uint32_t dimension_list(const struct profile *p, uint32_t *order, struct report_dimension *list)
{
    uint32_t used = 0, n = 0;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        if (!collector_is_dimension(p->histograms[i].dimension)) {
            order[used++] = i;
        }
    }
    sort_merge(order, order + used, used, dimension_compare, p);
    for (uint32_t i = 0; i < used; i++) {
        const struct profile_histogram *h = &p->histograms[order[i]];
        bool saturated = false; /* the profile says it */
        if (n == 0 || strcmp(list[n - 1].name, h->dimension) != 0) {
            list[n++] = (struct report_dimension){h->dimension, 0};
        }
        for (uint32_t k = 0; k < h->used; k++) {
            sum_add(&list[n - 1].ticks, h->ticks[k], &saturated);
        }
    }
    return n;
}

enum profd_status report_dimension_pick(const struct report_dimension *list, uint32_t n, const char *asked,
                                        bool may_lack, uint32_t *at, struct profd_error *e)
{
    uint32_t found = 0;
    while (found < n && strcmp(list[found].name, asked != NULL ? asked : REPORT_DIMENSION_USUAL) != 0) {
        found++;
    }
    if (found == n && asked != NULL && n > 0 && !may_lack) {
        struct buffer b;
        buffer_init(&b, 200);
        for (uint32_t i = 0; i < n && !b.failed; i++) {
            buffer_add_format(&b, "%s%s", i > 0 ? ", " : "", list[i].name);
        }
        enum profd_status status =
            profd_error_set(e, PROFD_BAD_QUERY, "dimension=%s: the samples have %.*s%s", asked, (int)b.size,
                            b.size > 0 ? b.data : "", b.failed ? " and others" : "");
        buffer_done(&b);
        return status;
    }
    *at = found == n && asked == NULL ? 0 : found;
    return PROFD_OK;
}

enum profd_status report_dimension_choose(struct arena *a, const struct profile *p, const char *asked, bool may_lack,
                                          const char **chosen, struct report_dimension **others, uint32_t *count,
                                          struct profd_error *e)
{
    struct report_dimension *list = ARENA_ARRAY(a, p->histogram_count, struct report_dimension);
    uint32_t *order = ARENA_ARRAY(a, (size_t)p->histogram_count * 2, uint32_t);
    uint32_t n = dimension_list(p, order, list), at;
    TRY(report_dimension_pick(list, n, asked, may_lack, &at, e));
    *chosen = at < n ? list[at].name : asked != NULL ? asked : REPORT_DIMENSION_USUAL;
    *count = at < n ? n - 1 : n;
    for (uint32_t i = at; i < *count; i++) {
        list[i] = list[i + 1];
    }
    *others = list;
    return PROFD_OK;
}
