/* The shared memory of a live process: a sealed memfd that the daemon receives with ATTACH and reads with pread. This
 * header is the contract; attach_memory.c parses and validates such bytes. Pure.
 *
 * The file consists of one page of header (struct attach_header) and chunks of whole pages up to `used`. Numbers have
 * the machine's byte order, which is little-endian on every supported machine. A chunk is published by its magic, which
 * is written last; a page that does not begin with it is skipped. Chunks never move, shrink or disappear. Kinds of
 * chunks:
 * - MODULES: rows of struct attach_module_row, the objects of the process; ids count from 1 in the order of rows
 * - NAME: the name of a module that is too long for its row
 * - LABELS: "name=value" strings, each with its NUL
 * - ARCS: counted calls
 * - SAMPLES: ticks by program counter
 * - STACKS: whole stacks of ticks, as a tree
 *
 * ARCS and SAMPLES are tables: `primary` + `hash` slots {key, count} after the chunk's header, then as many
 * identities {from, self, modules}. Keys are private to the client. An identity is written once, its modules last, and
 * never changes; its count only grows. A reader uses identities and counts, and adds up counts of the same identity.
 *
 * A chunk of STACKS has `primary` nodes (struct attach_node) after its header. They have the numbers `hash` …
 * `hash` + `primary` − 1 in the process's tree, ascending from chunk to chunk; a node names its parent by number, 0 if
 * it is an outermost frame. One frame may have several nodes with the same parent, or the same path several times: a
 * reader adds them up. The chunk has a magic of its own, and no page in it begins with ATTACH_CHUNK_MAGIC, so that a
 * reader that does not know the kind skips it page by page. A tick is added to SAMPLES first, then to its node. */
#ifndef PROFD_PROTO_ATTACH_MEMORY_H
#define PROFD_PROTO_ATTACH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "proto/status.h"

#define ATTACH_MAGIC 0x315454414650ull  /* "PFATT1" */
#define ATTACH_CHUNK_MAGIC 0x4b434650u  /* "PFCK" */
#define ATTACH_STACKS_MAGIC 0x54534650u /* "PFST" */
#define ATTACH_LAYOUT 1
#define ATTACH_MEMORY_NAME "profd-collect" /* of the memfd, as memfd_create(2) takes it */
#define ATTACH_PAGE 4096u
#define ATTACH_SIZE_MIN (1u << 20) /* bytes of the whole file */
#define ATTACH_SIZE_MAX (1u << 30)
#define ATTACH_MODULES_MAX 8190u
#define ATTACH_MODULES_PER_CHUNK 63u
#define ATTACH_MODULE_CHUNKS 130u
#define ATTACH_NAME_MAX 4096u
#define ATTACH_LABEL_BYTES 16512u  /* of a LABELS chunk's text, NULs included */
#define ATTACH_MODULE_NONE 0xffffu /* an identity's address outside every known module */
#define ATTACH_INSTANCE_SIZE 16
#define ATTACH_NODES_MAX 65535u /* numbers of nodes: 1 … this */
#define ATTACH_INCOMPLETE 1u    /* a node's `self` outside modules: the outer frames are not known */
#define ATTACH_BEGIN_UNKNOWN UINT32_MAX
#define ATTACH_PARENTS_MAX 3 /* processes that count a child in CHILDREN */

enum attach_mode { ATTACH_MODE_OFF, ATTACH_MODE_CPU };

/* X(NAME, text): counters of the header. They only grow, except CPU_NS and ENDED, which are set. Numbers are never
 * reused. */
#define ATTACH_COUNTER_LIST(X)                                                                                         \
    X(ENDED, "1 if the process is about to end by exit")                                                               \
    X(CPU_NS, "CPU time since the process began to count, when it last looked for the daemon or ended by exit")        \
    X(TICKS, "weighted ticks of the sampling timer: those below and those in SAMPLES")                                 \
    X(TICKS_INSIDE, "ticks inside the collector itself")                                                               \
    X(TICKS_BLOCKED, "ticks that came late because the signal was blocked, at unknown addresses")                      \
    X(TICKS_DROPPED, "ticks for which there was no memory")                                                            \
    X(CALLS_LOST, "calls for which there was no memory")                                                               \
    X(CALLS_JUNK, "calls from addresses outside all objects: counted for the callee, with an unknown caller")          \
    X(THREADS, "threads that have a table or a timer")                                                                 \
    X(THREADS_UNTIMED, "threads for which no timer could be created")                                                  \
    X(MODULES_LOST, "modules for which there was no row: their addresses are unknown")                                 \
    X(FOREIGN_SIGPROF, "1 if the program installed its own SIGPROF handler: no ticks from then on")                    \
    X(PAIRS_DROPPED, "ticks without their whole stack: no memory, or during a dlclose()")                              \
    X(FORKS_UNSEEN, "1 if a child created without fork() counted into this memory")                                    \
    X(PAUSES, "number of times that counting was switched off (by moncontrol or the daemon)")                          \
    X(OVERLAPS,                                                                                                        \
      "pairs of instrumented objects at addresses that differ by a multiple of 4 GiB: calls may be confused")          \
    X(LABELS_LEFT_OUT, "labels that break the rules of proto/label.h, or for which there was no memory")               \
    X(CHILDREN, "children created by fork() that began to count, into memories of their own")                          \
    X(IS_CHILD,                                                                                                        \
      "number of processes that count this one in CHILDREN: the parent, and elders if the parent had not counted")     \
    X(LEFT_OUT, "functions that are not counted, on request")                                                          \
    X(TICKS_UNDELIVERED, "ticks, none of those above, that were due and had not come when their thread ended")         \
    X(SAMPLES, "signals that brought ticks: where the kernel's timer is slower than the rate, one brings several")

enum attach_counter {
#define X(name, text) ATTACH_COUNTER_##name,
    ATTACH_COUNTER_LIST(X)
#undef X
        ATTACH_COUNTER_COUNT
};
#define ATTACH_COUNTERS_MAX 64

/* The first page. */
struct attach_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t machine;                       /* e_machine of the process: 62 x86-64, 183 AArch64 */
    uint64_t size;                          /* of the file */
    uint64_t used;                          /* bytes, a multiple of the page; grows */
    uint8_t instance[ATTACH_INSTANCE_SIZE]; /* random, identifies this process */
    uint8_t parent[ATTACH_INSTANCE_SIZE];   /* the process it was forked from; zeros if none was counted */
    uint32_t pid;                           /* in its own namespace: for people */
    uint32_t rate;                          /* ticks per second */
    uint32_t mode;                          /* enum attach_mode */
    uint32_t modules;                       /* rows taken */
    uint64_t start;                         /* ns since 1970 */
    uint8_t elders[ATTACH_PARENTS_MAX - 1][ATTACH_INSTANCE_SIZE]; /* the parent's own parent, and so on; IS_CHILD − 1 of
                                                                   * them */
    uint64_t counters[ATTACH_COUNTERS_MAX];
    uint64_t cpu_before; /* ns of CPU time that the process had used when it began to count: exec keeps the clock */
    uint32_t filters;    /* number of its seccomp filters at that time (proto/filters.h) */
    uint32_t reserved;
};

enum attach_kind {
    ATTACH_KIND_MODULES = 1,
    ATTACH_KIND_NAME = 2,
    ATTACH_KIND_LABELS = 3,
    ATTACH_KIND_ARCS = 4,
    ATTACH_KIND_SAMPLES = 5,
    ATTACH_KIND_STACKS = 6,
};

struct attach_chunk {
    uint32_t magic; /* written last */
    uint32_t kind;
    uint64_t size; /* bytes, this header included; a multiple of the page */
    uint64_t client[3];
    uint32_t primary; /* tables: slots of the first area; STACKS: nodes; MODULES: id of the first row; others: bytes of
                         text */
    uint32_t hash;    /* tables: slots of the second area; STACKS: number of the first node */
    uint64_t spare[2];
};

struct attach_slot {
    uint64_t key;
    uint64_t count;
};

struct attach_identity {
    uint32_t from, self;               /* bytes above the module's low; 0 outside modules and in SAMPLES */
    uint16_t from_module, self_module; /* self_module is written last: 0 means not yet */
};

enum attach_node_kind {
    ATTACH_NODE_RETURN, /* a return address */
    ATTACH_NODE_PC,     /* where the tick found the thread, or, when nodes get scarce, where the function at that place
                           begins by its unwind information; has no children */
};

/* A node has its identity and its count, so that a frame costs one cache line. parent is the first field, because a
 * page must not begin with the magic of a chunk. */
struct attach_node {
    uint32_t parent;
    uint32_t self;  /* bytes above the module's low; outside modules 0, or ATTACH_INCOMPLETE at an outermost frame */
    uint32_t begin; /* of the function that contains self, in the same module, by its unwind information, which then led
                       to the parent, too; else ATTACH_BEGIN_UNKNOWN: the frame pointer did */
    uint16_t kind;  /* enum attach_node_kind */
    uint16_t module; /* written last: 0 means not yet */
    uint64_t key;    /* private to the client */
    uint64_t count;  /* ticks that end here */
};

struct attach_module_row {
    uint32_t state;     /* 0 not yet, 1 there: written last */
    uint32_t loaded;    /* 1 while it is in the process */
    uint64_t low, high; /* link-time addresses of its segments, [low, high) */
    uint64_t bias;      /* what the loader added */
    uint16_t id_size;   /* bytes of the build-id; 0: it has none */
    uint16_t name_size; /* bytes of its name, no NUL */
    uint32_t pad;
    uint64_t name_at; /* offset of a NAME chunk's text in the file; 0: the name is in the row */
    uint8_t id[BUILDID_BYTES_MAX];
    char name[144];
};

_Static_assert(sizeof(struct attach_header) <= ATTACH_PAGE, "the header is one page");
_Static_assert(sizeof(struct attach_chunk) == 64 && sizeof(struct attach_slot) == 16, "as specified");
_Static_assert(sizeof(struct attach_identity) == 12 && sizeof(struct attach_module_row) == 256, "as specified");
_Static_assert(sizeof(struct attach_node) == 32 && ATTACH_PAGE % sizeof(struct attach_node) == 0 &&
                   sizeof(struct attach_chunk) % sizeof(struct attach_node) == 0,
               "every page begins with a node's parent");
_Static_assert(64 + ATTACH_MODULES_PER_CHUNK * 256 <= 16384, "a chunk of modules is four pages");

/* --- the daemon's page -------------------------------------------------------------------------------------------- */

/* The control page, which the daemon writes: a memfd of ATTACH_PAGE bytes, sealed SHRINK, GROW, FUTURE_WRITE and SEAL,
 * which the process receives with the ACK of ATTACH and can only read. The process maps it and checks it at every tick.
 * It ignores a page with another magic or layout, or one that could shrink. The daemon writes single fields at any
 * time; when it ends, the last values hold until another daemon sends its page. A forked child starts without a page
 * and counts until it has its own. As long as `beat` changes and `asked` does not, a tick makes no system call.
 *
 * A tick rate below the header's: the counts keep the header's rate. The process takes every k-th tick, where k is the
 * header's rate / rate rounded up, and each such tick has the weight k. Therefore a rate above the header's has no
 * effect. */
#define ATTACH_PAGE_MAGIC 0x474150414650ull /* "PFAPAG" */
struct attach_page {
    uint64_t magic;
    uint32_t layout;   /* ATTACH_LAYOUT */
    uint32_t paused;   /* 1: count neither calls nor ticks */
    uint32_t rate;     /* ticks per second from now on, at most ATTACH_RATE_MAX; 0: as the process was started */
    uint32_t beat;     /* changes at least every second while the daemon runs; 0: the connection is closed */
    uint32_t asked;    /* changes when the process is to read its connection */
    uint32_t filtered; /* 1: the process has more seccomp filters than at its start, and must not make system calls */
};
#define ATTACH_RATE_MAX 10000u

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Validates the first page of a memfd of file_size bytes; *used is the number of bytes to read. MALFORMED: not such a
 * file, or impossible numbers. UNKNOWN_VERSION: another layout. */
enum profd_status attach_measure(const uint8_t *page, size_t n, uint64_t file_size, uint64_t *used,
                                 struct profd_error *e);

/* A snapshot: a copy of the first n bytes, 8-byte aligned, read once. Points into bytes. */
struct attach_image {
    const uint8_t *bytes;
    size_t size;
    struct attach_header header;
    uint32_t module_count; /* ids 1 … module_count have rows, which may not be written yet */
    uint64_t slots;        /* of all tables, and nodes */
    const char *labels;    /* NULL if there are none */
    size_t labels_size;
    uint32_t nodes;                              /* the highest number of a node, 0 if there are no stacks */
    uint64_t skipped;                            /* bytes without a chunk: taken but not yet published */
    uint32_t module_chunk[ATTACH_MODULE_CHUNKS]; /* page numbers */
};

/* Validates a snapshot: every chunk is inside it, none overlaps another, sizes fit. O(n / page). The sentence of
 * MALFORMED names offset and value; a process that follows the contract never causes it, even if it was interrupted. */
enum profd_status attach_parse(const uint8_t *bytes, size_t n, struct attach_image *out, struct profd_error *e);

struct attach_module {
    bool has_id, loaded;
    struct buildid id; /* if has_id */
    uint64_t low, high, bias;
    const char *name; /* not NUL-terminated, of any bytes */
    size_t name_size;
};

/* Reads module 1 … module_count. False: its row is not yet written, or its values are impossible; *bad tells. O(1). */
bool attach_module_get(const struct attach_image *image, uint32_t id, struct attach_module *out, bool *bad);

/* Reads the next label; *at begins with 0. False at the end, or if the text is not name=value; *bad tells. */
bool attach_label_next(const struct attach_image *image, size_t *at, const char **name, size_t *name_size,
                       const char **value, bool *bad);

/* A count with its identity. Addresses are link-time addresses of the module with that id; those of ATTACH_MODULE_NONE
 * are 0. */
struct attach_count {
    enum attach_kind kind; /* ARCS, SAMPLES (from is nowhere), or STACKS (from is the node's number, nowhere) */
    uint32_t from_module, self_module;
    uint64_t from, self;
    uint64_t count;
    uint32_t table, slot; /* place: page number of the table and index, the same in every snapshot of this file */
};

struct attach_cursor {
    uint64_t at; /* of the chunk */
    uint32_t slot;
    uint64_t not_yet; /* identities of modules that the snapshot has no row for: they come with the next one */
    uint64_t bad;     /* addresses outside their module, counts of 2^63 and more: left out */
};

/* Returns every count above 0, table after table; chunks of STACKS are tables here. Begin with a cursor of zeros. False
 * at the end. O(slots) for all. */
bool attach_count_next(const struct attach_image *image, struct attach_cursor *c, struct attach_count *out);
/* The same in two steps, for readers that have only one table in memory. attach_table_next moves the cursor to the next
 * table, which has *size bytes from c->at; attach_table_count returns its counts. Before that call only the header of
 * the table must be present. */
bool attach_table_next(const struct attach_image *image, struct attach_cursor *c, uint64_t *size);
bool attach_table_count(const struct attach_image *image, struct attach_cursor *c, struct attach_count *out);

/* A frame of a stack: a node of the tree with link-time addresses. */
struct attach_frame {
    uint32_t parent; /* 0: it is an outermost frame */
    enum attach_node_kind kind;
    bool incomplete; /* stands for the outer frames, which are not known */
    uint32_t module; /* ATTACH_MODULE_NONE: outside every module, or incomplete; then the addresses are 0 */
    uint64_t address;
    bool has_begin;
    uint64_t begin; /* as in struct attach_node; if has_begin */
};

enum attach_there {
    ATTACH_THERE,
    ATTACH_NOT_YET, /* not published, or of a module that comes with the next snapshot */
    ATTACH_BAD,     /* impossible values */
};

/* Reads the node of a slot in the cursor's table, which must be one of STACKS and in memory. *number is its number in
 * the tree. O(1). */
enum attach_there attach_node_get(const struct attach_image *image, const struct attach_cursor *c, uint32_t slot,
                                  uint32_t *number, struct attach_frame *out);
/* Returns the kind of the cursor's table, and in *slots the number of its slots or nodes. */
enum attach_kind attach_table_kind(const struct attach_image *image, const struct attach_cursor *c, uint32_t *slots);

/* Returns the name of a counter ("CPU_NS"); NULL if there is none. */
const char *attach_counter_name(unsigned counter);

/* Returns whether every call was counted with both ends: none lost, no junk, no unknown module or child. Calls that
 * begin outside every object of the process (generated code) are junk. If not, *why (may be NULL) is the counter that
 * is the reason. */
bool attach_calls_exact(const struct attach_image *image, enum attach_counter *why);
/* Returns whether no tick was dropped or late, not too many were undelivered, every thread has a timer, and the program
 * has no SIGPROF handler of its own. *why as above. */
bool attach_ticks_exact(const struct attach_image *image, enum attach_counter *why);
/* Returns whether the undelivered ticks are more than the error of a sample of that size: their square exceeds the
 * number of all ticks (the standard error of a Poisson number n is √n), and they stand for 50 ms or more. Fewer are
 * lost in every program, because the kernel checks timers of CPU time only at its own clock ticks. */
bool attach_undelivered_matter(uint64_t undelivered, uint64_t ticks, uint32_t rate);

#endif
