/* What an import into another engine reads of a centre's SQLite database, beside the verbs of store.h. */
#ifndef PROFD_STORE_EXPORT_H
#define PROFD_STORE_EXPORT_H

#include "core/share.h"
#include "store/store.h"

/* From begin to end, a reading handle of sqlite sees one state of the database, whatever a daemon stores meanwhile. */
enum profd_status store_sqlite_hold(struct store *s, struct profd_error *e);
void store_sqlite_let_go(struct store *s);

/* A column of a row: a number, or bytes (of a text, too), of which NULL says that there are none. */
struct store_cell {
    int64_t number;
    const uint8_t *bytes;
    size_t size;
};

/* Tables, and the columns of their rows. Hosts are identities, times are nanoseconds since the epoch if not stated. */
enum store_export {
    STORE_EXPORT_CENTRE,  /* incarnation, last number, removed uploads, ticks, calls; series of users of the machine */
    STORE_EXPORT_TENANTS, /* id, name */
    STORE_EXPORT_TOKENS,  /* hash, id of the tenant, name, uses that are left and that were made, expires, created */
    STORE_EXPORT_ENROLMENTS,   /* key, host, id of the tenant, hash of the token or NULL, name, machine, version, not
                                  after, enrolled, revoked */
    STORE_EXPORT_HOSTS,        /* host, name, id of the tenant, clock, number, restored, first, last, delivered, copied,
                                  epoch or NULL, began, machine, other, version, not after */
    STORE_EXPORT_EPOCHS,       /* epoch, host, sequence up to which every one has arrived */
    STORE_EXPORT_ARRIVALS,     /* epoch, sequence, digest, number, outcome, received (s), host; by received */
    STORE_EXPORT_QUARANTINE,   /* epoch, sequence, received, reason, size, bytes */
    STORE_EXPORT_MARKS,        /* hour, host or NULL: of all, reasons */
    STORE_EXPORT_DELETIONS,    /* build-id, before */
    STORE_EXPORT_ATTESTATIONS, /* build-id, host, id of the tenant, hash or NULL, size, due */
    STORE_EXPORT_OBJECTS /* a row for each sender, in order of delivery: size, whether packed, encoded object (neither
                            matters: it is unpacked), build-id, variant, has names, outdated, of a host, uid, trusted,
                            by an operator, received, name, note, bounds */
};
#define STORE_EXPORT_COLUMNS 16

/* Calls each with every row of the table; what it is given is borrowed until it returns, and it must not call a verb of
 * this handle. A status of each other than OK ends it and is returned. */
enum profd_status store_sqlite_export(struct store *s, enum store_export what,
                                      enum profd_status (*each)(void *context, const struct store_cell *row,
                                                                struct profd_error *e),
                                      void *context, struct profd_error *e);

/* What one host has sent of an hour. */
struct store_export_host {
    uint8_t identity[STORE_HOST_SIZE];
    bool has_totals; /* else what follows is not known apart */
    uint64_t uploads, processes, ticks, calls;
    int64_t first, last;
    uint32_t inexact;
    const struct share *shares; /* by build: nanoseconds, and calls of arcs that begin or end in it */
};

/* All that is stored of a series of hosts in an hour. */
struct store_export_hour {
    uint32_t uid;
    uint32_t program; /* index into builds */
    size_t build_count, label_count, host_count;
    const struct store_build *builds; /* in load order, with their time and calls */
    const struct store_label *labels;
    const struct store_export_host *hosts; /* none twice */
    int64_t hour, first, last;
    uint32_t inexact;
    uint64_t uploads, ticks, calls;
    struct random_groups groups; /* of the processes */
    struct rollup counts;
    struct rollup_spread spread;
};
/* Calls each with every series and hour of hosts, by series. As above. DAMAGED: a sum cannot be read, or is not what
 * the ledger says. */
enum profd_status store_sqlite_export_hours(struct store *s,
                                            enum profd_status (*each)(void *context, const struct store_export_hour *x,
                                                                      struct profd_error *e),
                                            void *context, struct profd_error *e);

#endif
