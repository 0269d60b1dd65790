#include "store/sequence.h"

#include <string.h>

#include "proto/sort.h"

/* Finds the first range that ends at sequence − 1 or later: no other one can contain sequence or be extended by it. */
static uint32_t find_range(const struct sequence_set *set, uint32_t sequence)
{
    uint32_t low;
    SORT_SEARCH(low, 0, set->count, set->ranges[low].high < sequence - 1);
    return low;
}

static void remove_range(struct sequence_set *set, uint32_t i)
{
    set->count--;
    memmove(&set->ranges[i], &set->ranges[i + 1], (set->count - i) * sizeof set->ranges[0]);
}

enum sequence_outcome sequence_add(struct sequence_set *set, uint32_t sequence)
{
    if (sequence <= set->mark) {
        return SEQUENCE_SEEN;
    }
    if (sequence == set->mark + 1) {
        set->mark = sequence;
        if (set->count > 0 && set->ranges[0].low - 1 == sequence) {
            set->mark = set->ranges[0].high;
            remove_range(set, 0);
        }
        return SEQUENCE_NEW;
    }
    uint32_t i = find_range(set, sequence);
    struct sequence_range *r = &set->ranges[i];
    if (i < set->count && r->low <= sequence && sequence <= r->high) {
        return SEQUENCE_SEEN;
    }
    if (i < set->count && r->high == sequence - 1) {
        r->high = sequence;
        if (i + 1 < set->count && r[1].low - 1 == sequence) {
            r->high = r[1].high;
            remove_range(set, i + 1);
        }
        return SEQUENCE_NEW;
    }
    if (i < set->count && r->low - 1 == sequence) {
        r->low = sequence;
        return SEQUENCE_NEW;
    }
    if (set->count == SEQUENCE_RANGES) {
        return SEQUENCE_FULL;
    }
    memmove(r + 1, r, (set->count - i) * sizeof *r);
    *r = (struct sequence_range){.low = sequence, .high = sequence};
    set->count++;
    return SEQUENCE_NEW;
}

bool sequence_holds(const struct sequence_set *set, uint32_t sequence)
{
    if (sequence <= set->mark) {
        return true;
    }
    uint32_t i = find_range(set, sequence);
    return i < set->count && set->ranges[i].low <= sequence && sequence <= set->ranges[i].high;
}

static void put_u32(uint8_t *out, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(v >> (8 * i));
    }
}

static uint32_t get_u32(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

size_t sequence_encode(const struct sequence_set *set, uint8_t out[SEQUENCE_BYTES])
{
    for (uint32_t i = 0; i < set->count; i++) {
        put_u32(out + 8 * (size_t)i, set->ranges[i].low);
        put_u32(out + 8 * (size_t)i + 4, set->ranges[i].high);
    }
    return 8 * (size_t)set->count;
}

bool sequence_decode(struct sequence_set *set, uint32_t mark, const uint8_t *bytes, size_t n)
{
    if (n % 8 != 0 || n > SEQUENCE_BYTES) {
        return false;
    }
    set->mark = mark;
    set->count = (uint32_t)(n / 8);
    uint64_t below = mark; /* the next range must leave a gap above it */
    for (uint32_t i = 0; i < set->count; i++) {
        struct sequence_range r = {get_u32(bytes + 8 * (size_t)i), get_u32(bytes + 8 * (size_t)i + 4)};
        if (r.low <= below + 1 || r.high < r.low) {
            return false;
        }
        set->ranges[i] = r;
        below = r.high;
    }
    return true;
}
