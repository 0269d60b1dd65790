/* Live processes as the collector makes them: a real memfd, sealed, with a mapping that still may write. And a ledger
 * of what harvests brought, in the store's place: a harvest that is not settled never happened. */
#ifndef PROFD_TESTS_INGEST_ATTACH_BED_H
#define PROFD_TESTS_INGEST_ATTACH_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "ingest/attach.h"
#include "ingest/ingest.h"
#include "proto/counts.h"
#include "proto/collector.h"

#define HOST "0123456789abcdef0123456789abcdef"
#define START INT64_C(1760000000000000000)

struct live {
    int fd;
    uint64_t size;
    uint8_t *bytes;
    struct attach_header *h;
};
/* A file of size bytes with the header of instance number n, CPU ticks at 100 a second; sealed if seals. */
void live_open(struct live *l, uint64_t size, unsigned n);
void live_seal(struct live *l);
void live_close(struct live *l);
/* Takes pages; published when kind is given to live_publish. */
struct attach_chunk *live_chunk(struct live *l, uint64_t bytes);
void live_publish(struct attach_chunk *c, uint32_t kind);
/* The next module: build-id of id_size times the byte id, [low, high). */
uint32_t live_module(struct live *l, int id, unsigned id_size, uint64_t low, uint64_t high, const char *name);
void live_labels(struct live *l, const char *text, size_t n);
/* A table of `slots` slots. */
struct attach_chunk *live_table(struct live *l, uint32_t kind, uint32_t slots);
struct attach_slot *live_slot(struct attach_chunk *t, uint32_t slot);
struct attach_identity *live_identity(struct attach_chunk *t, uint32_t slot);
/* Slot counts n more of from → self, both offsets in the modules of those numbers. */
void live_count(struct attach_chunk *t, uint32_t slot, uint32_t from_module, uint32_t from, uint32_t self_module,
                uint32_t self, uint64_t n);
/* Module 1 is the program (id 0xaa, [0x400000, 0x500000)), module 2 a library (0xbb, [0, 0x2000)). */
void live_usual(struct live *l);

/* What was committed. */
struct ledger {
    uint64_t generation;
    uint8_t *snapshot;
    size_t size;
    uint64_t counters[COLLECTOR_COUNTERS_MAX];
    uint64_t ticks, calls, processes, uploads;
    uint32_t inexact;
    size_t labels; /* of the latest upload */
    bool ended;
    int64_t start, end; /* of the latest upload */
    struct ledger_row { /* arcs: from and to; ticks: to, from_build is the dimension's first letter */
        char kind;
        char from_id[132], to_id[132];
        uint64_t from, to, n;
    } * rows;
    size_t count, capacity;
};
/* Commits: what the store does with a harvest. False: the generation is another one. */
bool ledger_put(struct ledger *l, const struct store_upload *put);
/* Of one row; 0 if there is none. Ids are "aa", "bb" … as the byte repeated, "" for nowhere. */
uint64_t ledger_arc(const struct ledger *l, const char *from_id, uint64_t from, const char *to_id, uint64_t to);
uint64_t ledger_ticks(const struct ledger *l, const char *id, uint64_t address);
void ledger_done(struct ledger *l);

extern struct store *store;
extern struct build_cache *checker;
extern struct profd_error sentence;
extern struct attach_origin origin;
void attach_bed_open(void);
void attach_bed_close(void);

/* attach_open on a duplicate of the descriptor, and attach_resume from the ledger if it has anything. */
struct attach_process *live_attach(struct live *l, const struct ledger *from);
/* One harvest that is committed and settled, `more` included. What it was not believed for is in sentence. */
enum profd_status live_harvest(struct attach_process *p, struct ledger *l, int64_t received, enum attach_end end);

#endif
