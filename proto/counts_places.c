#include "proto/counts_places.h"

#include "proto/counts.h"
#include "proto/counts_columns.h"
#include "proto/varint.h"

/* True if the rows ascend already, as those of sums and of many uploads do. */
static bool places_ascend(const uint32_t *builds, const uint64_t *addresses, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (builds[i] < builds[i - 1] || (builds[i] == builds[i - 1] && addresses[i] < addresses[i - 1])) {
            return false;
        }
    }
    return true;
}

void counts_places_find(const uint32_t *builds, const uint64_t *addresses, uint32_t n, struct sort_item *items,
                        struct counts_places *out)
{
    const bool ascend = places_ascend(builds, addresses, n);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n && !ascend; i++) {
        items[i] = (struct sort_item){addresses[i], i};
    }
    if (!ascend) {
        sort_radix(items, items + n, n);
        for (uint32_t i = 0; i < n; i++) {
            items[i].key = builds[items[i].value];
        }
        sort_radix(items, items + n, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = ascend ? i : items[i].value;
        if (count == 0 || addresses[row] != out->address[count - 1] || builds[row] != out->build[count - 1]) {
            out->address[count] = addresses[row];
            out->build[count++] = builds[row];
        }
        out->of[row] = count - 1;
    }
    out->count = count;
}

uint8_t *counts_places_put(const struct counts_places *p, uint64_t *scratch, uint8_t *out)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const bool begins = i == 0 || p->build[i] != p->build[i - 1];
        scratch[i] = begins ? 0 : p->address[i] - p->address[i - 1];
        runs += begins;
    }
    out = varint_put(out, p->count);
    out = varint_put(out, runs);
    for (uint32_t i = 0; i < p->count;) {
        const uint32_t start = i;
        while (i < p->count && p->build[i] == p->build[start]) {
            i++;
        }
        out = varint_put(out, i - start);
        out = varint_put(out, p->build[start] == COUNTS_NOWHERE ? 0 : (uint64_t)p->build[start] + 1);
        out = varint_put(out, p->address[start]);
    }
    return counts_column_put(out, scratch, p->count, 0);
}

enum profd_status counts_decode_short(const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "counts end inside %s, or a number there is too long", what);
}

/* The first address of each run is left at the run's first place in addresses. */
static enum profd_status places_get_runs(struct counts_reader *r, uint64_t runs, uint32_t builds, const char *what,
                                         struct counts_places *out, uint64_t *firsts, struct profd_error *e)
{
    uint32_t i = 0;
    uint64_t least = 0; /* COUNTS_NOWHERE, written as 0, comes last */
    for (uint64_t run = 0; run < runs; run++) {
        uint64_t length, build, first;
        if (!varint_get(&r->at, r->end, &length) || !varint_get(&r->at, r->end, &build) ||
            !varint_get(&r->at, r->end, &first)) {
            return counts_decode_short("runs of builds", e);
        }
        if (length < 1 || length > out->count - i) {
            return profd_error_set(e, PROFD_MALFORMED, "a run of %llu places where %u are left",
                                   (unsigned long long)length, out->count - i);
        }
        const uint64_t value = build == 0 ? COUNTS_NOWHERE : build - 1;
        if (build > builds) {
            return profd_error_set(e, PROFD_MALFORMED, "%s of build %llu: the upload has %u", what,
                                   (unsigned long long)value, builds);
        }
        if (value < least) {
            return profd_error_set(e, PROFD_MALFORMED, "%s of build %llu comes after one of build %llu", what,
                                   (unsigned long long)value, (unsigned long long)(least - 1));
        }
        least = value + 1;
        firsts[i] = first;
        for (uint32_t last = i + (uint32_t)length; i < last; i++) {
            out->build[i] = (uint32_t)value;
        }
    }
    return i == out->count ? PROFD_OK
                           : profd_error_set(e, PROFD_MALFORMED, "runs of builds hold %u places of %u", i, out->count);
}

enum profd_status counts_places_get(struct counts_reader *r, uint32_t builds, const char *what, uint32_t most,
                                    uint64_t *scratch, struct counts_places *out, struct profd_error *e)
{
    uint64_t count, runs, address = 0;
    bool bad = false;
    if (!varint_get(&r->at, r->end, &count) || !varint_get(&r->at, r->end, &runs)) {
        return counts_decode_short("the sizes of places", e);
    }
    if (count > most) {
        return profd_error_set(e, PROFD_MALFORMED, "%llu places of %u rows", (unsigned long long)count, most);
    }
    out->count = (uint32_t)count;
    TRY(places_get_runs(r, runs, builds, what, out, scratch, e));
    if (!counts_column_get(&r->at, r->end, out->address, out->count)) {
        return counts_decode_short("the addresses of places", e);
    }
    for (uint32_t i = 0; i < out->count; i++) { /* gaps become addresses in place */
        const bool begins = i == 0 || out->build[i] != out->build[i - 1];
        const uint64_t base = begins ? scratch[i] : address, gap = out->address[i];
        address = base + gap;
        bad |= address < base || begins != (gap == 0);
        out->address[i] = address;
    }
    return bad ? profd_error_set(e, PROFD_MALFORMED, "the addresses of %s do not ascend", what) : PROFD_OK;
}
