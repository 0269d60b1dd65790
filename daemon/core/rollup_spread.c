/* The shares of the groups, beside a rollup's numbers. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/rollup_columns.h"
#include "core/rollup_format.h"
#include "core/sum.h"
#include "proto/varint.h"

/* How many of a row's shares are written, for a row with that number. */
static unsigned row_stored(unsigned shares, uint64_t number)
{
    return number == SUM_MAX || shares == 0 ? shares : shares - 1;
}

/* Masks of n rows: which groups have a share. Returns how many shares are to be written. */
static size_t encode_masks(const uint64_t *spread, const uint64_t *numbers, uint32_t n, uint64_t *masks)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = spread + (size_t)i * ROLLUP_GROUPS;
        unsigned mask = 0, shares = 0;
        for (unsigned g = 0; g < ROLLUP_GROUPS; g++) {
            const unsigned some = row[g] != 0;
            mask |= some << g;
            shares += some;
        }
        masks[i] = mask;
        count += row_stored(shares, numbers[i]);
    }
    return count;
}

/* The shares to be written of n rows; all but the last of a row, unless its number has stopped. */
static uint64_t *encode_shares(const uint64_t *spread, const uint64_t *numbers, uint32_t n, const uint64_t *masks,
                               uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = spread + (size_t)i * ROLLUP_GROUPS;
        for (uint64_t left = masks[i]; left != 0; left &= left - 1) {
            if (numbers[i] == SUM_MAX || (left & (left - 1)) != 0) {
                *out++ = row[__builtin_ctzll(left)];
            }
        }
    }
    return out;
}

/* The rows of a rollup, bins first. */
struct rows {
    const uint64_t *numbers;
    uint64_t *shares;
    uint32_t n;
    const char *what;
};
#define KINDS 3

static void rows_find(const struct rollup *r, const struct rollup_spread *s, struct rows out[KINDS])
{
    out[0] = (struct rows){r->bin_ticks, s->bins, r->bin_count, "bin"};
    out[1] = (struct rows){r->calls, s->arcs, r->arc_count, "arc"};
    out[2] = (struct rows){r->node_ticks, s->nodes, r->node_count, "node"};
}

static size_t rows_count(const struct rollup *r)
{
    return (size_t)r->bin_count + r->arc_count + r->node_count;
}

/* Masks and shares have space for all rows and all shares. */
static uint8_t *encode_rows(const struct rows rows[KINDS], const uint64_t *masks, uint64_t *shares, size_t count,
                            uint8_t *p)
{
    uint64_t *next = shares;
    for (const struct rows *x = rows; x < rows + KINDS; masks += x++->n) {
        next = encode_shares(x->shares, x->numbers, x->n, masks, next);
        p = rollup_column_put(p, masks, x->n);
    }
    return rollup_column_put(p, shares, count);
}

enum profd_status rollup_encode_spread(const struct rollup *r, const struct rollup_spread *spread, uint8_t **out,
                                       size_t *out_size, struct profd_error *e)
{
    uint8_t *block = NULL, head[1 + VARINT_MAX], *raw = NULL;
    struct rows rows[KINDS];
    size_t n = rows_count(r), count = 0, size, used = 0, done = 0;
    uint64_t *masks = calloc(n + 1, sizeof *masks), *shares = NULL;
    enum profd_status status = PROFD_OK;
    rows_find(r, spread, rows);
    for (const struct rows *x = rows; x < rows + KINDS && masks != NULL; done += x++->n) {
        count += encode_masks(x->shares, x->numbers, x->n, masks + done);
    }
    if (masks != NULL) {
        raw = malloc(KINDS * rollup_column_bound(n) + rollup_column_bound(count));
        shares = calloc(count + 1, sizeof *shares);
    }
    if (raw == NULL || shares == NULL) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode the spread of %zu numbers", n);
    } else {
        const size_t raw_size = (size_t)(encode_rows(rows, masks, shares, count, raw) - raw);
        head[0] = r->tree_count > 0 ? ROLLUP_FORMAT_STACKS_SPREAD : ROLLUP_FORMAT_SPREAD;
        used = (size_t)(varint_put(head + 1, (uint64_t)raw_size) - head);
        status = rollup_pack(raw, raw_size, used, &block, &size, e);
    }
    free(raw);
    free(masks);
    free(shares);
    if (status != PROFD_OK) {
        return status;
    }
    memcpy(block, head, used);
    *out = block;
    *out_size = used + size;
    return PROFD_OK;
}

struct reader {
    const uint8_t *at, *end;
};

/* The column of shares, read chunk by chunk: as an array it would be as large as the spread. */
struct shares_reader {
    struct reader *in;
    size_t left;        /* shares of the chunks that are not read yet */
    unsigned at, count; /* of the chunk */
    bool ends_early;    /* the column ends before its last number */
    uint64_t chunk[ROLLUP_CHUNK];
};

/* The next share; 0 where there is none, which no row accepts. */
static uint64_t take_share(struct shares_reader *r)
{
    if (r->at == r->count) {
        r->at = 0;
        r->count = (unsigned)(r->left < ROLLUP_CHUNK ? r->left : ROLLUP_CHUNK);
        r->left -= r->count;
        if (r->count == 0 || !rollup_column_get(&r->in->at, r->in->end, r->chunk, r->count)) {
            r->ends_early = true;
            r->count = 0;
            return 0;
        }
    }
    return r->chunk[r->at++];
}

/* A row from its mask and the next shares. False where they cannot add up to the number. */
static bool decode_row(uint64_t mask, uint64_t number, struct shares_reader *next, uint64_t *row)
{
    bool saturated = false;
    uint64_t sum = 0;
    unsigned left = row_stored((unsigned)__builtin_popcountll(mask), number);
    for (; mask != 0; mask &= mask - 1) {
        uint64_t share = left > 0 ? take_share(next) : number - sum;
        left -= left > 0;
        if (share == 0 || share > SUM_MAX) {
            return false;
        }
        row[__builtin_ctzll(mask)] = share;
        sum_add(&sum, share, &saturated);
    }
    return sum == number;
}

/* Shares that rows of these masks need. False: a mask has bits that are no group's. */
static bool count_shares(const uint64_t *masks, const uint64_t *numbers, uint32_t n, size_t *count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        all |= masks[i];
        *count += row_stored((unsigned)__builtin_popcountll(masks[i]), numbers[i]);
    }
    return all >> ROLLUP_GROUPS == 0;
}

static enum profd_status decode_rows(const struct rows *rows, const uint64_t *masks, struct shares_reader *next,
                                     struct profd_error *e)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        if (decode_row(masks[i], rows->numbers[i], next, rows->shares + (size_t)i * ROLLUP_GROUPS)) {
            continue;
        }
        return next->ends_early
                   ? profd_error_set(e, PROFD_DAMAGED, "a spread does not end with its last number")
                   : profd_error_set(e, PROFD_DAMAGED, "the groups' shares of %s %u do not add up to its %llu",
                                     rows->what, i, (unsigned long long)rows->numbers[i]);
    }
    return PROFD_OK;
}

/* The masks of all rows, and how many shares they need. masks has space for all rows. */
static enum profd_status decode_masks(struct reader *in, const struct rows rows[KINDS], uint64_t *masks, size_t *count,
                                      struct profd_error *e)
{
    for (const struct rows *x = rows; x < rows + KINDS; masks += x++->n) {
        if (!rollup_column_get(&in->at, in->end, masks, x->n)) {
            return profd_error_set(e, PROFD_DAMAGED, "a spread ends inside its masks");
        }
        if (!count_shares(masks, x->numbers, x->n, count)) {
            return profd_error_set(e, PROFD_DAMAGED, "a spread speaks of a group that is not one of %u", ROLLUP_GROUPS);
        }
    }
    return PROFD_OK;
}

static enum profd_status decode_section(const struct rows rows[KINDS], struct reader in, uint64_t *masks,
                                        struct profd_error *e)
{
    struct shares_reader next = {.in = &in};
    enum profd_status status = decode_masks(&in, rows, masks, &next.left, e);
    for (const struct rows *x = rows; x < rows + KINDS && status == PROFD_OK; masks += x++->n) {
        status = decode_rows(x, masks, &next, e);
    }
    if (status == PROFD_OK && in.at != in.end) {
        status = profd_error_set(e, PROFD_DAMAGED, "%zu bytes follow the shares of a spread", (size_t)(in.end - in.at));
    }
    return status;
}

enum profd_status rollup_decode_spread(struct arena *a, const struct rollup *r, const uint8_t *in, size_t n,
                                       struct rollup_spread *out, struct profd_error *e)
{
    struct reader reader = {in, n == 0 ? in : in + n};
    uint8_t *raw;
    uint64_t size;
    const int format = r->tree_count > 0 ? ROLLUP_FORMAT_STACKS_SPREAD : ROLLUP_FORMAT_SPREAD;
    if (n < 1 || *reader.at++ != format || !varint_get(&reader.at, reader.end, &size)) {
        return profd_error_set(e, PROFD_DAMAGED, "a spread of %zu bytes in format %u: that of this sum has format %d",
                               n, n < 1 ? 0u : in[0], format);
    }
    enum profd_status status = rollup_unpack(reader.at, (size_t)(reader.end - reader.at), size, &raw, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t *masks = calloc(rows_count(r) + 1, sizeof *masks);
    struct rollup_spread result = {ARENA_ARRAY(a, (size_t)r->bin_count * ROLLUP_GROUPS, uint64_t),
                                   ARENA_ARRAY(a, (size_t)r->arc_count * ROLLUP_GROUPS, uint64_t),
                                   ARENA_ARRAY(a, (size_t)r->node_count * ROLLUP_GROUPS, uint64_t)};
    if (masks == NULL || result.bins == NULL || result.arcs == NULL || result.nodes == NULL) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the spread of %zu numbers", rows_count(r));
    } else {
        struct rows rows[KINDS];
        rows_find(r, &result, rows);
        status = decode_section(rows, (struct reader){raw, raw + size}, masks, e);
    }
    free(masks);
    free(raw);
    if (status == PROFD_OK) {
        *out = result;
    }
    return status;
}
