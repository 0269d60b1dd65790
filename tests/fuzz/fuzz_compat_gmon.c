/* gmon.out as gprof reads it: any bytes, as one file or two, are taken or complained of, and what is taken is
 * consistent. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "compat/compat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct arena *a = arena_new(256u << 20);
    struct compat_gmon g;
    if (a == NULL) {
        abort();
    }
    compat_gmon_init(&g, a, "gprof", data[0] % 2 == 0 ? 8 : 4);
    size_t first = (size - 2) * data[1] / 255;
    const char *complaint = NULL;
    enum profd_status status = compat_gmon_read(&g, "first", data + 2, first, &complaint);
    if (status == PROFD_OK && first < size - 2) {
        status = compat_gmon_read(&g, "second", data + 2 + first, size - 2 - first, &complaint);
    }
    if (status != PROFD_OK && complaint == NULL) {
        abort();
    }
    const struct counts *c = &g.counts;
    for (uint32_t i = 0; i < c->histogram_count && status == PROFD_OK; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (h->first > c->bin_count || h->used > c->bin_count - h->first) {
            abort();
        }
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            if (c->bin_index[k] >= h->bins || c->bin_ticks[k] == 0) {
                abort();
            }
        }
    }
    arena_free(a);
    return 0;
}
