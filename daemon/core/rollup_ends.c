#include "core/rollup_ends.h"

#include "core/rollup_columns.h"
#include "core/sort.h"
#include "proto/counts.h"
#include "proto/varint.h"

bool rollup_ends_find(const uint32_t *builds, const uint64_t *addresses, uint32_t n, struct arena *a,
                      struct rollup_ends *out)
{
    uint32_t count = 0;
    struct sort_item *items = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    *out =
        (struct rollup_ends){0, ARENA_ARRAY(a, n, uint32_t), ARENA_ARRAY(a, n, uint64_t), ARENA_ARRAY(a, n, uint64_t)};
    if (items == NULL || out->build == NULL || out->address == NULL || out->of == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){addresses[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = builds[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = items[i].value;
        if (count == 0 || addresses[row] != out->address[count - 1] || builds[row] != out->build[count - 1]) {
            out->address[count] = addresses[row];
            out->build[count++] = builds[row];
        }
        out->of[row] = count - 1;
    }
    out->count = count;
    return true;
}

static uint64_t encode_end(uint32_t build)
{
    return build == COUNTS_NOWHERE ? 0 : (uint64_t)build + 1;
}

uint8_t *rollup_ends_put_runs(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint8_t *p, uint32_t *runs)
{
    *runs = 0;
    for (uint32_t i = 0; i < n; ++*runs) {
        uint32_t start = i;
        while (i < n && builds[i] == builds[start]) {
            i++;
        }
        if (p == NULL) {
            continue;
        }
        p = varint_put(p, i - start);
        p = varint_put(p, encode_end(builds[start]));
        p = varint_put(p, addresses[start]);
    }
    return p;
}

uint8_t *rollup_ends_put_gaps(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint64_t *scratch,
                              uint8_t *p)
{
    for (uint32_t i = 0; i < n; i++) {
        scratch[i] = i == 0 || builds[i] != builds[i - 1] ? 0 : addresses[i] - addresses[i - 1];
    }
    return rollup_column_put(p, scratch, n);
}

enum profd_status rollup_decode_short(const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_DAMAGED, "a sum ends inside %s, or a number there is too long", what);
}

enum profd_status rollup_decode_judge_rows(const char *what, uint64_t rows, const struct rollup_reader *r,
                                           struct profd_error *e)
{
    if (rows > (uint64_t)(r->end - r->at)) {
        return profd_error_set(e, PROFD_DAMAGED, "a sum of %llu %s in %zu bytes", (unsigned long long)rows, what,
                               (size_t)(r->end - r->at));
    }
    return PROFD_OK;
}

enum profd_status rollup_ends_get_runs(struct rollup_reader *r, uint64_t runs, uint32_t builds, const char *what,
                                       uint32_t *build, uint64_t *addresses, uint32_t n, struct profd_error *e)
{
    uint32_t i = 0;
    uint64_t least = 0; /* COUNTS_NOWHERE, written as 0, comes last */
    for (uint64_t run = 0; run < runs; run++) {
        uint64_t length, end, address;
        if (!varint_get(&r->at, r->end, &length) || !varint_get(&r->at, r->end, &end) ||
            !varint_get(&r->at, r->end, &address)) {
            return rollup_decode_short("runs of builds", e);
        }
        if (length < 1 || length > n - i) {
            return profd_error_set(e, PROFD_DAMAGED, "a run of %llu rows where %u are left", (unsigned long long)length,
                                   n - i);
        }
        uint64_t value = end == 0 ? COUNTS_NOWHERE : end - 1;
        if ((end != 0 && value >= builds) || value < least) {
            return profd_error_set(e, PROFD_DAMAGED, "%s of build %llu: out of order, or not one of %u", what,
                                   (unsigned long long)value, builds);
        }
        least = value + 1;
        addresses[i] = address;
        for (uint32_t last = i + (uint32_t)length; i < last; i++) {
            build[i] = (uint32_t)value;
        }
    }
    return i == n ? PROFD_OK : profd_error_set(e, PROFD_DAMAGED, "runs of builds hold %u rows of %u", i, n);
}

bool rollup_ends_add_gaps(const uint32_t *build, const uint64_t *firsts, uint64_t *gaps, uint32_t n, bool strict)
{
    bool bad = false;
    uint64_t address = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool begins = i == 0 || build[i] != build[i - 1];
        uint64_t base = begins ? firsts[i] : address;
        address = base + gaps[i];
        bad |= address < base || (begins ? gaps[i] != 0 : strict && gaps[i] == 0);
        gaps[i] = address;
    }
    return !bad;
}
