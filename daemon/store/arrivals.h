/* What a centre accepts from hosts (proto/segment.h): part of the contract of store.h, which includes this.
 *
 * A host arrives before its segments do. A segment is counted once: its key, its digest and its sums are stored in one
 * transaction. A key is that of a tenant, an epoch and a sequence, whichever host of the tenant sends it. Always:
 * counted = what the series of tenants hold + what was removed of them. */
#ifndef PROFD_STORE_ARRIVALS_H
#define PROFD_STORE_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "store/segments.h"

#define STORE_HOST_SIZE 16
#define STORE_MACHINE_SIZE 64 /* of a machine-id, a boot-id or a version, with its NUL */
/* The users of everything that comes from hosts: a user of a host is not a user of this machine. Each tenant is one:
 * tenant n has the number STORE_TENANT − (n − 1), down to STORE_TENANT_LAST. No user of this machine may have one of
 * these numbers. */
#define STORE_TENANT UINT32_C(4294967294) /* tenant 1, `default` */
#define STORE_TENANT_LAST LIMIT_UID_TENANTS
/* The number for rights of the tenant with this id, and back. */
static inline uint32_t store_tenant_uid(int64_t id)
{
    return (uint32_t)(STORE_TENANT - (id - 1));
}
static inline int64_t store_tenant_id(uint32_t uid)
{
    return (int64_t)(STORE_TENANT - uid) + 1;
}
static inline bool store_is_tenant(uint32_t uid)
{
    return uid >= STORE_TENANT_LAST && uid <= STORE_TENANT;
}
#define STORE_CLOCK_MOST INT64_C(300000000000) /* ns: a clock that differs more is corrected */
#define STORE_QUARANTINE_BYTES (64u << 20)     /* of segments that cannot be read */
#define STORE_ARRIVAL_DAYS 3                   /* that digests are kept; keys are kept for ever */

#define STORE_DETAIL_MOST 20000u /* series of all hosts together in an hour up to which each has its own */
enum store_detail_when { STORE_DETAIL_AUTO, STORE_DETAIL_ALWAYS, STORE_DETAIL_NEVER };
/* Does the host stand in the series of what arrives from now on? Without it, functions cannot be asked per host: totals
 * are kept for each series, hour and host (store_filter.by_host). */
struct store_detail {
    enum store_detail_when when;
    uint64_t most; /* of AUTO; 0: STORE_DETAIL_MOST */
};

/* Something is missing in an hour, of one host or of every host. */
struct store_mark {
    const char *host; /* its name; NULL: every host. Lives until the callback returns */
    int64_t hour;     /* since the epoch */
    uint32_t reasons; /* bits of enum message_inexact */
};
/* Adds the reasons of a mark to *reasons. */
static inline bool store_mark_add(void *reasons, const struct store_mark *mark)
{
    *(uint32_t *)reasons |= mark->reasons;
    return true;
}

/* A host is there. */
struct store_arrival {
    uint8_t host[STORE_HOST_SIZE]; /* identity */
    const char *name;              /* a value of a label, not empty */
    int64_t clock;                 /* ns: how far its clock is ahead */
    uint64_t number;               /* last number of its database */
    uint64_t held;                 /* 1 + that number before its start, if it waits for the answer; 0: it does not */
    int64_t now;                   /* ns */
    uint32_t tenant;               /* its number for rights; 0: STORE_TENANT */
    const char *machine, *version; /* of the host, as it says; NULL: it does not */
    const char *boot;              /* boot-id of its kernel; NULL: it does not say */
};
struct store_admission {
    bool restored;
    uint64_t number; /* the greatest that is known of its database; 0: none is */
};

/* A segment from a host. */
struct store_delivery {
    uint8_t host[STORE_HOST_SIZE];
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t digest[SEGMENT_DIGEST_SIZE];
    const struct segment *segment; /* of this key; NULL: it cannot be read */
    const char *fault;             /* then: why */
    const uint8_t *bytes;          /* as it came */
    size_t size;
    int64_t received; /* ns */
};
struct store_receipt {
    bool unknown;                       /* refused: the host has not arrived */
    enum store_segment_outcome outcome; /* now or, if again, when it came first */
    uint64_t number;                    /* of the arrival that has the key */
    bool again;
    bool relabelled; /* it had another label `host` than its host's name */
};

/* A host as the centre knows it. Texts live until the callback returns. */
struct store_fleet_host {
    uint8_t host[STORE_HOST_SIZE];
    const char *name, *tenant, *machine, *version;
    uint32_t uid;                             /* of the tenant: store_is_tenant */
    int64_t first, last, delivered, restored; /* ns; 0: never */
    int64_t copied;                           /* ns: when two machines were last seen with this identity; 0: never */
};

struct store_centre {
    uint8_t name[STORE_CENTRE_SIZE]; /* stays for ever */
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number, backup; /* last given; in the latest backup */
    bool counts_segments;    /* number is also how many segments have arrived */
    int64_t last;            /* ns: when a segment came last; 0: none has */
    struct store_amount counted, removed;
    uint64_t hosts;    /* that have ever arrived */
    uint64_t series;   /* of each host, together, in the hour that has more of the last two with any */
    bool detail;       /* the host stands in the series of what arrives now */
    uint64_t damaged;  /* sums that could not be read and were put aside; verification says so */
    uint64_t disputed; /* builds of which another host than the first has other symbols (offers.h) */
    uint64_t quarantined, quarantine_bytes; /* segments that could not be read; bytes of those that are kept */
};

#endif
