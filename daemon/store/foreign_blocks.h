/* Blocks that other centres sealed, as the database knows them: stubs of their sums, under series of their own that are
 * in no total and count for no user. Included by store/store.h only.
 *
 * A block is either visible to readers as a whole or not at all. Retention does not remove it: it stays until its
 * centre drops it. */
#ifndef PROFD_STORE_FOREIGN_BLOCKS_H
#define PROFD_STORE_FOREIGN_BLOCKS_H

#include "store/blocks.h"

#define STORE_CENTRE_NAME_MOST 64 /* bytes of the name of a centre */

/* A block of another centre. Of its block, row, state and sums are the store's. */
struct store_mirror {
    struct store_block block;
    const char *name; /* of its centre; borrowed */
};
/* Writing handle. These are all blocks that other centres have now: lists those that are not here, and hides one that
 * is here and not among them. *more: there are others to hide. Of a block that was arriving nothing will be visible: it
 * is listed again. */
enum profd_status store_mirror_list(struct store *s, const struct store_mirror *list, size_t n, bool *more,
                                    struct profd_error *e);
/* Writing handle. A listed block arrives. CONFLICT: it is not listed. */
enum profd_status store_mirror_begin(struct store *s, uint64_t row, struct profd_error *e);
/* Writing handle. Adds sums to the arriving block. Hours of a series come before its day. counts of a day are what
 * store_keep_arcs made, and hours have none; bytes are those of the stub; host_count is the number of hosts that the
 * block has totals of beside it. PROTOCOL: a sum breaks the rules; CONFLICT:
 * the block is not arriving any more. */
enum profd_status store_mirror_put(struct store *s, uint64_t row, const struct store_block_sum *sums, size_t n,
                                   struct profd_error *e);
/* Writing handle. All of the block is here, `sums` of them: makes it visible, instead of an earlier attempt of it.
 * Answers about tenants become new. CONFLICT: some of it is missing; PROTOCOL: an hour is in no day. */
enum profd_status store_mirror_show(struct store *s, uint64_t row, uint64_t sums, struct profd_error *e);
/* Writing handle. As store_mirror_show, of a block that this centre had sealed before it was restored from a backup.
 * What the database has of that day goes, with its own blocks of it: the centre's blocks of that day have all of it,
 * and all of them are adopted. keys: those of the block (block_keys.h); an upload of that day with one of them is
 * acknowledged and not counted. O(the day). PROTOCOL: the bytes are no keys. */
enum profd_status store_mirror_adopt(struct store *s, uint64_t row, uint64_t sums, const uint8_t *keys, size_t n,
                                     struct profd_error *e);
/* Writing handle. All that this centre had sealed is here; `own` are its blocks in the tier: numbers and attempts go on
 * behind theirs, uploads of hosts are accepted, and days are sealed. */
enum profd_status store_mirror_end(struct store *s, const struct store_block *own, size_t n, struct profd_error *e);
/* Writing handle. Hides what retention removes of adopted blocks, and removes rows of hidden ones, about 20 ms a call.
 */
enum profd_status store_mirror_clean(struct store *s, struct store_progress *progress, struct profd_error *e);
/* Any handle. Calls each with every block that is listed, arrives, is visible or leaves, by ascending day and number.
 * each returns false to stop. */
enum profd_status store_each_mirror(struct store *s, bool (*each)(void *context, const struct store_mirror *m),
                                    void *context, struct profd_error *e);

/* Another centre. */
struct store_tier_centre {
    uint8_t centre[STORE_CENTRE_SIZE];
    char name[STORE_CENTRE_NAME_MOST + 12]; /* " (", digits of the centre and ")" follow if others have it, too */
    int64_t sealed_to;                      /* ns: everything that it sealed of days before then is here */
    uint64_t days, sums, bytes;             /* that are here */
    uint64_t waiting;                       /* blocks that are not here yet */
};
/* Any handle. Calls each with all other centres, by ascending name. */
enum profd_status store_each_centre(struct store *s, void (*each)(void *context, const struct store_tier_centre *c),
                                    void *context, struct profd_error *e);

/* An hour of a host in which counts may be missing, as stored in the tier. */
struct store_tier_mark {
    uint8_t centre[STORE_CENTRE_SIZE]; /* that the host sends to */
    int64_t hour;                      /* since the epoch */
    const char *tenant, *host;         /* names; "" and "": every host of the centre */
    uint32_t reasons;                  /* bits of enum message_inexact */
};
/* Replaces the stored marks by all marks of the tier, in one transaction of a writing handle. Each centre, hour and
 * host must occur once. store_get_marks considers the marks of a centre for the days from its first to its last visible
 * block. If a mark has changed, cached answers about tenants become invalid. */
enum profd_status store_set_tier_marks(struct store *s, const struct store_tier_mark *list, size_t n,
                                       struct profd_error *e);
/* Calls each with the marks of this centre's hosts that lie before an hour, on the first day of its blocks or later,
 * and that the tier did not have at the latest store_set_tier_marks. Texts live until the callback returns. Any handle.
 */
enum profd_status store_each_untold_mark(struct store *s, int64_t before,
                                         void (*each)(void *context, const struct store_tier_mark *m), void *context,
                                         struct profd_error *e);

/* Encodes the arcs alone of a day's counts, which are of that many builds; the caller frees *out. Any thread. */
enum profd_status store_keep_arcs(const uint8_t *counts, size_t n, size_t builds, uint8_t **out, size_t *size,
                                  struct profd_error *e);

#endif
