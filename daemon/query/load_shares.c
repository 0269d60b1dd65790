#include "query/load_shares.h"

#include <stdlib.h>

#include "core/rollup.h"
#include "proto/counts.h"
#include "proto/limits.h"
#include "query/row.h"
#include "query/set.h"

/* Series that map alike are added up in their own numbers of builds, as in load_rolled.c. */
struct sharing {
    const uint32_t *map;
    struct counts first; /* the first sum, with its spread: often the only one */
    struct counts_shares first_spread;
    bool any;
    struct rollup_sum *sums;                  /* of all sums; NULL: there is at most one */
    struct rollup_sum *groups[RANDOM_GROUPS]; /* of the uploads of each group; likewise */
};

struct load_shares {
    struct arena *arena, *scratch; /* of the sums, the caller's; of a row that is decoded */
    struct set maps;
    struct sharing *sums;
    uint32_t capacity;
};

struct load_shares *load_shares_new(struct arena *a)
{
    struct load_shares *l = ARENA_NEW(a, struct load_shares);
    *l = (struct load_shares){.arena = a, .scratch = arena_new_child(a, 0)};
    set_init(&l->maps, a);
    return l;
}

void load_shares_done(struct load_shares *l)
{
    if (l != NULL) {
        arena_free(l->scratch);
    }
}

static enum profd_status decode_sum(struct arena *a, const struct store_row *row, struct counts *r,
                                    struct counts_shares *spread, struct profd_error *e)
{
    enum profd_status status = rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, r, e);
    if (status == PROFD_OK) {
        status = rollup_decode_spread(a, r, row->spread, row->spread_size, spread, e);
    }
    r->tree_count = r->node_count = 0; /* shares are of bins and arcs */
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "a stored sum cannot be read");
}

static enum profd_status add_sum(struct load_shares *l, const struct store_row *row, struct sharing *s,
                                 struct profd_error *e)
{
    struct counts r;
    struct counts_shares spread;
    if (!s->any) {
        s->any = true;
        return decode_sum(l->arena, row, &s->first, &s->first_spread, e);
    }
    enum profd_status status = PROFD_OK;
    if (s->sums == NULL) {
        s->sums = rollup_sum_new(l->arena);
        status = rollup_sum_add(s->sums, &s->first, &s->first_spread, e);
    }
    arena_reset(l->scratch);
    if (status == PROFD_OK) {
        status = decode_sum(l->scratch, row, &r, &spread, e);
    }
    return status == PROFD_OK ? rollup_sum_add(s->sums, &r, &spread, e) : status;
}

/* Sums without spread take an eighth of the memory: an upload is of one group. */
static enum profd_status add_upload(struct load_shares *l, const struct store_row *row, struct sharing *s,
                                    struct profd_error *e)
{
    struct row_counts c;
    struct rollup_sum **sum = &s->groups[row->group % RANDOM_GROUPS];
    *sum = *sum != NULL ? *sum : rollup_sum_new_plain(l->arena);
    enum profd_status status = row_open_counts(row, l->arena, &c, e);
    if (status == PROFD_OK) {
        c.counts.tree_count = c.counts.node_count = 0;
        status = rollup_sum_add_upload(*sum, &c.counts, row->commit, 0, e);
        row_close_counts(&c);
    }
    return status;
}

enum profd_status load_shares_add(struct load_shares *l, const struct store_row *row, const uint32_t *map,
                                  struct profd_error *e)
{
    bool added;
    const uint32_t number = set_add(&l->maps, map, row->build_count * sizeof *map, &added);
    if (added) {
        l->sums = arena_extend(l->arena, l->sums, number, &l->capacity, sizeof *l->sums);
        l->sums[number] = (struct sharing){.map = map};
    }
    struct sharing *s = &l->sums[number];
    if (row->rolled && row->spread == NULL) {
        return PROFD_OK;
    }
    return row->rolled ? add_sum(l, row, s, e) : add_upload(l, row, s, e);
}

/* The rows of a spread that can be the shares as they are: those of the only sum. NULL: there is none. */
static uint64_t *find_rows(const struct load_shares *l, const struct profile *p, bool alone)
{
    const struct sharing *s = l->sums;
    bool uploads = false;
    for (uint32_t g = 0; l->maps.count == 1 && g < RANDOM_GROUPS; g++) {
        uploads |= s->groups[g] != NULL;
    }
    return l->maps.count == 1 && !uploads && s->any && s->sums == NULL && shares_has_arcs(p, &s->first, s->map, alone)
               ? s->first_spread.arcs
               : NULL;
}

enum profd_status load_shares_finish(struct load_shares *l, const struct profile *p, bool alone, struct shares *out,
                                     struct profd_error *e)
{
    struct counts r;
    struct counts_shares spread;
    enum profd_status status = PROFD_OK;
    shares_new(l->arena, p, find_rows(l, p, alone), out);
    for (uint32_t i = 0; status == PROFD_OK && i < l->maps.count; i++) {
        const struct sharing *s = &l->sums[i];
        if (s->any && s->sums == NULL) {
            shares_add(out, &s->first, &s->first_spread, 0, s->map, alone);
        }
        if (s->sums != NULL && (status = rollup_sum_finish(s->sums, &r, &spread, e)) == PROFD_OK) {
            shares_add(out, &r, &spread, 0, s->map, alone);
        }
        for (uint32_t g = 0; status == PROFD_OK && g < RANDOM_GROUPS; g++) {
            if (s->groups[g] != NULL && (status = rollup_sum_finish(s->groups[g], &r, NULL, e)) == PROFD_OK) {
                shares_add(out, &r, NULL, g, s->map, alone);
            }
        }
    }
    return status;
}
