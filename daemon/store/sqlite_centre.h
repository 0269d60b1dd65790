/* What a centre has accepted, as rows. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_CENTRE_H
#define PROFD_STORE_SQLITE_CENTRE_H

#include "store/sqlite_sums.h"

/* The row of table centre. */
struct sqlite_centre {
    uint8_t name[STORE_CENTRE_SIZE], incarnation[STORE_INCARNATION_SIZE];
    uint64_t number, backup;
    int64_t last;
    struct store_amount counted, removed;
    bool restored; /* and nothing was adopted since */
};
enum profd_status sqlite_centre_load(struct store *s, struct sqlite_centre *out, struct profd_error *e);
enum profd_status sqlite_centre_save(struct store *s, const struct sqlite_centre *c, struct profd_error *e);

/* Something of a series was removed, by retention or delete. Inside a write transaction. */
enum profd_status sqlite_centre_removed(struct store *s, const struct sqlite_identity *series,
                                        const struct sqlite_sums *gone, struct profd_error *e);
/* A backup contains the arrivals with numbers up to this one. Inside a write transaction. */
enum profd_status sqlite_centre_backed_up(struct store *s, int64_t number, struct profd_error *e);
/* Removes digests of arrivals before then (ns) of some epochs; their keys stay. Inside a write transaction. */
enum profd_status sqlite_centre_forget(struct store *s, int64_t before, struct profd_error *e);
/* Marks an hour of a host, or of these. *changed becomes true if it was not marked so, and never false. Inside a write
 * transaction. */
enum { SQLITE_MARK_LOCAL = -1, SQLITE_MARK_HOSTS = 0 }; /* what local users counted; every host */
enum profd_status sqlite_hour_mark(struct store *s, int64_t hour, int64_t host, uint32_t reasons, bool *changed,
                                   struct profd_error *e);
/* Of a database that was restored from a backup: marks the hours from the latest sign of life in it until now for local
 * users. If the last segment in it came longer ago than hosts keep them, marks the hours from then on of which hosts
 * may have removed segments. Nothing in an empty database. Not inside a transaction. O(hours), at most a year. */
enum profd_status sqlite_mark_gap(struct store *s, struct profd_error *e);
/* Reports on what came from hosts are new from this number on. Inside a write transaction. */
enum profd_status sqlite_centre_touch(struct store *s, int64_t number, uint32_t from, uint32_t to,
                                      struct profd_error *e);

#endif
