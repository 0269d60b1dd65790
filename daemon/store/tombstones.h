/* Deletions that every centre of a tier applies: part of the contract of store.h, which includes this.
 *
 * Who deletes a program writes its tombstones to the tier first: for each tenant that has data of it, one for each
 * centre, with the last block that it covers. Then every centre, also this one, gives them to store_bury. A tombstone
 * is in no order with uploads: each centre deletes what it has when it hears of the deletion, and counts what it
 * accepts later. Blocks that are mirrored or adopted afterwards lack the sums for which store_is_buried is true; so a
 * centre gives tombstones to store_bury before the blocks that it found at the same time, or before. */
#ifndef PROFD_STORE_TOMBSTONES_H
#define PROFD_STORE_TOMBSTONES_H

#include "store/segments.h"

struct store;

/* Identified by all members but beyond. */
struct store_tombstone {
    const char *tenant; /* its name; of a user of the centre's machine "uid N" */
    const char *build;  /* build-id of a program */
    uint8_t centre[STORE_CENTRE_SIZE];
    uint64_t block;  /* of the centre: the last that is covered */
    int64_t deleted; /* ns: by the clock of who deleted it. Uploads of hosts that ended before are not counted */
    /* Set by store_bury, also if the tombstone was applied before: a later block of this database that may contain some
     * of it, because the block was sealed before this centre knew of the deletion. Other centres need another
     * tombstone, its cover, which has this block and the time that store_cover_deleted gives. Here the cover has been
     * applied. 0: there is none. */
    uint64_t beyond;
};

static inline int64_t store_cover_deleted(const struct store_tombstone *t)
{
    return t->deleted + 1;
}

/* Writing handle, one transaction. Deletes, for each tombstone that this database has not had yet, all data of the
 * program and tenant, as store_delete_build does, unless a later deletion that covers the same was applied before. "uid
 * N" names a user here only if the centre is this one. *uploads: how many the tombstones deleted, now or when they were
 * applied. A program or tenant that is not known here is no error. The cover of a tombstone deletes nothing. It hides
 * the mirrored blocks that it adds, which are then mirrored again without these sums. */
enum profd_status store_bury(struct store *s, struct store_tombstone *list, size_t n, uint64_t *uploads,
                             struct profd_error *e);
/* Any handle. Sums of this tenant and program in a block of a centre were deleted. Of t, deleted is ignored. */
enum profd_status store_is_buried(struct store *s, const struct store_tombstone *t, bool *buried,
                                  struct profd_error *e);
/* Any handle. Calls each with the name of every tenant that has data of this program, as a tombstone has it. */
enum profd_status store_each_owner(struct store *s, const char *build_id,
                                   enum profd_status (*each)(void *context, const char *tenant, struct profd_error *e),
                                   void *context, struct profd_error *e);

#endif
