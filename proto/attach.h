/* What a live process counts into: a sealed memfd that the daemon is handed (ATTACH) and reads with pread. This header
 * is the contract; attach.c reads and judges such bytes. Pure.
 *
 * The file: one page of header (struct attach_header), then chunks of whole pages up to `used`. Numbers have the
 * machine's byte order, which is little-endian on every machine that profd counts on. A chunk is published by its
 * magic, written last: a page that does not begin with it is skipped. Chunks never move, shrink or go away. The client
 * works in chunks MODULES  rows of struct attach_module_row: the objects of the process; their ids count from 1 in the
 * order of the rows NAME     a module's name that is too long for its row LABELS   "name=value" strings, each with its
 * NUL ARCS     calls that were counted;  SAMPLES  ticks by program counter;  PAIRS  caller → callee as sampled stacks
 * show The last three are tables: `primary` + `hash` slots {key, count} behind the chunk's header, then as many
 * identities {from, self, modules}. The keys are the client's business. An identity is written once, its modules last,
 * and holds for ever; the count beside it only grows. A reader looks at identities and counts, and sums what has the
 * same identity. */
#ifndef PROFD_PROTO_ATTACH_H
#define PROFD_PROTO_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "proto/status.h"

#define ATTACH_MAGIC 0x315454414650ull /* "PFATT1" */
#define ATTACH_CHUNK_MAGIC 0x4b434650u /* "PFCK" */
#define ATTACH_LAYOUT 1
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

enum attach_mode { ATTACH_MODE_OFF, ATTACH_MODE_CPU, ATTACH_MODE_WALL };

/* X(NAME, text): words of the header that only grow, except CPU_NS and ENDED, which are set. Numbers are never reused.
 */
#define ATTACH_WORD_LIST(X)                                                                                            \
    X(ENDED, "1 when the process said that it is about to end in good order")                                          \
    X(CPU_NS, "CPU time since the process began to count, as of its latest tick or its end")                           \
    X(TICKS, "ticks of the sampling timer, by weight: all that follow, and those of SAMPLES")                          \
    X(TICKS_INSIDE, "ticks inside the collector itself")                                                               \
    X(TICKS_BLOCKED, "ticks that came late because the signal was blocked: nobody knows where")                        \
    X(TICKS_DROPPED, "ticks for which there was no room")                                                              \
    X(CALLS_LOST, "calls for which there was no room")                                                                 \
    X(CALLS_JUNK, "calls whose caller was no code: counted for the callee, from nowhere")                              \
    X(THREADS, "threads that were given a table or a timer")                                                           \
    X(THREADS_UNTIMED, "threads that could not be given a timer")                                                      \
    X(MODULES_LOST, "modules for which there was no row; their addresses stand as from nowhere")                       \
    X(FOREIGN_SIGPROF, "1 when the program uses SIGPROF itself: no ticks from then on")                                \
    X(PAIRS_DROPPED, "sampled pairs for which there was no room")                                                      \
    X(FORKS_UNSEEN, "1 when a child was found to count here: made without fork()")                                     \
    X(PAUSES, "how often counting was switched off (moncontrol, or the daemon)")                                       \
    X(OVERLAPS, "pairs of instrumented objects whose code differs in address by whole 4 GiB: calls of one may stand "  \
                "as the other's")

enum attach_word {
#define X(name, text) ATTACH_WORD_##name,
    ATTACH_WORD_LIST(X)
#undef X
        ATTACH_WORD_COUNT
};
#define ATTACH_WORD_ROOM 64

/* The first page. */
struct attach_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t machine;                       /* e_machine of the process: 62 x86-64, 183 AArch64 */
    uint64_t size;                          /* of the file */
    uint64_t used;                          /* bytes, a multiple of the page; grows */
    uint8_t instance[ATTACH_INSTANCE_SIZE]; /* random: names this process for ever */
    uint8_t parent[ATTACH_INSTANCE_SIZE];   /* the process it was forked from; zeros if none was counted */
    uint32_t pid;                           /* in its own namespace: for people */
    uint32_t rate;                          /* ticks per second */
    uint32_t mode;                          /* enum attach_mode */
    uint32_t modules;                       /* rows taken */
    uint64_t start;                         /* ns since 1970 */
    uint64_t reserved[4];
    uint64_t words[ATTACH_WORD_ROOM];
};

enum attach_kind {
    ATTACH_KIND_MODULES = 1,
    ATTACH_KIND_NAME = 2,
    ATTACH_KIND_LABELS = 3,
    ATTACH_KIND_ARCS = 4,
    ATTACH_KIND_SAMPLES = 5,
    ATTACH_KIND_PAIRS = 6,
};

struct attach_chunk {
    uint32_t magic; /* written last */
    uint32_t kind;
    uint64_t size; /* bytes, this header included; a multiple of the page */
    uint64_t client[3];
    uint32_t primary; /* tables: slots of the first area; MODULES: id of the first row; others: bytes of text */
    uint32_t hash;    /* tables: slots of the second area */
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

struct attach_module_row {
    uint32_t state;     /* 0 not yet, 1 there: written last */
    uint32_t loaded;    /* 1 while it is in the process */
    uint64_t low, high; /* link-time addresses of its segments, [low, high) */
    uint64_t bias;      /* what the loader added */
    uint16_t id_size;   /* bytes of the build-id; 0: it has none */
    uint16_t name_size; /* bytes of its name, no NUL */
    uint32_t pad;
    uint64_t name_at; /* offset in the file of a NAME chunk's text, 0: the name stands in the row */
    uint8_t id[BUILDID_BYTES_MAX];
    char name[144];
};

_Static_assert(sizeof(struct attach_header) <= ATTACH_PAGE, "the header is one page");
_Static_assert(sizeof(struct attach_chunk) == 64 && sizeof(struct attach_slot) == 16, "as specified");
_Static_assert(sizeof(struct attach_identity) == 12 && sizeof(struct attach_module_row) == 256, "as specified");
_Static_assert(64 + ATTACH_MODULES_PER_CHUNK * 256 <= 16384, "a chunk of modules is four pages");

/* --- the daemon's word -------------------------------------------------------------------------------------------- */

/* A page that the daemon owns, handed over with the ACK of ATTACH (one descriptor): a memfd of ATTACH_PAGE bytes,
 * sealed SHRINK, GROW, FUTURE_WRITE and SEAL, so that the process can only read it. It maps it and looks at every tick;
 * one whose first two words it does not know, or that could shrink, is as good as none. The daemon writes single words,
 * at any time; when it ends, the last word holds until another daemon's page comes. A child begins without one: it
 * counts until it has its own. Ticks of another rate: the header's rate stays what all counts are of. The process takes
 * every k-th of its periods, k being the header's rate / rate rounded up, and each such tick weighs k. Hence a rate
 * above the header's is the header's. */
#define ATTACH_PAGE_MAGIC 0x474150414650ull /* "PFAPAG" */
struct attach_page {
    uint64_t magic;
    uint32_t layout; /* ATTACH_LAYOUT */
    uint32_t paused; /* 1: count neither calls nor ticks */
    uint32_t rate;   /* ticks per second from now on, at most ATTACH_RATE_MAX; 0: as the process was started */
    uint32_t reserved;
};
#define ATTACH_RATE_MAX 10000u

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Judges the first page of a memfd of file_size bytes; *used is how much of it to read. MALFORMED: not such a file, or
 * numbers that cannot be; UNKNOWN_VERSION: another layout. */
enum profd_status attach_measure(const uint8_t *page, size_t n, uint64_t file_size, uint64_t *used,
                                 struct profd_error *e);

/* A snapshot: a copy of the first n bytes, 8-byte aligned, read once. Points into bytes. */
struct attach_image {
    const uint8_t *bytes;
    size_t size;
    struct attach_header header;
    uint32_t module_count; /* ids 1 … module_count are there (attach_module_get may still say no for one) */
    uint64_t slots;        /* of all tables */
    const char *labels;    /* NULL if there are none */
    size_t labels_size;
    uint64_t skipped;                            /* bytes without a chunk: taken but not yet published */
    uint32_t module_chunk[ATTACH_MODULE_CHUNKS]; /* page numbers */
};

/* Judges a snapshot as a whole: every chunk lies inside it, none overlaps another, sizes fit. O(n / page). The sentence
 * of MALFORMED names offset and value; a process that follows the contract never gives one, however it was interrupted.
 */
enum profd_status attach_parse(const uint8_t *bytes, size_t n, struct attach_image *out, struct profd_error *e);

struct attach_module {
    bool has_id, loaded;
    struct buildid id; /* if has_id */
    uint64_t low, high, bias;
    const char *name; /* not NUL-terminated, of any bytes */
    size_t name_size;
};

/* Module 1 … module_count. False: its row is not yet written. MALFORMED values are answered by *bad. O(1). */
bool attach_module_get(const struct attach_image *image, uint32_t id, struct attach_module *out, bool *bad);

/* One label; at begins with 0. False at the end, or where the text is not name=value: then *bad. */
bool attach_label_next(const struct attach_image *image, size_t *at, const char **name, size_t *name_size,
                       const char **value, bool *bad);

/* One counted thing. Addresses are link-time addresses of the module with that id; ATTACH_MODULE_NONE: from nowhere,
 * address 0. */
struct attach_count {
    enum attach_kind kind; /* ARCS, SAMPLES (from is nowhere) or PAIRS */
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

/* Every count above 0, table after table. Begin with a cursor of zeros. O(slots) for all. */
bool attach_count_next(const struct attach_image *image, struct attach_cursor *c, struct attach_count *out);
/* The same in two steps, for readers that have one table in memory at a time: moves the cursor to the next table, of so
 * many bytes from c->at on; and gives what that table counts. Only the header of a table must be there before its turn,
 * and nothing after it but its header. */
bool attach_table_next(const struct attach_image *image, struct attach_cursor *c, uint64_t *size);
bool attach_table_count(const struct attach_image *image, struct attach_cursor *c, struct attach_count *out);

/* Name of a word ("CPU_NS") and what it means; NULL for others. */
const char *attach_word_name(unsigned word);
const char *attach_word_text(unsigned word);

/* True if every call was counted and has both its ends: nothing lost, no junk, no unseen module or child. Calls that
 * begin outside every object of the process (generated code) are junk. Ticks are judged by attach_ticks_exact: none
 * dropped or late, no thread without a timer, SIGPROF ours. *why (may be NULL) is the word that says no. */
bool attach_calls_exact(const struct attach_image *image, enum attach_word *why);
bool attach_ticks_exact(const struct attach_image *image, enum attach_word *why);

#endif
