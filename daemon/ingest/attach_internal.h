/* What the parts of a harvest share. Private to attach*. */
#ifndef PROFD_INGEST_ATTACH_INTERNAL_H
#define PROFD_INGEST_ATTACH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "ingest/attach.h"
#include "proto/attach_memory.h"
#include "proto/collector.h"
#include "proto/counts.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "store/store.h"

/* What is durably remembered of a live process: how far it was counted, and what is needed when it is gone. */

/* Counters of the header, then those that the reader counts. */
enum attach_snapshot_counter {
    ATTACH_SNAPSHOT_NAMELESS = ATTACH_COUNTERS_MAX, /* modules without build-id */
    ATTACH_SNAPSHOT_UNLISTED,                       /* modules beyond LIMIT_BUILDS */
    ATTACH_SNAPSHOT_OUTSIDE,                        /* ticks outside every build */
    ATTACH_SNAPSHOT_COUNTERS
};

/* Counts by place: slot numbers ascend within a table, tables by page. Columns. */
struct attach_place {
    uint32_t page, first, used;
};
struct attach_places {
    uint32_t table_count, count;
    struct attach_place *tables;
    uint32_t *slots;
    uint64_t *counts; /* 1 … 2^63−1 */
};

struct attach_snapshot {
    uint8_t instance[ATTACH_INSTANCE_SIZE];
    struct attach_origin origin;
    int64_t end;   /* ns: of the harvest that it belongs to; the next one begins there */
    uint32_t rate; /* of ticks */
    uint64_t counters[ATTACH_SNAPSHOT_COUNTERS];
    const char *build_id, *name; /* of the program */
    size_t label_count;
    const struct store_label *labels;
    struct attach_places places;
    void *block; /* of a decoded one: owns everything */
};

/* A new block that the caller frees: a format byte, the raw size, a zstd frame
 * with checksum; about 4 bytes a slot. TOO_LARGE, NO_MEMORY or OK. */
enum profd_status attach_snapshot_encode(const struct attach_snapshot *s, uint8_t **out, size_t *size,
                                         struct profd_error *e);
/* DAMAGED: the bytes are not a snapshot; NO_MEMORY. attach_snapshot_done frees. O(bytes). */
enum profd_status attach_snapshot_decode(const uint8_t *in, size_t n, struct attach_snapshot *out,
                                         struct profd_error *e);
void attach_snapshot_done(struct attach_snapshot *s);

/* What the parts of a harvest share. Private to attach*. */

/* --- The memory, copied ------------------------------------------------------------------------------------------- */

/* A copy of what is used, read once. Of a large file all but the tables; these come one at a time. */
struct attach_reading {
    int memfd;
    bool whole;                /* tables are there from the beginning */
    uint8_t *bytes;            /* mapped */
    size_t size;               /* of the mapping */
    struct attach_image image; /* up to the end of the last chunk */
};
enum profd_status attach_reading_open(int memfd, uint64_t file_size, struct attach_reading *r, struct profd_error *e);
enum profd_status attach_reading_load(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e);
/* Reads a table again, all but the header of its chunk: as it is now. */
enum profd_status attach_reading_refresh(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e);
void attach_reading_drop(struct attach_reading *r, uint64_t at, uint64_t size);
/* Accepts a zeroed struct. */
void attach_reading_close(struct attach_reading *r);

/* --- Modules become builds ---------------------------------------------------------------------------------------- */

struct attach_build {
    struct buildid id;
    const char *name;
    uint64_t low, high; /* link-time addresses: the same wherever this build runs */
    bool counted;       /* calls into it are counted, so sampled ones are left out */
};
struct attach_builds {
    uint32_t count; /* in load order, each id once; build 0 is the program */
    struct attach_build *build;
    uint32_t module_count;
    uint32_t *of_module;         /* [module_count + 1]; COUNTS_NOWHERE for those without build-id */
    uint64_t nameless, unlisted; /* modules without build-id, and beyond LIMIT_BUILDS */
};
/* count is 0 as long as the program has no row. MALFORMED for impossible rows, REFUSED for a program without build-id.
 * O(n log n). */
enum profd_status attach_builds_list(const struct attach_image *image, struct arena *a, struct attach_builds *out,
                                     struct profd_error *e);
/* Which build, and COUNTS_NOWHERE for what lies outside. */
static inline uint32_t attach_builds_of(const struct attach_builds *b, uint32_t module)
{
    return module <= b->module_count ? b->of_module[module] : COUNTS_NOWHERE;
}

/* --- Sums by identity --------------------------------------------------------------------------------------------- */

struct attach_arc {
    uint32_t from_build, to_build;
    uint64_t from, to, calls;
};
/* Arcs in order of arrival. One that is hard to find is listed again, which is legal: no input is slow. */
struct attach_arcs {
    struct attach_arc *arc;
    uint32_t *slots; /* index + 1 */
    uint32_t count, capacity, mask;
};

struct attach_tick {
    uint32_t build, index; /* address above the build's low */
    uint64_t ticks;
};
struct attach_ticks {
    struct attach_tick *tick;
    uint32_t count, capacity;
};
/* Ascending by build and index, each once. */
void attach_ticks_sort(struct attach_ticks *s);

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

enum attach_node_state {
    ATTACH_NODE_WAITS, /* it, or one above it, is not published, or of a module that comes with the next snapshot */
    ATTACH_NODE_UNJUDGED,
    ATTACH_NODE_GOOD,
    ATTACH_NODE_BAD, /* impossible, or below such a node: in a cycle, too deep, below a program counter */
};

struct attach_stack_node {
    enum attach_node_state state;
    uint8_t depth;  /* if GOOD */
    uint32_t place; /* in tree, from 1; 0: not listed */
    uint64_t news;  /* ticks that are new */
    struct attach_frame frame;
};

/* The nodes of a process by number, and what is new of them. */
struct attach_stacks {
    uint32_t count; /* highest number + 1; 0: there are no stacks */
    struct attach_stack_node *node;
    uint32_t tree_count;
    struct counts_node *tree; /* for counts_tree_sort */
    const struct attach_frame **frame;
};
/* Makes the tree of at most `most` new ticks, and adds their sampled pairs of caller and callee, once for each stack.
 * A pair's callee is where its function begins. O(nodes · depth). */
enum profd_status attach_stacks_list(struct attach_stacks *s, const struct attach_builds *b, uint64_t most,
                                     struct attach_arcs *pairs, struct arena *a, struct profd_error *e);

/* --- What is new -------------------------------------------------------------------------------------------------- */

/* What is new since a snapshot, and the next one's counts. */
struct attach_difference {
    struct arena *arena; /* the caller's: of all lists */
    struct attach_arcs calls, pairs;
    struct attach_ticks ticks;
    struct attach_stacks stacks;
    uint64_t outside;            /* ticks that are new, outside every build */
    uint64_t calls_total;        /* since the process began */
    uint64_t bad, not_yet;       /* invalid slots; slots of modules that come with the next snapshot */
    bool more;                   /* LIMIT_ATTACH_NEWS was reached: the rest is new with the next harvest */
    struct attach_places places; /* the next snapshot's counts */
};
/* *d is zero but for its arena. builds learn which of them are counted. Nodes of stacks are read before the ticks to
 * which they belong, so that no stack is there without its tick. O(slots). */
enum profd_status attach_difference_make(struct attach_reading *r, struct attach_builds *builds,
                                         const struct attach_places *before, struct attach_difference *d,
                                         struct profd_error *e);

/* --- Counts of an upload ------------------------------------------------------------------------------------------ */

struct attach_news {
    const struct attach_builds *builds;
    struct attach_difference *difference;
    const uint64_t *counters; /* [COLLECTOR_COUNTERS_MAX] */
    uint32_t rate;
};

/* --- The process -------------------------------------------------------------------------------------------------- */

struct attach_process {
    int memfd;
    uint32_t uid;
    uint64_t size; /* of the file */
    struct attach_origin origin;
    uint32_t filters; /* of the header, when it was attached */
    uint64_t cpu_ns;  /* by the kernel, for the next harvest; 0: not known */
    bool has_place;
    struct process_place place;
    int64_t behind;      /* ns: since when the difference is that is delivered in pieces; 0: none is */
    bool told;           /* a harvest of it was stored since attach_open */
    uint64_t generation; /* of the store's snapshot, 0: it has none */
    uint8_t *snapshot;   /* up to where all is counted; NULL: nothing is yet */
    size_t snapshot_size;
    struct attach_summary summary;
    void *texts; /* of summary */
};

/* A harvest's own memory. */
struct attach_inside {
    struct arena *arena;
    uint8_t *counts, *snapshot;
    uint8_t parents[ATTACH_PARENTS_MAX][ATTACH_INSTANCE_SIZE];
    struct store_build *builds;
    struct attach_summary summary;
};
struct attach_inside *attach_inside_new(void);
void attach_inside_free(struct attach_inside *in);
/* The summary of a harvest becomes that of the process. Without memory for its texts these are "". */
void attach_publish(struct attach_process *p, const struct attach_summary *summary);

/* Validates an upload of a live process by the rules for all uploads, and fills in h's. */
struct attach_delivery {
    uint32_t uid;
    int64_t received;
    int64_t start;
    const uint8_t *instance;
    const char *host;
    bool first;
    uint32_t inexact;
    size_t build_count;
    const struct attach_build *builds;
    size_t label_count;
    const struct store_label *labels;
};

#endif
