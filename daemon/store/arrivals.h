/* Uploads of hosts at a centre (proto/segment.h): part of the contract of store.h, which includes this.
 *
 * A host must be admitted before its uploads are stored. Each upload is counted once: its key, its digest and its sums
 * are stored in one transaction. A key consists of a tenant, an epoch and a sequence, but not of the host. Invariant:
 * counted = stored in the series of tenants + removed from them. */
#ifndef PROFD_STORE_ARRIVALS_H
#define PROFD_STORE_ARRIVALS_H

#include "store/segments.h"

#define STORE_HOST_SIZE 16
#define STORE_MACHINE_SIZE 64 /* of a machine-id, a boot-id or a version, with its NUL */
/* The data of hosts belongs to tenants, because users of a host are not users of this machine.
 * Tenant n has the user number STORE_TENANT − (n − 1), down to STORE_TENANT_LAST.
 * No user of this machine may have one of these numbers. */
#define STORE_TENANT UINT32_C(4294967294) /* tenant 1, `default` */
#define STORE_TENANT_LAST LIMIT_UID_TENANTS
/* Converts the id of a tenant to its user number, and back. */
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
#define STORE_QUARANTINE_BYTES (64u << 20)     /* limit of kept uploads that cannot be read */
#define STORE_ARRIVAL_DAYS 3                   /* for which digests are kept; keys are kept for ever */

#define STORE_DETAIL_MOST 20000u /* series of a tenant's hosts in an hour, up to which each host has its own */
enum store_detail_when { STORE_DETAIL_AUTO, STORE_DETAIL_ALWAYS, STORE_DETAIL_NEVER };
/* Whether the series of uploads that arrive from now on contain the host. Without the host, functions cannot be
 * selected by host, and only totals are stored for each series, hour and host (store_filter.by_host). */
struct store_detail {
    enum store_detail_when when;
    uint64_t most; /* of AUTO; 0: STORE_DETAIL_MOST */
};

/* Whose counts. A sum may be of both. */
enum store_origin { STORE_OF_HOSTS = 1, STORE_OF_LOCAL_USERS = 2, STORE_OF_ALL = 3 };
/* Counts of this origin may be missing in an hour. */
struct store_mark {
    enum store_origin of;
    const char *host; /* of one host, its name; NULL: of every host, or local users. Lives until the callback returns */
    int64_t hour;     /* since the epoch */
    uint32_t reasons; /* bits of enum message_inexact */
};

/* A host has connected. */
struct store_arrival {
    uint8_t host[STORE_HOST_SIZE]; /* identity */
    const char *name;              /* a value of a label, not empty */
    int64_t clock;                 /* ns: how far its clock is ahead */
    uint64_t number;               /* last number of its database */
    uint64_t held;                 /* 1 + that number at its start, if it holds counts back; otherwise 0 */
    int64_t now;                   /* ns */
    uint32_t tenant;               /* its user number; 0: STORE_TENANT */
    const char *machine, *version; /* as the host states them; NULL: not stated */
    const char *boot;              /* boot-id of its kernel; NULL: not stated */
};
struct store_admission {
    bool restored;
    uint64_t number; /* the greatest known number of its database; 0: none */
};

/* An upload of a host. */
struct store_delivery {
    uint8_t host[STORE_HOST_SIZE];
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t digest[SEGMENT_DIGEST_SIZE];
    const struct segment *segment; /* decoded; NULL: it cannot be read */
    const char *fault;             /* why it cannot be read */
    const uint8_t *bytes;          /* as received */
    size_t size;
    int64_t received; /* ns */
};
struct store_receipt {
    bool unknown;                       /* refused: the host was not admitted */
    bool later;                         /* not stored yet: rewriting its sum takes long. Put it again */
    enum store_segment_outcome outcome; /* now or, if again, of the first receipt */
    uint64_t number;                    /* of the stored upload with this key */
    uint64_t limited;                   /* uploads of it that are stored as STORE_RELABELLED says */
    bool again;
    bool relabelled; /* its label `host` was not the name of its host, and was replaced */
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
    uint64_t number, backup; /* the last number given to an upload; the last one in the latest backup */
    bool counts_segments;    /* number is also the number of received uploads of hosts */
    int64_t last;            /* ns: when the latest upload arrived; 0: never */
    struct store_amount counted, removed;
    bool restored;                          /* from a backup, and no block that it had sealed was adopted since */
    uint64_t hosts;                         /* that have ever connected */
    uint64_t series;                        /* of all hosts, in the busier one of the last two hours with any */
    bool detail;                            /* series of new uploads contain the host */
    uint64_t damaged;                       /* sums that could not be read and were put aside; verification says so */
    uint64_t disputed;                      /* builds with different symbols on two hosts (offers.h) */
    uint64_t quarantined, quarantine_bytes; /* uploads that could not be read; bytes of the kept ones */
};

#endif
