/* Live processes: what one has counted since its last harvest becomes an upload. The process counts into
 * a sealed memfd (proto/attach_memory.h) that is read with pread only: nothing that its owner does can make a reader
 * fault, wait or allocate.
 *
 * A harvest is the difference between two snapshots, made durable together with the newer one: counted exactly once
 * whatever dies in between. Used by one thread at a time for each process; no two harvests of one process are under way
 * at a time. */
#ifndef PROFD_INGEST_ATTACH_H
#define PROFD_INGEST_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/ingest.h"
#include "proto/attach_memory.h"
#include "proto/buildid.h"
#include "proto/place.h"
#include "proto/status.h"
#include "store/store.h"

/* Which process on which machine: what a harvest is taken from, and what a snapshot remembers. */

/* Identity of a process, by which a later daemon can tell whether it still lives. */
struct attach_origin {
    uint32_t pid;     /* as the daemon sees it; 0: unknown */
    uint64_t started; /* field 22 of /proc/PID/stat; 0: unknown */
    uint8_t boot[16]; /* boot_id of the machine */
    char host[33];    /* machine-id, or "" */
};

struct attach_process;

/* Validates a descriptor from an untrusted process without any call that could block: the seals SHRINK, GROW,
 * FUTURE_WRITE and SEAL (which only memory files can have), tmpfs, no huge pages, a regular file of a size within
 * ATTACH_SIZE_…, then its first page. Takes over the descriptor on OK; on failure it stays the caller's. REFUSED,
 * MALFORMED and UNKNOWN_VERSION name rule and value. */
enum profd_status attach_open(int memfd, uint32_t uid, const struct attach_origin *origin, struct attach_process **out,
                              struct profd_error *e);
/* Closes the descriptor. Accepts NULL. */
void attach_close(struct attach_process *p);

/* The 16 bytes that name it. */
const uint8_t *attach_get_instance(const struct attach_process *p);

/* The owner of the process: the user that attached it, or, if the process has changed its user since, the one that
 * attached it first. Takes effect with the next harvest. */
uint32_t attach_get_user(const struct attach_process *p);
void attach_set_user(struct attach_process *p, uint32_t uid);

/* Where the process runs, as the daemon found it; NULL: not known. Labels of these names are then the daemon's
 * (place_allows). The caller may complete it between two harvests. */
struct process_place *attach_get_place(struct attach_process *p);
/* Copies it. */
void attach_set_place(struct attach_process *p, const struct process_place *place);

/* CPU time of the process in ns, by the kernel's clock, for the next harvest; 0: not known. */
void attach_set_cpu(struct attach_process *p, uint64_t cpu_ns);
/* Seccomp filters that the process had when it began to count, as it says itself. */
uint32_t attach_get_filters(const struct attach_process *p);

/* Continues from the stored snapshot (store_get_instance) instead of from zero: before the first harvest, and after
 * STALE. DAMAGED: the bytes are not a snapshot. generation 0: the store has no snapshot; counts that were already
 * settled here remain settled (DAMAGED if they were released). */
enum profd_status attach_resume(struct attach_process *p, uint64_t generation, const uint8_t *snapshot, size_t size,
                                struct profd_error *e);

/* One harvest on its way to the store. Zero at first. */
struct attach_harvest {
    struct store_upload put; /* for store_put_uploads; borrows from here and from the process */
    bool any;  /* false: nothing is new and nothing need be stored. Until one was settled since attach_open it is true
                * if the program is known: the store must learn that the process is read */
    bool more; /* there was too much for one harvest: settle, then harvest again; put.ended is false till then */
    uint64_t ticks, calls; /* that are new */
    size_t missing_count;  /* builds to request the executables of, as in struct ingest_item */
    struct missing_build *missing;
    void *inside;
};

enum attach_end {
    ATTACH_LIVES,
    ATTACH_ENDED,    /* the process is dead: this is its last harvest */
    ATTACH_NOT_SEEN, /* for attach_close_orphan */
};

/* Reads the memory and computes the difference to the snapshot: builds in load order, labels, histograms of width 1 per
 * build, arcs within and between builds, one tree of stacks, and the collector's counters (proto/collector.h). Sampled
 * callers, as far as unwind information led to them, become arcs (INEXACT_SAMPLED) only if neither the program nor the
 * callee's build counts its calls, because counted and sampled arcs of one callee cannot be added up. Counters that
 * decrease are ignored. cache and generation as in ingest_check: stored executables are used for validation, as for
 * uploads. received: ns. MALFORMED, REFUSED, WRONG_BUILD, TOO_LARGE: the memory is invalid, nothing more of it may be
 * stored. NO_MEMORY, IO and others: try again. O(slots). */
enum profd_status attach_harvest(struct attach_process *p, struct build_cache *cache, uint64_t generation,
                                 int64_t received, enum attach_end end, struct attach_harvest *h,
                                 struct profd_error *e);
/* After store_put_uploads said HARVESTED: the next difference is taken from here. */
void attach_settle(struct attach_process *p, struct attach_harvest *h);
/* Bytes of the snapshot that it keeps; and gives them up: attach_resume comes before the next harvest. */
size_t attach_get_kept(const struct attach_process *p);
void attach_let_go(struct attach_process *p);
/* Frees, settled or not. */
void attach_harvest_done(struct attach_harvest *h);

/* The identity of the process of a snapshot. DAMAGED: the bytes are not a snapshot; NO_MEMORY. */
enum profd_status attach_get_origin(const uint8_t *snapshot, size_t size, struct attach_origin *out,
                                    struct profd_error *e);
/* Returns whether a process that was attached with this origin may still live on this machine and boot (here).
 * started_of gives field 22 of /proc/PID/stat, 0 if there is no such process. A process of another host or boot does
 * not live. A process of another pid namespace cannot be seen from here, so it is assumed to live until the next boot:
 * if its end were stored too early, all its counts would be added again when it comes back. */
bool attach_still_lives(const struct attach_origin *origin, const struct attach_origin *here,
                        uint64_t (*started_of)(uint32_t pid));
/* An end that was not observed: a harvest without counts but with the counter END_NOT_SEEN and INEXACT_END_NOT_SEEN. Of
 * a process that has ended it is the end of its missing children, at the time since which they are. Of one that lives,
 * it marks these children, without the counter. now: ns. */
enum profd_status attach_close_orphan(const struct store_instance *i, bool lives, int64_t now, struct attach_harvest *h,
                                      struct profd_error *e);

/* What people ask about a live process, as of its latest harvest; texts are borrowed until the next one or
 * attach_close. */
struct attach_summary {
    uint8_t instance[ATTACH_INSTANCE_SIZE], parent[ATTACH_INSTANCE_SIZE];
    uint32_t uid, pid; /* as the daemon sees it; that of the process's own namespace: */
    uint32_t pid_inside;
    const char *build_id, *name; /* of its program; "" while unknown */
    size_t label_count;
    const struct store_label *labels;
    int64_t start; /* ns since the epoch, as stated by the process */
    uint32_t rate;
    enum attach_mode mode;
    bool calls_exact, ticks_exact;
    const char *why;                     /* the first reason for inexactness, "" if there is none */
    uint64_t calls, ticks, ticks_inside; /* since its start; ticks_inside: in the collector */
    uint64_t samples;                    /* signals that brought the ticks */
    uint64_t cpu_ns, bytes;              /* memory used */
    uint64_t calls_before;               /* as of the harvest before, for rates */
    int64_t harvested, harvested_before; /* ns; 0: not yet */
};
void attach_get_summary(const struct attach_process *p, struct attach_summary *out);

#endif
