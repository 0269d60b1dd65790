#include "store/folded.h"

#include "proto/sum.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/varint.h"

enum profd_status folded_decode_hosts(struct arena *a, const uint8_t *in, size_t n, const int64_t **hosts,
                                      size_t *count, struct profd_error *e)
{
    const uint8_t *end = in + n;
    size_t k = 0;
    uint64_t id = 0, step;
    int64_t *ids = ARENA_ARRAY(a, n + 1, int64_t); /* each takes a byte at least */
    if (!ids) {
        return profd_no_memory(e);
    }
    while (in < end) {
        if (!varint_get(&in, end, &step) || step == 0 || step > SUM_MAX - id) {
            return profd_error_set(e, PROFD_DAMAGED, "a sum's list of hosts breaks its rules at number %zu", k);
        }
        id += step;
        ids[k++] = (int64_t)id;
    }
    *hosts = ids;
    *count = k;
    return PROFD_OK;
}

uint8_t *folded_encode_hosts(struct arena *a, const int64_t *hosts, size_t count, size_t *n)
{
    uint8_t *out = ARENA_ARRAY(a, count * VARINT_MAX + 1, uint8_t), *p = out;
    int64_t before = 0;
    for (size_t i = 0; out && i < count; i++) {
        p = varint_put(p, (uint64_t)(hosts[i] - before));
        before = hosts[i];
    }
    *n = (size_t)(p - out);
    return out;
}

bool folded_merge_hosts(struct arena *a, const int64_t *x, size_t nx, const int64_t *y, size_t ny, const int64_t **out,
                        size_t *count)
{
    int64_t *merged = ARENA_ARRAY(a, nx + ny + 1, int64_t);
    size_t i = 0, k = 0, n = 0;
    if (!merged) {
        return false;
    }
    while (i < nx || k < ny) {
        if (k == ny || (i < nx && x[i] < y[k])) {
            merged[n++] = x[i++];
        } else {
            i += i < nx && x[i] == y[k];
            merged[n++] = y[k++];
        }
    }
    *out = merged;
    *count = n;
    return true;
}

bool folded_is_cut(const struct counts *c)
{
    return (uint64_t)c->arc_count + c->bin_count >= LIMIT_SUM_ROWS || c->histogram_count >= LIMIT_HISTOGRAMS;
}

enum profd_status folding_begin(struct folding *f, struct arena *a, struct profd_error *e)
{
    *f = (struct folding){.arena = a, .sum = rollup_sum_new(a)};
    f->out = (struct folded){.number = INT64_MAX, .first = INT64_MAX, .last = INT64_MIN};
    if (!f->sum) {
        return profd_no_memory(e);
    }
    rollup_sum_limit(f->sum);
    return PROFD_OK;
}

enum profd_status folding_add(struct folding *f, const struct folded *row, struct profd_error *e)
{
    struct folded *out = &f->out;
    bool saturated = false;
    sum_add(&out->uploads, row->uploads, &saturated);
    sum_add(&out->processes, row->processes, &saturated);
    random_groups_add(&out->groups, &row->groups);
    out->number = row->number < out->number ? row->number : out->number;
    out->first = row->first < out->first ? row->first : out->first;
    out->last = row->last > out->last ? row->last : out->last;
    out->inexact |= row->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    if (!folded_merge_hosts(f->arena, out->hosts, out->host_count, row->hosts, row->host_count, &out->hosts,
                            &out->host_count)) {
        return profd_no_memory(e);
    }
    return rollup_sum_add(f->sum, &row->counts, &row->spread, e);
}

enum profd_status folding_finish(struct folding *f, struct profd_error *e)
{
    const struct counts *c = &f->out.counts;
    TRY(rollup_sum_finish(f->sum, &f->out.counts, &f->out.spread, e));
    const uint32_t n = c->arc_count;
    const bool rest = n > 0 && c->to_build[n - 1] == COUNTS_NOWHERE && c->from[n - 1] == ROLLUP_REST;
    f->out.inexact |= (c->saturated ? (uint32_t)INEXACT_SATURATED : 0) | (rest ? (uint32_t)INEXACT_CALLS_LOST : 0) |
                      (c->histogram_count >= LIMIT_HISTOGRAMS ? (uint32_t)INEXACT_TICKS_LOST : 0);
    return PROFD_OK;
}
