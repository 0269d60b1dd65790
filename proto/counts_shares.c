/* The shares of the groups, beside the numbers of sorted counts. */
#include <stdlib.h>

#include "proto/counts.h"
#include "proto/counts_columns.h"
#include "proto/counts_internal.h"
#include "proto/counts_places.h"
#include "proto/deflate.h"
#include "proto/varint.h"

#define SHARES_MAX ((uint64_t)INT64_MAX)

/* How many of a row's shares are written, for a row with that number. */
static unsigned row_stored(unsigned shares, uint64_t number)
{
    return number == SHARES_MAX || shares == 0 ? shares : shares - 1;
}

/* Masks of n rows: which groups have a share. Returns how many shares are to be written. */
static size_t encode_masks(const uint64_t *all, const uint64_t *numbers, uint32_t n, uint64_t *masks)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = all + (size_t)i * COUNTS_GROUPS;
        unsigned mask = 0, shares = 0;
        for (unsigned g = 0; g < COUNTS_GROUPS; g++) {
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
static uint64_t *encode_shares(const uint64_t *all, const uint64_t *numbers, uint32_t n, const uint64_t *masks,
                               uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = all + (size_t)i * COUNTS_GROUPS;
        for (uint64_t left = masks[i]; left != 0; left &= left - 1) {
            if (numbers[i] == SHARES_MAX || (left & (left - 1)) != 0) {
                *out++ = row[__builtin_ctzll(left)];
            }
        }
    }
    return out;
}

/* The rows of sorted counts, bins first. */
struct rows {
    const uint64_t *numbers;
    uint64_t *shares;
    uint32_t n;
    const char *what;
};
#define KINDS 3

static void rows_find(const struct counts *c, const struct counts_shares *s, struct rows out[KINDS])
{
    out[0] = (struct rows){c->bin_ticks, s->bins, c->bin_count, "bin"};
    out[1] = (struct rows){c->calls, s->arcs, c->arc_count, "arc"};
    out[2] = (struct rows){c->node_ticks, s->nodes, c->node_count, "node"};
}

static size_t rows_count(const struct counts *c)
{
    return (size_t)c->bin_count + c->arc_count + c->node_count;
}

/* Most bytes of the columns. */
static size_t raw_bound(size_t rows, size_t shares)
{
    return KINDS * counts_column_bound(rows) + counts_column_bound(shares);
}

/* Masks and shares have space for all rows and all shares. */
static uint8_t *encode_rows(const struct rows rows[KINDS], const uint64_t *masks, uint64_t *shares, size_t count,
                            uint8_t *p)
{
    uint64_t *next = shares;
    for (const struct rows *x = rows; x < rows + KINDS; masks += x++->n) {
        next = encode_shares(x->shares, x->numbers, x->n, masks, next);
        p = counts_column_put(p, masks, x->n, 0);
    }
    return counts_column_put(p, shares, count, 0);
}

/* Columns of the masks, then of the shares, in a new block of *size bytes. */
static enum profd_status encode_raw(const struct counts *c, const struct counts_shares *shares, uint8_t **out,
                                    size_t *size, struct profd_error *e)
{
    struct rows rows[KINDS];
    size_t n = rows_count(c), count = 0, done = 0;
    uint64_t *masks = calloc(n + 1, sizeof *masks), *numbers = NULL;
    uint8_t *raw = NULL;
    rows_find(c, shares, rows);
    for (const struct rows *x = rows; x < rows + KINDS && masks != NULL; done += x++->n) {
        count += encode_masks(x->shares, x->numbers, x->n, masks + done);
    }
    if (masks != NULL) {
        raw = malloc(raw_bound(n, count));
        numbers = calloc(count + 1, sizeof *numbers);
    }
    if (raw != NULL && numbers != NULL) {
        *size = (size_t)(encode_rows(rows, masks, numbers, count, raw) - raw);
        *out = raw;
    } else {
        free(raw);
        raw = NULL;
    }
    free(masks);
    free(numbers);
    return raw != NULL ? PROFD_OK : profd_no_memory(e);
}

enum profd_status counts_encode_shares(const struct counts *c, const struct counts_shares *shares, uint8_t **out,
                                       size_t *out_size, struct profd_error *e)
{
    uint8_t *raw = NULL;
    size_t n = 0, size = 0;
    TRY(encode_raw(c, shares, &raw, &n, e));
    enum profd_status status =
        n > LIMIT_COUNTS_RAW
            ? profd_error_set(e, PROFD_TOO_LARGE, "shares of %zu bytes, at most %u", n, LIMIT_COUNTS_RAW)
            : PROFD_OK;
    uint8_t *block = malloc(1 + VARINT_MAX + deflate_bound(n)), *p = block;
    if (!status && block == NULL) {
        status = profd_no_memory(e);
    }
    if (!status) {
        *p++ = COUNTS_SHARES_FORMAT;
        p = varint_put(p, n);
        status = deflate_pack(raw, n, false, p, deflate_bound(n), &size, e);
    }
    free(raw);
    if (status) {
        free(block);
        return status;
    }
    *out = block;
    *out_size = (size_t)(p - block) + size;
    return PROFD_OK;
}

/* The column of shares, read chunk by chunk: as an array it would be as large as all shares. */
struct shares_reader {
    struct counts_reader *in;
    size_t left;        /* shares of the chunks that are not read yet */
    unsigned at, count; /* of the chunk */
    bool ends_early;    /* the column ends before its last number */
    uint64_t chunk[COUNTS_CHUNK];
};

/* The next share; 0 where there is none, which no row accepts. */
static uint64_t take_share(struct shares_reader *r)
{
    if (r->at == r->count) {
        r->at = 0;
        r->count = (unsigned)(r->left < COUNTS_CHUNK ? r->left : COUNTS_CHUNK);
        r->left -= r->count;
        if (r->count == 0 || !counts_column_get(&r->in->at, r->in->end, r->chunk, r->count)) {
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
    uint64_t sum = 0;
    unsigned left = row_stored((unsigned)__builtin_popcountll(mask), number);
    for (; mask != 0; mask &= mask - 1) {
        uint64_t share = left > 0 ? take_share(next) : number - sum;
        left -= left > 0;
        if (share == 0 || share > SHARES_MAX) {
            return false;
        }
        row[__builtin_ctzll(mask)] = share;
        counts_add(&sum, share);
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
    return all >> COUNTS_GROUPS == 0;
}

static enum profd_status decode_rows(const struct rows *rows, const uint64_t *masks, struct shares_reader *next,
                                     struct profd_error *e)
{
    uint64_t row[COUNTS_GROUPS]; /* where shares are only checked */
    for (uint32_t i = 0; i < rows->n; i++) {
        if (decode_row(masks[i], rows->numbers[i], next,
                       rows->shares != NULL ? rows->shares + (size_t)i * COUNTS_GROUPS : row)) {
            continue;
        }
        return next->ends_early
                   ? profd_error_set(e, PROFD_MALFORMED, "shares do not end with their last number")
                   : profd_error_set(e, PROFD_MALFORMED, "the groups' shares of %s %u do not add up to its %llu",
                                     rows->what, i, (unsigned long long)rows->numbers[i]);
    }
    return PROFD_OK;
}

/* The masks of all rows, and how many shares they need. masks has space for all rows. */
static enum profd_status decode_masks(struct counts_reader *in, const struct rows rows[KINDS], uint64_t *masks,
                                      size_t *count, struct profd_error *e)
{
    for (const struct rows *x = rows; x < rows + KINDS; masks += x++->n) {
        if (!counts_column_get(&in->at, in->end, masks, x->n)) {
            return profd_error_set(e, PROFD_MALFORMED, "shares end inside their masks");
        }
        if (!count_shares(masks, x->numbers, x->n, count)) {
            return profd_error_set(e, PROFD_MALFORMED, "shares speak of a group that is not one of %u", COUNTS_GROUPS);
        }
    }
    return PROFD_OK;
}

static enum profd_status decode_section(const struct rows rows[KINDS], struct counts_reader in, uint64_t *masks,
                                        struct profd_error *e)
{
    struct shares_reader next = {.in = &in};
    enum profd_status status = decode_masks(&in, rows, masks, &next.left, e);
    for (const struct rows *x = rows; x < rows + KINDS && status == PROFD_OK; masks += x++->n) {
        status = decode_rows(x, masks, &next, e);
    }
    if (status == PROFD_OK && in.at != in.end) {
        status = profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow the shares", (size_t)(in.end - in.at));
    }
    return status;
}

/* Row arrays in one block. */
static enum profd_status take_shares(const struct counts *c, const struct counts_memory *memory,
                                     struct counts_shares *out, struct profd_error *e)
{
    const size_t rows = rows_count(c) * COUNTS_GROUPS;
    uint64_t *block = memory->take(memory->context, (rows + 1) * sizeof *block);
    if (block == NULL) {
        return profd_no_memory(e);
    }
    out->bins = block;
    out->arcs = out->bins + (size_t)c->bin_count * COUNTS_GROUPS;
    out->nodes = out->arcs + (size_t)c->arc_count * COUNTS_GROUPS;
    return PROFD_OK;
}

enum profd_status counts_decode_shares(const struct counts *c, const uint8_t *in, size_t n,
                                       const struct counts_memory *memory, struct counts_shares *out,
                                       struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct counts_shares result = {NULL, NULL, NULL};
    uint64_t size;
    if (n < 1 || *r.at++ != COUNTS_SHARES_FORMAT || !varint_get(&r.at, r.end, &size)) {
        return profd_error_set(e, PROFD_MALFORMED, "shares of %zu bytes in format %u: only %d is known", n,
                               n < 1 ? 0u : in[0], COUNTS_SHARES_FORMAT);
    }
    const size_t packed = (size_t)(r.end - r.at);
    const size_t most = raw_bound(rows_count(c), rows_count(c) * COUNTS_GROUPS);
    if (size > LIMIT_COUNTS_RAW || size > most || size > deflate_content_max(packed)) {
        return profd_error_set(e, PROFD_MALFORMED, "shares of %zu rows: %llu bytes stated in %zu", rows_count(c),
                               (unsigned long long)size, packed);
    }
    if (memory != NULL) {
        TRY(take_shares(c, memory, &result, e));
    }
    uint64_t *masks = calloc(rows_count(c) + 1, sizeof *masks);
    uint8_t *raw = malloc((size_t)size + 1);
    enum profd_status status =
        masks != NULL && raw != NULL ? deflate_unpack(r.at, packed, raw, (size_t)size, e) : profd_no_memory(e);
    if (!status) {
        struct rows rows[KINDS];
        rows_find(c, &result, rows);
        status = decode_section(rows, (struct counts_reader){raw, raw + size}, masks, e);
    }
    free(masks);
    free(raw);
    if (!status && memory != NULL) {
        *out = result;
    }
    return status;
}
